"""``kbtui export``: notes and conversations for other programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from kbtui.cli.context import WorkspaceOption, json_option, pass_place
from kbtui.cli.output import info_shape, note, say, say_json, session_shape
from kbtui.errors import UsageError
from kbtui.text import counted

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.maintenance.export import Tree
    from kbtui.sessions.log_records import SessionInfo, SessionLog, SessionMessage
    from kbtui.views.view import View

_FORMAT = 1
_MAX_SHOWN = 5
_STAYS = (
    "The log of all changes, the settings and hidden files stay here; `kbtui sync` takes the log"
    " along."
)
_SEPARATOR = "\n---\n\n"
_FORMATS = {".md": "md", ".markdown": "md", ".zip": "zip", ".json": "json"}


@dataclass(frozen=True, slots=True)
class _Target:
    """The target and format, and whether an existing target may be overwritten."""

    file: Path
    form: str
    overwrite: bool

    @property
    def to_output(self) -> bool:
        return str(self.file) == "-"

    def check(self, ref: str | None, since: str | None) -> None:
        """Raise `UsageError` for combinations that can't be exported."""
        is_tree = self.form in ("folder", "obsidian", "zip")
        if self.to_output and is_tree:
            raise UsageError(f"A {self.form} needs a place.", "Try: kbtui export -o notes.zip")
        if ref and is_tree:
            raise UsageError("A conversation is exported as md or json.")
        if ref and since:
            raise UsageError("A conversation is exported whole.", "Say --session or --since.")

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open standard output or the target file, which is written atomically."""
        from kbtui.maintenance.export import new_file

        if self.to_output:
            yield _Output()  # type: ignore[misc]
            sys.stdout.flush()
            return
        with new_file(self.file, overwrite=self.overwrite) as stream:
            yield stream


@dataclass(frozen=True, slots=True)
class _Exported:
    """What was written: `summary` in words, `count` files or messages, `kept_back` private ones."""

    summary: str
    count: int
    kept_back: int
    is_partial: bool = False


@click.command()
@click.option("-o", "--output", "target", metavar="TARGET", help="Target; `-` is standard output.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["folder", "obsidian", "md", "zip", "json"]),
    help="Else by the target's name: .md, .zip or .json; a folder.",
)
@click.option(
    "--session", "ref", metavar="SESSION", help="One conversation; otherwise all entries."
)
@click.option("--since", metavar="DATE", help="Only what is new or changed from that day on.")
@click.option("--private", is_flag=True, help="Include private notes, which otherwise stay here.")
@click.option("--overwrite", is_flag=True, help="Overwrite what is there.")
@json_option
@pass_place
def export(
    place: WorkspaceOption,
    target: str | None,
    form: str | None,
    ref: str | None,
    since: str | None,
    private: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Export your notes, or a conversation.

    A folder or zip holds the files as they are, with memory, documents, pictures and conversations;
    such a folder is a workspace again. For Obsidian, conversations become notes, and links by title
    or alias become links by file name, the only ones it follows. A single Markdown or JSON file can
    be read by anything. Exits with 1 if something had to be left out.

    \b
    The JSON of a whole export, with times in ISO 8601:
      {"format": 1, "workspace",
       "entries": [{"path", "type", "title", "tags", "created", "updated",
                    "summary", "category", "aliases", "private", "problem", "text"}],
       "files": [{"path", "text" or "base64"}],
       "conversations": [as below, without "format"]}
    of a conversation:
      {"format": 1, "id", "title", "created", "updated", "channel", "url",
       "messages": [{"id", "time", "role", "text", "citations", "private" if it is}]}
    and what --json says of an export:
      {"target", "format", "count", "private_kept_back"}
    """  # noqa: D301  # a sign of click's
    form = form or _form_of(ref, target)
    wanted = _Target(Path(target or "-").expanduser(), form, overwrite=overwrite)
    wanted.check(ref, since)
    begin = _moment(since) if since else None
    with place.opened() as kb:
        from kbtui.views.view import Audience

        view = kb.seen_by(Audience.OWN_MODEL if private else Audience.OTHER_AGENT)
        done = _session(kb, view, ref, wanted) if ref else _notes(kb, view, begin, wanted)
    if kept := done.kept_back:
        note(f"kbtui: {counted(kept, 'private one')} stayed here; --private takes them along.")
    if not wanted.to_output:
        count = {"count": done.count, "private_kept_back": kept}
        shape = {"target": str(wanted.file), "format": form, **count}
        say_json(shape) if as_json else say(f"{done.summary} written to {wanted.file}")
    if done.is_partial:
        click.get_current_context().exit(1)


def _notes(kb: KnowledgeBase, view: View, begin: datetime | None, wanted: _Target) -> _Exported:
    from kbtui.maintenance.export import changed_since, tree_of

    tree = tree_of(kb.workspace, kb.library, kb.sessions, view)
    tree = changed_since(tree, kb.history, begin) if begin else tree
    if wanted.form == "obsidian":
        from kbtui.maintenance.obsidian import for_obsidian

        tree = for_obsidian(tree, view.library, kb.sessions)
    paths = [path for path in tree.paths if wanted.form != "md" or _is_text(path)]
    _tree(kb, replace(tree, paths=tuple(paths)), wanted)
    count = sum(path not in tree.left_out for path in paths)
    if others := len(tree.paths) - len(paths):
        what = counted(others, "other file")
        note(f"kbtui: {what} can't be in one text; a folder, a zip or JSON takes all.")
    _note_left_out(tree)
    if not wanted.to_output:
        note(f"kbtui: {_STAYS}")
    summary = counted(count, "file")
    return _Exported(summary, count, tree.kept_back, is_partial=bool(tree.left_out))


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is no date.", "Write it as 2026-11-20, or 2026-11-20T18:30."
        ) from None


def _note_left_out(tree: Tree) -> None:
    for path, why in list(tree.left_out.items())[:_MAX_SHOWN]:
        note(f"kbtui: Left out: {tree.workspace.file(path)}: {why.rstrip('.')}.")
    if (more := len(tree.left_out) - _MAX_SHOWN) > 0:
        note(f"kbtui: And {more} more; `kbtui check` names them.")


def _is_text(path: str) -> bool:
    """Return whether a path can be part of a single Markdown file."""
    from kbtui.history.change import is_derived
    from kbtui.maintenance.export import CONVERSATIONS

    is_markdown = path.lower().endswith(".md") and not is_derived(path)
    return is_markdown or path.startswith(CONVERSATIONS)


def _form_of(ref: str | None, target: str | None) -> str:
    """Return the format for a target's suffix, else the default one."""
    if form := _FORMATS.get(Path(target or "").suffix.lower()):
        return form
    if ref:
        return "md"
    if target is None:
        raise UsageError("Say where to.", "Try: kbtui export -o DIR, or: --format md")
    return "folder"


def _session(kb: KnowledgeBase, view: View, ref: str, wanted: _Target) -> _Exported:
    from kbtui.maintenance.export import exported_session

    session = kb.sessions.find(ref)
    log = kb.sessions.read_log(session)
    title = session if view.sessions.hides_any(session) else log.shown_title
    messages = [each for each in log.messages if each.role in ("user", "assistant")]
    messages = [each for each in messages if each.content.strip()]
    shown = [each for each in messages if not view.sessions.withholds(each)]
    with wanted.opened() as stream:
        if wanted.form == "md":
            stream.write("\n".join(exported_session(session, title, shown)).encode())
        else:
            named = _conversation_shape(replace(log.info(session), title=title), shown)
            shape = {"format": _FORMAT, **named}
            stream.write(f"{json.dumps(shape, ensure_ascii=False, indent=1)}\n".encode())
    return _Exported(counted(len(shown), "message"), len(shown), len(messages) - len(shown))


def _tree(kb: KnowledgeBase, tree: Tree, wanted: _Target) -> None:
    from kbtui.maintenance.export import (
        CONVERSATIONS,
        exported_session,
        markdown_of,
        write_folder,
        write_zip,
    )

    if wanted.form in ("folder", "obsidian"):
        write_folder(tree, wanted.file, overwrite=wanted.overwrite)
        return
    with wanted.opened() as stream:
        if wanted.form == "zip":
            write_zip(tree, stream)
        elif wanted.form == "json":
            for piece in _json(kb, tree):
                stream.write(piece.encode("utf-8", "replace"))
        else:
            between = ""
            for path in tree.paths:
                if not path.startswith(CONVERSATIONS) and (data := tree.read(path)) is not None:
                    stream.write(f"{between}{markdown_of(tree.name(path), data)}".encode())
                    between = _SEPARATOR
            for info, log in _conversations(kb, tree):
                lines = exported_session(info.id, log.shown_title, log.messages)
                stream.write("".join([between, "\n".join(lines)]).encode("utf-8", "replace"))
                between = _SEPARATOR


def _conversations(kb: KnowledgeBase, tree: Tree) -> Iterator[tuple[SessionInfo, SessionLog]]:
    """Yield the exported conversations, oldest first."""
    from kbtui.maintenance.export import CONVERSATIONS

    for info in sorted(kb.sessions.list(), key=lambda info: (info.created, info.id)):
        if f"{CONVERSATIONS}{info.id}.jsonl" in tree.paths:
            yield info, kb.sessions.read_log(info.id)


def _conversation_shape(info: SessionInfo, messages: Iterable[SessionMessage]) -> dict[str, Any]:
    from kbtui.maintenance.export import message_shape

    texts = [
        each for each in messages if each.role in ("user", "assistant") and each.content.strip()
    ]
    return {**session_shape(info), "messages": [message_shape(each) for each in texts]}


def _json(kb: KnowledgeBase, tree: Tree) -> Iterator[str]:
    """Yield the JSON document in pieces, one line per entry or file, to keep memory bounded."""
    from kbtui.maintenance.export import CONVERSATIONS, file_shape

    infos = {info.path: info for info in kb.library.infos()}
    head = {"format": _FORMAT, "workspace": str(kb.workspace.root)}
    yield json.dumps(head, ensure_ascii=False)[:-1]
    for key, is_entry in (("entries", True), ("files", False)):
        yield f',\n"{key}": ['
        comma = "\n"
        for path in tree.paths:
            if (path in infos) != is_entry or path.startswith(CONVERSATIONS):
                continue
            data = tree.read(path)
            if data is None:
                continue
            shape: dict[str, Any] = file_shape(tree.name(path), data)
            if is_entry:
                text = data.decode("utf-8-sig", "replace")
                shape = {**info_shape(infos[path], kb.workspace), "text": text}
            yield comma + json.dumps(shape, ensure_ascii=False, default=str)
            comma = ",\n"
        yield "]"
    yield ',\n"conversations": ['
    comma = "\n"
    for info, log in _conversations(kb, tree):
        shape = _conversation_shape(info, log.messages)
        yield comma + json.dumps(shape, ensure_ascii=False, default=str)
        comma = ",\n"
    yield "]}\n"


class _Output:
    """A binary writer on standard output, which takes text."""

    def write(self, data: bytes) -> int:
        say(data.decode("utf-8", "replace"), newline=False)
        return len(data)
