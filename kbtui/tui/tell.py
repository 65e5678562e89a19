"""Telling a person something in a toast; text from anywhere is plain, never markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.text import clean

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from kbtui.errors import KbtuiError
    from kbtui.tui.messages import Severity


def tell(node: DOMNode, text: str, severity: Severity = "information") -> None:
    """Show one short text."""
    node.app.notify(clean(text), severity=severity, markup=False)


def tell_error(node: DOMNode, error: KbtuiError) -> None:
    """Show what happened and what to do about it."""
    text = f"{error.message}\n{error.hint}" if error.hint else error.message
    node.app.notify(clean(text), severity="error", markup=False, timeout=8)
