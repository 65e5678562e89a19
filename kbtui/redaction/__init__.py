"""Detection and removal of secrets.

Other packages use `redact`, which detects secrets in text that a machine is about to write, by the
rows of ``secrets.tsv``, and `secret`, which finds one given secret in files, in every encoding.
"""
