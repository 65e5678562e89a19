"""Actions: everything that a user can do in the app, in one typed table.

`registry` holds the table, derives key bindings and slash commands from it, formats key names, and
parses slash commands. All packages of the app use it; it depends on none.
"""
