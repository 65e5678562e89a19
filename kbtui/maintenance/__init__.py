"""Maintenance of workspaces: doctor, integrity check, purge, sync, export and migration.

`KnowledgeBase` uses this package and returns `Checking`, `Syncing` and the findings of `doctor`;
`purge.Purging` needs only the history; `migrate` upgrades older workspaces when they are opened.
"""
