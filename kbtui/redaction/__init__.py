"""Secrets: out of what a machine is about to write, and out of all files that hold one.

Others use `redact` (finds what looks like a secret, by the rows of ``secrets.tsv``) and `secret`
(one text that must go, in every form in which it may stand).
"""
