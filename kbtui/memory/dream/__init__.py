"""Dream: the slow curation of what is known, while nobody waits (seed 003)."""
