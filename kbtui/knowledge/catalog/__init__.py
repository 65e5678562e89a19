"""The catalogue of all entries, derived from their files.

`entry_index` caches it and keeps it current, `catalog` writes it as INDEX.md and formats it for
prompts within a token budget.
"""
