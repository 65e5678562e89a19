"""Sources: all that the tools of one turn showed the model, numbered, for an answer to cite."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kbtui.agent.events import Citation
from kbtui.documents.documents import place_at
from kbtui.text import clean_line

_CITED = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\](?!\()")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_WIKI = re.compile(r"\[\[(?:[^\]|\n]*\|)?([^\]\n]*)\]\]")
_SHORTEST_QUOTE = 16
_NOT_SAID = ("#", "title:", "summary:", "description:", "aliases:")
_MARKUP = re.compile(r"^[\s>#*+-]+|[*_`\"“”]+")


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines that a tool showed; `text` is what stands in them.

    `places` are the pages or whatever holds them, each with the line from which on it does.
    """

    n: int
    path: str
    first: int
    last: int
    text: str
    title: str = ""
    places: tuple[tuple[int, str], ...] = ()


class Sources:
    """The numbered sources of one turn; `added` are the paths of all, in turn, known ones again."""

    def __init__(self) -> None:
        self._sources: list[SourceLines] = []
        self.added: list[str] = []

    @property
    def shown(self) -> tuple[SourceLines, ...]:
        """All of them, in order."""
        return tuple(self._sources)

    def add(
        self,
        path: str,
        first: int,
        text: str,
        title: str = "",
        places: tuple[tuple[int, str], ...] = (),
    ) -> SourceLines:
        """Number lines of a file; the same lines keep the number that they have."""
        self.added.append(path)
        last = first + len(text_lines(text)) - 1
        for known in self._sources:
            if (known.path, known.first, known.last, known.text) == (path, first, last, text):
                return known
        source = SourceLines(len(self._sources) + 1, path, first, last, text, title, places)
        self._sources.append(source)
        return source

    def cited_in(self, answer: str) -> tuple[Citation, ...]:
        """The sources that an answer refers to by ``[n]``, each at the lines it quotes."""
        prose = _CODE.sub("", answer)
        numbers = {
            int(number)
            for group in _CITED.findall(_WIKI.sub("", prose))
            for number in re.split(r"\s*,\s*", group)
        }
        return tuple(_citation(source, answer) for source in self._sources if source.n in numbers)


def _citation(source: SourceLines, answer: str) -> Citation:
    quoted = list(_quoted_lines(source, answer))
    first, last = (quoted[0], quoted[-1]) if quoted else (source.first, source.last)
    place = place_at(source.places, first)
    return Citation(source.n, source.path, first, last, source.title, place)


def _quoted_lines(source: SourceLines, answer: str) -> Iterator[int]:
    """The lines that the answer quotes word for word; a heading is named rather than quoted."""
    told = _plain(answer)
    for number, line in enumerate(text_lines(source.text), source.first):
        plain = _plain(line)
        if len(plain) >= _SHORTEST_QUOTE and plain in told and not line.startswith(_NOT_SAID):
            yield number


def _plain(text: str) -> str:
    """A text without the marks that quoting and Markdown put around words."""
    lines = (_MARKUP.sub("", _WIKI.sub(r"\1", line)) for line in text.splitlines())
    return clean_line(" ".join(lines))


def text_lines(text: str) -> list[str]:
    """The lines of a text as editors count them; at least one."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def heading(source: SourceLines, note: str = "") -> str:
    """The line above quoted text: ``[1] knowledge/people/alice.md (lines 3-7)``."""
    extra = f", {note}" if note else ""
    place = place_at(source.places, source.first)
    lines = f"{f'{place}, ' if place else ''}lines {source.first}-{source.last}"
    return f"[{source.n}] {clean_line(source.path)} ({lines}{extra})"


def quoted(text: str) -> str:
    """Wrap text from a file so that nothing in it can pass for anything else.

    The mark is made of the text itself, which can't contain its own hash.
    """
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"<data {mark}>\n{text}\n</data {mark}>"
