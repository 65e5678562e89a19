"""The command line: thin commands over the knowledge base.

`root` defines and runs the command tree; each other module has one command or a few related ones.
`output` writes text, JSON and errors, `context` opens the workspace and completes arguments in a
shell. Only `kbtui.__main__` imports this package: `root.run` and `output.report`.
"""
