"""Syncing a history between machines: fetch, inspect, merge, push; and purge."""
