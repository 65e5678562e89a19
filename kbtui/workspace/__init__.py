"""The workspace: the folder that everything is kept in, and how its files are touched."""
