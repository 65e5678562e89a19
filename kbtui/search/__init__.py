"""Search over a workspace, by words and by meaning.

`search_index.SearchIndex` is what others use: it answers queries with the shapes of `results`, and
keeps itself up to date; `apart.Apart` has a process go on with what a command has no time for. Of
the wings others may use `query.parser.marker` alone, to mark in a text what was asked for.
Everything that is kept is derived from the files, and made again from them where it is damaged.
Importing `search_index`, `apart` and `results` imports no engine.

index/      files to chunks, postings and passages, on disk or of one commit in memory
embedding/  texts to vectors: the model, how it is prepared, and where vectors are kept
query/      what is asked, how hits are ranked and shown, and how likely each answers
"""
