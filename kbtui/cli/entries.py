"""Looking at entries: list, show, links."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kbtui.cli.completion import entry_names, entry_types
from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.output import say, say_json, say_line, say_styled, to_terminal
from kbtui.errors import NotFoundError

if TYPE_CHECKING:
    from kbtui.knowledge.entry import Entry
    from kbtui.knowledge.library import EntryInfo
    from kbtui.knowledge.reader import PastLibrary
    from kbtui.knowledge_base import KnowledgeBase


@click.command("list")
@click.option("--type", "type_", metavar="T", shell_complete=entry_types, help="Only this type.")
@click.option("--tag", metavar="T", help="Only with this tag, or one below it (a/b).")
@click.option("--at", metavar="REV", help="As they were then: a commit id, HEAD~1, a date.")
@json_option
@pass_place
def list_command(
    place: Place, type_: str | None, tag: str | None, at: str | None, as_json: bool
) -> int:
    """List the entries."""
    with place.opened() as kb:
        infos = [info for info in _infos(kb, at) if _fits(info, type_, tag)]
    if as_json:
        from kbtui.cli.shapes import info_shape

        say_json([info_shape(info, kb.workspace) for info in infos])
    else:
        _print_infos(infos)
    return 1 if (type_ or tag) and not infos else 0


def _infos(kb: KnowledgeBase, at: str | None) -> list[EntryInfo]:
    return kb.library.infos() if at is None else _past(kb, at).infos()


def _past(kb: KnowledgeBase, at: str) -> PastLibrary:
    from kbtui.knowledge.reader import PastLibrary

    return PastLibrary(kb.history, at, kb.library)


def _fits(info: EntryInfo, type_: str | None, tag: str | None) -> bool:
    if type_ and (info.type or "").casefold() != type_.casefold():
        return False
    if not tag:
        return True
    wanted = tag.lstrip("#").casefold()
    return any(
        own == wanted or own.startswith(f"{wanted}/") for own in map(str.casefold, info.tags)
    )


def _print_infos(infos: list[EntryInfo]) -> None:
    if not to_terminal():
        for info in infos:
            say(f"{info.name}\t{info.title}\t{info.summary}")
        return
    width = min(48, max((len(info.name) for info in infos), default=0))
    for info in infos:
        say_line(
            say_styled(info.name.ljust(width), fg="cyan"), "  ", say_styled(info.summary, dim=True)
        )


@click.command()
@click.argument("entry", shell_complete=entry_names)
@click.option("--at", metavar="REV", help="As it was then: a commit id, HEAD~1, a date.")
@json_option
@pass_place
def show(place: Place, entry: str, at: str | None, as_json: bool) -> None:
    """Show an entry, named by path, slug, title or alias."""
    with place.opened() as kb:
        found = _entry_at(kb, entry, at) if at else kb.library.find(entry)
        if not as_json:
            say(found.text, newline=False)
            if to_terminal() and not found.text.endswith("\n"):
                say()
            return
        from kbtui.cli.shapes import entry_shape

        links = kb.library.outgoing_of(found)
        backlinks = kb.library.backlinks(found.path)
        say_json(entry_shape(found, links, backlinks, kb.workspace))


def _entry_at(kb: KnowledgeBase, ref: str, at: str) -> Entry:
    from kbtui.knowledge.entry import parse_entry

    path = recorded_path(kb, ref, at)
    return parse_entry(path, kb.history.read(path, at))


def recorded_path(kb: KnowledgeBase, ref: str, at: str | None = None) -> str:
    """Find the path that a name means now, or meant in a revision, or in any (at is None).

    Raises:
        NotFoundError: it never was.
    """
    from kbtui.workspace.files import checked_path

    candidates = [ref, f"{ref}.md", f"knowledge/{ref}", f"knowledge/{ref}.md"]
    try:
        path = kb.library.find_path(ref)
    except NotFoundError as error:
        for candidate in candidates:
            path = checked_path(candidate)
            if _was_there(kb, path, at):
                return path
        if at is not None:
            return _past(kb, at).find_path(ref)
        raise error from None
    if at is not None and not _was_there(kb, path, at):
        # It is called so today; then it may have been another file's name.
        for candidate in candidates:
            if _was_there(kb, checked_path(candidate), at):
                return checked_path(candidate)
    return path


def _was_there(kb: KnowledgeBase, path: str, at: str | None) -> bool:
    if at is not None:
        return path in kb.history.tree(at)
    return next(kb.history.log(path, limit=1), None) is not None


@click.command()
@click.argument("entry", shell_complete=entry_names)
@json_option
@pass_place
def links(place: Place, entry: str, as_json: bool) -> None:
    """Show where an entry links to, and what links to it."""
    with place.opened() as kb:
        found = kb.library.find_path(entry)
        outgoing, backlinks = kb.library.outgoing(found), kb.library.backlinks(found)
        file = kb.workspace.file
    path = file(found)
    if as_json:
        from kbtui.cli.shapes import backlink_shape, link_shape

        say_json(
            {
                "path": path,
                "links": [link_shape(link, kb.workspace) for link in outgoing],
                "backlinks": [backlink_shape(link, kb.workspace) for link in backlinks],
            }
        )
        return
    for link in outgoing:
        where = file(link.path) if link.path else f"{link.link.target} (not there)"
        say(f"{path}:{link.link.line} -> {where}")
    for back in backlinks:
        say(f"{path} <- {file(back.path)}:{back.line}: {back.text}")
    sys.stdout.flush()
