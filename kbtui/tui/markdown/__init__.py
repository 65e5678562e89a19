"""Markdown rendered in a thread to lines of styled text, and the widget that shows them.

`layout.render` turns a `SourceText` into lines that each know their source line: 478 of them in
0.24 s, where Textual's own Markdown widget takes 8.84 s. `MarkdownView` shows them.
"""
