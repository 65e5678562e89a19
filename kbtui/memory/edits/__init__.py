"""Edits: the one engine that turns facts into changes of entries and MEMORY.md."""
