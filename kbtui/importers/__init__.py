"""Import of other programs' exports: one reader per program behind a port, and one engine.

`sources/` has a module per program, which reads an export and reports what it can't read. `engine`
detects the source of an export, previews and imports it; `remembering` condenses the imported
conversations into memory; `frontends` holds what the app and the command line share. Sources read
with `export_files`, `json_stream`, `reading` and `markup`. When to import is decided elsewhere, by
commands and the migration.
"""
