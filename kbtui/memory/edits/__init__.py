"""Edits: the one engine by which anything gets into files, in two layers.

Below, `operations` and `tool_edits` do one thing each on a `working_copy.WorkingCopy`, which asks a
chain of `guards` about it: what was forgotten or taken out, what nobody has said, what is private,
and whose line it would change, so that a person must decide. Above, `keeping.FactKeeper` puts facts
where they belong, by operations. `editor.Editor` opens copies for whoever writes memory (the
Consolidator, Dream, importers) and does at once what a tool asks for.
"""
