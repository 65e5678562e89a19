"""History: the one door for every write, and what was written, by whom and why."""
