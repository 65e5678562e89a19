"""A workspace on its way to Obsidian, which knows notes by their files' names alone.

A link by title, alias or Dendron's rule gets the note's name, and shows what it showed; a
conversation becomes a note. All else leaves as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from kbtui.errors import KbtuiError
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.library.library import Reader
from kbtui.maintenance.export import CONVERSATIONS, Tree, session_markdown
from kbtui.sessions.store import SessionStore
from kbtui.text import clean_line

_FOLDER = "Conversations"
_REFUSED = re.compile(r"[\x00-\x1f\\/:*?\"<>|#^\[\]]+")
_LONGEST = 80
_MOST_BYTES = 200  # most file systems take 255 for a name, with its day and number


@dataclass(frozen=True, slots=True, kw_only=True)
class ObsidianTree(Tree):
    """The same files; `talks` are the names that conversations leave under, by path."""

    reader: Reader
    sessions: SessionStore
    talks: Mapping[str, str]

    def name(self, path: str) -> str:
        """The name that it leaves under."""
        return self.talks.get(path) or Tree.name(self, path)

    def pieces(self, path: str) -> Iterator[bytes] | None:
        """Read one as it leaves."""
        if path in self.talks:
            return self._talk(path)
        pieces = Tree.pieces(self, path)
        if pieces is None or not path.lower().endswith(".md"):
            return pieces
        return iter([self.reader.by_file(path, b"".join(pieces), self.workspace.file)])

    def _talk(self, path: str) -> Iterator[bytes] | None:
        session = path.removeprefix(CONVERSATIONS).removesuffix(".jsonl")
        try:
            log = self.sessions.read_log(session)
        except KbtuiError as error:
            self.left_out[path] = error.message
            return None
        text = "\n".join(session_markdown(session, log.shown_title, log.messages))
        head = {"created": log.created.date().isoformat(), "url": log.url or None}
        return iter([frontmatter.set_keys(text, head).encode("utf-8", "replace")])


def for_obsidian(tree: Tree, reader: Reader, sessions: SessionStore) -> ObsidianTree:
    """The same tree for Obsidian; `reader` has the notes that may be known there."""
    taken = {tree.name(path).rpartition("/")[2].casefold() for path in tree.paths}
    talks: dict[str, str] = {}
    for info in sorted(sessions.list(), key=lambda info: (info.created, info.id)):
        title = _REFUSED.sub("-", clean_line(info.title))[:_LONGEST]
        title = title.encode("utf-8", "replace")[:_MOST_BYTES].decode("utf-8", "ignore")
        title = title.strip(". -")
        stem, number = f"{info.created:%Y-%m-%d} {title or info.id}", 1
        while (name := f"{stem}{f' {number}' if number > 1 else ''}.md").casefold() in taken:
            number += 1
        taken.add(name.casefold())
        talks[f"{CONVERSATIONS}{info.id}.jsonl"] = f"{_FOLDER}/{name}"
    known = {each.name: getattr(tree, each.name) for each in fields(Tree)}
    return ObsidianTree(**known, reader=reader, sessions=sessions, talks=talks)
