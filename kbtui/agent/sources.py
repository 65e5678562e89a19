"""Sources: what the tools of one turn showed the model, numbered for citation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kbtui.agent.events import Citation
from kbtui.documents.documents import place_at
from kbtui.knowledge.format.document import read_body
from kbtui.text import clean_line

_CITED = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\](?!\()")
_WIKI = re.compile(r"\[\[(?:[^\]|\n]*\|)?([^\]\n]*)\]\]")
_MIN_QUOTE = 16
_NOT_QUOTED = ("#", "title:", "summary:", "description:", "aliases:")
_MARKUP = re.compile(r"^[\s>#*+-]+|[*_`\"“”]+")


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines that a tool showed; `text` is their content.

    `places` are the pages, slides or sheets of a document, each with its first line.
    """

    n: int
    path: str
    first: int
    last: int
    text: str
    title: str = ""
    places: tuple[tuple[int, str], ...] = ()


class Sources:
    """The numbered sources of one turn; `added` has the path of every `add`, in order."""

    def __init__(self) -> None:
        self._sources: list[SourceLines] = []
        self.added: list[str] = []

    @property
    def shown(self) -> tuple[SourceLines, ...]:
        """All sources in order."""
        return tuple(self._sources)

    def add(
        self,
        path: str,
        first: int,
        text: str,
        title: str = "",
        places: tuple[tuple[int, str], ...] = (),
    ) -> SourceLines:
        """Number lines of a file; known lines keep their number."""
        self.added.append(path)
        last = first + len(text_lines(text)) - 1
        for known in self._sources:
            if (known.path, known.first, known.last, known.text) == (path, first, last, text):
                return known
        source = SourceLines(len(self._sources) + 1, path, first, last, text, title, places)
        self._sources.append(source)
        return source

    def cited_in(self, answer: str) -> tuple[Citation, ...]:
        """Return the sources an answer cites as ``[n]``, narrowed to the lines it quotes."""
        code = read_body(answer).code
        numbers = {
            int(number)
            for group in _CITED.finditer(_WIKI.sub(_blank, answer))
            if group.start() not in code
            for number in re.split(r"\s*,\s*", group[1])
        }
        return tuple(_citation(source, answer) for source in self._sources if source.n in numbers)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _citation(source: SourceLines, answer: str) -> Citation:
    quoted = list(_quoted_lines(source, answer))
    first, last = (quoted[0], quoted[-1]) if quoted else (source.first, source.last)
    place = place_at(source.places, first)
    return Citation(source.n, source.path, first, last, source.title, place)


def _quoted_lines(source: SourceLines, answer: str) -> Iterator[int]:
    """Yield the lines the answer quotes verbatim; headings and frontmatter don't count."""
    answer_text = _without_markup(answer)
    for number, line in enumerate(text_lines(source.text), source.first):
        plain = _without_markup(line)
        if len(plain) >= _MIN_QUOTE and plain in answer_text and not line.startswith(_NOT_QUOTED):
            yield number


def _without_markup(text: str) -> str:
    lines = (_MARKUP.sub("", _WIKI.sub(r"\1", line)) for line in text.splitlines())
    return clean_line(" ".join(lines))


def text_lines(text: str) -> list[str]:
    """Return the lines of a text as editors count them; at least one."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def heading(source: SourceLines, note: str = "") -> str:
    """Return the line above quoted text: ``[1] knowledge/people/alice.md (lines 3-7)``."""
    extra = f", {note}" if note else ""
    place = place_at(source.places, source.first)
    lines = f"{f'{place}, ' if place else ''}lines {source.first}-{source.last}"
    return f"[{source.n}] {clean_line(source.path)} ({lines}{extra})"


def quoted(text: str) -> str:
    """Wrap text from a file in delimiters that it can't forge.

    The delimiters contain a hash of the text, which can't contain its own hash.
    """
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"<data {mark}>\n{text}\n</data {mark}>"
