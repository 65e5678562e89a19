"""Looking at what was recorded: log, differences, blame, lines that moved.

Reads objects and keeps what it derives in the cache; writes nothing else.
"""
