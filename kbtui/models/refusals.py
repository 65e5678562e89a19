"""Features that models have rejected, remembered for a few days in the user's state directory.

A refusal expires because a server may be restarted with the missing feature enabled.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final, Literal

import platformdirs

from kbtui.errors import StorageError
from kbtui.text import json_object
from kbtui.workspace.files import write_machine_file

Refused = Literal["tools", "temperature"]
log = logging.getLogger(__name__)
DAYS: Final = 7
_FILE = "refusals.json"


class Refusals:
    """A persistent record of features refused by each model and endpoint, with expiry dates."""

    def __init__(self, today: Callable[[], date] = date.today) -> None:
        self._today = today
        self._lock = threading.Lock()
        self._known: dict[str, str] | None = None

    def has(self, what: Refused, base: str | None, model: str) -> bool:
        """Return whether a model refused a feature within the last `DAYS` days."""
        until = self._read().get(_key(what, base, model), "")
        return until >= self._today().isoformat()

    def note(self, what: Refused, base: str | None, model: str) -> None:
        """Record that a model refused a feature; only in memory if the file can't be written."""
        known = self._read()
        with self._lock:
            today = self._today()
            current = {key: until for key, until in known.items() if until >= today.isoformat()}
            current[_key(what, base, model)] = (today + timedelta(DAYS)).isoformat()
            self._known = current
            folder = platformdirs.user_state_path("kbtui", appauthor=False)
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_machine_file(folder, _FILE, json.dumps(current).encode())
            except (OSError, StorageError) as error:
                log.info("what a model refused can't be written down: %s", error)

    def forget(self) -> None:
        """Drop the in-memory copy, so that the file is read again."""
        self._known = None

    def _read(self) -> dict[str, str]:
        with self._lock:
            if self._known is None:
                file = platformdirs.user_state_path("kbtui", appauthor=False) / _FILE
                try:
                    found = json_object(file.read_bytes()) or {}
                except OSError:
                    found = {}
                self._known = {key: each for key, each in found.items() if isinstance(each, str)}
            return self._known


def _key(what: Refused, base: str | None, model: str) -> str:
    return f"{what} {base or ''} {model}"
