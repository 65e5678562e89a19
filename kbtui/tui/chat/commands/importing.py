"""``/import``: previews an export of another program, asks for confirmation, and imports it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from kbtui.errors import NotFoundError, StoppedError, UsageError
from kbtui.memory.background.service import estimate
from kbtui.presentation.notes import Named
from kbtui.text import clean_line, counted, shorten
from kbtui.tui.chat.conversation.items import LinkItem, NoticeItem, Target
from kbtui.tui.chat.host import STOP, ChatHost
from kbtui.tui.chat.start import CONVERSATIONS, take
from kbtui.tui.diff.confirm import confirm, run_with_progress
from kbtui.tui.widgets.progress import Pace

if TYPE_CHECKING:
    from kbtui.importers.engine import ImportPreview, Report
    from kbtui.importers.export_files import OpenedExport
    from kbtui.importers.port import Skipped, Source
    from kbtui.importers.remembering import Remembered
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.background.service import Estimate

_UNDO = "undo"
_MAX_SHOWN = 8
_MAX_PATH_LENGTH = 4096
_TITLE_WIDTH = 40


def dropped_path(text: str) -> Path | None:
    """Return the path that a terminal pastes when a file is dropped on it; None for other text.

    Terminals paste it as it is, quoted, with escaped spaces, or as a ``file:`` URL.
    """
    text = text.strip()
    if not text or "\n" in text or len(text) > _MAX_PATH_LENGTH:
        return None
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    if text[0] in "'\"" or "\\ " in text:
        try:
            parts = shlex.split(text)
        except ValueError:
            return None
        text = parts[0] if len(parts) == 1 else ""
    return Path(text).expanduser() if text.startswith(("/", "~/", "./", "../")) else None


def _typed_path(argument: str) -> str:
    return str(dropped_path(argument) or Path(argument).expanduser())


def is_there(path: Path) -> bool:
    """Return whether an accessible file or folder exists at a path."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


async def import_command(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    """Run ``/import``."""
    from kbtui.documents.documents import is_address
    from kbtui.importers.frontends import is_document

    if argument == STOP:
        if not host.importing.running:
            raise UsageError("No import is running.")
        host.importing.stop()
        return
    if argument == _UNDO:
        await _undo(host, kb)
        return
    if not argument.strip():
        await take(host, kb, CONVERSATIONS)
        return
    wanted = argument if is_address(argument) else _typed_path(argument)
    if await asyncio.to_thread(is_document, wanted):
        await _keep(host, kb, wanted)
        return
    agreed = await _confirm_import(host, kb, Path(wanted))
    if agreed is not None:
        await _import(host, kb, Path(wanted), with_memory=agreed)


async def _keep(host: ChatHost, kb: KnowledgeBase, source: str) -> None:
    """Keep a document or web page under docs/, after a confirmation."""
    from kbtui.documents.documents import is_address
    from kbtui.documents.keeping import keep_document

    what = "This page is fetched, and its text" if is_address(source) else "A copy of this document"
    text = f"{clean_line(source)}\n{what} is kept under docs/, where search finds it."
    if await confirm(host, "Keep it?", text, {"y": "keeps it"}) is None:
        return
    kept = await run_with_progress(
        host.app, "Import", "Reading it …", lambda _: keep_document(kb.workspace, source)
    )
    await asyncio.to_thread(kb.search.refresh, [kept.path])
    host.tell(LinkItem(label="kept" if kept.new else "here already", to=Target(kept.path)))


async def _confirm_import(host: ChatHost, kb: KnowledgeBase, path: Path) -> bool | None:
    """Show a preview; return whether to consolidate it into memory, or None to cancel."""
    from kbtui.importers.frontends import previewed

    try:
        found = await run_with_progress(
            host.app, "Import", f"Looking at {path.name} …", lambda watch: _preview(kb, path, watch)
        )
    except StoppedError as stopped:
        host.say(stopped.message)
        return None
    lines: list[str] = []
    for place, preview, cost in found:
        lines += [
            f"{preview.source}, from {clean_line(place.name)}",
            *previewed(preview, cost),
            *_left_out(preview.skipped),
            "",
        ]
    choices = {"y": "imports it", "c": "only the conversations, no memory of them"}
    *others, last = dict.fromkeys(preview.source for _, preview, _ in found)
    programs = f"{', '.join(others)} and {last}" if others else last
    answer = await confirm(host, f"Import from {programs}?", "\n".join(lines[:-1]), choices)
    return None if answer is None else answer == "y"


def _preview(
    kb: KnowledgeBase, path: Path, watch: Callable[[int, int], None]
) -> list[tuple[Path, ImportPreview, Estimate]]:
    from kbtui.importers.engine import preview
    from kbtui.importers.frontends import nothing_in

    found: list[tuple[Path, ImportPreview, Estimate]] = []
    for opened, source in _exports(path):
        seen = preview(kb.services, opened, source, lambda done, of, _what: watch(done, of))
        cost = estimate(kb.models, "import", seen.tokens, seen.new + seen.grown)
        found.append((opened.path, seen, cost))
    if all(seen.is_empty for _, seen, _ in found):
        raise nothing_in(path, found[0][1])
    return found


def _exports(path: Path) -> Iterator[tuple[OpenedExport, Source]]:
    """Yield the exports at a path (a folder may have several), each open until the next."""
    from kbtui.importers.engine import sources_of
    from kbtui.importers.export_files import OpenedExport
    from kbtui.importers.frontends import expanded, unknown

    found_any = False
    for place, must_be in expanded((str(path),)):
        with OpenedExport(place) as opened:
            found_here = False
            for source in sources_of(opened):
                found_here = found_any = True
                yield opened, source
            if must_be and not found_here:
                raise unknown(opened)
    if not found_any:
        with OpenedExport(path) as opened:
            raise unknown(opened)


async def _import(host: ChatHost, kb: KnowledgeBase, path: Path, *, with_memory: bool) -> None:
    from kbtui.importers.frontends import missing, reported, unread

    reports, memory = await host.importing.run(
        lambda tell, stopped: _run(kb, path, _progress(tell, stopped), with_memory=with_memory)
    )
    for report in reports:
        told = filter(None, (missing(report), unread(report)))
        text = "\n".join([*_left_out(report.skipped), *told])
        host.tell(NoticeItem(title=reported(report), text=text), *_imported_links(report))
    lines = [*_memory_lines(memory)] if memory is not None else []
    if any(report.sessions or report.entries for report in reports):
        lines.append(f"/sessions shows the conversations; /import {_UNDO} takes the last one back.")
    written = memory.entries[:_MAX_SHOWN] if memory is not None else ()
    links = [LinkItem(label="note", to=Target(path)) for path in written]
    if lines:
        host.tell(NoticeItem(title=lines[0], text="\n".join(lines[1:])), *links)


def _memory_lines(memory: Remembered) -> Iterator[str]:
    from kbtui.importers.frontends import remembered

    if memory.sessions + memory.left:
        yield remembered(memory)
    if memory.left and memory.notice:
        yield f"{counted(memory.left, 'conversation')} wait. {memory.notice}"


def _left_out(skipped: Sequence[Skipped]) -> Iterator[str]:
    for each in skipped[:_MAX_SHOWN]:
        yield f"left out: {clean_line(each.place)}: {each.why}"
    if len(skipped) > _MAX_SHOWN:
        yield f"left out: {len(skipped) - _MAX_SHOWN:,} more, which kbtui import --json lists"


def _imported_links(report: Report) -> Iterator[LinkItem]:
    """Yield links to the first imported conversations and notes."""
    for imported in report.sessions[:_MAX_SHOWN]:
        place = Target(f"sessions/{imported.session}.jsonl")
        named = Named(place.path, shorten(imported.title, _TITLE_WIDTH))
        yield LinkItem(label="→", to=place, named=named, note=imported.kind)
    for path in report.entries[:_MAX_SHOWN]:
        yield LinkItem(label="note", to=Target(path))


def _progress(
    tell: Callable[[str], None], stopped: Callable[[], bool]
) -> Callable[[int, int, str], None]:
    """Return a progress callback that shows a bar and the time left, and stops on request."""
    pace = Pace()

    def watch(done: int, total: int, _what: str) -> None:
        if stopped():
            raise StoppedError(
                "The import was stopped; what came so far stays.",
                f"/import with the same path goes on, /import {_UNDO} takes it back.",
            )
        tell(f"importing {pace.text(done, total)}")

    return watch


def _run(
    kb: KnowledgeBase,
    path: Path,
    watch: Callable[[int, int, str], None],
    *,
    with_memory: bool,
) -> tuple[list[Report], Remembered | None]:
    from kbtui.importers.engine import left_over, run
    from kbtui.importers.remembering import batches_of, remember

    reports: list[Report] = []
    brought: list[Path] = []
    last: dict[OpenedExport, Report] = {}
    for opened, source in _exports(path):
        reports.append(run(kb.services, opened, source, watch))
        brought.append(opened.path)
        last[opened] = reports[-1]
    for opened, report in last.items():
        report.skipped += filter(None, [left_over(opened)])
    wanted = batches_of(kb.services, brought) if with_memory else []
    if not wanted:
        return reports, None
    return reports, asyncio.run(remember(kb.services, kb.memory, wanted, watch=watch))


async def _undo(host: ChatHost, kb: KnowledgeBase) -> None:
    """Undo the last import, after a confirmation."""
    from kbtui.importers.batches import batches
    from kbtui.importers.engine import take_back

    known = await asyncio.to_thread(batches, kb.workspace)
    if not known:
        raise NotFoundError("Nothing was imported that could be taken back.")
    last = known[-1]
    about = await asyncio.to_thread(last.read)
    text = (
        f"{clean_line(str(about.get('path', '')))}\nThe conversations and notes that came with it "
        "go; what you went on with since stays, and is said."
    )
    if await confirm(host, "Take the import back?", text, {"y": "takes it back"}) is None:
        return
    undo = partial(kb.history.undo_batch, last.id)
    commit, results = await asyncio.to_thread(take_back, kb.services, last.id, undo)
    removed = sum(1 for each in results if each.outcome == "removed")
    lines = [f"{each.session}: {each.why}" for each in results if each.why]
    if commit is not None:
        lines.insert(0, commit.subject)
    title = f"Taken back: {counted(removed, 'conversation')}"
    host.tell(NoticeItem(title=title, text="\n".join(lines)))
