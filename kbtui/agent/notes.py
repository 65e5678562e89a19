"""The notes of the last days for a prompt, without what is obsolete or said elsewhere in it."""

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
    """A file of notes: its path, the text shown, and its modification time."""

    path: str
    text: str
    when: float


def written_at(workspace: Workspace, path: str) -> float:
    """Return the modification time of a file as Unix time; 0 if it doesn't exist."""
    try:
        return workspace.place(path).stat().st_mtime
    except OSError:
        return 0.0


def noted_days(workspace: Workspace) -> frozenset[str]:
    """Return the paths of files in the folder of daily notes, as most days have none."""
    try:
        return frozenset(f"memory/{each.name}" for each in workspace.memory.iterdir())
    except OSError:
        return frozenset()


def daily_notes(
    workspace: Workspace, texts: Mapping[str, str], known: Known, budget: int
) -> Iterator[NotesFile]:
    """Yield notes files, in order while they fit `budget`, without `known` and struck out lines."""
    for path, whole in texts.items():
        when = written_at(workspace, path)
        text = known.without(without_struck(whole), when).strip()
        shown = cut_to_tokens(text, budget).rstrip()
        if shown:
            budget -= estimate_tokens(shown)
            cut = "" if shown == text else f"\n{cut_note(path)}"
            yield NotesFile(path, f"{shown}{cut}", when)


def cut_note(path: str) -> str:
    """Return a note on how to get the rest of a file."""
    return f"(cut: read {path} shows all of it)"


def notes_text(notes: Iterable[NotesFile], heard: Sequence[SessionMessage] = ()) -> str:
    """Return the text of notes, without what was `heard` before they were written.

    Later messages don't affect them, as they are in the cached part of a prompt.
    """
    shown = []
    for note in notes:
        before = (each.content for each in heard if each.time.timestamp() <= note.when)
        if text := Known().with_texts(before).without(note.text, note.when).strip():
            shown.append(f"# Notes of {PurePosixPath(note.path).stem}\n\n{quoted(text)}")
    return "\n\n".join(shown)
