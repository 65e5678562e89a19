"""What the app and the command line share: what a person names, and how imports are told of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.documents.documents import kind_of
from kbtui.errors import KbtuiError, UnreadableError, UsageError
from kbtui.importers.opened import Opened
from kbtui.text import counted
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from kbtui.importers.engine import Preview, Report
    from kbtui.importers.remembering import Estimate, Remembered

WHAT_IS_KNOWN = (
    "kbtui knows what Claude.ai, ChatGPT, Claude Code, Codex CLI, Gemini, Notion, Evernote,"
    " nanobot and ShareGPT keep or export, and folders of Markdown: as a file, a folder or a zip."
)


def is_document(name: str) -> bool:
    """True for an address, and for a file that is a document and no export."""
    from kbtui.documents.keeping import is_address, is_keepable
    from kbtui.importers.engine import find_source

    if is_address(name):
        return True
    file = Path(name).expanduser()
    try:
        if not is_keepable(file):
            return False
        with Opened(file) as opened:
            is_text = opened.head(opened.names[0], 64).lstrip()[:1] not in (b"", b"[", b"{")
            return is_text and find_source(opened) is None
    except KbtuiError:
        return bool(kind_of(name))


def expanded(paths: tuple[str, ...]) -> Iterator[tuple[Path, bool]]:
    """The paths, a folder followed by the zips in it: that is how parts of an export arrive.

    Beside each: True if it must be an export, as the folder of such parts need not. Raises
    `StorageError` where a folder, or a zip in it, can't be read.
    """
    for name in paths:
        path = Path(name).expanduser()
        with storage_errors(f"Can't read {path}"):
            zips = sorted(each for each in path.iterdir() if _is_zip(each)) if path.is_dir() else []
        yield path, not zips
        yield from ((each, True) for each in zips)


def _is_zip(path: Path) -> bool:
    if path.suffix.lower() != ".zip" or not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


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
    if _is_offline(told.model):
        yield f"about {tokens}; without a model they are searched and quoted as they are"
    else:
        yield f"memory by {told.model}: about {tokens}{cost}, {span(told.seconds)}"


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
    if _is_offline(done.model):
        waiting = counted(done.left, "conversation")
        return f"{waiting} can be searched and quoted now; a model can make memory of them later."
    said = f"Memory of {counted(done.sessions, 'conversation')}, by {done.model}{cost}"
    return f"{said}: {counted(len(done.entries), 'entry', 'entries')} written."


def _is_offline(model: str) -> bool:
    from kbtui.settings import OFFLINE  # where --help doesn't wait for it

    return model == OFFLINE


def unknown(opened: Opened) -> KbtuiError:
    """Say why an export can't be imported; a damaged one isn't unknown."""
    if opened.refused:
        _, why = opened.refused[0]
        return UnreadableError(f"{opened.path} can't be read: {why}", "Download it again.")
    return UsageError(f"{opened.path} is no export that kbtui knows.", WHAT_IS_KNOWN)


def span(seconds: float) -> str:
    """A time to wait, roughly."""
    if seconds < 90:  # of a minute and a half
        return counted(max(1, round(seconds)), "second")
    return counted(round(seconds / 60), "minute")
