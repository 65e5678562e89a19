"""Looking."""
