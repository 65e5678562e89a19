"""The notes of the last days as a prompt has them: what holds, and what nothing else in it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from kbtui.agent.deduplicate import Known
from kbtui.agent.sources import quoted
from kbtui.models.port import cut_to_tokens, estimate_tokens
from kbtui.offline.lines import without_struck
from kbtui.sessions.store import SessionMessage
from kbtui.workspace.layout import Workspace


@dataclass(frozen=True, slots=True)
class NotesFile:
    """A file of notes: its path, what is shown of it, and when it was last written."""

    path: str
    text: str
    when: float


def written_at(workspace: Workspace, path: str) -> float:
    """When a file was last written, in seconds since 1970; 0: it isn't there."""
    try:
        return workspace.place(path).stat().st_mtime
    except OSError:
        return 0.0


def noted_days(workspace: Workspace) -> frozenset[str]:
    """The files that lie where the days' notes do, by path: most days have none."""
    try:
        return frozenset(f"memory/{each.name}" for each in workspace.memory.iterdir())
    except OSError:
        return frozenset()


def daily_notes(
    workspace: Workspace, texts: Mapping[str, str], known: Known, budget: int
) -> Iterator[NotesFile]:
    """What nothing `known` says of some files of notes by path, in that order as long as it fits.

    What is struck out is left out as well.
    """
    for path, whole in texts.items():
        when = written_at(workspace, path)
        text = known.without(without_struck(whole), when).strip()
        shown = cut_to_tokens(text, budget).rstrip()
        if shown:
            budget -= estimate_tokens(shown)
            cut = "" if shown == text else f"\n{cut_note(path)}"
            yield NotesFile(path, f"{shown}{cut}", when)


def cut_note(path: str) -> str:
    """Say how to get the rest of a file."""
    return f"(cut: read {path} shows all of it)"


def notes_text(notes: Iterable[NotesFile], heard: Sequence[SessionMessage] = ()) -> str:
    """Notes as they are shown, without what was `heard` before they were written.

    What is said later changes nothing about them: they stand where a prompt is cached.
    """
    shown = []
    for note in notes:
        before = (each.content for each in heard if each.time.timestamp() <= note.when)
        if text := Known().and_whole(before).without(note.text, note.when).strip():
            shown.append(f"# Notes of {PurePosixPath(note.path).stem}\n\n{quoted(text)}")
    return "\n\n".join(shown)
