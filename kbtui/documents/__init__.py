"""Documents that aren't notes: the text of PDF, Word, PowerPoint, Excel, HTML and EPUB files.

`documents` extracts a file's text with the page, slide, sheet or chapter of each line, and caches
it; the file is never modified. `child` parses the formats in a separate process with limits of time
and memory, since any file may be hostile; no other module may import what it imports. `keeping`
stores files and web pages under ``docs/``.
"""
