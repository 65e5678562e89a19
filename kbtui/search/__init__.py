"""Search over a workspace, by words and by meaning.

Its public modules, the only ones that other packages import:

search_index   `SearchIndex` answers queries and keeps itself up to date; `Watcher` tells of changes
results        the shapes of its answers
detached       `Apart` has a process go on with what a command has no time for
query.parser   `marker`, which marks in a text what was asked for
index.analyser the words of a text, as they are found

Everything that is kept is derived from the files, and made again from them where it is damaged.
Importing `search_index`, `detached` and `results` imports no engine.

index/      files to chunks, postings and passages, on disk or of one commit in memory
embedding/  texts to vectors: the model, how it is prepared, and where vectors are kept
query/      what is asked, how hits are ranked and shown, and how likely each answers
"""
