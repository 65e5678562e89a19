"""The documents shipped with kbtui, and `install`, which writes them to a workspace."""
