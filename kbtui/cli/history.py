"""Commands on history: log, diff, undo, restore, git."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kbtui.cli.context import WorkspaceOption, entry_argument, json_option, pass_place, path_of_file
from kbtui.cli.entries import recorded_path
from kbtui.cli.output import (
    coloured,
    commit_shape,
    note,
    say,
    say_commit,
    say_json,
    say_line,
    say_styled,
    to_terminal,
)
from kbtui.errors import NotFoundError, UndoConflictError, UsageError
from kbtui.text import clean, counted, moment

if TYPE_CHECKING:
    from datetime import date

    from kbtui.history.change import Actor, Commit
    from kbtui.history.merging.tree_merge import Conflict, Resolution
    from kbtui.history.queries.diff import FileDiff
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.workspace.layout import Layout, Workspace

_SCREENFUL = 30

prefer_option = click.option(
    "--prefer",
    type=click.Choice(["now", "before"]),
    help="Where a line was changed again: keep what stands there now, or what was before.",
)


@click.command()
@entry_argument("path", required=False)
@click.option("-n", "limit", metavar="N", type=click.IntRange(1), help="Show at most this many.")
@click.option("--actor", metavar="A", help="Only changes by one author: you, agent, dream, ...")
@json_option
@pass_place
def log(
    place: WorkspaceOption, path: str | None, limit: int | None, actor: str | None, as_json: bool
) -> int:
    """Show all changes, or those of an entry or folder.

    What follows from other changes, such as accounts of the memory, is only in JSON.
    """
    with place.opened() as kb:
        wanted = _log_path(kb, path) if path else None
        found = kb.history.log(wanted, actor=_actor(actor) if actor else None)
        if as_json:
            commits = [commit_shape(commit, kb.workspace) for commit in islice(found, limit)]
            say_json(commits)
            count = len(commits)
        else:
            count = _print_log(kb, found, wanted, limit)
    return 1 if (path or actor) and not count else 0


def _print_log(
    kb: KnowledgeBase, found: Iterator[Commit], about: str | None, limit: int | None
) -> int:
    """Print changes as sentences, at most a screenful on a terminal, and return their number."""
    from kbtui.presentation.commit_summary import is_upkeep

    if about is None:
        found = (commit for commit in found if not is_upkeep(commit))
    shortened = to_terminal() and limit is None
    write, count = LogPrinter(kb, by_days=to_terminal(), about=about), 0
    for commit in islice(found, _SCREENFUL if shortened else limit):
        write(commit)
        count += 1
    if shortened and next(found, None) is not None:
        note(f"These are the newest {_SCREENFUL}; -n N shows more.")
    return count


def _log_path(kb: KnowledgeBase, ref: str) -> str:
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
    from kbtui.history.change import Actor

    try:
        return Actor(name.lower())
    except ValueError:
        raise UsageError(
            f"There is no actor {name!r}.", f"Use one of: {', '.join(Actor)}."
        ) from None


class LogPrinter:
    """Prints commits as sentences, grouped by day or each with its full time."""

    def __init__(self, kb: KnowledgeBase, *, by_days: bool, about: str | None = None) -> None:
        from kbtui.presentation.notes import all_names

        self._names = all_names(kb.library.infos(), kb.sessions)
        self._by_days = by_days
        self._about = about
        self._day: date | None = None

    def __call__(self, commit: Commit) -> None:
        """Print one line of the log, after a heading if its day is new."""
        from kbtui.presentation.actors import committer
        from kbtui.presentation.commit_summary import summarize
        from kbtui.presentation.times import day_heading

        local = commit.time.astimezone()
        when = f"{local:%H:%M}" if self._by_days else moment(commit.time)
        if self._by_days and local.date() != self._day:
            self._day = local.date()
            say_line(say_styled(day_heading(self._day), bold=True))
        say_line(
            say_styled(commit.id[:10], fg="yellow"),
            "  ",
            when,
            "  ",
            say_styled(committer(commit).ljust(8), fg="cyan"),
            "  ",
            say_styled(str(summarize(commit, self._names, self._about))),
        )


@click.command()
@click.argument("words", metavar="[REV [REV] [PATH]]", nargs=-1)
@click.option("--note", "ref", metavar="NOTE", help="One note, followed through its renames.")
@click.option("--from", "since", metavar="DAY", help="From the beginning of a day, or a change.")
@click.option("--to", "until", metavar="DAY", help="To the end of a day, or a change; else to now.")
@pass_place
def diff(
    place: WorkspaceOption,
    words: tuple[str, ...],
    ref: str | None,
    since: str | None,
    until: str | None,
) -> int:
    """Compare two revisions, or a note between two days.

    One revision is compared with the current files. A DAY is yesterday, Monday, 3 November,
    2026-11-03 or a change. Exits with 1 if they differ.
    """
    if bool(words) == bool(ref) or (ref and not since) or (words and (since or until)):
        raise UsageError(
            "Compare either revisions, or a note since a day.",
            "Write REV [REV] [PATH], or --note NOTE --from DAY, with or without --to DAY.",
        )
    with place.opened() as kb:
        from kbtui.history.queries.diff import as_patch

        if ref and since:
            return _diff_note(kb, ref, since, until)
        old, *rest = words
        old = kb.history.resolve(old)
        new = _as_revision(kb, rest[0]) if rest else None
        paths = [_diff_path(kb, ref) for ref in (rest[1:] if new else rest)]
        patch = as_patch(kb.history.diff(old, new, paths), kb.workspace.file)
    print_patch(patch)
    return 1 if patch else 0


def _diff_note(kb: KnowledgeBase, ref: str, since: str, until: str | None) -> int:
    """Print the difference of a note between two moments."""
    from kbtui.history.queries.diff import as_patch
    from kbtui.presentation.between import moment_of

    first = moment_of(kb.history, since)
    last = moment_of(kb.history, until, is_end=True) if until else None
    found = kb.history.between(_diff_path(kb, ref), first, last)
    print_patch(as_patch([found], kb.workspace.file) if found is not None else "")
    return 1 if found is not None else 0


def _as_revision(kb: KnowledgeBase, word: str) -> str | None:
    """Resolve a word as a revision, or return None if it isn't one."""
    try:
        return kb.history.resolve(word)
    except NotFoundError:
        return None


def _diff_path(kb: KnowledgeBase, ref: str) -> str:
    try:
        return _log_path(kb, path_of_file(kb.workspace, ref))
    except NotFoundError as error:
        raise NotFoundError(
            f"{ref!r} is neither a revision nor an entry.", error.hint or "See `kbtui log`."
        ) from error


def print_patch(patch: str) -> None:
    """Print a patch, coloured if colours are enabled."""
    if not coloured():
        say(patch, newline=False)
        return
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in clean(patch).split("\n")[:-1]:
        bold = line.startswith(("diff ", "+++", "---"))
        colour = None if bold else colours.get(line[:1])
        say_line(click.style(line, fg=colour, bold=bold))


_MAX_ROUNDS = 5


def _check_one(named: int, *, is_part: bool, is_commit: bool) -> None:
    """Raise `UsageError` for several changes, or for parts of something other than a commit."""
    if named > 1:
        raise UsageError(
            "Undo takes back one change at a time.",
            "Name it by its id from `kbtui log`, or by --turn ID or --batch ID.",
        )
    if is_part and not is_commit:
        raise UsageError(
            "--hunk and --path take a part of one commit, not of a turn or a batch.",
            "Name the commit by its id: `kbtui log` lists those of a turn one below the other.",
        )


def _print_last(kb: KnowledgeBase, last: Commit) -> None:
    from kbtui.presentation.commit_summary import sentence
    from kbtui.presentation.notes import Names

    change = sentence(last, Names(kb.library.infos()))
    say(f"Taking back: {change} ({last.id[:10]}, {moment(last.time)})")


@click.command()
@click.argument("rev", required=False)
@click.option("--hunk", metavar="N", type=click.IntRange(1), help="Only the Nth hunk of it.")
@click.option("--path", "paths", metavar="PATH", multiple=True, help="Only this file of it.")
@click.option(
    "--turn", metavar="ID", help="Undo everything that one turn of a conversation changed."
)
@click.option("--batch", metavar="ID", help="Undo a whole import, or a whole run of Dream.")
@prefer_option
@json_option
@pass_place
def undo(
    place: WorkspaceOption,
    rev: str | None,
    hunk: int | None,
    paths: tuple[str, ...],
    turn: str | None,
    batch: str | None,
    prefer: str | None,
    as_json: bool,
) -> None:
    """Undo exactly one change; later ones stay.

    Without REV, the last change that hasn't been undone.
    """
    from kbtui.history.change import is_import

    named = sum(name is not None for name in (rev, turn, batch))
    _check_one(named, is_part=hunk is not None or bool(paths), is_commit=rev is not None)
    with place.opened() as kb, conflicts_shown(kb.workspace):
        last = None if named else kb.history.last_change()
        if last is not None:
            is_whole = is_import(last.origin.batch)
            rev, batch = (None, last.origin.batch) if is_whole else (last.id, None)
            if not as_json:
                _print_last(kb, last)
        if batch is not None and is_import(batch):
            _undo_import(kb, batch, prefer, as_json=as_json)
            return
        work = _undo_function(kb, rev, paths, hunk, turn, batch)
        commit = resolved(work, prefer)
        say_commit(commit, kb, as_json=as_json, way_back="To have it back")


def _undo_import(kb: KnowledgeBase, batch: str, prefer: str | None, *, as_json: bool) -> None:
    """Undo an import with its sessions."""
    from kbtui.importers.engine import take_back

    work = _undo_function(kb, None, (), None, None, batch)
    commit, taken = take_back(kb.services, batch, lambda: resolved(work, prefer))
    if not taken and commit is not None:
        say_commit(commit, kb, as_json=as_json, way_back="To have it back")
        return
    if as_json:
        shapes = [{"id": e.session, "outcome": e.outcome, "why": e.why or None} for e in taken]
        shape = commit_shape(commit, kb.workspace) if commit is not None else {"commit": None}
        say_json({**shape, "sessions": shapes})
        return
    if commit is not None:
        say_commit(commit, kb, as_json=False)
    gone = sum(each.outcome != "kept" for each in taken)
    say(f"{counted(gone, 'conversation')} taken back.")
    for each in taken:
        if each.outcome == "kept":
            note(f"kbtui: {each.session} stays. {each.why}")


def resolved(
    work: Callable[[Mapping[Conflict, Resolution]], Commit | None], prefer: str | None
) -> Commit | None:
    """Run an undo, resolving conflicts by `prefer`: "now", "before", or not at all."""
    return _preferring(work, prefer) if prefer else work({})


def _undo_function(
    kb: KnowledgeBase,
    rev: str | None,
    paths: tuple[str, ...],
    hunk: int | None,
    turn: str | None,
    batch: str | None,
) -> Callable[[Mapping[Conflict, Resolution]], Commit | None]:
    if turn is not None:
        return lambda decisions: kb.history.undo_turn(turn, decisions=decisions)
    if batch is not None:
        return lambda decisions: kb.history.undo_batch(batch, decisions=decisions)
    named = [recorded_path(kb, ref) for ref in paths]
    return lambda decisions: kb.history.undo(rev or "", paths=named, hunk=hunk, decisions=decisions)


def _preferring(
    work: Callable[[Mapping[Conflict, Resolution]], Commit | None], prefer: str
) -> Commit | None:
    """Resolve all conflicts for one side, repeatedly, as resolving some may reveal others."""
    from kbtui.history.merging.tree_merge import Side

    side = Side.OURS if prefer == "now" else Side.THEIRS
    decisions: dict[Conflict, Resolution] = {}
    for _ in range(_MAX_ROUNDS):
        try:
            return work(decisions)
        except UndoConflictError as error:
            decisions |= dict.fromkeys(error.conflicts, side)
    return work(decisions)


@contextmanager
def conflicts_shown(layout: Layout) -> Iterator[None]:
    """Print both sides of each conflict if the undo in the block raises one."""
    try:
        yield
    except UndoConflictError as error:
        _print_conflicts(error, layout)
        raise


def _print_conflicts(error: UndoConflictError, layout: Layout) -> None:
    for conflict in error.conflicts:
        file = layout.file(conflict.path)
        place = f"{file}:{conflict.line}" if conflict.line else file
        note(f"--- {place}")
        for title, text in (("now", conflict.ours), ("before", conflict.theirs)):
            shown = clean(text).rstrip("\n").replace("\n", "\n          ") or "(nothing)"
            note(f"  {title:>6}: {shown}")
    note("Settle it with --prefer now, --prefer before, or place by place in the app (F4, u).")


@click.command()
@entry_argument("path", required=False)
@click.option("--at", metavar="REV", help="A commit id, HEAD~1, a date.")
@click.option(
    "--to-before", metavar="REV", help="Restore everything to its state before this change."
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@json_option
@pass_place
def restore(
    place: WorkspaceOption,
    path: str | None,
    at: str | None,
    to_before: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Restore an entry, or everything, to an earlier state.

    --at makes one entry what it was at a revision, --to-before all of them before a change.
    """
    if (path is None) != (at is None) or (at is None) == (to_before is None):
        raise UsageError(
            "Restore needs an entry and a revision, or a change to go back to before.",
            "Try: kbtui restore ENTRY --at REV, or kbtui restore --to-before REV",
        )
    with place.opened() as kb:
        if to_before is not None:
            if dry_run:
                print_diffs(kb.history.restore_before_preview(to_before), kb.workspace)
                return
            commit = kb.history.restore_before(to_before)
        else:
            rev = kb.history.resolve(at or "")
            name = recorded_path(kb, path or "", rev)
            if dry_run:
                print_diffs(kb.history.restore_preview(name, rev), kb.workspace)
                return
            commit = kb.history.restore(name, rev)
        say_commit(commit, kb, as_json=as_json)


def print_diffs(diffs: Iterable[FileDiff], workspace: Workspace) -> None:
    """Print differences as a patch."""
    from kbtui.history.queries.diff import as_patch

    print_patch(as_patch(diffs, workspace.file))


_READ_ONLY_COMMANDS = (
    *("annotate", "apply", "archive", "blame", "bundle", "cat-file", "count-objects", "describe"),
    *("diff", "diff-tree", "for-each-ref", "format-patch", "fsck", "grep", "help", "log"),
    *("ls-files", "ls-tree", "merge-base", "name-rev", "rev-list", "rev-parse", "shortlog", "show"),
    *("show-branch", "show-ref", "status", "var", "verify-pack", "version", "whatchanged"),
)
_OPTIONS_WITH_VALUE = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace"})
# Run no hooks or programs configured in the repository, the user's or the system's settings.
_SAFE_OPTIONS = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "status.showUntrackedFiles=no"),
    *("-c", "gc.auto=0"),
)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--yes", is_flag=True, help="Let git change the history as well.")
@click.argument("arguments", metavar="ARGS...", nargs=-1, type=click.UNPROCESSED)
@pass_place
def git(place: WorkspaceOption, yes: bool, arguments: tuple[str, ...]) -> int:
    """Run git on the history, e.g. kbtui git log -p.

    Commands that leave the history alone run as they are; others need --yes before them.
    """
    import shutil
    import subprocess

    from kbtui.programs import run_in_terminal

    program = shutil.which("git")
    if program is None:
        raise NotFoundError("git is not installed.", "kbtui itself needs none: see `kbtui log`.")
    if not yes:
        _check_read_only(arguments)
    with place.opened() as kb:
        if kb.history.head() is None:
            raise NotFoundError("There is no commit yet.")
        workspace = kb.workspace
        root = workspace.root
        # The history has no git index; git gets one in the cache.
        index = kb.workspace.cache / "git-index"
    environment = _environment(workspace, index)
    subprocess.run(
        [program, *_SAFE_OPTIONS, "read-tree", "HEAD"],
        env=environment,
        cwd=root,
        check=False,
        stderr=subprocess.DEVNULL,
    )
    # Interrupts are left to it and its pager, which would otherwise outlive this process.
    return run_in_terminal([program, *_SAFE_OPTIONS, *arguments], environment, root)


def _environment(workspace: Workspace, index: Path) -> dict[str, str]:
    from kbtui.history.history import plain_environment

    found = {
        **plain_environment(),
        "GIT_DIR": str(workspace.repository),
        "GIT_INDEX_FILE": str(index),
    }
    # In place, files have other paths than in the history: git would take all for deleted.
    return found if workspace.in_place else found | {"GIT_WORK_TREE": str(workspace.root)}


def _check_read_only(arguments: tuple[str, ...]) -> None:
    """Raise `UsageError` for git commands that could rewrite the history or work elsewhere."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option.partition("=")[0] in _OPTIONS_WITH_VALUE | {"--exec-path", "--config-env"}:
            raise UsageError(
                f"`git {option}` would lead git away from this history or change its settings.",
                "If that is meant: kbtui git --yes ...",
            )
    if rest and rest[0] not in _READ_ONLY_COMMANDS:
        raise UsageError(
            f"`git {rest[0]}` may change the history, and kbtui wouldn't know.",
            "Undo, restore and purge are kbtui's own. If git shall do it: kbtui git --yes ...",
        )
    writes = next((each for each in rest if each.startswith(("--output", "--ext-diff"))), None)
    if writes is not None:
        raise UsageError(f"`{writes}` writes or runs something.", "Use your shell: ... > FILE")
