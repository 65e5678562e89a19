"""The file format of an entry: YAML frontmatter above Markdown, read and edited losslessly.

`yaml_edit` edits keys in place in YAML text; `frontmatter` and `body` parse the two parts of a
file, `lines` its headings and list items, `links` the links in both; `facts.Fact` is a statement to
be written to a file. All of them work on text alone and know nothing of a workspace.
"""
