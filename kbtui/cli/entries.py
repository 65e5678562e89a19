"""Commands on entries: list, show, links, new, edit, rename, delete."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from kbtui.cli.context import (
    WorkspaceOption,
    entry_argument,
    entry_types,
    folder_of,
    json_option,
    pass_place,
)
from kbtui.cli.output import (
    TAKE_BACK,
    backlink_shape,
    entry_shape,
    info_shape,
    link_shape,
    note,
    say,
    say_commit,
    say_json,
    say_line,
    say_styled,
    to_terminal,
)
from kbtui.cli.text_input import MOST_OF_BODY, GivenText, TextCommand, text_option
from kbtui.errors import (
    ConflictError,
    KbtuiError,
    NotFoundError,
    StorageError,
    UnreadableError,
    UsageError,
)

if TYPE_CHECKING:
    from kbtui.knowledge.entries.entry import Entry
    from kbtui.knowledge.library.library import (
        Content,
        EntryInfo,
        Library,
        PastLibrary,
        WrittenEntry,
    )
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.workspace.layout import Layout


# As in citations and search results, which may cite a range of messages.
_CONVERSATION = re.compile(
    r"(?:\S*/)?sessions/(?P<session>[^/:]+)\.jsonl(?::(?P<message>\d{1,9})(?:-\d+)?)?"
)


@click.command("list")
@click.option("--type", "type_", metavar="T", shell_complete=entry_types, help="Only this type.")
@click.option("--tag", metavar="T", help="Only with this tag or one nested in it (a/b).")
@click.option("--at", metavar="REV", help="As of a revision: a commit id, HEAD~1, a date.")
@json_option
@pass_place
def list_command(
    place: WorkspaceOption, type_: str | None, tag: str | None, at: str | None, as_json: bool
) -> int:
    """List the entries."""
    with place.opened() as kb:
        infos = [info for info in _infos(kb, at) if _matches(info, type_, tag)]
    if as_json:
        say_json([info_shape(info, kb.workspace) for info in infos])
    else:
        _print_infos(infos)
    if infos or not (type_ or tag):
        return 0
    note("kbtui: No entry is like that.")
    return 1


def _infos(kb: KnowledgeBase, at: str | None) -> list[EntryInfo]:
    return kb.library.infos() if at is None else _library_at(kb, at).infos()


def _library_at(kb: KnowledgeBase, at: str) -> PastLibrary:
    from kbtui.knowledge.library.library import PastLibrary

    return PastLibrary(kb.history, at, kb.library)


def _matches(info: EntryInfo, type_: str | None, tag: str | None) -> bool:
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
@entry_argument("entry")
@click.option("--at", metavar="REV", help="As of a revision: a commit id, HEAD~1, a date.")
@json_option
@pass_place
def show(place: WorkspaceOption, entry: str, at: str | None, as_json: bool) -> None:
    """Show an entry, a document or a conversation.

    An entry goes by its path, slug, title or alias. `sessions/ID.jsonl` is a conversation, and
    `sessions/ID.jsonl:3` its third message.
    """
    with place.opened() as kb:
        if talk := None if at else _CONVERSATION.fullmatch(entry):
            _show_conversation(kb, talk["session"], talk["message"], as_json=as_json)
            return
        document = "" if at else _document_path(kb, entry)
        if document:
            _show_document(kb, document, as_json=as_json)
            return
        found = _entry_at(kb, entry, at) if at else kb.library.find(entry)
        if not as_json:
            say(found.text, newline=False)
            if to_terminal() and not found.text.endswith("\n"):
                say()
            return
        links = kb.library.outgoing_of(found)
        backlinks = kb.library.backlinks(found.path)
        say_json(entry_shape(found, links, backlinks, kb.workspace))


def _show_conversation(
    kb: KnowledgeBase, session: str, message: str | None, *, as_json: bool
) -> None:
    """Print a conversation, or one message of it by number."""
    from kbtui.maintenance.export import message_shape, session_markdown

    log = kb.sessions.read_log(session)
    messages = [each for each in log.messages if message is None or each.id == int(message)]
    if message and not messages:
        raise NotFoundError(f"There is no message {message} in it.", f"It has {log.last_id}.")
    if as_json:
        say_json([message_shape(each) for each in messages])
    else:
        say("\n".join(session_markdown(session, log.shown_title, messages)))


def _document_path(kb: KnowledgeBase, name: str) -> str:
    """Return the workspace path of the document of this name, or ""."""
    from kbtui.documents.documents import is_document
    from kbtui.workspace.files import exists

    for path in dict.fromkeys((name, kb.workspace.path_of(name), f"knowledge/{name}")):
        if is_document(path, kb.settings.search.roots) and exists(kb.workspace, path):
            return path
    return ""


def _show_document(kb: KnowledgeBase, path: str, *, as_json: bool) -> None:
    from kbtui.documents.documents import Documents

    with Documents(kb.workspace) as documents:
        text = documents.read(path)
    file = kb.workspace.file(path)
    if not text.parts:
        raise UnreadableError(f"{file} can't be read: {text.problem}.")
    if as_json:
        parts = [{"place": place, "text": part} for place, part in text.parts]
        shape = {"path": file, "title": text.title, "problem": text.problem, "parts": parts}
        say_json(shape)
        return
    say(text.whole.rstrip("\n"))
    if text.problem:
        note(f"kbtui: {file}: {text.problem}")


def _entry_at(kb: KnowledgeBase, ref: str, at: str) -> Entry:
    from kbtui.knowledge.entries.entry import parse_entry

    path = recorded_path(kb, ref, at)
    return parse_entry(path, kb.history.read(path, at))


def recorded_path(kb: KnowledgeBase, ref: str, at: str | None = None) -> str:
    """Find the path that a name means now or meant in revision `at`, any revision if None.

    Raises:
        NotFoundError: It never existed.
    """
    from kbtui.workspace.files import checked_path
    from kbtui.workspace.layout import paths_named

    candidates = paths_named(ref)
    try:
        path = kb.library.find_path(ref)
    except NotFoundError as error:
        for candidate in candidates:
            path = checked_path(candidate)
            if _existed(kb, path, at):
                return path
        if at is not None:
            return _library_at(kb, at).find_path(ref)
        raise error from None
    if at is not None and not _existed(kb, path, at):
        # The name may have belonged to another file then.
        for candidate in candidates:
            if _existed(kb, checked_path(candidate), at):
                return checked_path(candidate)
    return path


def _existed(kb: KnowledgeBase, path: str, at: str | None) -> bool:
    if at is not None:
        return path in kb.history.tree(at)
    return next(kb.history.log(path, limit=1), None) is not None


@click.command()
@entry_argument("entry")
@json_option
@pass_place
def links(place: WorkspaceOption, entry: str, as_json: bool) -> None:
    """Show the links from and to an entry."""
    with place.opened() as kb:
        found = kb.library.find_path(entry)
        outgoing, backlinks = kb.library.outgoing(found), kb.library.backlinks(found)
        file = kb.workspace.file
    path = file(found)
    if as_json:
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


@click.command(cls=TextCommand)
@click.argument("type_", metavar="TYPE", shell_complete=entry_types)
@click.argument("title")
@text_option("-b", "--body", "text", help="Its text; only `-` reads standard input.")
@click.option("-t", "--tag", "tags", metavar="TAG", multiple=True, help="A tag; may be repeated.")
@click.option("--summary", default="", help="A one-line summary for the index.")
@click.option("--in", "folder", metavar="FOLDER", default="", help="Where; else by type or habit.")
@click.option("--private", is_flag=True, help="Let no model on another machine read it.")
@click.option("--again", is_flag=True, help="Create it even if one of that name exists.")
@click.option("-e", "--edit", "then_edit", is_flag=True, help="Open it in your editor.")
@json_option
@pass_place
def new(
    place: WorkspaceOption,
    type_: str,
    title: str,
    text: GivenText,
    again: bool,
    then_edit: bool,
    as_json: bool,
    **content: Unpack[Content],
) -> None:
    """Make an entry.

    TYPE is topic, person, decision, fact, preference, project or reference. If the text begins with
    a head between two lines of `---`, its properties are the entry's, but for type and dates.
    """
    from kbtui.knowledge.library.library import split_head

    body = text.read_option(most=MOST_OF_BODY)
    content["head"], content["body"] = split_head(body) if body else ("", body)
    with place.opened() as kb:
        if folder := content.get("folder"):
            content["folder"] = folder_of(kb.workspace, folder)
        twins = kb.library.same_name(type_, title)
        if twins and not again and not _is_second_wanted(kb, twins[0], as_json=as_json):
            raise UsageError(
                f"There is {kb.workspace.file(twins[0].path)} already.",
                f"See `kbtui show {shlex.quote(twins[0].name)}`; --again makes a second one.",
            )
        entry = kb.library.get(kb.library.create(type_, title, **content).path)
        if then_edit:
            entry = _edited(kb.library, entry)
    _say_entry(entry, kb.workspace, as_json=as_json)


def _is_second_wanted(kb: KnowledgeBase, twin: EntryInfo, *, as_json: bool) -> bool:
    """Ask a person whether to make a second entry of a name; a machine isn't asked."""
    if as_json or sys.stdin is None or not sys.stdin.isatty():
        return False
    return click.confirm(
        f"There is {kb.workspace.file(twin.path)} already. Make a second one?", err=True
    )


@click.command()
@entry_argument("entry")
@pass_place
def edit(place: WorkspaceOption, entry: str) -> None:
    """Edit an entry in $VISUAL or $EDITOR."""
    with place.opened() as kb:
        found = kb.library.find(entry)
        if not kb.workspace.writable:  # checked before anything is typed
            raise StorageError(
                f"The workspace {kb.workspace.root} is read-only.",
                "`kbtui show` shows the entry. To change it, make the folder writable.",
            )
        _check_protected(kb, found.path)
        edited = _edited(kb.library, found)
    note(
        f"{kb.workspace.file(edited.path)} "
        + ("is unchanged." if edited.blob == found.blob else "is recorded.")
    )


@click.command()
@entry_argument("old")
@click.argument("new_name", metavar="NEW")
@json_option
@pass_place
def rename(place: WorkspaceOption, old: str, new_name: str, as_json: bool) -> None:
    """Rename an entry and repair every link to it.

    NEW is a title, a slug, or category/slug.
    """
    with place.opened() as kb:
        written = kb.library.rename(old, new_name)
        entry = kb.library.get(written.path)
    _say_entry(entry, kb.workspace, as_json=as_json)
    _say_unmended(kb, written)


def _say_unmended(kb: KnowledgeBase, written: WrittenEntry) -> None:
    """Name the links to a renamed entry that stayed as they were."""
    from kbtui.text import counted

    def names(paths: tuple[str, ...]) -> str:
        return ", ".join(map(kb.workspace.file, dict.fromkeys(paths)))

    if written.unmended:
        count = counted(len(written.unmended), "note")
        note(
            f"kbtui: {count} with links in a head that can't be read or changed:"
            f" {names(written.unmended)}"
        )
    if written.addresses:
        count = counted(len(written.addresses), "link")
        note(
            f"kbtui: {count} to its address on a site, which may change with its name:"
            f" {names(written.addresses)}"
        )


@click.command()
@entry_argument("entry")
@json_option
@pass_place
def delete(place: WorkspaceOption, entry: str, as_json: bool) -> None:
    """Delete an entry and clean up the links to it.

    It can be undone.
    """
    with place.opened() as kb:
        say_commit(kb.library.delete(entry), kb, as_json=as_json, way_back=TAKE_BACK)


def _check_protected(kb: KnowledgeBase, path: str) -> None:
    """Ask before a read-only file is edited, as it would be replaced."""
    from kbtui.workspace.files import is_protected

    if not is_protected(kb.workspace, path):
        return
    file = kb.workspace.file(path)
    if not sys.stdin.isatty():
        raise StorageError(f"{file} is read-only.", "`chmod u+w` on it allows to edit it.")
    click.confirm(f"{file} is read-only. Replace it anyway?", abort=True, err=True)


def _say_entry(entry: Entry, layout: Layout, *, as_json: bool) -> None:
    if as_json:
        say_json(info_shape(entry, layout))
    else:
        say(layout.file(entry.path))


def _edited(library: Library, entry: Entry) -> Entry:
    """Let the user edit a copy, and commit the result through the door."""
    from kbtui.history.change import Actor
    from kbtui.workspace.layout import is_recorded

    if not is_recorded(entry.path):
        raise UsageError(
            f"{entry.path} is searched, but never written by kbtui.", "Use your editor on the file."
        )
    if entry.problem and "frontmatter" not in entry.problem:
        raise UnreadableError(
            f"{entry.path} can't be edited here: {entry.problem}", "Use your editor on the file."
        )
    # On a conflict the door keeps both versions, so the copy isn't needed.
    with edited_copy(entry.text, f"{entry.slug}.md", kept=ConflictError) as text:
        if text != entry.text:
            library.write(
                entry.path, text, expecting=entry.blob, actor=Actor.YOU, reason="edited by hand"
            )
    return library.get(entry.path)


@contextmanager
def edited_copy(text: str, name: str, kept: type[KbtuiError] | tuple[()] = ()) -> Iterator[str]:
    """Let the user edit `text` in a temporary file called `name`, and yield the result.

    The file is deleted when the block succeeds or raises one of the errors `kept`, after which the
    text is stored elsewhere. On other errors, and after an editor that may still have a window
    open, it is said where the file is.

    Raises:
        ConfigurationError: There is no such editor.
        UsageError: The editor fails.
    """
    import shutil
    import tempfile

    from kbtui import programs

    command = programs.editor_command()
    copy = Path(tempfile.mkdtemp(prefix="kbtui-")) / name
    copy.write_text(text, "utf-8", newline="")
    try:
        edited = programs.edit(copy, command)
        if edited.failure:
            raise UsageError(edited.failure, "Nothing was recorded.")
        yield copy.read_bytes().decode("utf-8", "replace")
    except kept:
        shutil.rmtree(copy.parent, ignore_errors=True)
        raise
    except KbtuiError as error:
        error.hint = f"{error.hint} What you wrote is in {copy}.".strip()
        raise
    if edited.at_once:
        note(f"{edited.at_once} The file for it stays: {copy}")
    else:
        shutil.rmtree(copy.parent, ignore_errors=True)
