"""A workspace on its way to Obsidian, which knows notes by their files' names alone.

A link by title, alias or Dendron's rule gets the note's name, and shows what it showed; a
conversation becomes a note. All else leaves as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields

from kbtui.errors import KbtuiError, UnreadableError
from kbtui.knowledge.entries.dendron import dendron_at
from kbtui.knowledge.entries.entry import EntryInfo, slug_of
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.links import (
    IN_VAULT,
    Link,
    PlacedLink,
    links_in_body,
    links_in_value,
    related_link,
)
from kbtui.knowledge.linking.resolve import LinkIndex
from kbtui.maintenance.export import CONVERSATIONS, Tree, session_markdown
from kbtui.sessions.store import SessionStore
from kbtui.text import clean_line

_FOLDER = "Conversations"
_REFUSED = re.compile(r"[\x00-\x1f\\/:*?\"<>|#^\[\]]+")
_LONGEST = 80
_BY_WORDS = ("alias", "title")


@dataclass(frozen=True, slots=True)
class ObsidianTree(Tree):
    """The same files; `talks` are the names that conversations leave under, by path."""

    index: LinkIndex = field(default_factory=LinkIndex)
    sessions: SessionStore | None = None
    talks: Mapping[str, str] = field(default_factory=dict)

    def name(self, path: str) -> str:
        """The name that it leaves under."""
        return self.talks.get(path) or Tree.name(self, path)

    def pieces(self, path: str) -> Iterator[bytes] | None:
        """Read one as it leaves."""
        if path in self.talks and self.sessions is not None:
            return self._talk(path, self.sessions)
        pieces = Tree.pieces(self, path)
        if pieces is None or not path.lower().endswith(".md"):
            return pieces
        return iter([self._note(path, b"".join(pieces))])

    def _talk(self, path: str, sessions: SessionStore) -> Iterator[bytes] | None:
        session = path.removeprefix(CONVERSATIONS).removesuffix(".jsonl")
        try:
            log = sessions.read_log(session)
        except KbtuiError as error:
            self.left_out[path] = error.message
            return None
        text = "\n".join(session_markdown(session, log.shown_title, log.messages))
        head = {"created": log.created.date().isoformat(), "url": log.url or None}
        return iter([frontmatter.set_keys(text, head).encode("utf-8", "replace")])

    def _note(self, path: str, data: bytes) -> bytes:
        parts = frontmatter.split(data)
        with suppress(UnicodeDecodeError, UnreadableError):
            text = self._linked(path, parts.body.decode())
            data = data[: len(data) - len(parts.body)] + text.encode()
            if parts.head:
                return frontmatter.replace_scalars(
                    data, lambda key, said: self._value(path, key, said)
                )
        return data

    def _value(self, path: str, key: str, said: str) -> str | None:
        if "[[" in said:
            return self._linked(path, said, in_body=False)
        target = self._name(related_link(said), path) if key == "related" else None
        return f"[[{target}]]" if target else None

    def _linked(self, path: str, text: str, *, in_body: bool = True) -> str:
        found = links_in_body(text) if in_body else [*links_in_value(text)]
        for placed in reversed(found):
            if placed.link.kind == "wiki" and (new := self._link(path, text, placed)):
                text = text[: placed.start] + new + text[placed.end :]
        return text

    def _link(self, path: str, text: str, placed: PlacedLink) -> str | None:
        """A link as Obsidian follows it; None: it does already, or it leads nowhere."""
        link = self.index.read(placed.link)
        by = self.index.find(link, path)
        is_other = link.turned_round or link.target.startswith(IN_VAULT)
        if by is None or not (is_other or by.by in _BY_WORDS):
            return None
        heading = f"#{link.heading}" if link.heading else ""
        row = text[text.rfind("\n", 0, placed.start) + 1 : placed.start].lstrip()
        between = "\\|" if row.startswith("|") else "|"
        shown = (link.alias or slug_of(link.target) + heading).strip()
        mark = "!" if text[placed.start] == "!" else ""
        return f"{mark}[[{self._name(link, path)}{heading}{between}{shown}]]"

    def _name(self, link: Link, path: str) -> str | None:
        """The name of the note that a link leads to: alone where no other has it."""
        target = self.index.resolve(link, path)
        if target is None:
            return None
        name = slug_of(target)
        is_alone = len({*self.index.candidates(name)[1]}) == 1
        return name if is_alone else self.workspace.file(target).removesuffix(".md")


def for_obsidian(tree: Tree, infos: Iterable[EntryInfo], sessions: SessionStore) -> ObsidianTree:
    """The same tree for Obsidian; `infos` are of the notes that may be known there."""
    index = LinkIndex(infos, dendron=dendron_at(tree.workspace.root))
    taken = {tree.name(path).rpartition("/")[2].casefold() for path in tree.paths}
    talks: dict[str, str] = {}
    for info in sorted(sessions.list(), key=lambda info: (info.created, info.id)):
        title = _REFUSED.sub("-", clean_line(info.title))[:_LONGEST].strip(". -")
        stem, number = f"{info.created:%Y-%m-%d} {title or info.id}", 1
        while (name := f"{stem}{f' {number}' if number > 1 else ''}.md").casefold() in taken:
            number += 1
        taken.add(name.casefold())
        talks[f"{CONVERSATIONS}{info.id}.jsonl"] = f"{_FOLDER}/{name}"
    known = {each.name: getattr(tree, each.name) for each in fields(Tree)}
    return ObsidianTree(**known, index=index, sessions=sessions, talks=talks)
