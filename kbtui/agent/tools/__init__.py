"""The tools that the agent may call."""
