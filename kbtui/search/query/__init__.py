"""What answers a query: `parser` reads it, `ranking` scores every document, `hits` shows the best.

`semantic` compares by meaning, `fusion` joins that with the words, `relevance` tells an answer from
none. Stands above index/ and embedding/.
"""
