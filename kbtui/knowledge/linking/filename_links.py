"""Links that go by the names of files alone, as for programs that know notes by no other.

One by title, alias or Dendron's rule gets the note's name, and shows what it showed; an item of
``related`` becomes a link. No other byte changes.
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

_BY_WORDS = ("alias", "title")


@dataclass(frozen=True, slots=True)
class ByFile:
    """Rewrites the links of the note at `path`; `file` tells where the file of a path lies."""

    index: LinkIndex
    path: str
    file: Callable[[str], str]

    def note(self, data: bytes) -> bytes:
        """The whole note; a head that can't be read stays as it is."""
        parts = frontmatter.split(data)
        with suppress(UnicodeDecodeError, UnreadableError):
            text = self._linked(parts.body.decode())
            data = data[: len(data) - len(parts.body)] + text.encode()
            if parts.head:
                return frontmatter.replace_scalars(data, self._value)
        return data

    def _value(self, key: str, said: str) -> str | None:
        if "[[" in said:
            return self._linked(said, in_body=False)
        name = self._name(related_link(said)) if key == "related" else None
        return f"[[{name}]]" if name else None

    def _linked(self, text: str, *, in_body: bool = True) -> str:
        found = links_in_body(text) if in_body else [*links_in_value(text)]
        for placed in reversed(found):
            if placed.link.kind == "wiki" and (new := self._link(text, placed)):
                text = text[: placed.start] + new + text[placed.end :]
        return text

    def _link(self, text: str, placed: PlacedLink) -> str | None:
        """A link by the file's name; None: it goes by that, or it leads nowhere."""
        link = self.index.read(placed.link)
        found = self.index.find(link, self.path)
        is_other = link.turned_round or link.target.startswith(IN_VAULT)
        if found is None or not (is_other or found.by in _BY_WORDS):
            return None
        heading = f"#{link.heading}" if link.heading else ""
        between = "\\|" if in_table_row(text, placed.start) else "|"
        shown = (link.alias or slug_of(link.target) + heading).strip()
        mark = "!" if text[placed.start] == "!" else ""
        return f"{mark}[[{self._name(link)}{heading}{between}{shown}]]"

    def _name(self, link: Link) -> str | None:
        """The name of the note that a link leads to: alone where no other has it."""
        target = self.index.resolve(link, self.path)
        if target is None:
            return None
        name = slug_of(target)
        is_alone = len({*self.index.candidates(name)[1]}) == 1
        return name if is_alone else self.file(target).removesuffix(".md")
