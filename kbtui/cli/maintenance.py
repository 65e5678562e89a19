"""Commands for setup and maintenance: init, workspaces, reindex, doctor, check, sync, purge."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import WorkspaceOption, json_option, pass_place
from kbtui.cli.output import (
    TAKE_BACK,
    ProgressLine,
    note,
    picked,
    say,
    say_commit,
    say_json,
    say_line,
    say_styled,
)
from kbtui.cli.text_input import GivenText, TextCommand, text_argument
from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.text import clean_line, counted, moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.maintenance.check import WorkspaceProblem
    from kbtui.maintenance.doctor import DoctorFinding
    from kbtui.maintenance.purge import Purged, Purging
    from kbtui.maintenance.sync import Synced

_SEARCH = "search"  # folder of the search index in the cache
_MAX_SHOWN = 20
_MAX_NAMED = 3
_MARKS = {True: ("ok  ", "green"), False: ("FAIL", "red"), None: ("    ", None)}


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--demo",
    is_flag=True,
    help="Fill it with an example: a small notebook with a month of history.",
)
@click.option(
    "--in-place", is_flag=True, help="Use the folder in place: notes stay where you put them."
)
@pass_place
def init(place: WorkspaceOption, folder: Path | None, demo: bool, in_place: bool) -> None:
    """Turn a folder into a workspace; its files stay as they are.

    A folder of notes is used in place anyway. --in-place does the same for an empty folder, such as
    one to sync another machine's vault into, and for notes beside an empty knowledge/.
    """
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.workspace.layout import MACHINE
    from kbtui.workspace.opening import create_workspace, default_workspace

    root = folder or place.named or default_workspace()
    if in_place:
        from kbtui.maintenance.migrate import move_in_place

        move_in_place(create_workspace(root, in_place=True))
    if demo:
        _write_demo(root.expanduser())
    with KnowledgeBase.open(root.expanduser(), create=True) as kb:
        count = len(kb.library.infos())
        say(str(kb.workspace.root))
        _note_dendron(kb)
        note(
            f"{counted(count, 'entry', 'entries')}. Start the app with:"
            f" kbtui -w {shlex.quote(str(root))}"
        )
        _note_texts(kb)
        if kb.detached_worker.prepare().state == "preparing":
            note("Search by meaning is being prepared in the background, once.")
        outer = next((up for up in kb.workspace.root.parents if (up / MACHINE).is_dir()), None)
        if outer is not None:
            note(f"It lies in the workspace {outer}, which leaves its notes out from now on.")
        if not kb.workspace.in_place:
            _note_elsewhere(root, _notes_elsewhere(kb.workspace.root))


def _note_elsewhere(root: Path, folders: list[str]) -> None:
    """Explain how to search notes outside the workspace's own folders."""
    if folders:
        names = ", ".join(json.dumps(name, ensure_ascii=False) for name in folders)
        note(
            f"There are notes in {', '.join(folders)} as well. To search them too, put into"
            f" {root / 'kbtui.toml'}:\n  [search]\n  roots = [{names}]"
        )


def _note_texts(kb: KnowledgeBase) -> None:
    """Name files that aren't notes: they don't end in .md, or are other versions of one."""

    def named(paths: list[str]) -> str:
        names = ", ".join(clean_line(kb.workspace.file(path)) for path in paths[:_MAX_NAMED])
        return names + (f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else "")

    if texts := list(kb.library.texts()):
        note(
            f"Only files that end in .md are notes: {named(texts)} can be read, and aren't"
            " searched."
        )
    if copies := kb.library.conflict_copies():
        note(f"Other versions of files that two wrote at once are no notes: {named(copies)}.")


def _note_dendron(kb: KnowledgeBase) -> None:
    """Name the Dendron vaults here, or the workspace that has more beside this one."""
    dendron = kb.library.dendron
    if dendron is None or dendron.top is None:
        return
    if dendron.top == kb.workspace.root:
        names = ", ".join(map(clean_line, dendron.names.values()))
        note(f"A workspace of Dendron's, with {counted(len(dendron.names), 'vault')}: {names}.")
    elif len(dendron.names) > 1:
        top = clean_line(str(dendron.top))
        note(f"A vault of Dendron's; the workspace {top} has the others too: kbtui init {top}")


def _write_demo(root: Path) -> None:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.maintenance.demo import StoryClock, plant
    from kbtui.workspace.layout import MACHINE

    if (root / MACHINE).exists():
        with KnowledgeBase.open(root) as kb:
            _check_empty(kb)
    clock = StoryClock()
    with KnowledgeBase.open(root, create=True, clock=clock) as kb:
        _check_empty(kb)
        plant(kb.services, kb.memory, clock)


def _check_empty(kb: KnowledgeBase) -> None:
    if kb.library.infos():
        raise UsageError(
            f"{kb.workspace.root} holds entries already; the example is for a new workspace.",
            "Choose another folder: kbtui init --demo FOLDER",
        )


def _notes_elsewhere(root: Path) -> list[str]:
    """Return the top-level folders with Markdown that aren't part of the workspace layout."""
    known = {"knowledge", "memory", "sessions", "docs", "skills"}
    return sorted(
        folder.name
        for folder in root.iterdir()
        if folder.is_dir()
        and folder.name not in known
        and not folder.name.startswith(".")
        and next(folder.rglob("*.md"), None) is not None
    )


@click.command()
@click.option("--forget", metavar="DIR", help="Remove one from the list; its files stay.")
@json_option
def workspaces(forget: str | None, as_json: bool) -> int:
    """List the workspaces opened on this machine.

    The last used comes first. One that was moved is known again when it is opened at its new
    place.
    """
    from kbtui.workspace.opening import forget_workspace, known_workspaces

    if forget is not None:
        path = Path(forget).expanduser().absolute()
        if not forget_workspace(path):
            raise NotFoundError(f"{path} is not on the list.", "See `kbtui workspaces`.")
        note(f"kbtui: {path} is off the list; nothing in it was touched.")
        return 0
    known = known_workspaces()
    if as_json:
        say_json(
            [
                {"path": str(each.path), "used": each.used.isoformat(), "there": each.is_there}
                for each in known
            ]
        )
        return 0
    for each in known:
        when = moment(each.used)
        gone = "" if each.is_there else "  (not there now)"
        say_line(say_styled(when, dim=True), "  ", say_styled(str(each.path)), gone)
    if not known:
        note("No workspace was opened yet.")
    return 0


@click.command()
@pass_place
def reindex(place: WorkspaceOption) -> None:
    """Rebuild everything derived from the files.

    What was read for meaning is kept: it goes by what the texts say.
    """
    import shutil

    from kbtui.workspace.durable import storage_errors

    with place.opened() as kb:
        cache = kb.workspace.cache
    with storage_errors(f"Can't clear {cache}"):
        for item in cache.iterdir():
            if item.name == _SEARCH:
                continue  # the app may have it open; it is rebuilt under its own lock
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item, ignore_errors=True)
            else:
                item.unlink(missing_ok=True)
    # `open` prints no notices, which were printed above.
    with place.open() as kb, ProgressLine() as progress:
        kb.library.refresh()
        unsubscribe = kb.search.subscribe(lambda status: progress(status.message))
        report = kb.search.rebuild()
        if kb.settings.search.semantic and kb.search.load_model():
            kb.search.embed_missing()
        unsubscribe()
        status = kb.search.status()
    found = f"{counted(report.files, 'file')}, {counted(report.chunks, 'passage')}"
    say(f"{found}, {status.embedded:,} by meaning")
    for path, why in report.skipped:
        note(f"kbtui: {kb.workspace.file(path)}: {why}")


@click.command()
@json_option
@pass_place
def doctor(place: WorkspaceOption, as_json: bool) -> int:
    """Check installation, models, index and files."""
    from kbtui.maintenance.doctor import DoctorFinding, examine_machine

    status = 0
    try:
        with place.opened() as kb:
            findings = kb.doctor()
    except KbtuiError as error:
        findings = [
            *examine_machine(),
            DoctorFinding("workspace", ok=False, text=error.message, hint=error.hint),
        ]
        status = error.exit_code
    if as_json:
        say_json([picked(finding, "area ok text hint") for finding in findings])
    else:
        _print_findings(findings)
    return status or int(any(finding.ok is False for finding in findings))


def _print_findings(findings: list[DoctorFinding]) -> None:
    for finding in findings:
        mark, colour = _MARKS[finding.ok]
        say_line(
            say_styled(finding.area.ljust(10), dim=True),
            " ",
            click.style(mark, fg=colour) if say_styled("x", bold=True) != "x" else mark,
            " ",
            say_styled(finding.text),
        )
        if finding.hint:
            say_line(" " * 16, say_styled(finding.hint, dim=True))


@click.command()
@click.option(
    "--mend", is_flag=True, help="First lead links to where other programs moved notes, if any."
)
@json_option
@pass_place
def check(place: WorkspaceOption, mend: bool, as_json: bool) -> int:
    """Read everything, and report damage and inconsistencies.

    History, files, memory, inbox, entries, links. Exits with 1 if something is wrong. A link to
    nothing isn't, in a folder that kbtui didn't lay out.
    """
    with place.opened() as kb, ProgressLine() as progress:
        if mend and (commit := kb.library.catch_up()) and not as_json:
            say_commit(commit, kb, as_json=False, way_back=TAKE_BACK)
        problems = kb.checking.run(progress)
    if as_json:
        say_json([asdict(problem) for problem in problems])
    else:
        _print_problems(problems)
    return int(any(problem.damage for problem in problems))


def _print_problems(problems: Sequence[WorkspaceProblem]) -> None:
    for problem in problems:
        colour = "red" if problem.damage else "yellow"
        say_line(say_styled(problem.area.ljust(8), fg=colour), " ", say_styled(problem.text))
        if problem.hint:
            say_line(" " * 9, say_styled(problem.hint, dim=True))
    wrong = sum(problem.damage for problem in problems)
    things = "thing is" if wrong == 1 else "things are"
    note(f"{wrong:,} {things} wrong." if wrong else "All is well.")
    if dead := sum(not problem.damage and not problem.hint for problem in problems):
        note(f"{counted(dead, 'link leads', 'links lead')} to notes that aren't there (yet).")


@click.command()
@click.argument("remote", required=False)
@click.option(
    "--replace",
    "replace_theirs",
    is_flag=True,
    help="After a purge: replace the other history, even where it has gone on.",
)
@json_option
@pass_place
def sync(place: WorkspaceOption, remote: str | None, replace_theirs: bool, as_json: bool) -> None:
    """Sync with another machine.

    REMOTE is a folder, https://, ssh:// or git@HOST:PATH, and is remembered. If both sides changed
    the same line, yours stays and theirs waits in the inbox. Conversations and documents are synced
    only with sync.conversations and sync.documents.
    """
    with place.opened() as kb, ProgressLine() as progress:
        done = kb.syncing.run(remote, tell=progress, replace_theirs=replace_theirs)
    if as_json:
        say_json(_shape(done))
        return
    say(done.summary)
    for text in done.report.notes:
        note(text)
    if done.proposals:
        note(f"Both sides changed the same in {_places(done)}. Decide with: kbtui inbox")


def _places(done: Synced) -> str:
    from kbtui.workspace.layout import short_name

    return ", ".join(short_name(clash.path) for clash in done.report.clashes)


def _shape(done: Synced) -> dict[str, Any]:
    report = done.report
    return {
        **picked(report, "remote received sent files_received files_sent notes replaced"),
        "merge": report.merge.id if report.merge else None,
        "conflicts": [clash.path for clash in report.clashes],
        "proposals": list(done.proposals),
    }


@click.command(cls=TextCommand)
@text_argument(one_word=True)
@click.option("--dry-run", is_flag=True, help="Show where it stands, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--count", type=int, help="How often it occurs; required for a common word.")
@click.option("--delete-binaries", is_flag=True, help="Delete files that can't be rewritten.")
@json_option
@pass_place
def purge(
    place: WorkspaceOption,
    text: GivenText,
    dry_run: bool,
    yes: bool,
    count: int | None,
    delete_binaries: bool,
    as_json: bool,
) -> int:
    """Remove a secret from history, notes, conversations, logs.

    Without TEXT it is prompted for, or read from standard input, to keep it out of your shell's
    history. Close the app first. Exits with 1 if it was found nowhere, or couldn't all be removed.
    """
    from kbtui.redaction.secret import Secret

    secret = Secret(_secret_text(text))
    purging = _open_purging(place)
    if dry_run or not (yes or as_json or not sys.stdin.isatty()):
        found = purging.find(secret)
        _say_found(found, as_json=as_json and dry_run)
        if dry_run or found.is_nowhere:
            return int(found.is_nowhere)
        click.confirm("Remove it for good?", abort=True, err=True)
    done = purging.run(secret, _note_step, confirmed=count, delete_binaries=delete_binaries)
    return _say_purged(done, as_json=as_json)


def _open_purging(place: WorkspaceOption) -> Purging:
    """Open the history only: the knowledge base would cache what it reads."""
    from kbtui.history.history import History
    from kbtui.maintenance.purge import Purging
    from kbtui.workspace.opening import find_workspace, open_workspace
    from kbtui.workspace.scan import Scanner

    workspace = open_workspace(find_workspace(place.named))
    history = History(workspace, Scanner(workspace))
    history.open()
    return Purging(workspace, history)


def _secret_text(text: GivenText) -> str:
    if text.words is None and sys.stdin.isatty():
        return str(click.prompt("What is to be removed", hide_input=True, err=True))
    return text.read("remove").rstrip("\n")


def _say_purged(done: Purged, *, as_json: bool) -> int:
    if as_json:
        say_json(_purge_shape(done))
    elif done.is_nowhere:
        note("It stands nowhere.")
    else:
        say(
            f"Removed from {counted(done.objects, 'object')} of the history"
            f" ({counted(done.commits, 'commit')} rewritten) and"
            f" {counted(len(done.found), 'file')}."
        )
    if not done.is_nowhere:
        note("Change the key or password itself: it may have been seen.")
    if done.epoch is not None:
        note(
            "If you sync: `kbtui sync` now replaces the history there, and clears it out of a"
            " folder. Other machines have to start from a new workspace; theirs still have the"
            " secret, and so may a server, forks and backups."
        )
    for line in done.left:
        note(f"kbtui: Not removed: {line}")
    return 1 if done.is_nowhere or any("not looked at" not in line for line in done.left) else 0


def _note_step(text: str) -> None:
    if sys.stderr.isatty():
        note(f"{text} ...")


def _say_found(found: Purged, *, as_json: bool) -> None:
    if as_json:
        say_json(_purge_shape(found))
        return
    for each in found.found[:_MAX_SHOWN]:
        say(f"{each.count:>5}  {each.name}")
    if len(found.found) > _MAX_SHOWN:
        say(f"       and {counted(len(found.found) - _MAX_SHOWN, 'more file')}")
    if found.objects:
        say(f"{found.objects:>5}  objects of the history")
    if found.is_nowhere:
        note("It stands nowhere.")


def _purge_shape(done: Purged) -> dict[str, Any]:
    return {
        "files": [{"path": each.name, "count": each.count} for each in done.found],
        **picked(done, "objects commits epoch left"),
    }
