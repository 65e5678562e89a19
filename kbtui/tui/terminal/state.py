"""The app's state between runs: drafts, input history, searches, layout.

It is private to the user and this machine, so it lives in the platform's state directory (folders
0700, files 0600), apart from anything that is ever shared. Losing it costs comfort, never notes:
a file that can't be read or written is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from platformdirs import user_state_path

from kbtui.whole_file import replace_file
from kbtui.workspace.durable import is_alive

_MAX_INPUTS = 1_000
_PROCESS_NAME = f"left-{os.urandom(8).hex()}"
"""Unlike a process id, this name is never reused by another process."""
_MAX_BYTES = 4_000_000
OUTSIDE_PREFIX = "outside-"
"""How the names of files begin that are handed to editors."""
DRAFT_LONGEST_SECONDS = 2.0
"""Seconds after which typed text is stored although typing goes on; a kill takes no more than what
was typed in them, and during the write."""


def state_folder() -> Path:
    """Return kbtui's state directory, which need not exist."""
    return user_state_path("kbtui", appauthor=False)


def workspace_state(root: Path) -> Path:
    """Return the state directory of one workspace."""
    import hashlib

    name = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return state_folder() / name


def read_state(file: Path) -> str:
    """Return the text of a state file, or "" if it can't be read."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if file.stat().st_size <= _MAX_BYTES:
            return file.read_text("utf-8")
    return ""


def read_json(file: Path) -> Any:
    """Return the parsed JSON of a state file, or None if it can't be read."""
    with contextlib.suppress(ValueError):
        return json.loads(read_state(file))
    return None


def write_state(file: Path, text: str) -> bool:
    """Replace a state file atomically; return False if the disk refuses."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(file, text.encode())
        return True
    return False


def read_shares() -> dict[str, float]:
    """Return the saved layout: the share of each split's first part, by arrangement."""
    values = read_json(_layout_file())
    items = values.items() if isinstance(values, dict) else ()
    return {name: share for name, share in items if isinstance(share, float) and 0 < share < 1}


def remember_share(arrangement: str, share: float) -> None:
    """Save the share of one arrangement's first part for the next start."""
    write_state(_layout_file(), json.dumps(read_shares() | {arrangement: round(share, 4)}))


def _layout_file() -> Path:
    return state_folder() / "layout.json"


def answers() -> dict[str, str]:
    """Return the answers to questions that are asked once on this machine, by their names."""
    values = read_json(_answers_file())
    items = values.items() if isinstance(values, dict) else ()
    return {name: answer for name, answer in items if isinstance(answer, str)}


def remember_answer(question: str, answer: str) -> None:
    """Save the answer to a question that is asked once on this machine."""
    write_state(_answers_file(), json.dumps(answers() | {question: answer}))


def _answers_file() -> Path:
    return state_folder() / "answers.json"


class Drafts:
    """The unsent text of a workspace's prompt.

    Several processes may run, so each has two files of its own: one while it runs, which survives a
    kill, and one that it leaves on exit. A file is removed only by its own process or by the one
    that takes its text over.
    """

    def __init__(self, root: Path) -> None:
        self._folder = workspace_state(root)
        self._running = self._folder / f"draft-{os.getpid()}.md"
        self._final = self._folder / f"draft-{_PROCESS_NAME}.md"
        # Reentrant: a signal handler may call `save` in the thread that holds it.
        self._lock = threading.RLock()
        self._kept: str | None = None
        self._ended = False

    def load(self) -> str:
        """Take over the drafts left by processes that exited or were killed; return their text."""
        files = [self._folder / "draft.md", *sorted(self._folder.glob("draft-*.md"))]
        left = {file: text for file in files if self._is_stale(file) and (text := read_state(file))}
        kept = "\n\n".join(dict.fromkeys(text for text in left.values() if text.strip()))
        if kept and write_state(self._running, kept):
            for file in left.keys() - {self._running}:
                _write_or_remove(file, "")
        return kept

    def _is_stale(self, file: Path) -> bool:
        process = file.stem.removeprefix("draft-")
        is_other_process = process.isdecimal() and process != str(os.getpid())
        return not (is_other_process and is_alive(int(process)))

    def keep(self, text: str) -> None:
        """Save `text` in case the process is killed; blocks on the disk, so call it in a thread."""
        with self._lock:
            if text != self._kept and not self._ended:
                _write_or_remove(self._running, text)
                self._kept = text

    def save(self, text: str) -> None:
        """Save `text` for the next start as this process exits; an empty text leaves no file."""
        with self._lock:
            self._ended = True
            _write_or_remove(self._final, text)
            _write_or_remove(self._running, "")


def _write_or_remove(file: Path, text: str) -> None:
    if text.strip():
        write_state(file, text)
    else:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


_MAX_SEARCHES = 8


class Searches:
    """The saved and the recent searches of a workspace."""

    def __init__(self, root: Path) -> None:
        self._file = workspace_state(root) / "searches.json"

    def read(self) -> tuple[list[str], list[str]]:
        """Return the saved searches sorted by name, and the recent ones, newest first."""
        try:
            stored = read_json(self._file)
            saved, recent = ([str(each) for each in stored.get(key, ())] for key in _SEARCHES)
        except (TypeError, AttributeError):
            return [], []
        return sorted(saved, key=str.casefold), [each for each in recent if each not in saved]

    def remember(self, query: str) -> None:
        """Add a query to the recent searches."""
        saved, recent = self.read()
        self._write(saved, [query, *(each for each in recent if each != query)])

    def save(self, query: str) -> bool:
        """Toggle whether a search is saved; return True if it is saved now."""
        saved, recent = self.read()
        kept = query not in saved
        self._write([*(each for each in saved if each != query), *[query] * kept], recent)
        return kept

    def _write(self, saved: list[str], recent: list[str]) -> None:
        from kbtui.redaction.redact import redact

        kept = [[redact(each).text for each in group] for group in (saved, recent[:_MAX_SEARCHES])]
        write_state(self._file, json.dumps(dict(zip(_SEARCHES, kept, strict=True))))


_SEARCHES = ("saved", "last")


class InputHistory:
    """The input history of the prompt, oldest first, with a position in it.

    `earlier` and `later` step through it like a shell's history: the unsent text is kept as the
    last entry. Entries are stored as one JSON string per line, with secrets redacted.
    """

    def __init__(self, entries: list[str] | None = None) -> None:
        self.entries = entries or []
        self._file: Path | None = None
        self._at: int | None = None
        self._unsent = ""

    def attach(self, root: Path) -> None:
        """Prepend the stored history of this workspace, and store new inputs from now on."""
        self._file = workspace_state(root) / "input.jsonl"
        stored = []
        for line in read_state(self._file).splitlines():
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, str):
                    stored.append(value)
        unstored, self.entries = self.entries, stored[-_MAX_INPUTS:]
        self._at = None if self._at is None else self._at + len(self.entries)
        for text in unstored:
            self.add(text)

    @property
    def walking(self) -> bool:
        """Whether an earlier input is shown."""
        return self._at is not None

    def add(self, text: str) -> None:
        """Append an input, unless it repeats the last one."""
        self._at = None
        if not text.strip() or (self.entries and self.entries[-1] == text):
            return
        self.entries.append(text)
        if self._file is not None:
            self._append(self._file, text)

    def earlier(self, current: str) -> str | None:
        """Return the input before the one shown, or None at the beginning."""
        if self._at is None:
            self._unsent, self._at = current, len(self.entries)
        if self._at == 0:
            return None
        self._at -= 1
        return self.entries[self._at]

    def later(self) -> str | None:
        """Return the next input, and last the unsent text; None if no earlier input is shown."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self.entries):
            return self.entries[self._at]
        self._at = None
        return self._unsent

    def search(self, query: str, limit: int = 50) -> list[str]:
        """Return the distinct inputs that contain all words of `query`, newest first."""
        words = query.casefold().split()
        matches = dict.fromkeys(
            text
            for text in reversed(self.entries)
            if all(word in text.casefold() for word in words)
        )
        return list(matches)[:limit]

    def _append(self, file: Path, text: str) -> None:
        from kbtui.redaction.redact import redact

        line = json.dumps(redact(text).text, ensure_ascii=False) + "\n"
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8") as stream:
                stream.write(line)
        if len(self.entries) > _MAX_INPUTS * 2:
            self.entries = self.entries[-_MAX_INPUTS:]
            kept = (json.dumps(redact(entry).text, ensure_ascii=False) for entry in self.entries)
            write_state(file, "".join(f"{entry}\n" for entry in kept))
