"""Sessions: the conversations, one append-only log each.

Others use `store.SessionStore` and its `Session` to write and read and list them, `window` for what
a prompt holds of one, and `slices` for the parts that are condensed together. A log is never
shortened: a rewind, a title and what was forgotten are records of their own (`log_records`).
"""

KEEP = "keep"
"""The step by which a turn without a model keeps what was said; no model is shown such steps."""

MARKS = "marks"
"""What kbtui said below an answer of what wasn't written, as `meta` of the message has it."""
DREW_ON = "private"
"""In a message's `meta`: the paths shown before it was said that only models here may read."""
