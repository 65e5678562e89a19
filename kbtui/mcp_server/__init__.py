"""A Model Context Protocol server, over standard streams or HTTP, for other agents.

Other packages use only `serving.serve`, and `http_transport` to listen on a port. Below them are
the two transports, the server that translates to the SDK's types, and the backend that runs the
tools: the agent's own and those that only clients have.
"""
