"""Consolidation: slices of conversation become archive entries, facts and notes.

`consolidator.Consolidator` runs it, with one structured model call per slice (`ask`, `answer`);
`notes.SessionMemoryWriter` writes a session's own note when it ends.
"""
