"""The knowledge base for other agents: the Model Context Protocol on standard streams or over HTTP.

`serving.serve` is all that others use, and `http_transport` where it is to listen. Below it: the
two transports, the server that speaks the protocol's types, the backend that runs the agent's tools
and those that only clients have, and the part of the history that may be shown.
"""
