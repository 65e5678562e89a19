"""One entry: what a file says of it, whether it is private, and what a new one is made like.

`entry` parses a file into `Entry` and `EntryInfo`, `privacy` decides who may see it, `templates`
has the types, `habits` how a folder of notes names and files its own.
"""
