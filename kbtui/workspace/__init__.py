"""The workspace: the folder that holds everything, and access to its files.

Its public modules, the only ones that other packages import:

opening  finding, opening and creating workspaces, their lock, and the list of known ones
layout   `Workspace` and `Layout`: where files are, which paths are recorded, how files are named
files    safe reading and atomic writing, by checked paths
durable  lower level: several files in one step, and file system errors in words
jsonl    append-only logs
removals what was removed on purpose of what has no history, for the next syncs
scan     cheap detection of changed files
"""
