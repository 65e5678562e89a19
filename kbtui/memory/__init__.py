"""Memory: how conversation is kept and becomes memory.

`background.service.Memory` is the whole of it for one workspace: what makes memory, and what a
person can ask of it. Below it stand dream (curation while nobody waits), consolidation (slices of
conversation condensed), edits (the one engine that writes facts), inbox (what a person must decide
on), recall (where a fact comes from, remembering, forgetting) and records (the files themselves).
"""
