"""Sessions: the conversations, each in an append-only log.

Other packages use `store.SessionStore` and its `Session` to read, write and list them, `window` for
the part of one that a prompt contains, and `slices` for the parts that are condensed together. A
log is never shortened: rewinds, titles and redactions by the user are records of their own
(`log_records`).
"""

KEEP = "keep"
"""The name of the tool call that records what was said without a model; hidden from models."""
SEARCH = "search"
"""The name of the tool that searches, for a model and for an answer without one."""
FROM_NOTES = "From your notes:"
"""The first line of an answer that only quotes."""

MARKS = "marks"
"""The key in a message's `meta` of the text that kbtui added below an answer."""
TAINT = "private"
"""The key in a message's `meta` of the private paths shown to a local model before it."""
MARK_OF_PRIVATE = "<!-- private -->"
"""What stands above such a message where a conversation is exported as Markdown."""
