"""Migration of older workspaces when they are opened: done once, and cheap to skip."""

from __future__ import annotations

import contextlib
import logging
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from kbtui.errors import KbtuiError, UsageError
from kbtui.history.change import Actor
from kbtui.history.history import History
from kbtui.knowledge.catalog import catalog
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import summary_of
from kbtui.shipped.install import install_skills
from kbtui.text import clean_line, counted
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import (
    BOOTSTRAP_FILES,
    MACHINE,
    RECORDED_FOLDERS,
    TAKEN_OVER,
    TAKING_OVER,
    Layout,
    Workspace,
)
from kbtui.workspace.opening import IN_PLACE, WorkspaceLock
from kbtui.workspace.scan import notes_in

log = logging.getLogger(__name__)
_OLD_INDEX = f"{MACHINE}/index.old"
_KBTUI_NOTES = re.compile(r"(?:MEMORY|HISTORY|SKILL|\d{4}-\d{2}-\d{2})\.md")
_INDEX_LINE = re.compile(
    r"[-*][ \t]+(?:\[\[(?P<link>[^\]|\n]+)(?:\|[^\]\n]*)?\]\]|\[[^\]\n]*\]\((?P<file>[^)\n]+)\)"
    r"|[*`]*(?P<name>[\w./ -]+?)[*`]*)[ \t]*(?::|—|–|[ \t]-)[ \t]+(?P<text>\S.*)"  # noqa: RUF001
)


def could_be_in_place(workspace: Workspace) -> bool:
    """Return whether an older kbtui set up a workspace beside notes that it doesn't see."""
    if workspace.in_place or any(_user_files(workspace.knowledge)):
        return False
    if (workspace.root / TAKEN_OVER).is_file():
        return False  # nanobot's files at the top level aren't notes
    kbtui_names = {*RECORDED_FOLDERS, "docs", "sessions", *BOOTSTRAP_FILES}
    notes = notes_in(Layout(workspace.root, in_place=True))
    return any(note.relative_to(workspace.root).parts[0] not in kbtui_names for note in notes)


def _check_no_user_files(workspace: Workspace, folders: Iterable[Path]) -> None:
    others = (
        f for folder in folders for f in folder.rglob("*.md") if not _KBTUI_NOTES.fullmatch(f.name)
    )
    if file := next(chain(_user_files(workspace.knowledge), others), None):
        raise UsageError(
            f"{file.relative_to(workspace.root)} is yours already, in a folder of kbtui's.",
            "Move it to where you want it, and try again.",
        )


def _remove_empty_folders(top: Path) -> None:
    for folder in (*sorted(top.rglob("*/"), reverse=True), top):
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()


def move_in_place(workspace: Workspace) -> Workspace:
    """Make the notes beside an empty ``knowledge/`` the entries, in place.

    kbtui's own folders move into ``.kbtui``.

    Raises:
        UsageError: ``knowledge/`` or another folder of kbtui's contains the user's own files.
        WorkspaceBusyError: Somebody else is writing.
        StorageError: The file system refused; the next attempt continues.
    """
    if workspace.in_place:
        return workspace
    folders = [workspace.place(name) for name in ("memory", "skills", "sessions")]
    _check_no_user_files(workspace, folders)
    moved = replace(workspace, in_place=True)
    with WorkspaceLock(workspace).hold(), storage_errors("Can't move the workspace"):
        for old in folders:
            new = moved.place(old.name)
            if old.is_dir() and (not new.exists() or not any(new.iterdir())):
                old.rename(new)
        for file in workspace.knowledge.rglob("INDEX.md"):
            file.unlink()
        for name in ("knowledge", "docs"):
            _remove_empty_folders(workspace.root / name)
        files.write_machine_file(workspace.root, f"{MACHINE}/.gitignore", b"*\n")
        files.write_machine_file(workspace.root, f"{MACHINE}/format", f"{IN_PLACE}\n".encode())
    return moved


def _user_files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder of kbtui's that it didn't generate."""
    for file in folder.rglob("*"):
        if file.is_dir() and not file.is_symlink():
            continue
        text = file.read_text("utf-8", "replace") if file.name == "INDEX.md" else ""
        if not catalog.is_generated_only(text):
            yield file


def keep_old_index(workspace: Workspace) -> None:
    """Back up an INDEX.md from before kbtui generated it, once, before it is regenerated."""
    if workspace.in_place:
        return
    try:
        text = files.read_text(workspace, catalog.ROOT_INDEX)
        if catalog.BEGIN in text or not catalog.is_ours(text):
            return
        if not (workspace.root / _OLD_INDEX).exists():
            files.write_machine_file(workspace, _OLD_INDEX, text.encode())
    except KbtuiError as error:
        log.info("no old index is taken over: %s", error)


def bring_up_to_date(workspace: Workspace, history: History, *, is_new: bool = False) -> list[str]:
    """Migrate old sessions, archive, index and inbox, and install the skills.

    Steps that fail, for instance because somebody else is writing, are retried at the next opening.
    The first opening of a nanobot workspace (`is_new`: without history) writes a report of the
    migration. Returns notices for the user, one sentence each.
    """
    notices: list[str] = []
    takes_over = is_new or (workspace.root / TAKING_OVER).is_file()
    if takes_over:
        from kbtui.importers.sources import nanobot_workspace

        takes_over = nanobot_workspace.begin(workspace, is_new=is_new)
        if takes_over:
            notices += _attempt(nanobot_workspace.copy_scattered_files, workspace, history)
    for step in (_convert_sessions, _migrate_archive, _import_summaries, _import_inbox):
        notices += _attempt(step, workspace, history)
    if takes_over:
        done = partial(nanobot_workspace.finish, notes=tuple(notices))
        notices += _attempt(done, workspace, history)
    if could_be_in_place(workspace):
        notices.append(
            "The notes beside knowledge/ aren't part of this workspace. To take them where they"
            f" lie: `kbtui init --in-place {shlex.quote(str(workspace.root))}`."
        )
    return notices + _attempt(_install_skills, workspace, history)


def _attempt(
    step: Callable[[Workspace, History], list[str]], workspace: Workspace, history: History
) -> list[str]:
    try:
        return step(workspace, history)
    except KbtuiError as error:
        log.warning("tried again at the next start: %s", error)
        return []


def _convert_sessions(workspace: Workspace, _history: History) -> list[str]:
    if next(workspace.sessions.glob("[!.]*.json"), None) is None:
        return []
    from kbtui.importers.sources.nanobot import convert_sessions

    done = convert_sessions(workspace)
    count = sum(each.session is not None for each in done)
    notices = [f"{each.file}: {problem}" for each in done for problem in each.problems]
    if count:
        plural = "s are" if count > 1 else " is"
        notices.insert(0, f"{count} old session{plural} converted; the originals are beside them.")
    return notices


def _migrate_archive(workspace: Workspace, history: History) -> list[str]:
    memory = workspace.memory
    if not (memory / "HISTORY.md").is_file():
        return []
    archive = memory / "history.jsonl"
    if archive.is_file() and b'"origin"' in archive.read_bytes():
        return []  # both were written by kbtui
    from kbtui.memory.records.archive import Archive

    count = Archive(workspace, history).migrate()
    if not count:
        return []
    archived = counted(count, "entry", "entries")
    return [f"HISTORY.md is now an archive of {archived}; a copy is in HISTORY.md.bak."]


def _import_summaries(workspace: Workspace, history: History) -> list[str]:
    """Turn the lines of an old INDEX.md into summaries of entries that have none."""
    old_index = workspace.root / _OLD_INDEX
    if not old_index.is_file():
        return []
    text = old_index.read_text("utf-8", "replace")
    count = 0
    with history.change(Actor.IMPORT, "The lines of the old INDEX.md are kept.") as change:
        paths = _paths_by_name(workspace)
        for found in filter(None, map(_INDEX_LINE.match, map(str.strip, text.splitlines()))):
            name = (found["link"] or found["file"] or found["name"]).strip()
            path = paths.get(name.removesuffix(".md").removeprefix("knowledge/").casefold())
            data = change.read(path) if path else None
            if path is None or data is None:
                continue
            new = _with_summary(data, clean_line(found["text"]))
            if new != data:
                change.write(path, new, expecting=files.blob_id(data))
                change.repairs.add(path)  # nothing new: keep its date
                count += 1
    old_index.unlink(missing_ok=True)
    lines = counted(count, "line")
    return [f"{lines} of the old INDEX.md are summaries of entries now."] if count else []


def _import_inbox(workspace: Workspace, history: History) -> list[str]:
    """Move the proposals from an older version's files into the history."""
    if any((workspace.machine / "inbox").glob("[!.]*.json")):
        from kbtui.memory.background.service import Inbox

        Inbox(workspace, history).import_older()
    return []


def _paths_by_name(workspace: Workspace) -> dict[str, str]:
    """Return entry paths by category/slug, and by slug where it is unique."""
    found: dict[str, str] = {}
    ambiguous: set[str] = set()
    for file in workspace.knowledge.rglob("*.md"):
        name = file.relative_to(workspace.knowledge).with_suffix("").as_posix().casefold()
        slug = name.rpartition("/")[2]
        ambiguous |= {slug} if slug in found else set()
        path = f"knowledge/{file.relative_to(workspace.knowledge).as_posix()}"
        found |= {slug: path, name: path}
    return {name: path for name, path in found.items() if name not in ambiguous}


def _with_summary(data: bytes, text: str) -> bytes:
    """Add a summary to an entry, unless it has one or its first sentence is the same."""
    matter = frontmatter.parse(data)
    body = frontmatter.split(data).body.decode("utf-8", "replace")
    if matter.problem or matter.values.get("summary") or summary_of(body) == text:
        return data
    try:
        return frontmatter.set_keys(data, {"summary": text})
    except KbtuiError:
        return data


def _install_skills(workspace: Workspace, history: History) -> list[str]:
    install_skills(workspace, history)
    return []
