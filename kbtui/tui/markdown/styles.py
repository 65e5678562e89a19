"""Styles of rendered Markdown, and the base of the views that use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kbtui.tui.widgets.line_view import LineView

MARKDOWN: Mapping[str, str] = {
    "md--h1": "bold $text-primary",
    "md--h2": "bold $text-primary",
    "md--h3": "bold $text-secondary",
    "md--h4": "bold $text-muted",
    "md--rule": "$foreground 25%",
    "md--strong": "bold",
    "md--em": "italic",
    "md--strike": "strike",
    "md--mark": "$text-warning on $warning-muted",
    "md--code": "$text-accent on $foreground 8%",
    "md--block": "on $foreground 8%",
    "md--link": "underline $text-accent",
    "md--missing": "underline $text-error",
    "md--tag": "$text-secondary on $secondary-muted",
    "md--bullet": "$text-primary",
    "md--done": "$text-success",
    "md--quote-bar": "$secondary",
    "md--callout-note": "bold $text-primary",
    "md--callout-good": "bold $text-success",
    "md--callout-warn": "bold $text-warning",
    "md--callout-bad": "bold $text-error",
    "md--callout-quiet": "bold $text-muted",
    "md--chip": "on $foreground 8%",
    "md--muted": "$text-muted",
    "md--cursor": "on $foreground 10%",
    "md--lit": "bold $text-accent on $accent 20%",
}


class MarkdownLines(LineView):
    """A line view that defines the ``.md--…`` styles."""

    LOOKS: ClassVar[Mapping[str, str]] = {**LineView.LOOKS, **MARKDOWN}
    FEW_COLORS: ClassVar[Mapping[str, str]] = {
        "md--tag": "$text-secondary",
        "md--chip": "not bold",
        "md--code": "$text-accent",
        "md--lit": "bold $background on $foreground",
    }
