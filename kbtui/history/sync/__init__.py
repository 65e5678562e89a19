"""Several machines, one history: fetch, look through, bring together, push; and purge."""
