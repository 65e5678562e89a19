"""Sessions: the conversations, one append-only log each.

Others use `store.SessionStore` and its `Session` to write and read and list them, `window` for what
a prompt holds of one, and `slices` for the parts that are condensed together. A log is never
shortened: a rewind, a title and what was forgotten are records of their own (`log_records`).
"""

KEEP = "keep"
"""The name of the step that keeps what was said without a model; models are shown none."""

MARKS = "marks"
"""The key of a message's `meta` for what kbtui said below an answer of what wasn't written."""
DREW_ON = "private"
"""The key of a message's `meta` for the paths shown before it that only models here may read."""
