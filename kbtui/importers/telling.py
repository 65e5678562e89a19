"""What an export holds and what an import did, as sentences for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import UnreadableError, UsageError
from kbtui.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.errors import KbtuiError
    from kbtui.importers.engine import Preview, Report
    from kbtui.importers.opened import Opened
    from kbtui.importers.remembering import Estimate, Remembered

WHAT_IS_KNOWN = (
    "kbtui knows what Claude.ai, ChatGPT, Claude Code, Codex CLI, Gemini, Notion, Evernote,"
    " nanobot and ShareGPT keep or export, and folders of Markdown: as a file, a folder or a zip."
)


def previewed(found: Preview, told: Estimate) -> Iterator[str]:
    """What is in an export and what memory of it would cost, a line each."""
    yield f"{counted(found.conversations, 'conversation')}, {counted(found.messages, 'message')}"
    yield f"{found.new:,} new, {found.grown:,} grown, {found.known:,} known"
    if found.first and found.last:
        first, last = (f"{each.astimezone():%Y-%m-%d}" for each in (found.first, found.last))
        yield f"of {first}" if first == last else f"from {first} to {last}"
    if found.notes:
        yield counted(found.notes, "note")
    if found.branches:
        yield f"{counted(found.branches, 'other branch', 'other branches')}, left out"
    cost = ""
    if told.is_paid:
        cost = ", price unknown" if told.usd is None else f", ${told.usd:.2f}"
    tokens = counted(found.tokens, "token")
    yield f"memory {_by(told.model)}: about {tokens}{cost}, {span(told.seconds)}"


def reported(report: Report) -> str:
    """What an import brought."""
    parts = [
        counted(len(report.sessions), "conversation"),
        counted(report.messages, "message"),
        counted(len(report.entries), "note"),
        f"{report.known:,} were here already",
    ]
    return f"{report.source}: {'; '.join(parts)}."


def remembered(done: Remembered) -> str:
    """What memory was made of an import."""
    cost = f" for ${done.usd:.2f}" if done.usd else ""
    said = f"Memory of {counted(done.sessions, 'conversation')}, {_by(done.model)}{cost}"
    return f"{said}: {counted(len(done.entries), 'entry', 'entries')} written."


def _by(model: str) -> str:
    from kbtui.settings import OFFLINE  # where --help doesn't wait for it

    return "without a model" if model == OFFLINE else f"by {model}"


def unknown(opened: Opened) -> KbtuiError:
    """Say why an export can't be imported; a damaged one isn't unknown."""
    if opened.refused:
        _, why = opened.refused[0]
        return UnreadableError(f"{opened.path} can't be read: {why}", "Download it again.")
    return UsageError(f"{opened.path} is no export that kbtui knows.", WHAT_IS_KNOWN)


def span(seconds: float) -> str:
    """A time to wait, roughly."""
    if seconds < 90:  # noqa: PLR2004 - of a minute and a half
        return counted(max(1, round(seconds)), "second")
    return counted(round(seconds / 60), "minute")
