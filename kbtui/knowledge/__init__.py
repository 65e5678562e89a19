"""Knowledge: entries, their frontmatter and links, and the catalogue of them.

Others use `library.Library` to find, read and change entries, `overlay.Overlay` for the files with
edits on top that aren't written yet, `reader.PastLibrary` for how entries were, `frontmatter` and
`links` for texts, `templates` for the types, `facts.Fact` for a statement on its way into a file.
"""
