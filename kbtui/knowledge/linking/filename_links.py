"""Rewriting of links to use file names only, for programs that know notes by nothing else.

Links by title, alias or Dendron's syntax get the note's file name and keep their displayed text; an
item of ``related`` becomes a link. No other byte changes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from kbtui.errors import UnreadableError
from kbtui.knowledge.entries.entry import slug_of
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.links import (
    IN_VAULT,
    Link,
    PlacedLink,
    in_table_row,
    links_in_body,
    links_in_value,
    related_link,
)
from kbtui.knowledge.linking.resolve import LinkIndex

_NOT_BY_FILENAME = ("alias", "title")


@dataclass(frozen=True, slots=True)
class ByFile:
    """A rewriter for the links of the note at `path`; `file` maps a path to its file."""

    index: LinkIndex
    path: str
    file: Callable[[str], str]

    def note(self, data: bytes) -> bytes:
        """Return the note with rewritten links; unreadable frontmatter is left alone."""
        parts = frontmatter.split(data)
        with suppress(UnicodeDecodeError, UnreadableError):
            text = self._linked(parts.body.decode())
            data = data[: len(data) - len(parts.body)] + text.encode()
            if parts.head:
                return frontmatter.replace_scalars(data, self._value)
        return data

    def _value(self, key: str, value: str) -> str | None:
        if "[[" in value:
            return self._linked(value, in_body=False)
        name = self._name(related_link(value)) if key == "related" else None
        return f"[[{name}]]" if name else None

    def _linked(self, text: str, *, in_body: bool = True) -> str:
        found = links_in_body(text) if in_body else [*links_in_value(text)]
        within = len(text)
        for placed in reversed(found):
            if placed.end > within or placed.link.kind != "wiki":
                continue  # another stands in its text
            if new := self._link(text, placed):
                within = placed.start
                text = text[: placed.start] + new + text[placed.end :]
        return text

    def _link(self, text: str, placed: PlacedLink) -> str | None:
        """Return the link by file name, or None if it is one already or leads nowhere."""
        link = self.index.read(placed.link)
        found = self.index.find(link, self.path)
        is_dendron = link.turned_round or link.target.startswith(IN_VAULT)
        if found is None or not (is_dendron or found.by in _NOT_BY_FILENAME):
            return None
        heading = f"#{link.heading}" if link.heading else ""
        between = "\\|" if in_table_row(text, placed.start) else "|"
        label = (link.alias or slug_of(link.target) + heading).strip()
        mark = "!" if text[placed.start] == "!" else ""
        return f"{mark}[[{self._name(link)}{heading}{between}{label}]]"

    def _name(self, link: Link) -> str | None:
        """Return the file name of a link's target, with folders if it isn't unique."""
        target = self.index.resolve(link, self.path)
        if target is None:
            return None
        name = slug_of(target)
        is_alone = len({*self.index.candidates(name)[1]}) == 1
        return name if is_alone else self.file(target).removesuffix(".md")
