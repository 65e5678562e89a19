"""Models: the port to chat models and what stands behind it."""
