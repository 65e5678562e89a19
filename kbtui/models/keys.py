"""Where keys are kept: the keyring of the operating system, else a file that only you can read.

A keyring may be missing, locked, or hang on a dialog that nobody sees, so each access runs in a
thread with a time limit, and never when the app starts.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from typing import TYPE_CHECKING, Any

from kbtui.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = logging.getLogger(__name__)
SERVICE = "kbtui"
_PATIENCE_SECONDS = 3.0


class KeyStore:
    """Keys by name: a provider's prefix, or ``host:port`` of an endpoint."""

    def __init__(self, file: Path | None = None, patience: float = _PATIENCE_SECONDS) -> None:
        self._given_file = file
        self._patience = patience
        self._broken = False

    def get(self, name: str) -> str:
        """Look a key up; "" where there is none."""
        stored = self._ask(lambda keyring: keyring.get_password(SERVICE, name))
        return str(stored or self._read().get(name, ""))

    def put(self, name: str, key: str) -> str:
        """Keep a key; returns where, in words for people.

        Raises:
            StorageError: neither keyring nor file could take it.
        """

        def store(keyring: Any) -> bool:
            keyring.set_password(SERVICE, name, key)
            return bool(keyring.get_password(SERVICE, name) == key)

        if self._ask(store):
            self._write({**self._read(), name: None})
            return "the keyring"
        self._write({**self._read(), name: key})
        return str(self._file)

    def forget(self, name: str) -> None:
        """Remove a key wherever it is kept."""
        self._ask(lambda keyring: keyring.delete_password(SERVICE, name))
        self._write({**self._read(), name: None})

    @property
    def _file(self) -> Path:
        from kbtui.settings import config_folder

        return self._given_file or config_folder() / "keys.json"

    def _ask(self, work: Callable[[Any], Any]) -> Any:
        """Do something with the keyring, in time; None when it can't be done."""
        if self._broken:
            return None
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # A daemon: a keyring that hangs must not keep the program from ending.
        threading.Thread(
            target=lambda: answers.put(_guarded(work)), name="kbtui-keyring", daemon=True
        ).start()
        try:
            return answers.get(timeout=self._patience)
        except queue.Empty:
            log.warning("the keyring did not answer in %s seconds; using the file", self._patience)
            self._broken = True
            return None

    def _read(self) -> dict[str, str]:
        try:
            value = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(value, dict):
            return {}
        return {str(name): str(key) for name, key in value.items()}

    def _write(self, keys: dict[str, str | None]) -> None:
        kept = {name: key for name, key in keys.items() if key}
        if kept == self._read():
            return
        scratch = self._file.with_name(f"{self._file.name}.{os.getpid()}.new")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(kept, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self._file)
        except OSError as error:
            raise StorageError(f"Can't keep the key in {self._file}: {error.strerror}.") from error


def _guarded(work: Callable[[Any], Any]) -> Any:
    try:
        import keyring
        import keyring.errors

        return work(keyring)
    except keyring.errors.KeyringError as error:
        log.info("the keyring can't be used: %s", type(error).__name__)
    except Exception as error:  # noqa: BLE001 - backends raise whatever their D-Bus or C library does
        log.info("the keyring failed: %s", type(error).__name__)
    return None
