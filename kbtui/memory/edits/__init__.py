"""Edits: the one engine through which memory is written, in two layers.

The lower layer, `operations` and `tool_edits`, makes single edits on a `working_copy.WorkingCopy`,
which consults a chain of `guards`: what was forgotten or removed, what nobody has said, what is
private, and whose line would change, so that a person must decide. The upper layer,
`keeping.FactKeeper`, files facts where they belong, using operations. `editor.Editor` opens copies
for writers of memory (the Consolidator, Dream, importers), and performs what tools ask for.
"""
