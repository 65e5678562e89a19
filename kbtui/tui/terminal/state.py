"""The memory of the app between two runs: draft, sent input, the colours of the first frame.

It is private to the person and to this machine, so it lives in the platform's state directory
(0700, files 0600), beside nothing that is ever shared. Losing it costs comfort, never notes:
whatever can't be read or written is left alone.
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
_PROCESS = f"left-{os.urandom(8).hex()}"
"""Unlike a number that a killed process had, it never names another one."""
_MAX_BYTES = 4_000_000


def state_folder() -> Path:
    """The state directory of kbtui; it need not exist."""
    return user_state_path("kbtui", appauthor=False)


def workspace_state(root: Path) -> Path:
    """Where the state that belongs to one workspace lies."""
    import hashlib

    name = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return state_folder() / name


def read_state(file: Path) -> str:
    """The text of a state file; empty where there is none that can be read."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if file.stat().st_size <= _MAX_BYTES:
            return file.read_text("utf-8")
    return ""


def read_json(file: Path) -> Any:
    """What a state file holds as JSON; None where there is none that can be read."""
    with contextlib.suppress(ValueError):
        return json.loads(read_state(file))
    return None


def write_state(file: Path, text: str) -> bool:
    """Replace a state file whole; False where the disk refuses."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(file, text.encode())
        return True
    return False


def read_shares() -> dict[str, float]:
    """How the screen was divided the last time: the share of the first part, by arrangement."""
    values = read_json(_layout_file())
    found = values.items() if isinstance(values, dict) else ()
    return {name: each for name, each in found if isinstance(each, float) and 0 < each < 1}


def remember_share(arrangement: str, share: float) -> None:
    """Divide the screen so at the next start."""
    write_state(_layout_file(), json.dumps(read_shares() | {arrangement: round(share, 4)}))


def _layout_file() -> Path:
    return state_folder() / "layout.json"


class Drafts:
    """The unsent text of a workspace's prompt.

    Each process has files of its own, as several may run: one while it runs, which is found if it
    is killed, and one that it leaves behind. Only who takes a text over removes another's file.
    """

    def __init__(self, root: Path) -> None:
        self._folder = workspace_state(root)
        self._running = self._folder / f"draft-{os.getpid()}.md"
        self._left = self._folder / f"draft-{_PROCESS}.md"
        # A signal may come while it is held, and saves in the same thread.
        self._writing = threading.RLock()
        self._kept: str | None = None
        self._ended = False

    def load(self) -> str:
        """Take over the text that was not sent last time, nor by a process that was killed."""
        files = [self._folder / "draft.md", *sorted(self._folder.glob("draft-*.md"))]
        left = {file: text for file in files if self._is_left(file) and (text := read_state(file))}
        kept = "\n\n".join(dict.fromkeys(text.strip() for text in left.values()))
        if kept and write_state(self._running, kept):
            for file in left.keys() - {self._running}:
                _write_or_remove(file, "")
        return kept

    def _is_left(self, file: Path) -> bool:
        process = file.stem.removeprefix("draft-")
        is_other = process.isdecimal() and process != str(os.getpid())
        return not (is_other and is_alive(int(process)))

    def keep(self, text: str) -> None:
        """Keep `text` in case that the process is killed; slow, for a thread."""
        with self._writing:
            if text != self._kept and not self._ended:
                _write_or_remove(self._running, text)
                self._kept = text

    def save(self, text: str) -> None:
        """Keep `text` for the next start, as this process ends; nothing for an empty prompt."""
        with self._writing:
            self._ended = True
            _write_or_remove(self._left, text)
            _write_or_remove(self._running, "")


def _write_or_remove(file: Path, text: str) -> None:
    if text.strip():
        write_state(file, text)
    else:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


_MAX_SEARCHES = 8


class Searches:
    """What was looked for in a workspace: searches that were saved, and the last ones besides."""

    def __init__(self, root: Path) -> None:
        self._file = workspace_state(root) / "searches.json"

    def read(self) -> tuple[list[str], list[str]]:
        """The saved ones by name, and the last ones, newest first."""
        try:
            stored = read_json(self._file)
            saved, last = ([str(each) for each in stored.get(key, ())] for key in _SEARCHES)
        except (TypeError, AttributeError):
            return [], []
        return sorted(saved, key=str.casefold), [each for each in last if each not in saved]

    def remember(self, query: str) -> None:
        """Something was found by it."""
        saved, last = self.read()
        self._write(saved, [query, *(each for each in last if each != query)])

    def save(self, query: str) -> bool:
        """Keep a search, or let go of it; True where it is kept now."""
        saved, last = self.read()
        kept = query not in saved
        self._write([*(each for each in saved if each != query), *[query] * kept], last)
        return kept

    def _write(self, saved: list[str], last: list[str]) -> None:
        from kbtui.redaction.redact import redact

        kept = [[redact(each).text for each in group] for group in (saved, last[:_MAX_SEARCHES])]
        write_state(self._file, json.dumps(dict(zip(_SEARCHES, kept, strict=True))))


_SEARCHES = ("saved", "last")


class InputHistory:
    """Inputs that were sent from the prompt, oldest first, and a place among them.

    `earlier` and `later` walk through it as a shell does: the text being written is kept at the
    end and comes back. Entries are stored one JSON string a line, secrets taken out.
    """

    def __init__(self, entries: list[str] | None = None) -> None:
        self.entries = entries or []
        self._file: Path | None = None
        self._at: int | None = None
        self._unsent = ""

    def attach(self, root: Path) -> None:
        """Put what earlier runs stored for this workspace before what was said in this one."""
        self._file = workspace_state(root) / "input.jsonl"
        stored = []
        for line in read_state(self._file).splitlines():
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, str):
                    stored.append(value)
        said, self.entries = self.entries, stored[-_MAX_INPUTS:]
        self._at = None if self._at is None else self._at + len(self.entries)
        for text in said:
            self.add(text)

    @property
    def walking(self) -> bool:
        """True while an earlier input is shown."""
        return self._at is not None

    def add(self, text: str) -> None:
        """Remember one input; a repetition of the last is kept once."""
        self._at = None
        if not text.strip() or (self.entries and self.entries[-1] == text):
            return
        self.entries.append(text)
        if self._file is not None:
            self._append(self._file, text)

    def earlier(self, current: str) -> str | None:
        """The input before the one shown; None at the beginning."""
        if self._at is None:
            self._unsent, self._at = current, len(self.entries)
        if self._at == 0:
            return None
        self._at -= 1
        return self.entries[self._at]

    def later(self) -> str | None:
        """The input after the one shown, at last the unsent text; None when none is shown."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self.entries):
            return self.entries[self._at]
        self._at = None
        return self._unsent

    def search(self, query: str, limit: int = 50) -> list[str]:
        """Inputs that contain all words of `query`, newest first, each once."""
        words = query.casefold().split()
        found = dict.fromkeys(
            text
            for text in reversed(self.entries)
            if all(word in text.casefold() for word in words)
        )
        return list(found)[:limit]

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
