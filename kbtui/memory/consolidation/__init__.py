"""Consolidation: slices of conversation become archive entries, facts and notes.

`consolidator.Consolidator` does it, with one structured call a slice (`ask`, `answer`);
`notes.SessionMemoryWriter` writes a session's own note at its end.
"""
