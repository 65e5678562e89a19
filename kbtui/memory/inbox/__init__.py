"""Inbox: what a machine wanted to change and a person must decide on.

`inbox.Inbox` lists, shows and decides; `plan` says place by place what a proposal would do to the
files as they are, `showing` prepares that for eyes and editors.
"""
