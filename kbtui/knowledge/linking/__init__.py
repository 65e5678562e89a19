"""References between entries by name.

`resolve` finds the entry a name or link refers to, and its `LinkGraph` has the backlinks; `repair`
updates links when an entry is renamed, moved or deleted.
"""
