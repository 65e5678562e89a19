"""Recall: what a person asks of memory: why, remember, forget, and who was named.

`provenance` traces where a line comes from, `remember` keeps a fact, `remembered` shows MEMORY.md
line by line, `forget` removes, `omissions` finds what got into no note, `mentions` finds where
something is said, and `names` finds the lines with a name.
"""
