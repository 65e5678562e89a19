"""The lexical index: files split into chunks, with postings and properties (SQLite).

`builder` brings a `generation` up to date with the files; `bm25f.Corpus` is a snapshot that queries
run on, `chunk_rows.TreeIndex` the same for the files of one commit. Nothing here knows of queries
or vectors.
"""
