"""Several machines, one history: fetch, look through, bring together, push; and purge.

Others use `sync` (SyncReport, SyncRules), `remote` (Address, parse_address, Watcher) and
`purge.HistoryPurge`.
"""
