"""The looks of Markdown in lines."""

from __future__ import annotations

from typing import ClassVar

from kbtui.tui.widgets.line_view import LineView


class MarkdownLines(LineView):
    """Lines in which ``.md--…`` styles stand."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "md--h1", "md--h2", "md--h3", "md--h4", "md--rule", "md--strong", "md--em", "md--strike",
        "md--mark", "md--code", "md--block", "md--link", "md--missing", "md--tag", "md--bullet",
        "md--done", "md--quote-bar", "md--callout-note", "md--callout-good", "md--callout-warn",
        "md--callout-bad", "md--callout-quiet", "md--chip", "md--muted", "md--cursor",
    }  # fmt: skip
    DEFAULT_CSS = """
    MarkdownLines {
        & > .md--h1 { color: $text-primary; text-style: bold; }
        & > .md--h2 { color: $text-primary; text-style: bold; }
        & > .md--h3 { color: $text-secondary; text-style: bold; }
        & > .md--h4 { color: $text-muted; text-style: bold; }
        & > .md--rule { color: $foreground 25%; }
        & > .md--strong { text-style: bold; }
        & > .md--em { text-style: italic; }
        & > .md--strike { text-style: strike; }
        & > .md--mark { background: $warning-muted; color: $text-warning; }
        & > .md--code { background: $foreground 8%; color: $text-accent; }
        & > .md--block { background: $foreground 8%; }
        & > .md--link { color: $text-accent; text-style: underline; }
        & > .md--missing { color: $text-error; text-style: underline; }
        & > .md--tag { background: $secondary-muted; color: $text-secondary; }
        & > .md--bullet { color: $text-primary; }
        & > .md--done { color: $text-success; }
        & > .md--quote-bar { color: $secondary; }
        & > .md--callout-note { color: $text-primary; text-style: bold; }
        & > .md--callout-good { color: $text-success; text-style: bold; }
        & > .md--callout-warn { color: $text-warning; text-style: bold; }
        & > .md--callout-bad { color: $text-error; text-style: bold; }
        & > .md--callout-quiet { color: $text-muted; text-style: bold; }
        & > .md--chip { background: $foreground 8%; }
        & > .md--muted { color: $text-muted; }
        & > .md--cursor { background: $foreground 10%; }
    }
    .-few-colors MarkdownLines {
        & > .md--tag, & > .md--chip, & > .md--code { background: transparent; }
    }
    """
