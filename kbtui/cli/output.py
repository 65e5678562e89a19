"""Output of commands: data on standard output, its JSON shapes, and errors on standard error.

Text from notes is stripped of control characters on a terminal, and written unchanged to a pipe or
file.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import click

from kbtui.errors import KbtuiError
from kbtui.text import clean, clean_line

if TYPE_CHECKING:
    from kbtui.history.change import Commit
    from kbtui.knowledge.entries.entry import Entry, EntryInfo
    from kbtui.knowledge.library.library import Backlink, ResolvedLink
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.results import Hit, SearchResult
    from kbtui.sessions.store import SessionInfo
    from kbtui.workspace.layout import Layout

INTERRUPTED = 130
UNEXPECTED = 1
# `json` escapes C0 controls itself; these would reach a terminal unescaped.
_CONTROL = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def prepare_streams() -> None:
    """Make the standard streams safe: no encoding errors, and closed ones lead to the null device.

    The first file opened would otherwise get the descriptor of a closed stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def to_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def _encodes_all() -> bool:
    """Return whether standard output can encode every character; else JSON escapes them."""
    return (sys.stdout.encoding or "utf-8").lower().replace("_", "-") in {"utf-8", "utf8"}


def coloured() -> bool:
    """Return whether to use colours: on a terminal, unless NO_COLOR is set."""
    return to_terminal() and not os.environ.get("NO_COLOR")


def say(text: str = "", *, newline: bool = True) -> None:
    """Write text to standard output."""
    shown = clean(text) if to_terminal() else text
    sys.stdout.write(f"{shown}\n" if newline else shown)


def say_styled(text: str, **style: Any) -> str:
    """Clean a piece of one line, and style it if colours are enabled."""
    shown = clean_line(text)
    return click.style(shown, **style) if coloured() else shown


def say_line(*pieces: str) -> None:
    """Write one line of pieces already cleaned by `say_styled` or `clean_line`."""
    sys.stdout.write("".join(pieces) + "\n")


def say_json(document: Any) -> None:
    """Write one JSON document."""
    indent = 2 if to_terminal() else None
    text = json.dumps(document, ensure_ascii=not _encodes_all(), indent=indent, default=str)
    sys.stdout.write(_escaped(text) + "\n")


def say_json_line(document: Any) -> None:
    """Write one line of a JSON stream and flush it."""
    text = json.dumps(document, ensure_ascii=not _encodes_all(), default=str)
    sys.stdout.write(_escaped(text) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Write a message for the user to standard error."""
    sys.stderr.write(f"{clean(text)}\n")
    sys.stderr.flush()


class ProgressLine:
    """A progress message on one line of the terminal, redrawn in place."""

    def __init__(self) -> None:
        self._shown = False

    def __call__(self, text: str) -> None:
        """Show a message in place of the last one."""
        if sys.stderr.isatty():
            self._shown = True
            sys.stderr.write(f"\r\x1b[K{clean_line(text)[:76]}")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Clear the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def complain(message: str, hint: str = "") -> None:
    """Write ``kbtui: message`` to standard error, and the hint on its own line."""
    sys.stderr.write(f"kbtui: {clean_line(message)}\n")
    if hint:
        sys.stderr.write(f"  {clean(hint).strip()}\n")
    sys.stderr.flush()


def report(error: Exception) -> int:
    """Report an error and return the exit code; log the traceback of an unexpected one."""
    import logging

    if isinstance(error, KbtuiError):
        complain(error.message, error.hint)
        return error.exit_code
    from kbtui.logs import log_file, start_logging
    from kbtui.workspace.durable import storage_error

    start_logging()
    logging.getLogger("kbtui").error("unexpected", exc_info=error)
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        name = os.fsdecode(error.filename)
        refused = storage_error(error, f"Can't use {name}")
        complain(refused.message, f"Your notes are as they were. Look at it: `ls -ld {name}`")
        return refused.exit_code
    what = clean_line(str(error))[:200]
    complain(
        f"Something unexpected happened: {type(error).__name__}{': ' if what else ''}{what}",
        f"Your notes are as they were. The details are in {log_file()}.",
    )
    return UNEXPECTED


def picked(value: object, names: str) -> dict[str, Any]:
    """Return the attributes of a value with these space-separated names, tuples as lists."""
    shape = {name: getattr(value, name) for name in names.split()}
    return {name: list(each) if type(each) is tuple else each for name, each in shape.items()}


def info_shape(info: EntryInfo | Entry, layout: Layout) -> dict[str, Any]:
    """Return an entry for a list."""
    names = "type title tags created updated summary category aliases private problem"
    return {"path": layout.file(info.path), **picked(info, names)}


def entry_shape(
    entry: Entry, links: Iterable[ResolvedLink], backlinks: Iterable[Backlink], layout: Layout
) -> dict[str, Any]:
    """Return an entry with its text and links."""
    return {
        **info_shape(entry, layout),
        "text": entry.text,
        "links": [link_shape(link, layout) for link in links],
        "backlinks": [backlink_shape(link, layout) for link in backlinks],
    }


def link_shape(resolved: ResolvedLink, layout: Layout) -> dict[str, Any]:
    """Return a link; `path` is null if it is broken."""
    path = layout.file(resolved.path) if resolved.path else None
    link = picked(resolved.link, "target kind line alias heading")
    return {**link, "path": path, "title": resolved.title}


def backlink_shape(link: Backlink, layout: Layout) -> dict[str, Any]:
    """Return a line elsewhere that links here."""
    return {"path": layout.file(link.path), **picked(link, "title line text")}


def commit_shape(commit: Commit, layout: Layout) -> dict[str, Any]:
    """Return a commit for the log."""
    origin = commit.origin
    return {
        "commit": commit.id,
        "time": commit.time.isoformat(),
        "actor": commit.actor.value,
        "author": commit.origin.author,
        "subject": commit.subject,
        "paths": [layout.file(change.path) for change in commit.paths],
        "session": origin.session,
        "messages": list(origin.messages) if origin.messages else None,
        "reason": commit.body,
        "turn": origin.turn,
        "model": origin.model,
        "undoes": origin.undoes,
    }


def hit_shape(hit: Hit, layout: Layout) -> dict[str, Any]:
    """Return a hit of a search."""
    shape: dict[str, Any] = {
        "path": layout.file(hit.path),
        **picked(hit, "title heading lines line score relevance"),
        "also": [{"path": layout.file(place.path), "line": place.line} for place in hit.also],
        "snippet": hit.snippet,
        "matches": [list(match) for match in hit.matches],
        "explain": {
            **picked(hit.explain, "lexical_rank semantic_rank lexical semantic"),
            "boosts": dict(hit.explain.boosts),
        },
    }
    if hit.session is not None:
        shape["session"] = hit.session
        shape["messages"] = list(hit.messages) if hit.messages else None
        shape["speaker"] = hit.speaker or None
    if hit.newer is not None:
        shape["newer"] = {
            "path": layout.file(hit.newer.path),
            "line": hit.newer.line,
            "date": hit.newer.day.isoformat(),
            "text": hit.newer.text,
        }
    return shape


def result_shape(result: SearchResult, layout: Layout) -> dict[str, Any]:
    """Return the result of one query."""
    return {
        **picked(result, "query scope semantic notice suggestion"),
        "took_ms": round(result.took_ms, 2),
        "hits": [hit_shape(hit, layout) for hit in result.hits],
    }


def session_shape(info: SessionInfo) -> dict[str, Any]:
    """Return a session for the list."""
    return {
        **picked(info, "id title messages channel"),
        "created": info.created.isoformat(),
        "updated": info.updated.isoformat(),
        "url": info.url or None,
    }


def say_commit(
    commit: Commit | None, kb: KnowledgeBase, *, as_json: bool, way_back: str = ""
) -> None:
    """Print a new commit and what it did, or that nothing had to be changed if it is None.

    `way_back`, such as "Take it back with", introduces the undo command on a terminal.
    """
    if commit is None:
        note("It is that already.")
    elif as_json:
        say_json(commit_shape(commit, kb.workspace))
    else:
        from kbtui.presentation.commit_summary import summarize
        from kbtui.presentation.notes import Names

        say(f"{commit.id[:10]} {summarize(commit, Names(kb.library.infos()))}")
        if way_back:
            note(f"{way_back}: kbtui undo {commit.id[:10]}")


TAKE_BACK = "Take it back with"
