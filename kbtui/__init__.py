"""kbtui: a personal knowledge base in the terminal."""

__version__ = "0.3.0"
