"""What is offered while somebody writes a note: names of notes, headings, tags and properties.

`wanted_at` says what the text before the cursor asks for, `Vocabulary` knows what there is, and
`Completer` brings both together below the text.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from textual.widget import Widget

from kbtui.errors import KbtuiError
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import headings_of
from kbtui.knowledge.library.library import EntryInfo
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import title_of
from kbtui.text import clean_line, fold
from kbtui.tui.notes.fuzzy import FuzzyIndex
from kbtui.tui.notes.note_area import NoteArea
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.widgets.popup import Popup
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.layout import short_name

Kind = Literal["note", "at", "heading", "tag", "property", "value"]
_MOST_OFFERED = 30
_MOST_ROWS = 8
_LONGEST_VALUE = 80
_HEAD_BYTES = 4_096
_LINK = re.compile(r"\[\[([^\[\]\n|]*)$")
_AT = re.compile(r"(?:^|(?<=[\s(]))@([^\s@\[\]]*)$")
_TAG = re.compile(r"(?:^|(?<=\s))#((?=[^\d\W]|\d+[\w/-]*[^\d\W])[\w/-]+)$")
_NAME = re.compile(r"^([^\W\d][\w -]*)$")
_VALUE = re.compile(r"^([^\W\d][\w -]*):[ \t]+(?:\[|.*,[ \t]*)?[\"']?([^\"'\[\],:]*)$")
_ITEM = re.compile(r"^[ \t]*-[ \t]+[\"']?([^\"'\[\],:]*)$")
_KEY = re.compile(r"^([^\W\d][\w -]*):")
_NOT_A_NAME = re.compile(r"[\[\]|#^\n]")


class CompletionRequest(NamedTuple):
    """What the text before the cursor asks for.

    `query` is what is typed of it, and what is chosen goes in from column `start` on: of ``@`` the
    whole link. `of` is the note whose headings are meant, or the property whose values are.
    """

    kind: Kind
    query: str
    start: int
    of: str = ""


def wanted_at(lines: Sequence[str], row: int, column: int, area: str) -> CompletionRequest | None:
    """What can be completed at a place; `area` says whether it is frontmatter, code or text."""
    before = lines[row][:column]
    if area == "code":
        return None
    if link := _LINK.search(before):
        note, sign, heading = link[1].partition("#")
        if sign:
            return None if heading[:1] == "^" else _wanted("heading", heading, column, note.strip())
        return _wanted("note", link[1], column)
    if area == "front":
        return _in_frontmatter(lines, row, before) if row else None
    if named := _AT.search(before):
        return CompletionRequest("at", named[1], named.start(1) - 1)
    return _wanted("tag", tag[1], column) if (tag := _TAG.search(before)) else None


def _in_frontmatter(lines: Sequence[str], row: int, before: str) -> CompletionRequest | None:
    column = len(before)
    if name := _NAME.match(before):
        return _wanted("property", name[1], column)
    if value := _VALUE.match(before):
        return _wanted("value", value[2], column, value[1])
    if item := _ITEM.match(before):
        above = (_KEY.match(lines[at]) for at in range(row - 1, max(0, row - 50), -1))
        key = next((found[1] for found in above if found), "")
        return _wanted("value", item[1], column, key) if key else None
    return None


def _wanted(kind: Kind, query: str, column: int, of: str = "") -> CompletionRequest:
    return CompletionRequest(kind, query, column - len(query), of)


class Vocabulary:
    """What the notes of a knowledge base are called and made of; asked in threads."""

    def __init__(self, kb: KnowledgeBase, path: str) -> None:
        self._kb = kb
        self._path = path
        self._names: FuzzyIndex | None = None
        self._slugs: Counter[str] = Counter()
        self._values: dict[str, Counter[str]] | None = None

    def offers(self, wanted: CompletionRequest, text: str) -> list[Choice[str]]:
        """What fits, best first; `text` is the note that is being written."""
        if wanted.kind in {"note", "at"}:
            return self._notes(wanted.query, "[[" if wanted.kind == "at" else "")
        if wanted.kind == "heading":
            return self._headings(wanted, text)
        if wanted.of == "type":
            types = fitting(wanted.query, self._kb.library.types())
            return [Choice(name, "", name) for name in types]
        before, counts, behind = self._words(wanted)
        found = fitting(wanted.query, counts)
        return [Choice(f"{before}{w}", f"{counts[w]:,}", f"{w}{behind}") for w in found]

    def _words(self, wanted: CompletionRequest) -> tuple[str, Mapping[str, int], str]:
        """Words with how often each is there: what is shown before one and written behind it."""
        if wanted.kind == "tag" or wanted.of in {"tags", "tag"}:
            return "#", self._kb.library.tags(), ""
        if wanted.kind == "property":
            return "", {name: of.total() for name, of in self._properties().items()}, ": "
        return "", self._properties().get(wanted.of, Counter()), ""

    def _notes(self, query: str, before: str) -> list[Choice[str]]:
        if self._names is None:
            infos = self._kb.library.infos()
            self._slugs = Counter(fold(info.slug) for info in infos)
            self._names = FuzzyIndex(infos)
        found = (match.entry for match in self._names.search(query, _MOST_OFFERED))
        offered = ((info, _alias_meant(query, info)) for info in found)
        return [
            Choice(
                alias or title_of(info),
                short_name(info.path),
                f"{before}{self._link(info, alias)}",
            )
            for info, alias in offered
        ]

    def _link(self, info: EntryInfo, alias: str) -> str:
        """How a link names a note: by its file, and by alias or title where that is another."""
        single = self._slugs[fold(info.slug)] == 1
        name = info.slug if single else short_name(info.path)
        title = alias or clean_line(info.title)
        if not title or fold(title) == fold(info.slug) or _NOT_A_NAME.search(title):
            return f"{name}]]"
        shown = (title, name) if self._kb.library.dendron else (name, title)
        return f"{shown[0]}|{shown[1]}]]"

    def _headings(self, wanted: CompletionRequest, text: str) -> list[Choice[str]]:
        if wanted.of:
            try:
                text = self._kb.library.find(wanted.of).text
            except KbtuiError:
                return []
        headings = {each.text: each for each in reversed(headings_of(text))}
        found = fitting(wanted.query, dict(reversed(headings.items())))
        return [
            Choice(name, "#" * headings[name].level, f"{_NOT_A_NAME.sub(' ', name)}]]")
            for name in found
        ]

    def _properties(self) -> dict[str, Counter[str]]:
        """The properties of all notes with their values and how often each is there.

        Only the head of each file is looked at, line by line: what is odd there is left out.
        """
        if self._values is None:
            found: dict[str, Counter[str]] = defaultdict(Counter)
            for info in self._kb.library.infos():
                try:
                    head = self._kb.library.read(info.path)[:_HEAD_BYTES]
                except KbtuiError:
                    continue
                for name, value in _pairs(head):
                    if value or name not in found:
                        found[name][value] += 1
            self._values = found
        return self._values


def _alias_meant(query: str, info: EntryInfo) -> str:
    """The alias that is being typed, where neither title nor name is."""
    wanted = fold(query).strip()
    if not wanted or any(wanted in fold(name) for name in (info.title, info.slug)):
        return ""
    return next((clean_line(each) for each in info.aliases if wanted in fold(each)), "")


def _pairs(data: bytes) -> Iterable[tuple[str, str]]:
    """The properties in the head of a file, one pair for each value."""
    key = ""
    for line in frontmatter.split(data).head.decode("utf-8", "replace").splitlines():
        if match := _KEY.match(line):
            key = match[1]
            said = line[match.end() :].strip()
            values = said[1:-1].split(",") if said.startswith("[") and said[1:2] != "[" else [said]
        elif key and line.lstrip().startswith("- "):
            values = [line.lstrip()[2:]]
        else:
            continue
        for value in values:
            yield key, clean_line(value.strip().strip("\"'"))[:_LONGEST_VALUE]


def fitting(query: str, words: Iterable[str]) -> list[str]:
    """The words that begin so, then those that have it further on; in their order."""
    wanted = fold(query.strip())
    folded = [(word, fold(word)) for word in islice(words, 20_000) if word]
    first = [word for word, said in folded if said.startswith(wanted)]
    rest = [word for word, said in folded if wanted in said and not said.startswith(wanted)]
    return [*first, *rest][:_MOST_OFFERED]


class Completer:
    """Offers what completes the word at the cursor of an editor, in a list below the text."""

    def __init__(self, node: Widget, area: NoteArea, popup: Popup, words: Vocabulary) -> None:
        self._node = node
        self._area = area
        self._popup = popup
        self._words = words
        self._offered: CompletionRequest | None = None

    @property
    def _wanted(self) -> CompletionRequest | None:
        row, column = self._area.cursor_location
        if self._area.selection.start != self._area.selection.end:
            return None
        return wanted_at(self._area.document.lines, row, column, self._area.kind_of_line(row))

    def typed(self) -> None:
        """Offer what fits what was just typed."""
        wanted = self._wanted
        if wanted is None:
            self.close()
        else:
            run_latest(self._node, "complete", self._offer, wanted, self._area.text)

    async def _offer(self, wanted: CompletionRequest, text: str) -> None:
        choices = await asyncio.to_thread(self._words.offers, wanted, text)
        if self._wanted != wanted:
            return
        # What is typed in full already wants Enter, not a list in its way.
        complete = len(choices) == 1 and choices[0].value == wanted.query
        self._offered = wanted
        # Half of the room stays for the text, and the line that is written in it.
        self._popup.rows = max(1, min(_MOST_ROWS, self._node.size.height // 2 - 2))
        self._popup.show_choices(wanted.kind, () if complete else choices)
        self._area.call_after_refresh(self._area.scroll_cursor_visible)

    def moved(self) -> None:
        """Close the list where the cursor has left the word."""
        wanted = self._wanted
        if self._offered is not None and (wanted is None or wanted[2:] != self._offered[2:]):
            self.close()

    def close(self) -> bool:
        """Take the list away; False where there is none."""
        shown = self._popup.display
        self._offered = None
        self._popup.hide()
        return shown

    def key(self, key: str) -> bool:
        """Handle a key while the list is open; False where it means something else."""
        if not self._popup.display:
            return False
        if key in {"up", "down"}:
            self._popup.move(1 if key == "down" else -1)
        elif key in {"enter", "tab"}:
            return self.accept()
        elif key == "escape":
            self.close()
        else:
            return False
        return True

    def accept(self) -> bool:
        """Write what is marked; False where the text is ahead of the list."""
        choice, wanted = self._popup.chosen, self._offered
        self.close()
        if choice is None or wanted is None or self._wanted != wanted:
            return False
        row, column = self._area.cursor_location
        rest = self._area.document.get_line(row)[column:]
        closed = choice.value.endswith("]]") and rest.startswith("]]")
        end = (row, column + 2 if closed else column)
        self._area.replace(choice.value, (row, wanted.start), end, maintain_selection_offset=False)
        return True
