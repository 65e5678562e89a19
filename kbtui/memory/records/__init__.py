"""Records: the files of the memory, read and written by rule.

The archive and its cursors, the ledger that accounts for each message, tombstones, what a model is
shown of a conversation, and dates as memory keeps them.
"""
