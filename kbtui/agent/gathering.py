"""Gathers the lines that a message may be about: for corrections, for places, and for answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.knowledge import frontmatter
from kbtui.offline import words as w
from kbtui.offline.lines import Line, lines_of
from kbtui.offline.understand import Said
from kbtui.text import clean_line, fold
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kbtui.agent.tools.base import ToolContext
    from kbtui.knowledge.entry import EntryInfo
    from kbtui.search.results import Hit
    from kbtui.sessions.store import SessionMessage

_MEMORY = "memory/MEMORY.md"
_RECENT = 40
_NAMED = 30
_HITS = 12
_MOST_HITS = 30
_BEFORE = 8
_LONGEST_LINE = 600
_MOST_TERMS = 40


class Gathering:
    """Finds lines in the workspace of one turn."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._read: dict[str, list[Line]] = {}

    def known(self, text: str, before: Sequence[SessionMessage]) -> list[Line]:
        """Lines that a statement may be about: of entries changed last, named, or found."""
        infos = sorted(
            (
                each
                for each in self._context.library.infos()
                if each.is_entry and each.slug != "INDEX"
            ),
            key=lambda info: -info.mtime_ns,
        )
        told = set(w.content(" ".join([text, *(b.content for b in before[-2:])])))
        paths = dict.fromkeys(info.path for info in infos[:_RECENT])
        named = [info.path for info in infos[_RECENT:] if told & set(w.words(" ".join(info.names)))]
        paths |= dict.fromkeys(named[:_NAMED])
        if len(infos) > _RECENT:
            paths |= dict.fromkeys(hit.path for hit in self._hits(text, "knowledge", _HITS))
        titles = {info.path: info for info in infos}
        lines = [line for path in paths if path in titles for line in self._entry(titles[path])]
        return [*lines, *self._memory()]

    def candidates(self, question: str, known: Sequence[Line], message: int) -> list[Line]:
        """Lines that may answer a question; those of this very message are left out.

        Args:
            question: What is asked.
            known: What was gathered already.
            message: The id of the message that asks.
        """
        found = {(line.path, line.number): line for line in known}
        infos = {info.path: info for info in self._context.library.infos()}
        scope = ",".join(
            ("knowledge", "memory", "sessions", "docs", *self._context.settings.search.roots)
        )
        hits = {
            (hit.path, hit.lines, hit.messages): hit
            for hit in self._hits(question, scope, _MOST_HITS)
        }
        for hit in self._hits(" ".join(_widened(question)), scope, _MOST_HITS):
            hits.setdefault((hit.path, hit.lines, hit.messages), hit)
        for hit in hits.values():
            if hit.session is not None:
                lines: Iterable[Line] = self._spoken(hit, message)
            elif hit.path in infos and infos[hit.path].is_entry:
                lines = self._entry(infos[hit.path])
            else:
                lines = self._note(hit)
            for line in lines:
                found.setdefault((line.path, line.number), line)
        return list(found.values())

    def _hits(self, query: str, scope: str, limit: int) -> Sequence[Hit]:
        if not query.strip():
            return ()
        hits = self._context.search.search(query[:2_000], scope, limit, statements_only=True).hits
        return [hit for hit in hits if not self._context.is_hidden(hit.path)]

    def _entry(self, info: EntryInfo) -> list[Line]:
        if info.path not in self._read:
            self._read[info.path] = list(self._lines(info.path, info.title))
        return self._read[info.path]

    def _memory(self) -> list[Line]:
        return [
            Line(line.path, "MEMORY.md", line.text, line.number, "memory", heading=line.heading)
            for line in self._lines(_MEMORY, "MEMORY.md")
        ]

    def _lines(self, path: str, title: str) -> Iterator[Line]:
        if self._context.is_hidden(path):
            return
        try:
            data = files.read_bytes(self._context.workspace.root, path)
        except KbtuiError:
            return
        body = frontmatter.split(data).body
        first = data[: len(data) - len(body)].count(b"\n") + 1
        text = body.decode("utf-8", "replace").replace("\r\n", "\n")
        yield from lines_of(path, title, text, "entry", first)

    def _note(self, hit: Hit) -> Iterator[Line]:
        first, last = hit.lines
        try:
            whole = files.read_text(self._context.workspace.root, hit.path).replace("\r\n", "\n")
            text = "\n".join(whole.split("\n")[first - 1 : last])
        except KbtuiError:
            text = hit.text or hit.snippet
        for line in lines_of(hit.path, hit.title, text, "note", first):
            if len(line.text) <= _LONGEST_LINE:
                yield line

    def _spoken(self, hit: Hit, message: int) -> Iterator[Line]:
        """The user's words in the messages of a hit."""
        if hit.session is None or hit.messages is None:
            return
        try:
            messages = self._context.sessions.read(hit.session)
        except KbtuiError:
            return
        first, last = hit.messages
        for each in messages:
            if each.role != "user" or not first <= each.id <= last:
                continue
            if hit.session == self._context.session and each.id >= message:
                continue
            said = clean_line(each.content)
            if len(said) <= _LONGEST_LINE:
                local = each.time.astimezone()
                day = f"{local.day} {local:%B %Y}"
                yield Line(hit.path, hit.title, said, each.id, "said", day=day)


def before_of(messages: Sequence[SessionMessage]) -> list[Said]:
    """The last things that were said, as `understand` takes them."""
    spoken = [each for each in messages if each.role in ("user", "assistant") and each.content]
    return [Said(each.role, each.content) for each in spoken[-_BEFORE:]]


def _widened(question: str) -> Iterator[str]:
    """The telling words of a question, with others of the same meaning."""
    told = list(dict.fromkeys(w.content(question)))
    yield from told
    others = [other for word in told for other in w.synonyms(word) if fold(other) not in told]
    yield from others[:_MOST_TERMS]
