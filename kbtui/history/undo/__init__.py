"""Undo and restore: which files get which content so that a change never was.

Plans only; the door writes them. `revert` works on one file after the other, `undo` on commits.
"""
