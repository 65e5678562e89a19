"""Picking up, while the program runs, what other programs write into the workspace.

A file watcher says that something moved; whether it is an edit, and when it is finished, is
decided by `History.adopt`, which takes only what has stood still for a moment.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError, KbtuiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.history.history import History

log = logging.getLogger(__name__)
_SETTLE_SECONDS = 1.1
_TRIES = 5
# A watcher needs a moment to start, and may miss something later: look now and then without hints.
_FIRST_LOOKS = (2.0, 5.0)
_LOOK_SECONDS = 60.0


class OutsideEdits:
    """Adopts outside edits in a thread of its own, a moment after each hint.

    Args:
        history: What adopts.
        on_problem: Told what a person must decide, such as a deletion of most entries.
    """

    def __init__(self, history: History, on_problem: Callable[[KbtuiError], None]) -> None:
        self._history = history
        self._on_problem = on_problem
        self._hinted = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to listen to hints."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outside-edits", daemon=True)
            self._thread.start()

    def hint(self) -> None:
        """Say that files may have changed; returns at once, from any thread."""
        self._hinted.set()

    def close(self) -> None:
        """Stop listening and wait for a running adoption."""
        self._stopped.set()
        self._hinted.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        first_looks = iter(_FIRST_LOOKS)
        while True:
            self._hinted.wait(next(first_looks, _LOOK_SECONDS))
            for _ in range(_TRIES):
                self._hinted.clear()
                if self._stopped.wait(_SETTLE_SECONDS):
                    return
                if not self._hinted.is_set():
                    break
            self._adopt()

    def _adopt(self) -> None:
        try:
            self._history.adopt(timeout=5.0)
            self._history.tidy(self._stopped.is_set)
        except ConflictError as problem:
            self._on_problem(problem)
        except KbtuiError as problem:
            log.warning("outside edits could not be recorded: %s", problem)
