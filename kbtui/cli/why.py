"""`kbtui why`: the origin of a line, or the authors of an entry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import WorkspaceOption, entry_argument, json_option, pass_place
from kbtui.cli.entries import recorded_path
from kbtui.cli.output import picked, say, say_json, say_line, say_styled
from kbtui.errors import NotFoundError
from kbtui.text import counted, moment, shorten

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.recall.provenance import AuthorShare, Why
    from kbtui.memory.records.archive import ArchiveEntry
    from kbtui.sessions.store import SessionMessage
    from kbtui.workspace.layout import Layout

_LINE = re.compile(r"(?P<ref>.+):(?P<line>\d{1,9})")
_MAX_MESSAGES = 12
_WIDTH = 300


@click.command()
@entry_argument("place", metavar="PATH:LINE")
@click.option("--at", metavar="REV", help="As of a revision: a commit id, HEAD~1, a date.")
@json_option
@pass_place
def why(workspace: WorkspaceOption, place: str, at: str | None, as_json: bool) -> None:
    """Show who wrote a line, and from which messages.

    Without a line: who wrote how much of the entry.
    """
    with workspace.opened() as kb:
        rev = kb.history.resolve(at) if at else None
        path, line = _resolve_place(kb, place, rev)
        provenance = kb.provenance
        if line is None:
            shares = provenance.authors(path, rev)
            name = kb.workspace.file(path)
            say_json(_authors_shape(name, shares)) if as_json else _print_shares(name, shares)
            return
        found = provenance.why(path, line, rev)
    if as_json:
        say_json(_why_shape(found, kb.workspace))
    else:
        _print_why(found, kb)


def _resolve_place(kb: KnowledgeBase, words: str, rev: str | None) -> tuple[str, int | None]:
    match = _LINE.fullmatch(words)
    if match is None:
        return recorded_path(kb, words, rev), None
    try:
        return recorded_path(kb, match["ref"], rev), int(match["line"])
    except NotFoundError as error:
        try:
            return recorded_path(kb, words, rev), None
        except NotFoundError:
            raise error from None


def _print_why(why: Why, kb: KnowledgeBase) -> None:
    from kbtui.presentation.commit_summary import reason_of, sentence
    from kbtui.presentation.notes import names_of

    layout = kb.workspace
    say_line(
        say_styled(f"{layout.file(why.path)}:{why.line}", fg="cyan"),
        "  ",
        say_styled(why.text.strip()),
    )
    say(why.note)
    if why.commit is not None:
        deed = sentence(why.commit, names_of(kb.library, [each.path for each in why.commit.paths]))
        say()
        say_line(
            say_styled(why.commit.id[:10], fg="yellow"),
            "  ",
            moment(why.commit.time),
            "  ",
            say_styled(deed),
        )
        if reason := reason_of(why.commit):
            say(_indented(reason))
    if why.moved_from:
        say(f"It stood in {layout.file(why.moved_from)}:{why.origin.line} first.")
    for entry in why.archives[:3]:
        say()
        say_line(say_styled(f"archive entry {entry.cursor}", bold=True), f"  {entry.timestamp}")
        say(_indented(shorten(entry.content, _WIDTH)))
    _print_messages(why)


def _print_messages(why: Why) -> None:
    if not why.messages:
        return
    say()
    say_line(say_styled(why.title, bold=True), "  ", say_styled(why.session or "", dim=True))
    shown = [each for each in why.messages if each.id in why.telling] or list(why.messages)
    for each in shown[:_MAX_MESSAGES]:
        who = say_styled(f"{each.id:>5} {each.role}", fg="green")
        say_line(f"{moment(each.time)} {who}")
        say(_indented(shorten(each.content, _WIDTH)))
    left = len(why.messages) - len(shown[:_MAX_MESSAGES])
    if left:
        say(f"  and {left} more of messages {why.messages[0].id} to {why.messages[-1].id}")


def _print_shares(path: str, shares: tuple[AuthorShare, ...]) -> None:
    say_line(say_styled(path, fg="cyan"))
    for share in shares:
        when = moment(share.last) if share.last else "not recorded yet"
        lines = counted(share.lines, "line")
        commits = counted(share.commits, "change")
        say(f"  {share.author or share.actor.value:<14} {lines:>12}  {commits:>12}  {when}")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _why_shape(why: Why, layout: Layout) -> dict[str, Any]:
    commit, origin = why.commit, why.origin
    return {
        "path": layout.file(why.path),
        "line": why.line,
        "text": why.text,
        "commit": origin.commit,
        "time": origin.time.isoformat() if origin.time else None,
        "actor": origin.actor.value,
        "author": origin.origin.author,
        "subject": commit.subject if commit else None,
        "reason": commit.body if commit else None,
        "note": why.note,
        "written": {"path": layout.file(origin.path), "line": origin.line}
        if origin.commit
        else None,
        "session": why.session,
        "title": why.title or None,
        "messages": [_message_shape(each, why) for each in why.messages],
        "archive": _archive_shape(why.archive) if why.archive else None,
        "archives": [_archive_shape(each) for each in why.archives],
    }


def _message_shape(message: SessionMessage, why: Why) -> dict[str, Any]:
    return {
        "id": message.id,
        "role": message.role,
        "time": message.time.isoformat(),
        "text": message.content,
        "telling": message.id in why.telling,
    }


def _archive_shape(entry: ArchiveEntry) -> dict[str, Any]:
    return picked(entry, "cursor origin timestamp content session messages raw")


def _authors_shape(path: str, shares: tuple[AuthorShare, ...]) -> dict[str, Any]:
    return {
        "path": path,
        "lines": sum(share.lines for share in shares),
        "authors": [
            {
                "actor": share.actor.value,
                "author": share.author,
                "lines": share.lines,
                "commits": share.commits,
                "first": share.first.isoformat() if share.first else None,
                "last": share.last.isoformat() if share.last else None,
            }
            for share in shares
        ],
    }
