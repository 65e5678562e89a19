"""Queries of the history: log, diff, blame, moved lines.

Reads git objects and caches what it derives; writes nothing else.
"""
