"""Documents that aren't notes: the text of PDF, Word, PowerPoint, Excel, HTML and EPUB files.

`documents` gives a file's text with the page, slide, sheet or chapter that each line stands on; the
text is derived, kept in the cache, and the file is never touched. `child` reads the formats, in a
process of its own with limits of time and memory, because any of these files may be hostile; no
other module may import what it imports. `keeping` puts a file or a web page under ``docs/``.
"""
