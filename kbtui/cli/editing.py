"""Changing entries: new, edit, rename, delete; and the person's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kbtui.cli.completion import entry_names, entry_types
from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.output import note, say, say_json
from kbtui.errors import ConflictError, KbtuiError, StorageError, UnreadableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.knowledge.entry import Entry
    from kbtui.knowledge.library import Content, Library
    from kbtui.workspace.layout import Layout


@click.command()
@click.argument("type_", metavar="TYPE", shell_complete=entry_types)
@click.argument("title")
@click.option("-b", "--body", metavar="TEXT", help="Its text; `-` reads standard input.")
@click.option("-t", "--tag", "tags", metavar="TAG", multiple=True, help="A tag; may be repeated.")
@click.option("--summary", default="", help="One line for the index.")
@click.option("-e", "--edit", "then_edit", is_flag=True, help="Open it in your editor.")
@json_option
@pass_place
def new(
    place: Place,
    type_: str,
    title: str,
    body: str | None,
    tags: tuple[str, ...],
    summary: str,
    then_edit: bool,
    as_json: bool,
) -> None:
    """Make an entry.

    TYPE is topic, person, decision, fact, preference, project or reference.
    """
    text = sys.stdin.read() if body == "-" else body
    content: Content = {"body": text, "tags": tags, "summary": summary}
    with place.opened() as kb:
        entry = kb.library.get(kb.library.create(type_, title, **content).path)
        if then_edit:
            entry = _edited(kb.library, entry)
    _say_entry(entry, kb.workspace, as_json=as_json)


@click.command()
@click.argument("entry", shell_complete=entry_names)
@pass_place
def edit(place: Place, entry: str) -> None:
    """Edit an entry in $VISUAL or $EDITOR."""
    with place.opened() as kb:
        found = kb.library.find(entry)
        if not kb.workspace.writable:  # before anything is typed
            raise StorageError(
                f"The workspace {kb.workspace.root} is read-only.",
                "`kbtui show` shows the entry. To change it, make the folder writable.",
            )
        edited = _edited(kb.library, found)
    note(
        f"{kb.workspace.file(edited.path)} "
        + ("is unchanged." if edited.blob == found.blob else "is recorded.")
    )


@click.command()
@click.argument("old", shell_complete=entry_names)
@click.argument("new_name", metavar="NEW")
@json_option
@pass_place
def rename(place: Place, old: str, new_name: str, as_json: bool) -> None:
    """Rename an entry and repair every link to it.

    NEW is a title, a slug, or category/slug.
    """
    with place.opened() as kb:
        entry = kb.library.get(kb.library.rename(old, new_name).path)
    _say_entry(entry, kb.workspace, as_json=as_json)


@click.command()
@click.argument("entry", shell_complete=entry_names)
@json_option
@pass_place
def delete(place: Place, entry: str, as_json: bool) -> None:
    """Delete an entry and clean the links to it.

    It can be undone.
    """
    with place.opened() as kb:
        commit = kb.library.delete(entry)
    if as_json:
        from kbtui.cli.shapes import commit_shape

        say_json(commit_shape(commit, kb.workspace))
    else:
        say(f"{commit.id[:10]} {commit.subject}")
        note(f"Take it back with: kbtui undo {commit.id[:10]}")


def _say_entry(entry: Entry, layout: Layout, *, as_json: bool) -> None:
    if as_json:
        from kbtui.cli.shapes import info_shape

        say_json(info_shape(entry, layout))
    else:
        say(layout.file(entry.path))


def _edited(library: Library, entry: Entry) -> Entry:
    """Let the person edit a copy, and write it back through the door."""
    from kbtui.history.objects.commit import Actor
    from kbtui.workspace.layout import is_recorded

    if not is_recorded(entry.path):
        raise UsageError(
            f"{entry.path} is searched, but never written by kbtui.", "Use your editor on the file."
        )
    if entry.problem and "frontmatter" not in entry.problem:
        raise UnreadableError(
            f"{entry.path} can't be edited here: {entry.problem}", "Use your editor on the file."
        )
    copy = Path(tempfile.mkdtemp(prefix="kbtui-")) / f"{entry.slug}.md"
    copy.write_text(entry.text, "utf-8", newline="")
    try:
        _run_editor(copy)
        text = copy.read_bytes().decode("utf-8", "replace")
        if text != entry.text:
            library.write(
                entry.path, text, expecting=entry.blob, actor=Actor.YOU, reason="edited by hand"
            )
    except ConflictError:
        _remove_copy(copy)  # the door has kept both versions
        raise
    except KbtuiError as error:
        error.hint = f"{error.hint} What you wrote is in {copy}.".strip()
        raise
    _remove_copy(copy)
    return library.get(entry.path)


@contextmanager
def edited_copy(text: str, name: str) -> Iterator[str]:
    """Let the person edit `text` in a file called `name`; yields what they made of it.

    When the block ends well the copy goes, otherwise the error says where it is.

    Raises:
        UsageError: The editor can't be started, or ended with a failure.
    """
    copy = Path(tempfile.mkdtemp(prefix="kbtui-")) / name
    copy.write_text(text, "utf-8", newline="")
    try:
        _run_editor(copy)
        yield copy.read_bytes().decode("utf-8", "replace")
    except KbtuiError as error:
        error.hint = f"{error.hint} What you wrote is in {copy}.".strip()
        raise
    _remove_copy(copy)


def _run_editor(file: Path) -> None:
    """Run ``$VISUAL``, ``$EDITOR`` or ``vi`` on a file, and wait for its end.

    Raises:
        UsageError: It can't be started, or ended with a failure.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*shlex.split(command), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The editor {command!r} can't be started: {error}.",
            "Set EDITOR to the program that you edit text with.",
        ) from error
    if done.returncode != 0:
        raise UsageError(
            f"The editor {command!r} ended with status {done.returncode}; nothing was recorded."
        )


def _remove_copy(copy: Path) -> None:
    """Remove a copy and the folder that was made for it."""
    copy.unlink(missing_ok=True)
    copy.parent.rmdir()
