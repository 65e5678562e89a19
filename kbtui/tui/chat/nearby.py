"""A scan for folders of notes and exports of other programs, to offer on the first start.

It takes a second or two at most, covers the home and the current directory, follows no links, and
is breadth-first, so that the nearest folders are found before the time is up.
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

_TIMEOUT = 1.5
_MAX_DEPTH = 4
_MAX_FOLDERS = 20_000
_MAX_RESULTS = 50
_SKIPPED_FOLDERS = frozenset(
    {"node_modules", "Library", "AppData", "snap", "go", "venv", "site-packages", "__pycache__",
     "Pictures", "Music", "Movies", "Videos", "Applications", "target", "build", "dist"}
)  # fmt: skip
_NOTE_FOLDERS = frozenset({"notes", "vault", "zettelkasten", "wiki", "notizen", "journal"})
_EXPORT_NAME = re.compile(
    r"(?:.*(?:claude|anthropic|chatgpt|openai|gemini|takeout|grok|mistral|copilot|perplexity"
    r"|telegram|whatsapp|slack|export).*\.zip|conversations\.json|result\.json"
    r"|.*(?:chat|conversation).*\.json|takeout)",
    re.IGNORECASE,
)
_MAX_ENTRIES = 5_000
_CONFIG_ERRORS = (
    OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NotesNearby:
    """A folder of notes, and the program it belongs to; empty if unknown."""

    path: Path
    program: str = ""


def notes_nearby(home: Path | None = None, *, seconds: float = _TIMEOUT) -> list[NotesNearby]:
    """Find folders of notes, Obsidian's vaults first; slow, so run in a thread."""
    end, home = monotonic() + seconds, home or Path.home()
    found: dict[Path, NotesNearby] = {}
    for each in (*_obsidian_vaults(home), *_search_folders(home, end)):
        found.setdefault(each.path, each)
        if len(found) == _MAX_RESULTS:
            break
    return list(found.values())


def exports_nearby(home: Path | None = None) -> list[Path]:
    """Find files that look like exports, newest first; slow, so run in a thread."""
    home = home or Path.home()
    found: dict[Path, float] = {}
    for folder in dict.fromkeys((home / "Downloads", home / "Desktop", home, Path.cwd())):
        for entry in _entries(folder):
            if _EXPORT_NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    found[folder / entry.name] = entry.stat().st_mtime
    return sorted(found, key=lambda path: -found[path])[:_MAX_RESULTS]


def _obsidian_vaults(home: Path) -> Iterator[NotesNearby]:
    """Yield the vaults listed in Obsidian's own configuration."""
    places = (
        home / ".config/obsidian",
        home / ".var/app/md.obsidian.Obsidian/config/obsidian",
        home / "snap/obsidian/current/.config/obsidian",
        home / "Library/Application Support/obsidian",
        home / "AppData/Roaming/obsidian",
    )
    for place in places:
        with contextlib.suppress(*_CONFIG_ERRORS):
            vaults = json.loads((place / "obsidian.json").read_bytes())["vaults"].values()
            for vault in vaults:
                path = Path(str(vault["path"]))
                if path.is_absolute() and path.is_dir():
                    yield NotesNearby(path, PROGRAMS[".obsidian"])


def _search_folders(home: Path, end: float) -> Iterator[NotesNearby]:
    queue = deque((folder, 0) for folder in dict.fromkeys((Path.cwd(), home)))
    seen: set[Path] = set()
    while queue and monotonic() < end and len(seen) < _MAX_FOLDERS:
        folder, depth = queue.popleft()
        if folder in seen:
            continue
        seen.add(folder)
        entries = _entries(folder)
        if (found := _identify(folder, {entry.name for entry in entries})) is not None:
            yield found
        elif depth < _MAX_DEPTH:
            queue += ((folder / each.name, depth + 1) for each in filter(_is_promising, entries))


def _identify(folder: Path, names: set[str]) -> NotesNearby | None:
    """Identify a folder of notes by a program's files or by its name."""
    program = next((title for name, title in PROGRAMS.items() if name in names), "")
    named = folder.name.casefold() in _NOTE_FOLDERS and any(name.endswith(".md") for name in names)
    return NotesNearby(folder, program) if program or named else None


def _is_promising(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS:
        return False
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return the first `_MAX_ENTRIES` entries of a folder; none if it can't be read."""
    try:
        with os.scandir(folder) as found:
            return [entry for entry, _ in zip(found, range(_MAX_ENTRIES), strict=False)]
    except OSError:
        return []
