"""Event listeners; an exception in one doesn't affect the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, ParamSpec

from kbtui.errors import KbtuiError

_P = ParamSpec("_P")
log = logging.getLogger(__name__)


class Listeners(Generic[_P]):
    """A thread-safe list of callbacks that are called with the same arguments."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[_P, object]] = []

    def __bool__(self) -> bool:
        """Whether there are any listeners."""
        return bool(self._listeners)

    def add(self, listener: Callable[_P, object]) -> Callable[[], None]:
        """Add a listener and return a function that removes it; calling that twice is harmless."""
        with self._lock:
            self._listeners.append(listener)
        subscribed = True

        def unsubscribe() -> None:
            nonlocal subscribed
            with self._lock:
                if subscribed:
                    subscribed = False
                    self._listeners.remove(listener)

        return unsubscribe

    def tell(self, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Call the current listeners in the order in which they were added.

        A `KbtuiError` in a listener is logged, since the event has happened already, and the
        remaining listeners are still called.
        """
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(*args, **kwargs)
            except KbtuiError:
                log.exception("a listener failed")
