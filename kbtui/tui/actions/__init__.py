"""Actions: everything that a person can do in the app, in one typed table.

`registry` holds the table and makes bindings and slash commands from it; `keys` writes keys as
people read them and takes over their own; `slash` reads what was typed as a command. All rooms of
the app use it; it knows none of them.
"""
