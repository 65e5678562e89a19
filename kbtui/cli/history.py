"""Changes and who made them: log, diff."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from kbtui.cli.completion import entry_names
from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.entries import recorded_path
from kbtui.cli.output import coloured, note, say, say_json, say_line, say_styled, to_terminal
from kbtui.errors import NotFoundError, UsageError
from kbtui.text import clean

if TYPE_CHECKING:
    from kbtui.history.objects.commit import Actor, Commit
    from kbtui.knowledge_base import KnowledgeBase

_SCREENFUL = 30


@click.command()
@click.argument("path", required=False, shell_complete=entry_names)
@click.option("-n", "limit", metavar="N", type=click.IntRange(1), help="At most so many.")
@click.option("--actor", metavar="A", help="Only by one: you, agent, dream, ...")
@json_option
@pass_place
def log(place: Place, path: str | None, limit: int | None, actor: str | None, as_json: bool) -> int:
    """Show changes, newest first: all, or of an entry or folder."""
    shortened = to_terminal() and limit is None and not as_json
    with place.opened() as kb:
        wanted = _log_path(kb, path) if path else None
        found = kb.history.log(
            wanted, actor=_actor(actor) if actor else None, limit=None if shortened else limit
        )
        if as_json:
            from kbtui.cli.shapes import commit_shape

            commits = [commit_shape(commit, kb.workspace) for commit in found]
            say_json(commits)
            return 1 if (path or actor) and not commits else 0
        count = 0
        for commit in islice(found, _SCREENFUL) if shortened else found:
            print_commit(commit)
            count += 1
        if shortened and next(found, None) is not None:
            note(f"These are the newest {_SCREENFUL}; -n N shows more.")
    return 1 if (path or actor) and not count else 0


def _log_path(kb: KnowledgeBase, ref: str) -> str:
    """Read the name of an entry or of a folder."""
    from kbtui.workspace.files import checked_path

    try:
        return recorded_path(kb, ref)
    except NotFoundError:
        folder = checked_path(ref.rstrip("/"))
        for candidate in (folder, f"knowledge/{folder}"):
            if kb.workspace.place(candidate).is_dir():
                return candidate
        raise


def _actor(name: str) -> Actor:
    from kbtui.history.objects.commit import Actor

    try:
        return Actor(name.lower())
    except ValueError:
        raise UsageError(
            f"There is no actor {name!r}.", f"Use one of: {', '.join(Actor)}."
        ) from None


def print_commit(commit: Commit) -> None:
    """Write one line of the log."""
    when = commit.time.astimezone().strftime("%Y-%m-%d %H:%M")
    say_line(
        say_styled(commit.id[:10], fg="yellow"),
        "  ",
        when,
        "  ",
        say_styled(commit.actor.value.ljust(8), fg="cyan"),
        "  ",
        say_styled(commit.subject),
    )


@click.command()
@click.argument("words", metavar="REV [REV] [PATH]", nargs=-1, required=True)
@pass_place
def diff(place: Place, words: tuple[str, ...]) -> int:
    """Compare two revisions, or one with the files of now.

    Exits with 1 if they differ.
    """
    with place.opened() as kb:
        from kbtui.history.looking.diff import as_patch

        old, *rest = words
        old = kb.history.resolve(old)
        new = _as_revision(kb, rest[0]) if rest else None
        paths = [_diff_path(kb, ref) for ref in (rest[1:] if new else rest)]
        patch = as_patch(kb.history.diff(old, new, paths))
    print_patch(patch)
    return 1 if patch else 0


def _as_revision(kb: KnowledgeBase, word: str) -> str | None:
    """Take a word for a revision if it is one; else it is a path."""
    try:
        return kb.history.resolve(word)
    except NotFoundError:
        return None


def _diff_path(kb: KnowledgeBase, ref: str) -> str:
    try:
        return _log_path(kb, ref)
    except NotFoundError as error:
        raise NotFoundError(
            f"{ref!r} is neither a revision nor an entry.", error.hint or "See `kbtui log`."
        ) from error


def print_patch(patch: str) -> None:
    """Write a patch, coloured where colours are wanted."""
    if not coloured():
        say(patch, newline=False)
        return
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in clean(patch).split("\n")[:-1]:
        bold = line.startswith(("diff ", "+++", "---"))
        colour = None if bold else colours.get(line[:1])
        say_line(click.style(line, fg=colour, bold=bold))
