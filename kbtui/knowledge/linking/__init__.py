"""How entries refer to each other by name.

`resolve` says which entry a name or a link means, and `LinkGraph` who links to whom; `repair` gives
links a new target where an entry is renamed, moved or deleted.
"""
