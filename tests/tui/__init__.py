"""The app, driven by keys and looked at."""
