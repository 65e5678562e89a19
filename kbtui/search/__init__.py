"""Hybrid search over a workspace: lexical and semantic.

Its public modules, the only ones that other packages import:

search_index   `SearchIndex` answers queries and keeps itself up to date; `Watcher` reports changes
results        the types of its results
detached       `DetachedWorker` leaves long work to a process that outlives the command
query.parser   `marker`, which finds a query's matches in a text
index.analyser the tokenizer

All stored data is derived from the files, and rebuilt from them when damaged.
Importing `search_index`, `detached` and `results` imports no engine.

index/      splits files into chunks, postings and passages; on disk, or in memory for one commit
embedding/  turns texts into vectors: prepares and runs the model, stores the vectors
query/      parses queries, ranks hits, builds snippets, estimates relevance
"""
