"""Bring older workspaces up to date when they are opened: done once, and cheap to skip."""

from __future__ import annotations

import logging
import re
from functools import partial
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor
from kbtui.knowledge import catalog, frontmatter
from kbtui.knowledge.body import summary_of
from kbtui.knowledge.shipped import install_skills
from kbtui.text import clean_line, counted
from kbtui.workspace import files
from kbtui.workspace.layout import MACHINE, TAKING_OVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace

log = logging.getLogger(__name__)
_OLD_INDEX = f"{MACHINE}/index.old"
_LINE = re.compile(
    r"[-*][ \t]+(?:\[\[(?P<link>[^\]|\n]+)(?:\|[^\]\n]*)?\]\]|\[[^\]\n]*\]\((?P<file>[^)\n]+)\)"
    r"|[*`]*(?P<name>[\w./ -]+?)[*`]*)[ \t]*(?::|—|–|[ \t]-)[ \t]+(?P<text>\S.*)"  # noqa: RUF001
)


def keep_old_index(workspace: Workspace) -> None:
    """Put aside an INDEX.md whose lines somebody wrote, before it is made anew; once."""
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
    """Convert old sessions, take in an old HISTORY.md and INDEX.md, install the shipped skills.

    What can't be done now, for instance because somebody else is writing, is tried again the next
    time. At the first opening of a workspace of nanobot a report is written of what was taken over.

    Args:
        workspace: Whose.
        history: Its history.
        is_new: There was no history before.

    Returns:
        What a person should know, one sentence each.
    """
    notices: list[str] = []
    takes_over = is_new or (workspace.root / TAKING_OVER).is_file()
    if takes_over:
        from kbtui.importers import nanobot_workspace

        takes_over = nanobot_workspace.begin(workspace, is_new=is_new)
        if takes_over:
            notices += _tried(nanobot_workspace.bring_home, workspace, history)
    for step in (_convert_sessions, _migrate_archive, _take_summaries):
        notices += _tried(step, workspace, history)
    if takes_over:
        done = partial(nanobot_workspace.finish, told=tuple(notices))
        notices += _tried(done, workspace, history)
    return notices + _tried(_install_skills, workspace, history)


def _tried(
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
    from kbtui.importers.nanobot_sessions import convert_sessions

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
        return []  # both are ours
    from kbtui.memory.records.archive import Archive

    count = Archive(workspace, history).migrate()
    if not count:
        return []
    archived = counted(count, "entry", "entries")
    return [f"HISTORY.md is now an archive of {archived}; a copy is in HISTORY.md.bak."]


def _take_summaries(workspace: Workspace, history: History) -> list[str]:
    """Make the lines of an old INDEX.md summaries of their entries, which nothing else says."""
    kept = workspace.root / _OLD_INDEX
    if not kept.is_file():
        return []
    text = kept.read_text("utf-8", "replace")
    count = 0
    with history.change(Actor.IMPORT, "The lines of the old INDEX.md are kept.") as change:
        paths = _paths_by_name(workspace)
        for line in text.splitlines():
            found = _LINE.match(line.strip())
            if found is None:
                continue
            name = (found["link"] or found["file"] or found["name"]).strip()
            path = paths.get(name.removesuffix(".md").removeprefix("knowledge/").casefold())
            data = change.read(path) if path else None
            if path is None or data is None:
                continue
            new = _with_summary(data, clean_line(found["text"]))
            if new != data:
                change.write(path, new, expecting=files.blob_id(data))
                change.repairs.add(path)  # it says nothing new: its date stays
                count += 1
    kept.unlink(missing_ok=True)
    lines = counted(count, "line")
    return [f"{lines} of the old INDEX.md are summaries of entries now."] if count else []


def _paths_by_name(workspace: Workspace) -> dict[str, str]:
    """Entries by slug and by category/slug; a slug that several have stands for none."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for file in workspace.knowledge.rglob("*.md"):
        name = file.relative_to(workspace.knowledge).with_suffix("").as_posix().casefold()
        slug = name.rpartition("/")[2]
        twice |= {slug} if slug in found else set()
        path = f"knowledge/{file.relative_to(workspace.knowledge).as_posix()}"
        found |= {slug: path, name: path}
    return {name: path for name, path in found.items() if name not in twice}


def _with_summary(data: bytes, text: str) -> bytes:
    """An entry with a summary, unless it has one or its first sentence says so already."""
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
