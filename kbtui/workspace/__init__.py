"""The workspace: the folder that everything is kept in, and how its files are touched.

Its public modules, the only ones that other packages import:

opening  which folder is one, opening and making it, its lock, and those that were opened before
layout   `Workspace` and `Layout`: where things lie, which paths are recorded, what files are called
files    safe reading and atomic writing, by checked paths
durable  below that: many files in one step, and what the file system refuses, in words
jsonl    append-only logs
scan     what changed, cheaply
"""
