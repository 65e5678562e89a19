"""What somebody may want to begin with, found near at hand: their notes, and exports of programs.

Looking takes a second or two at most. It stays in the home directory and the current one, follows
no link, and goes breadth first, so that what is nearest is found when the time is up.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from kbtui.workspace.opening import PROGRAMS

_SECONDS = 1.5
_DEPTH = 4
_MOST_FOLDERS = 20_000
_MOST_FOUND = 50
_NO_PLACE_FOR_NOTES = frozenset(
    {"node_modules", "Library", "AppData", "snap", "go", "venv", "site-packages", "__pycache__",
     "Pictures", "Music", "Movies", "Videos", "Applications", "target", "build", "dist"}
)  # fmt: skip
_NAMED_NOTES = frozenset({"notes", "vault", "zettelkasten", "wiki", "notizen", "journal"})
_EXPORT = re.compile(
    r"(?:.*(?:claude|anthropic|chatgpt|openai|gemini|takeout|grok|mistral|copilot|perplexity"
    r"|telegram|whatsapp|slack|export).*\.zip|conversations\.json|result\.json"
    r"|.*(?:chat|conversation).*\.json|takeout)",
    re.IGNORECASE,
)
_MOST_ENTRIES = 5_000
_NOT_AS_EXPECTED = (
    OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NotesNearby:
    """A folder of notes, and the program that keeps it; empty where none is known."""

    path: Path
    program: str = ""


def notes_nearby(home: Path | None = None, *, seconds: float = _SECONDS) -> list[NotesNearby]:
    """Folders of notes of other programs, those that Obsidian knows first; slow, for a thread."""
    end, home = monotonic() + seconds, home or Path.home()
    found: dict[Path, NotesNearby] = {}
    for each in (*_of_obsidian(home), *_walked(home, end)):
        found.setdefault(each.path, each)
        if len(found) == _MOST_FOUND:
            break
    return list(found.values())


def exports_nearby(home: Path | None = None) -> list[Path]:
    """Files that look like exports of other programs, the newest first; slow, for a thread."""
    home = home or Path.home()
    found: dict[Path, float] = {}
    for folder in dict.fromkeys((home / "Downloads", home / "Desktop", home, Path.cwd())):
        for entry in _entries(folder):
            if _EXPORT.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    found[folder / entry.name] = entry.stat().st_mtime
    return sorted(found, key=lambda path: -found[path])[:_MOST_FOUND]


def _of_obsidian(home: Path) -> Iterator[NotesNearby]:
    """The vaults that Obsidian lists itself, wherever they lie."""
    places = (
        home / ".config/obsidian",
        home / ".var/app/md.obsidian.Obsidian/config/obsidian",
        home / "snap/obsidian/current/.config/obsidian",
        home / "Library/Application Support/obsidian",
        home / "AppData/Roaming/obsidian",
    )
    for place in places:
        with contextlib.suppress(*_NOT_AS_EXPECTED):
            vaults = json.loads((place / "obsidian.json").read_bytes())["vaults"].values()
            for vault in vaults:
                path = Path(str(vault["path"]))
                if path.is_absolute() and path.is_dir():
                    yield NotesNearby(path, PROGRAMS[".obsidian"])


def _walked(home: Path, end: float) -> Iterator[NotesNearby]:
    queue = deque((folder, 0) for folder in dict.fromkeys((Path.cwd(), home)))
    seen: set[Path] = set()
    while queue and monotonic() < end and len(seen) < _MOST_FOLDERS:
        folder, depth = queue.popleft()
        if folder in seen:
            continue
        seen.add(folder)
        entries = _entries(folder)
        if (found := _notes_in(folder, {entry.name for entry in entries})) is not None:
            yield found
        elif depth < _DEPTH:
            queue += ((folder / each.name, depth + 1) for each in filter(_is_promising, entries))


def _notes_in(folder: Path, names: set[str]) -> NotesNearby | None:
    """A folder as one of notes, by what a program leaves there or by what it is called."""
    program = next((title for name, title in PROGRAMS.items() if name in names), "")
    named = folder.name.casefold() in _NAMED_NOTES and any(name.endswith(".md") for name in names)
    return NotesNearby(folder, program) if program or named else None


def _is_promising(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in _NO_PLACE_FOR_NOTES:
        return False
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, as far as it can be read and isn't without end."""
    try:
        with os.scandir(folder) as found:
            return [entry for entry, _ in zip(found, range(_MOST_ENTRIES), strict=False)]
    except OSError:
        return []
