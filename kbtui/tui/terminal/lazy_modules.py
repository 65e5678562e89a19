"""Lazy imports: modules that are loaded on the first access to one of their attributes.

The first frame is drawn sooner without the modules that only a key, a command or an open workspace
needs. Under `TYPE_CHECKING` such a module is imported as usual.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _LazyModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def lazy_modules(*modules: str) -> Any:
    """Return lazy stand-ins for modules named relative to ``kbtui.tui``; a single one unwrapped."""
    stand_ins = [_LazyModule(f"kbtui.tui.{name}") for name in modules]
    return stand_ins if len(stand_ins) > 1 else stand_ins[0]
