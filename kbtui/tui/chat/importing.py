"""``/import``: look at what another program exported, agree to it, and bring it in."""

from __future__ import annotations

import asyncio
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from kbtui.errors import NotFoundError, StoppedError, UsageError
from kbtui.text import clean_line, counted, shorten
from kbtui.tui.chat.host import STOP
from kbtui.tui.chat.items import LinkItem, NoticeItem, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kbtui.importers.engine import Preview, Report
    from kbtui.importers.port import Skipped
    from kbtui.importers.remembering import Estimate, Remembered
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.chat.host import ChatHost

_UNDO = "undo"
_BAR_CELLS = 20
_SHOWN = 8
_LONGEST_PATH = 4096
_TITLE_WIDTH = 40


def dropped_path(text: str) -> Path | None:
    """The path that a terminal types when a file is dropped on it; None for other text.

    It comes as it is, quoted, with its blanks escaped, or as a ``file:`` address.
    """
    text = text.strip()
    if not text or "\n" in text or len(text) > _LONGEST_PATH:
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


def _path_of(argument: str) -> Path:
    if not argument.strip():
        raise UsageError(
            "An import needs the path of an export.",
            "Say it, paste it, or drop the file on the terminal: /import <path>",
        )
    return dropped_path(argument) or Path(argument).expanduser()


def is_there(path: Path) -> bool:
    """True if there is such a file or folder that can be looked at."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


async def import_command(host: ChatHost, kb: KnowledgeBase, argument: str) -> None:
    """Carry out ``/import``."""
    if argument == STOP:
        if not host.importing.running:
            raise UsageError("No import is running.")
        host.importing.stop()
        return
    if argument == _UNDO:
        await _undo(host, kb)
        return
    path = _path_of(argument)
    memory = await _agreed(host, kb, path)
    if memory is not None:
        await _bring(host, kb, path, with_memory=memory)


async def _agreed(host: ChatHost, kb: KnowledgeBase, path: Path) -> bool | None:
    """Show what is in it; whether memory is to be made of it, None where nothing is wanted."""
    from kbtui.importers.telling import previewed
    from kbtui.tui.diff.confirm import ConfirmScreen, watched

    try:
        preview, told = await watched(
            host.app, "Import", f"Looking at {path.name} …", lambda watch: _look(kb, path, watch)
        )
    except StoppedError as stopped:
        host.say(stopped.message)
        return None
    lines = [clean_line(str(path)), "", *previewed(preview, told)]
    lines += [
        f"left out: {clean_line(each.place)}: {each.why}" for each in preview.skipped[:_SHOWN]
    ]
    if len(preview.skipped) > _SHOWN:
        lines.append(f"and {len(preview.skipped) - _SHOWN:,} more are left out")
    choices = {"y": "imports it", "c": "only the conversations, no memory of them"}
    screen = ConfirmScreen(f"Import from {preview.source}?", "\n".join(lines), choices)
    answer = await host.app.push_screen_wait(screen)
    return None if answer is None else answer == "y"


def _look(
    kb: KnowledgeBase, path: Path, watch: Callable[[int, int], None]
) -> tuple[Preview, Estimate]:
    from kbtui.importers.engine import find_source, preview
    from kbtui.importers.opened import Opened
    from kbtui.importers.remembering import estimate
    from kbtui.importers.telling import WHAT_IS_KNOWN

    with Opened(path) as opened:
        source = find_source(opened)
        if source is None:
            raise UsageError(f"{path} is no export that kbtui knows.", WHAT_IS_KNOWN)
        found = preview(kb.services, opened, source, lambda done, of, _what: watch(done, of))
    return found, estimate(kb.services, found.tokens, found.new + found.grown)


async def _bring(host: ChatHost, kb: KnowledgeBase, path: Path, *, with_memory: bool) -> None:
    from kbtui.importers.telling import remembered, reported

    report, memory = await host.importing.run(
        lambda tell, stopped: _work(kb, path, tell, stopped, with_memory=with_memory)
    )
    told = [remembered(memory)] if memory is not None and memory.sessions else []
    if memory is not None and memory.left:
        told.append(f"{counted(memory.left, 'conversation')} wait. {memory.notice}")
    told += _left_out(report.skipped)
    if report.sessions or report.entries:
        told.append(f"/sessions shows the conversations; /import {_UNDO} takes it all back.")
    links = list(_links(report, memory))
    host.tell(NoticeItem(title=reported(report), text="\n".join(told)), *links)


def _left_out(skipped: Sequence[Skipped]) -> Iterator[str]:
    for each in skipped[:_SHOWN]:
        yield f"left out: {clean_line(each.place)}: {each.why}"
    if len(skipped) > _SHOWN:
        yield f"left out: {len(skipped) - _SHOWN:,} more, which kbtui import --json lists"


def _links(report: Report, memory: Remembered | None) -> Iterator[LinkItem]:
    """Where the first things that came are."""
    for came in report.sessions[:_SHOWN]:
        place = Target(f"sessions/{came.session}.jsonl")
        yield LinkItem(label=shorten(came.title, _TITLE_WIDTH), to=place, note=came.kind)
    written = memory.entries if memory is not None else ()
    for path in [*report.entries, *written][:_SHOWN]:
        yield LinkItem(label="note", to=Target(path))


def _work(
    kb: KnowledgeBase,
    path: Path,
    tell: Callable[[str], None],
    stopped: Callable[[], bool],
    *,
    with_memory: bool,
) -> tuple[Report, Remembered | None]:
    from kbtui.importers.engine import find_source, run
    from kbtui.importers.opened import Opened
    from kbtui.importers.remembering import batches_of, remember

    def watch(done: int, total: int, what: str) -> None:
        if stopped():
            raise StoppedError(
                "The import was stopped; what came so far stays.",
                f"/import with the same path goes on, /import {_UNDO} takes it back.",
            )
        full = _BAR_CELLS * done // total if total else 0
        share = f"{done / total:4.0%}" if total else ""
        tell(f"{'█' * full}{'░' * (_BAR_CELLS - full)} {share}  {what}")

    with Opened(path) as opened:
        source = find_source(opened)
        if source is None:
            raise NotFoundError(f"{path} isn't the export any more that it was.")
        report = run(kb.services, opened, source, watch)
    if not with_memory:
        return report, None
    tell("making memory of it")
    wanted = batches_of(kb.services, [path])
    done = asyncio.run(remember(kb.services, kb.memory, wanted, watch=watch)) if wanted else None
    return report, done


async def _undo(host: ChatHost, kb: KnowledgeBase) -> None:
    """Take the last import back, after a question."""
    from kbtui.importers.batches import batches
    from kbtui.importers.engine import take_back
    from kbtui.tui.diff.confirm import ConfirmScreen

    known = await asyncio.to_thread(batches, kb.workspace)
    if not known:
        raise NotFoundError("Nothing was imported that could be taken back.")
    last = known[-1]
    about = await asyncio.to_thread(last.read)
    text = (
        f"{clean_line(str(about.get('path', '')))}\nThe conversations and notes that came with it "
        "go; what you went on with since stays, and is said."
    )
    screen = ConfirmScreen("Take the import back?", text, {"y": "takes it back"})
    if await host.app.push_screen_wait(screen) is None:
        return
    undo = partial(kb.history.undo_batch, last.id)
    done = await asyncio.to_thread(take_back, kb.services, last.id, undo)
    if done is None:  # it brought notes alone
        done = await asyncio.to_thread(undo), []
        await asyncio.to_thread(last.forget)
    commit, taken = done
    gone = sum(1 for each in taken if each.outcome == "removed")
    lines = [f"{each.session}: {each.why}" for each in taken if each.why]
    if commit is not None:
        lines.insert(0, commit.subject)
    title = f"Taken back: {counted(gone, 'conversation')}"
    host.tell(NoticeItem(title=title, text="\n".join(lines)))
