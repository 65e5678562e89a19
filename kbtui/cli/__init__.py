"""The command line: commands over the knowledge base, with no logic of their own.

`root` holds the tree of all commands and runs one; a file holds a command or a few of one kind.
`output` writes data and what is said to people, `context` opens the workspace that was named,
`shapes` are the JSON documents. Only `kbtui.__main__` imports this package: `root.run` and
`output.report`.
"""
