"""The file format of an entry: YAML frontmatter over Markdown, read and edited without loss.

`yaml_edit` changes keys in the text of a YAML document, `frontmatter` and `body` read the two parts
of a file, `lines` its headings and items, `links` finds the links in both, `facts.Fact` is a
statement on its way into a file. These work on texts alone: nothing here knows a workspace.
"""
