"""Where to search: the folders behind the names that people and tools use."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT = "default"
ALL = "all"
SESSIONS = "sessions"
_AREAS = ("knowledge", "memory", "docs")


@dataclass(frozen=True, slots=True)
class Scopes:
    """The folders of one workspace that are indexed; `roots` are further ones of its own."""

    roots: tuple[str, ...] = ()

    @property
    def default(self) -> tuple[str, ...]:
        """What is searched unless said otherwise: all but the conversations."""
        return (*_AREAS, *self.roots)

    @property
    def all(self) -> tuple[str, ...]:
        """All that is indexed."""
        return (*_AREAS, SESSIONS, *self.roots)

    def folders(self, scope: str) -> list[str]:
        """The folders that a scope names, e.g. ``memory,docs/nanobot`` or ``all``."""
        found: list[str] = []
        for part in scope.split(","):
            name = part.strip().strip("/")
            if name in {"", DEFAULT}:
                found += self.default
            elif name == ALL:
                found += self.all
            else:
                found.append(name)
        return found
