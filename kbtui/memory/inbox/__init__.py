"""The inbox: changes that a machine proposed and a person must decide on.

`inbox.Inbox` proposes, lists and decides; the history stores and merges. `drafts` prepares a place
of a proposal for display and editing, `rejections` knows what must not be proposed again.
"""
