"""The folders of a workspace that are searched, by the name of a scope."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT = "default"
ALL = "all"
SESSIONS = "sessions"
_AREAS = ("knowledge", "memory", "docs")


@dataclass(frozen=True, slots=True)
class Scopes:
    """The indexed folders of a workspace; `roots` are additional ones from its settings."""

    roots: tuple[str, ...] = ()

    @property
    def default(self) -> tuple[str, ...]:
        """The folders searched by default: all except conversations."""
        return (*_AREAS, *self.roots)

    @property
    def notes(self) -> tuple[str, ...]:
        """The folders of notes and documents, without memory and conversations."""
        return ("knowledge", "docs", *self.roots)

    @property
    def all(self) -> tuple[str, ...]:
        """All indexed folders."""
        return (*_AREAS, SESSIONS, *self.roots)

    def folders(self, scope: str) -> list[str]:
        """Resolve a scope to folders, e.g. ``memory,docs/nanobot`` or ``all``."""
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
