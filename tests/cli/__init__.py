"""The command line: what a script sees."""
