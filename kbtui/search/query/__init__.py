"""From a query to hits: `parser` reads it, `ranking` scores all documents, `hits` shows the best.

`semantic` compares by meaning, `fusion` joins that with the words. Stands above index/ and
embedding/.
"""
