"""Search: words and meaning over the entries, the memory, documents and sessions."""
