"""Actions: everything that a person can do in the app, in one typed table.

`registry` holds the table, makes bindings and slash commands from it, writes keys as people read
them, and reads what was typed as a command. All packages of the app use it; it knows none.
"""
