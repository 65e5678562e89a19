"""The files in which memory is recorded, and the code that reads and writes them.

The archive and its cursors, the ledger that accounts for every message, the tombstones, the
transcript of a conversation that a model is shown, and date handling.
"""
