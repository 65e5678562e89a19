"""Recall: what a person asks of memory: why, remember, forget, today.

Others use `provenance.Provenance` (where a line comes from), `remember` (facts, and the
note of the day), `remembered` (MEMORY.md line by line), `forget.Forgetting` and `mentions`
(where something is said).
"""
