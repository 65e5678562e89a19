"""Memory: how conversation is kept and becomes memory."""
