"""Files cut into chunks, with their postings (Whoosh) and their properties (SQLite).

`builder` brings a `generation` up to date with the files; `bm25f.Corpus` is a state that queries
run on, `rows.TreeIndex` the same for the files of one commit. Knows neither queries nor vectors.
"""
