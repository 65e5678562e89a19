"""Single entries: parsing a file, whether it is private, and how new ones are made.

`entry` parses a file into `Entry` and `EntryInfo`, `privacy` detects private files, `templates` has
the entry types, `habits` the naming and filing conventions of a folder of notes.
"""
