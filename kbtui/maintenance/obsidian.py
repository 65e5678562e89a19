"""Export for Obsidian, which finds notes only by their file names.

Links by title, alias or Dendron's syntax get the note's file name and keep their displayed text;
conversations become notes. Everything else is exported unchanged.
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
_FORBIDDEN = re.compile(r"[\x00-\x1f\\/:*?\"<>|#^\[\]]+")
_MAX_TITLE = 80
_MAX_TITLE_BYTES = 200  # most file systems allow 255 per name, which includes day and number


@dataclass(frozen=True, slots=True, kw_only=True)
class ObsidianTree(Tree):
    """The tree for Obsidian; `conversation_names` are the exported names of conversations."""

    reader: Reader
    sessions: SessionStore
    conversation_names: Mapping[str, str]

    def name(self, path: str) -> str:
        """Return the exported name of a path."""
        return self.conversation_names.get(path) or Tree.name(self, path)

    def pieces(self, path: str) -> Iterator[bytes] | None:
        """Read a file as exported, in pieces."""
        if path in self.conversation_names:
            return self._conversation_note(path)
        pieces = Tree.pieces(self, path)
        if pieces is None or not path.lower().endswith(".md"):
            return pieces
        return iter([self.reader.by_file(path, b"".join(pieces), self.workspace.file)])

    def _conversation_note(self, path: str) -> Iterator[bytes] | None:
        session = path.removeprefix(CONVERSATIONS).removesuffix(".jsonl")
        try:
            log = self.sessions.read_log(session)
        except KbtuiError as error:
            self.left_out[path] = error.message
            return None
        lines = session_markdown(session, log.shown_title, log.messages, marks_private=True)
        created = log.created.date().isoformat()
        head = {"created": created, "url": log.url or None, "session": session}
        text = "\n".join(lines)
        return iter([frontmatter.set_keys(text, head).encode("utf-8", "replace")])


def for_obsidian(tree: Tree, reader: Reader, sessions: SessionStore) -> ObsidianTree:
    """Return a tree for Obsidian; `reader` has the notes that may be linked to."""
    taken = {tree.name(path).rpartition("/")[2].casefold() for path in tree.paths}
    conversation_names: dict[str, str] = {}
    for info in sorted(sessions.list(), key=lambda info: (info.created, info.id)):
        title = _FORBIDDEN.sub("-", clean_line(info.title))[:_MAX_TITLE]
        title = title.encode("utf-8", "replace")[:_MAX_TITLE_BYTES].decode("utf-8", "ignore")
        title = title.strip(". -")
        stem, number = f"{info.created:%Y-%m-%d} {title or info.id}", 1
        while (name := f"{stem}{f' {number}' if number > 1 else ''}.md").casefold() in taken:
            number += 1
        taken.add(name.casefold())
        conversation_names[f"{CONVERSATIONS}{info.id}.jsonl"] = f"{_FOLDER}/{name}"
    known = {each.name: getattr(tree, each.name) for each in fields(Tree)}
    return ObsidianTree(
        **known, reader=reader, sessions=sessions, conversation_names=conversation_names
    )
