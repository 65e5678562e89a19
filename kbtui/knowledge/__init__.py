"""Knowledge: entries, their frontmatter and links, and the catalogue of them."""
