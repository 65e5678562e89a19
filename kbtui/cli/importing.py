"""Bringing in what other programs keep: `kbtui import`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.output import ProgressLine, note, say, say_json, say_line, say_styled
from kbtui.errors import KbtuiError, UsageError
from kbtui.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kbtui.importers.engine import Preview, Report
    from kbtui.importers.port import Skipped
    from kbtui.knowledge_base import KnowledgeBase

_SHOWN = 20
_A_MOMENT = 0.2
_WHAT_IS_KNOWN = (
    "kbtui knows exports of Claude.ai and ChatGPT, as a file, a folder or a zip; see"
    " `kbtui help import`."
)


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--dry-run", is_flag=True, help="Say what would come in, and change nothing.")
@json_option
@pass_place
def import_command(
    place: Place,
    paths: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> int:
    """Bring in what another program exported.

    It is known by what is in it, not by its name. Conversations become sessions, which can be
    searched at once, projects and memories become notes. Doing it again adds only what is new.
    """
    results: list[dict[str, Any]] = []
    failed: KbtuiError | None = None
    with place.opened() as kb:
        for path in _expanded(paths):
            try:
                shape = _one(kb, path, dry_run=dry_run, as_json=as_json)
            except KbtuiError as error:
                if len(paths) == 1 and not as_json:
                    raise
                failed = error
                shape = {"path": str(path), "error": error.message, "hint": error.hint}
                if not as_json:
                    note(f"kbtui: {path}: {error}")
            results.append(shape)
    if as_json:
        say_json(results)
    return failed.exit_code if failed else 0


def _expanded(paths: tuple[str, ...]) -> Iterator[Path]:
    """The paths, a folder followed by the zips in it: that is how parts of an export arrive."""
    for name in paths:
        path = Path(name).expanduser()
        zips = sorted(each for each in path.iterdir() if _is_zip(each)) if path.is_dir() else []
        others = path.is_dir() and any(each not in zips for each in path.iterdir())
        yield from zips if zips and not others else [path, *zips]


def _is_zip(path: Path) -> bool:
    if not path.is_file() or path.is_symlink() or path.name.startswith("."):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _one(kb: KnowledgeBase, path: Path, *, dry_run: bool, as_json: bool) -> dict[str, Any]:
    from kbtui.importers.engine import find_source, preview, run
    from kbtui.importers.opened import Opened

    with Opened(path) as opened:
        source = find_source(opened)
        if source is None:
            raise UsageError(f"{path} is no export that kbtui knows.", _WHAT_IS_KNOWN)
        if dry_run:
            found = preview(kb.services, opened, source, _watching())
            if not as_json:
                _say_preview(path, found)
            return {"path": str(path), **preview_shape(found)}
        report = run(kb.services, opened, source, _watching())
    if not as_json:
        _say_report(kb, report)
    return {"path": str(path), **report_shape(kb, report)}


def _watching() -> Callable[[int, int, str], None]:
    """Shows on a terminal how far reading is, and how long it may take yet."""
    line = ProgressLine()
    begun = last = time.monotonic()

    def watch(done: int, total: int, what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _A_MOMENT:
            return
        last = now
        share = done / total if total else 1.0
        left = (now - begun) / share * (1 - share) if share > 0.01 else None  # noqa: PLR2004
        rest = f", about {_span(left)} left" if left is not None else ""
        line(f"{share:4.0%}{rest}  {what}")

    return watch


def _span(seconds: float) -> str:
    if seconds < 90:  # noqa: PLR2004 - of a minute and a half
        return counted(max(1, round(seconds)), "second")
    return counted(round(seconds / 60), "minute")


def _say_preview(path: Path, found: Preview) -> None:
    say(f"{path}: {found.source}")
    rows = [
        f"{counted(found.conversations, 'conversation')}, {counted(found.messages, 'message')}",
        f"{found.new:,} new, {found.grown:,} grown, {found.known:,} known",
    ]
    if found.first and found.last:
        rows.append(
            f"from {found.first.astimezone():%Y-%m-%d} to {found.last.astimezone():%Y-%m-%d}"
        )
    if found.notes:
        rows.append(counted(found.notes, "note"))
    if found.branches:
        rows.append(f"{counted(found.branches, 'other branch', 'other branches')}, left out")
    rows.append(f"about {counted(found.tokens, 'token')} to be condensed")
    for row in rows:
        say(f"  {row}")
    _say_skipped(found.skipped)


def _say_report(kb: KnowledgeBase, report: Report) -> None:
    parts = [
        counted(len(report.sessions), "conversation"),
        counted(report.messages, "message"),
        counted(len(report.entries), "note"),
        f"{report.known:,} were here already",
    ]
    say(f"{report.source}: {'; '.join(parts)}.")
    for came in report.sessions[:_SHOWN]:
        kind = "" if came.kind == "new" else f" ({came.kind})"
        say_line(
            say_styled(came.session, fg="cyan"),
            f"  {came.messages:>5}  ",
            say_styled(came.title + kind),
        )
    for path in report.entries[:_SHOWN]:
        say_line(say_styled(kb.workspace.file(path), fg="cyan"))
    more = max(0, len(report.sessions) - _SHOWN) + max(0, len(report.entries) - _SHOWN)
    if more:
        note(f"… and {more:,} more: `kbtui sessions` and `kbtui list` show them.")
    _say_skipped(report.skipped)
    if report.sessions or report.entries:
        note(f"Take it back with: kbtui undo --batch {report.batch}")


def _say_skipped(skipped: list[Skipped]) -> None:
    for each in skipped[:_SHOWN]:
        note(f"kbtui: left out: {each.place}: {each.why}")
    if len(skipped) > _SHOWN:
        note(f"kbtui: {len(skipped) - _SHOWN:,} more were left out; --json lists all of them.")


def preview_shape(found: Preview) -> dict[str, Any]:
    """What an export holds."""
    return {
        "source": found.source,
        "conversations": found.conversations,
        "messages": found.messages,
        "branches": found.branches,
        "notes": found.notes,
        "first": found.first.isoformat() if found.first else None,
        "last": found.last.isoformat() if found.last else None,
        "new": found.new,
        "grown": found.grown,
        "known": found.known,
        "tokens": found.tokens,
        "skipped": [{"place": each.place, "why": each.why} for each in found.skipped],
    }


def report_shape(kb: KnowledgeBase, report: Report) -> dict[str, Any]:
    """What an import did."""
    return {
        "source": report.source,
        "batch": report.batch,
        "sessions": [
            {
                "id": came.session,
                "title": came.title,
                "kind": came.kind,
                "messages": came.messages,
                "branches": came.branches,
            }
            for came in report.sessions
        ],
        "messages": report.messages,
        "entries": [kb.workspace.file(path) for path in report.entries],
        "known": report.known,
        "skipped": [{"place": each.place, "why": each.why} for each in report.skipped],
    }
