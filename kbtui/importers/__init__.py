"""Other programs' files: a source each on one port, and one engine that brings them in.

`sources/` has a file a program; each reads, and says what it could not read. `engine` finds the
source of an export, previews it and brings it in, `remembering` makes memory of it; `named` is what
a person may name, `telling` how both faces say what came of it. `opened`, `json_stream`, `reading`,
`records` and `markup` are what sources read with. Nothing here decides when to import: commands and
migration do.
"""
