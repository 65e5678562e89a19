"""Merging changes of the same text: by line, by frontmatter key, by file.

Pure functions over texts and trees, which write nothing.
"""
