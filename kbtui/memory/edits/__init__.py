"""Edits: the one engine through which memory is written.

`operations` is the table of everything that can be done to a file, each a function of a
`working_copy.WorkingCopy`, which consults a chain of `guards`: what was forgotten or removed, what
nobody has said, what is private, and whose line would change, so that a person must decide. Tools
ask for an operation by `editor.Editor`, Dream for a list of them, and `keeping` places a fact by
one. `editor.Editor` opens copies for writers of memory (the Consolidator, Dream, importers).
"""
