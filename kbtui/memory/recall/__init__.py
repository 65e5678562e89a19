"""Recall: what a person asks of memory: why, remember, forget, who was named.

`provenance` says where a line comes from, `remember` keeps a fact, `remembered` shows MEMORY.md
line by line, `forget` takes out, `left_out` knows what got into no note, `mentions` where something
is said, `names` which lines have a name.
"""
