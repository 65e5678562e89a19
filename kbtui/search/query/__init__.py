"""From a query to hits: `parser` parses it, `ranking` scores documents, `hits` presents the best.

`semantic` compares vectors, `fusion` combines that with the lexical scores. Imports from index/ and
embedding/.
"""
