"""`kbtui import`: exports of other programs, documents and web pages."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import WorkspaceOption, json_option, pass_place
from kbtui.cli.output import ProgressLine, note, say, say_json, say_line, say_styled
from kbtui.errors import KbtuiError, StoppedError, UnreadableError
from kbtui.text import counted

if TYPE_CHECKING:
    from kbtui.importers.engine import ImportPreview, Report
    from kbtui.importers.export_files import OpenedExport
    from kbtui.importers.port import Skipped, Source
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.background.service import Estimate

_MAX_SHOWN = 20
_REDRAW_SECONDS = 0.2


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and change nothing.")
@click.option("--yes", "is_sure", is_flag=True, help="Don't ask, even if a model costs money.")
@click.option(
    "--no-memory", is_flag=True, help="Import the conversations without making memory of them."
)
@click.option("--budget", metavar="USD", type=click.FloatRange(0), help="Spend at most this much.")
@json_option
@pass_place
def import_command(
    place: WorkspaceOption,
    paths: tuple[str, ...],
    dry_run: bool,
    is_sure: bool,
    no_memory: bool,
    budget: float | None,
    as_json: bool,
) -> int:
    """Import another program's data, a document or a web page.

    The format is recognised by the content, not the name. Conversations become sessions, which can
    be searched at once (kbtui search --scope sessions); projects and memories become notes. Then
    the model of the role import makes memory of the conversations; without one they are quoted as
    they are. Importing again adds only what is new, and resumes where it was interrupted. If a part
    can't be read, the others come in all the same, and the exit code is 1.

    Any other document, text or picture, and the page at an https:// address, is kept under docs/,
    where search finds it; docs/SOURCES.md records where it came from.
    """
    from kbtui.importers.frontends import expanded, is_document

    with place.opened() as kb:
        documents = [path for path in paths if is_document(path)]
        exports = [path for path in paths if path not in documents]
        work = _ImportWork(kb, list(expanded(tuple(exports))), as_json=as_json)
        work.keep(documents, dry_run=dry_run)
        if not exports:
            return work.end(dry_run=dry_run)
        if not dry_run and not no_memory and not is_sure:
            dry_run = not work.is_agreed(budget)
        if dry_run:
            return work.preview()
        work.run()
        if not no_memory:
            work.remember(budget)
        return work.end()


class _ImportWork:
    """One run of the command, with its results so far."""

    def __init__(self, kb: KnowledgeBase, paths: list[tuple[Path, bool]], *, as_json: bool) -> None:
        self._kb = kb
        self._paths = paths
        self._as_json = as_json
        self._results: list[dict[str, Any]] = []
        self._memory: dict[str, Any] | None = None
        self._failed: KbtuiError | None = None
        self._is_partial = False
        self._previews: list[tuple[Path, ImportPreview]] | None = None
        self._line = ProgressLine()

    def is_agreed(self, budget: float | None) -> bool:
        """Return whether no paid model would be used, or the user agrees to its cost."""
        from kbtui.memory.background.service import estimate

        if not estimate(self._kb.models, "import", 0, 0).is_paid:
            return True
        self._look()
        if self._as_json or sys.stdin is None or not sys.stdin.isatty():
            note("Nothing is imported yet, as the model costs money: add --yes or --no-memory.")
            return False
        for path, found in self._previews or ():
            self._say_preview(path, found)
        limit = f", for at most ${budget:.2f}" if budget is not None else ""
        self._previews = []
        return click.confirm(f"Import that, and have it condensed{limit}?", err=True)

    def preview(self) -> int:
        """Print what would be imported, and return the exit code."""
        if self._previews is None:
            self._look()
        for path, found in self._previews or ():
            self._results.append({"path": str(path), **self._preview_shape(found)})
            if not self._as_json:
                self._say_preview(path, found)
        return self.end(dry_run=True)

    def keep(self, sources: Sequence[str], *, dry_run: bool) -> None:
        """Import documents and web pages; a dry run downloads nothing."""
        if not sources:
            return
        from kbtui.documents.documents import Documents, kind_of
        from kbtui.documents.keeping import keep_document

        for source in sources:
            if dry_run:
                self._results.append({"path": source, "document": True})
                if not self._as_json:
                    say(f"{source}: a document, to be kept under docs/")
                continue
            try:
                kept = keep_document(self._kb.workspace, source)
            except KbtuiError as error:
                self._fail(source, error, alone=len(sources) == 1 and not self._paths)
                continue
            file = self._kb.workspace.file(kept.path)
            self._kb.search.refresh([kept.path])
            self._results.append({"path": source, "document": file, "new": kept.new})
            if not self._as_json:
                lead = "Kept as" if kept.new else "It is here already:"
                say_line(f"{lead} ", say_styled(file, fg="cyan"))
            if kind_of(kept.path):
                with Documents(self._kb.workspace) as documents:
                    problem = documents.read(kept.path).problem
                if problem:
                    note(f"kbtui: {file}: {problem}")

    def run(self) -> None:
        from kbtui.importers.engine import run
        from kbtui.importers.frontends import missing, nothing_in

        def import_one(opened: OpenedExport, source: Source) -> None:
            report = run(self._kb.services, opened, source, self._watch())
            self._results.append({"path": str(opened.path), **report_shape(self._kb, report)})
            if not self._as_json:
                _say_report(self._kb, report)
            if report.is_empty:
                raise nothing_in(opened.path, report)
            if line := missing(report):
                self._is_partial = True
                note(f"kbtui: {line}")

        self._for_each(import_one)

    def remember(self, budget: float | None) -> None:
        """Condense the conversations of these exports, from this and earlier imports."""
        import asyncio

        from kbtui.importers.frontends import remembered
        from kbtui.importers.remembering import batches_of, remember

        wanted = batches_of(self._kb.services, [path for path, _ in self._paths])
        if not wanted:
            return
        services, watch = self._kb.services, self._watch()
        try:
            done = asyncio.run(remember(services, self._kb.memory, wanted, usd=budget, watch=watch))
        finally:
            self._line.end()
        self._memory = {
            "model": done.model,
            "conversations": done.sessions,
            "waiting": done.left,
            "entries": [self._kb.workspace.file(path) for path in done.entries],
            "usd": done.usd,
            "notice": done.notice or None,
        }
        if self._as_json or not done.sessions + done.left:
            return
        say(remembered(done))
        if done.left and done.notice:
            note(f"kbtui: {counted(done.left, 'conversation')} wait. {done.notice}")

    def end(self, *, dry_run: bool = False) -> int:
        """Write the JSON document, if requested, and return the exit code."""
        if self._as_json:
            say_json({"dry_run": dry_run, "imports": self._results, "memory": self._memory})
        return self._failed.exit_code if self._failed else int(self._is_partial)

    def _look(self) -> None:
        from kbtui.importers.engine import preview
        from kbtui.importers.frontends import nothing_in

        looked: list[tuple[Path, ImportPreview]] = []

        def look(opened: OpenedExport, source: Source) -> None:
            found = preview(self._kb.services, opened, source, self._watch())
            if found.is_empty:
                raise nothing_in(opened.path, found)
            looked.append((opened.path, found))

        self._for_each(look)
        self._previews = looked

    def _for_each(self, work: Callable[[OpenedExport, Source], None]) -> None:
        """Call `work` for each export, reporting paths that aren't one or can't be read."""
        from kbtui.importers.export_files import OpenedExport
        from kbtui.importers.frontends import unknown

        for path, must_be in self._paths:
            try:
                with OpenedExport(path) as opened:
                    if not self._work_on(opened, work) and must_be:
                        raise unknown(opened)
            except KbtuiError as error:
                self._line.end()
                if must_be or not isinstance(error, UnreadableError):
                    self._fail(str(path), error, alone=len(self._paths) == 1)
            except KeyboardInterrupt:
                self._line.end()
                note("Stopped. What came stays, and the same import goes on where it was.")
                raise
            self._line.end()

    def _work_on(self, opened: OpenedExport, work: Callable[[OpenedExport, Source], None]) -> bool:
        """Call `work` for each program's export in a path; return False if there is none.

        Raises:
            UnreadableError: Nothing of one export could be read; the others are finished.
        """
        from kbtui.importers.engine import left_over, sources_of

        problem: UnreadableError | None = None
        some = False
        for source in sources_of(opened):
            some = True
            try:
                work(opened, source)
            except UnreadableError as error:
                problem = problem or error
            self._line.end()
        rest = left_over(opened) if some else None
        if rest is not None and not self._as_json:
            _say_skipped([rest])
        elif rest is not None and self._results:
            self._results[-1].setdefault("skipped", []).append(asdict(rest))
        if problem is not None:
            raise problem
        return some

    def _fail(self, path: str, error: KbtuiError, *, alone: bool) -> None:
        """Report a failed import; raise for a single path without JSON, or if it was stopped."""
        if isinstance(error, StoppedError) or (alone and not self._as_json):
            raise error
        self._failed = error
        failure = {"path": path, "error": error.message, "hint": error.hint or None}
        if self._results and self._results[-1]["path"] == path:  # its empty report
            self._results[-1].update(failure)
        else:
            self._results.append(failure)
        note(f"kbtui: {path}: {error}")

    def _watch(self) -> Callable[[int, int, str], None]:
        """Return a callback that shows progress and the remaining time on a terminal."""
        from kbtui.text import span

        begun = last = time.monotonic()

        def watch(done: int, total: int, what: str) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < _REDRAW_SECONDS:
                return
            last = now
            share = done / total if total else 1.0
            left = (now - begun) / share * (1 - share) if share > 0.01 else None
            rest = f", about {span(left)} left" if left is not None else ""
            self._line(f"{share:4.0%}{rest}  {what}")

        return watch

    def _estimate(self, found: ImportPreview) -> Estimate:
        from kbtui.memory.background.service import estimate

        return estimate(self._kb.models, "import", found.tokens, found.new + found.grown)

    def _say_preview(self, path: Path, found: ImportPreview) -> None:
        from kbtui.importers.frontends import previewed

        say(f"{path}: {found.source}")
        for row in previewed(found, self._estimate(found)):
            say(f"  {row}")
        _say_skipped(found.skipped)

    def _preview_shape(self, found: ImportPreview) -> dict[str, Any]:
        cost = self._estimate(found)
        estimated = {"model": cost.model, "paid": cost.is_paid, "usd": cost.usd}
        return {**preview_shape(found), "memory": {**estimated, "seconds": round(cost.seconds)}}


def _say_report(kb: KnowledgeBase, report: Report) -> None:
    from kbtui.importers.frontends import reported, unread

    say(reported(report))
    for came in report.sessions[:_MAX_SHOWN]:
        kind = "" if came.kind == "new" else f" ({came.kind})"
        say_line(
            say_styled(came.session, fg="cyan"),
            f"  {came.messages:>5}  ",
            say_styled(came.title + kind),
        )
    for path in report.entries[:_MAX_SHOWN]:
        say_line(say_styled(kb.workspace.file(path), fg="cyan"))
    more = max(0, len(report.sessions) - _MAX_SHOWN) + max(0, len(report.entries) - _MAX_SHOWN)
    if more:
        note(f"… and {more:,} more: `kbtui sessions` and `kbtui list` show them.")
    _say_skipped(report.skipped)
    if line := unread(report):
        note(f"kbtui: {line}")
    if report.sessions or report.entries:
        note(f"Take it back with: kbtui undo --batch {report.batch}")


def _say_skipped(skipped: list[Skipped]) -> None:
    for each in skipped[:_MAX_SHOWN]:
        note(f"kbtui: left out: {each.place}: {each.why}")
    if len(skipped) > _MAX_SHOWN:
        note(f"kbtui: {len(skipped) - _MAX_SHOWN:,} more were left out; --json lists all of them.")


def preview_shape(found: ImportPreview) -> dict[str, Any]:
    """Return the preview of an export as a JSON object."""
    times = {"first": found.first, "last": found.last}
    shapes = {name: time.isoformat() if time else None for name, time in times.items()}
    # `asdict` copies a Counter wrongly: it counts its (kind, count) pairs.
    return {**asdict(found), "named": found.named, **shapes}


def report_shape(kb: KnowledgeBase, report: Report) -> dict[str, Any]:
    """Return the report of an import as a JSON object."""
    return {
        "source": report.source,
        "batch": report.batch,
        "sessions": [{"id": each.pop("session"), **each} for each in map(asdict, report.sessions)],
        "messages": report.messages,
        "entries": [kb.workspace.file(path) for path in report.entries],
        "known": report.known,
        "named": report.named,
        "unread": report.unread,
        "unread_first": report.unread_first,
        "skipped": [asdict(each) for each in report.skipped],
    }
