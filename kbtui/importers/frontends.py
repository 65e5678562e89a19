"""What the app and the command line share: resolving paths to import, and wording reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.documents.documents import is_address, is_keepable, kind_of
from kbtui.errors import KbtuiError, UnreadableError, UsageError
from kbtui.importers.export_files import PACKED, OpenedExport
from kbtui.text import clean_line, counted
from kbtui.workspace.durable import storage_errors

if TYPE_CHECKING:
    from kbtui.importers.engine import ImportPreview, Report
    from kbtui.importers.remembering import Remembered
    from kbtui.memory.background.service import Estimate

WHAT_IS_KNOWN = (
    "kbtui knows what Claude.ai, ChatGPT, DeepSeek, Grok, Open WebUI, LibreChat, Claude Code, Codex"
    " CLI, Gemini CLI, Cursor, Continue, aider, Gemini, Telegram, WhatsApp, Slack, Notion,"
    " Evernote, Google Keep, Joplin, Roam, Logseq, nanobot, ShareGPT and kbtui keep or export, and"
    " folders of Markdown or of web pages (Apple Notes): as a file, a folder or a zip."
)
_SHOWN = 3
_PLURALS = {
    "step of a tool": ("step of a tool", "steps of tools"),
    "notice of the program": ("notice of the program", "notices of the program"),
    "command to the program": ("command to the program", "commands to the program"),
}


def is_document(name: str) -> bool:
    """Return whether a name is a web address or a file that is a document rather than an export."""
    from kbtui.importers.engine import find_source

    if is_address(name):
        return True
    file = Path(name).expanduser()
    try:
        if not is_keepable(file):
            return False
        with OpenedExport(file) as opened:
            is_text = opened.head(opened.names[0], 64).lstrip()[:1] not in (b"", b"[", b"{")
            return is_text and find_source(opened) is None
    except KbtuiError:
        return bool(kind_of(name))


def expanded(paths: tuple[str, ...]) -> Iterator[tuple[Path, bool]]:
    """Yield the paths, each folder followed by the packed exports in it, as parts of one arrive.

    Each comes with whether it must be an export, which a folder of packed parts need not be.

    Raises:
        StorageError: A folder, or a zip in it, can't be read.
    """
    for name in paths:
        path = Path(name).expanduser()
        with storage_errors(f"Can't read {path}"):
            inner = sorted(filter(_is_packed, path.iterdir())) if path.is_dir() else []
        yield path, not inner
        yield from ((each, True) for each in inner)


def _is_packed(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in PACKED or not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return suffix != ".zip" or file.read(4) == b"PK\x03\x04"


def previewed(found: ImportPreview, estimate: Estimate) -> Iterator[str]:
    """Yield lines on what is in an export and what making memory of it would cost."""
    yield f"{counted(found.conversations, 'conversation')}, {counted(found.messages, 'message')}"
    if found.grown or found.known:
        yield f"{found.new:,} new, {found.grown:,} longer than before, {found.known:,} here already"
    if found.first and found.last:
        first, last = (f"{each.astimezone():%Y-%m-%d}" for each in (found.first, found.last))
        yield f"of {first}" if first == last else f"from {first} to {last}"
    if found.notes:
        yield counted(found.notes, "note")
    if found.files:
        yield counted(found.files, "file")
    if found.named or found.branches:
        yield named(found.named, found.branches)
    if _is_offline(estimate.model):
        yield "without a model they are searched and quoted as they are"
    else:
        yield f"memory by {estimate.model}: {estimate.describe(found.tokens)}"


def named(parts: Mapping[str, int], branches: int = 0) -> str:
    """Describe the content of conversations that isn't imported: counts by kind, and branches."""
    kinds = [counted(count, *_PLURALS.get(kind, (kind,))) for kind, count in sorted(parts.items())]
    kinds += [counted(branches, "other branch", "other branches")] if branches else []
    return f"left out: {', '.join(kinds)}"


def reported(report: Report) -> str:
    """Summarise what was imported, in one sentence."""
    parts = [
        counted(len(report.sessions), "conversation"),
        counted(report.messages, "message"),
    ]
    notes = sum(path.endswith(".md") for path in report.entries)
    parts += [counted(notes, "note")] if notes else []
    files = len(report.entries) - notes
    parts += [counted(files, "file")] if files else []
    if report.known:
        parts.append(f"{report.known:,} were here already")
    branches = sum(each.branches for each in report.sessions)
    if report.named or branches:
        parts.append(named(report.named, branches))
    return f"{report.source}: {'; '.join(parts)}."


def missing(report: Report) -> str:
    """Say that an import is partial, or return "" if it is whole."""
    lost = [each for each in report.skipped if each.lost]
    if not lost:
        return ""
    count = counted(len(lost), "part")
    return (
        f"{count} of this export can't be read and {'is' if len(lost) == 1 else 'are'} missing, the"
        f" first is {clean_line(lost[0].place)}; all else came in. Import it again when that is"
        " mended: only what is missing is added."
    )


def unread(report: Report) -> str:
    """Name the texts of an export that are in nothing that came in, by where they stand."""
    if not report.unread:
        return ""
    first = report.unread_first
    most = [
        f"{count:,} at {clean_line(where)}, first in {clean_line(first.get(where, ''))}"
        for where, count in report.unread.most_common(_SHOWN)
    ]
    more = len(report.unread) - _SHOWN
    rest = f" and {counted(more, 'more place')}" if more > 0 else ""
    total = counted(report.unread.total(), "text")
    return (
        f"not in any message or note: {total} of the files' own records ({'; '.join(most)}{rest})"
    )


def remembered(done: Remembered) -> str:
    """Summarise the memory made of an import."""
    cost = f" for ${done.usd:.2f}" if done.usd else ""
    if _is_offline(done.model):
        waiting = counted(done.left, "conversation")
        return f"{waiting} can be searched and quoted now; a model can make memory of them later."
    memory = f"Memory of {counted(done.sessions, 'conversation')}, by {done.model}{cost}"
    return f"{memory}: {counted(len(done.entries), 'entry', 'entries')} written."


def _is_offline(model: str) -> bool:
    from kbtui.settings import OFFLINE  # deferred: --help must not wait for it

    return model == OFFLINE


def nothing_in(path: Path, report: ImportPreview | Report) -> UnreadableError:
    """Return the error that nothing in an export could be read, with the first reason."""
    reason = f" {report.skipped[0].place}: {report.skipped[0].why}" if report.skipped else ""
    return UnreadableError(
        f"Nothing of {path} came in. It looks like an export of {report.source}, and holds no"
        f" conversation and no note that can be read.{reason}",
        "Download or export it again; if it is whole, kbtui doesn't know this form of it yet.",
    )


def unknown(opened: OpenedExport) -> KbtuiError:
    """Return the error for an export without a source: damaged if members were refused."""
    if opened.refused:
        _, why = opened.refused[0]
        return UnreadableError(f"{opened.path} can't be read: {why}", "Download it again.")
    return UsageError(f"{opened.path} is no export that kbtui knows.", WHAT_IS_KNOWN)
