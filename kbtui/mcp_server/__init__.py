"""The knowledge base for other agents: the Model Context Protocol on standard input and output.

`serving.serve` is all that others use. Below it: the stdio transport, the server that speaks the
protocol's types, the backend that runs the agent's tools and those of the history, and the part of
the history that may be shown.
"""
