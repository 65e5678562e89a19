"""Agent: one turn of conversation, from context over tools to events."""
