"""The catalogue of all entries, derived from their files.

`entry_index` keeps it in the cache and brings it up to date, `catalog` writes it as INDEX.md and
cuts it to what a prompt has room for.
"""
