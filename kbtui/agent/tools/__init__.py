"""Tools that the agent may ask for."""
