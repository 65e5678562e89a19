"""The documents that come with kbtui, and `install`, which puts them into a workspace."""
