"""Those who want to be told of something; what goes wrong with one of them is its own trouble."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, ParamSpec

from kbtui.errors import KbtuiError

_P = ParamSpec("_P")
log = logging.getLogger(__name__)


class Listeners(Generic[_P]):
    """Functions that are called with the same values; they may come and go in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Callable[_P, object]] = []

    def __bool__(self) -> bool:
        """True if anybody wants to be told."""
        return bool(self._all)

    def add(self, listener: Callable[_P, object]) -> Callable[[], None]:
        """Tell one more; gives what unsubscribes it, which may be called more than once."""
        with self._lock:
            self._all.append(listener)
        inside = True

        def unsubscribe() -> None:
            nonlocal inside
            with self._lock:
                if inside:
                    inside = False
                    self._all.remove(listener)

        return unsubscribe

    def tell(self, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Call all who are there now, in the order in which they came.

        What has happened has happened: an error that one of them raises is logged, and the others
        are told all the same.
        """
        with self._lock:
            told = tuple(self._all)
        for listener in told:
            try:
                listener(*args, **kwargs)
            except KbtuiError:
                log.exception("a listener failed")
