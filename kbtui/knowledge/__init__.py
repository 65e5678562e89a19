"""Knowledge: entries, their frontmatter and links, and the catalogue of them.

From the top: `library` finds, reads and changes entries; `catalog` keeps what all of them are;
`linking` says which one a name means; `entries` is about a single one, `format` about its text.
"""
