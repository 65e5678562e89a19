"""Recall: what a person asks of memory: why, remember, forget, today.

Others use `provenance.Provenance` (where a line comes from), `remember.Remembering`,
`forget.Forgetting`, `mentions` (where something is said) and `today` (the note of the day).
"""
