"""Modules that are loaded when something of them is first asked for.

The first frame is out sooner without what only a key, a command or an open workspace needs. For
the type checker such a module is imported as any other.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _LaterModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def later(*modules: str) -> Any:
    """Stand-ins for modules of the app, named from ``kbtui.tui`` on; for a single one just it."""
    found = [_LaterModule(f"kbtui.tui.{name}") for name in modules]
    return found if len(found) > 1 else found[0]
