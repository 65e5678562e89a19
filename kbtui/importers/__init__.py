"""Other programs' files: a source each on one port, and one engine that brings them in.

`sources/` has a file a program; each reads, and says what it could not read. `engine` finds the
source of an export, previews it and brings it in, `remembering` makes memory of it; `faces` is what
the app and the command line share. `opened`, `json_stream`, `reading` and `markup` are what sources
read with. Nothing here decides when to import: commands and migration do.
"""
