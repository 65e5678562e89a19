"""What was read last, kept at hand."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

_RECENT = 24
_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """The values that were asked for last, by id; several threads may use it."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, identifier: str) -> _Value | None:
        """The value of an id, None where it wasn't asked for lately."""
        with self._lock:
            value = self._values.get(identifier)
            if value is not None:
                self._values.move_to_end(identifier)
            return value

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._values.clear()

    def put(self, identifier: str, value: _Value) -> None:
        """Keep a value at hand."""
        with self._lock:
            self._values[identifier] = value
            if len(self._values) > _RECENT:
                self._values.popitem(last=False)
