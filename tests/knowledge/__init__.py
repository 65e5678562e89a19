"""Entries, their frontmatter and links, and the catalogue of them."""
