"""Inbox: what a machine wanted to change and a person must decide on.

`inbox.Inbox` proposes, lists and decides; the history keeps and merges. `showing` prepares a place
for eyes and editors, `rejections` knows what isn't to be proposed again.
"""
