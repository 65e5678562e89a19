"""Keeping workspaces in order: the check-up, the check of everything, purge, sync, migration.

`KnowledgeBase` opens this package and returns `Checking`, `Syncing` and the findings of `doctor`;
`purge.Purging` works on the history alone; `migrate` brings older workspaces up to date at opening.
"""
