"""Completion in the editor: names of notes, headings, tags and properties.

`request_at` parses what the text before the cursor asks for, `Vocabulary` provides the candidates,
and `Completer` shows them in a popup.
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
from kbtui.knowledge.entries.entry import is_entry
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import headings_of
from kbtui.knowledge.library.library import EntryInfo
from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import title_of
from kbtui.text import clean_line, fold
from kbtui.tui.notes.fuzzy import names_of
from kbtui.tui.notes.note_area import NoteArea
from kbtui.tui.terminal.background import run_latest
from kbtui.tui.widgets.popup import Popup
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.layout import short_name

Kind = Literal["note", "at", "heading", "tag", "property", "value"]
_MAX_OFFERED = 30
_MAX_ROWS = 8
_MAX_VALUE_CHARACTERS = 80
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
    """A request for completion.

    `query` is the text typed so far; the choice replaces it from column `start` on, including a
    leading ``@``. `of` is the note whose headings are requested, or the property whose values are.
    """

    kind: Kind
    query: str
    start: int
    of: str = ""


def request_at(lines: Sequence[str], row: int, column: int, area: str) -> CompletionRequest | None:
    """Return the request at a position or None; `area` is ``front``, ``code`` or ``text``."""
    before = lines[row][:column]
    if area == "code":
        return None
    if link := _LINK.search(before):
        note, sign, heading = link[1].partition("#")
        if sign:
            is_block = heading[:1] == "^"
            return None if is_block else _request("heading", heading, column, note.strip())
        return _request("note", link[1], column)
    if area == "front":
        return _in_frontmatter(lines, row, before) if row else None
    if named := _AT.search(before):
        return CompletionRequest("at", named[1], named.start(1) - 1)
    return _request("tag", tag[1], column) if (tag := _TAG.search(before)) else None


def _in_frontmatter(lines: Sequence[str], row: int, before: str) -> CompletionRequest | None:
    column = len(before)
    if name := _NAME.match(before):
        return _request("property", name[1], column)
    if value := _VALUE.match(before):
        return _request("value", value[2], column, value[1])
    if item := _ITEM.match(before):
        above = (_KEY.match(lines[at]) for at in range(row - 1, max(0, row - 50), -1))
        key = next((found[1] for found in above if found), "")
        return _request("value", item[1], column, key) if key else None
    return None


def _request(kind: Kind, query: str, column: int, of: str = "") -> CompletionRequest:
    return CompletionRequest(kind, query, column - len(query), of)


class Vocabulary:
    """The completion candidates of a knowledge base; call it in threads."""

    def __init__(self, kb: KnowledgeBase, path: str) -> None:
        self._kb = kb
        self._path = path
        self._slugs: Counter[str] = Counter()
        self._values: dict[str, Counter[str]] | None = None

    def offers(self, request: CompletionRequest, text: str) -> list[Choice[str]]:
        """Return matching candidates, best first; `text` is the note being edited."""
        if request.kind in {"note", "at"}:
            return self._notes(request.query, "[[" if request.kind == "at" else "")
        if request.kind == "heading":
            return self._headings(request, text)
        if request.of == "type":
            types = fitting(request.query, self._kb.library.types())
            return [Choice(name, "", name) for name in types]
        before, counts, suffix = self._words(request)
        found = fitting(request.query, counts)
        return [Choice(f"{before}{w}", f"{counts[w]:,}", f"{w}{suffix}") for w in found]

    def _words(self, request: CompletionRequest) -> tuple[str, Mapping[str, int], str]:
        """Return the label prefix, words by frequency, and inserted suffix of a request."""
        if request.kind == "tag" or request.of in {"tags", "tag"}:
            return "#", self._kb.library.tags(), ""
        if request.kind == "property":
            return "", {name: of.total() for name, of in self._properties().items()}, ": "
        return "", self._properties().get(request.of, Counter()), ""

    def _notes(self, query: str, before: str) -> list[Choice[str]]:
        if not self._slugs:
            self._slugs = Counter(fold(info.slug) for info in self._kb.library.infos())
        matches = (match.entry for match in names_of(self._kb).search(query))
        found = islice((info for info in matches if is_entry(info.path)), _MAX_OFFERED)
        offered = ((info, _matching_alias(query, info)) for info in found)
        return [
            Choice(
                alias or title_of(info),
                short_name(info.path),
                f"{before}{self._link(info, alias)}",
            )
            for info, alias in offered
        ]

    def _link(self, info: EntryInfo, alias: str) -> str:
        """Return the rest of a link to a note, with alias or title if that isn't the slug."""
        single = self._slugs[fold(info.slug)] == 1
        name = info.slug if single else short_name(info.path)
        title = alias or clean_line(info.title)
        if not title or fold(title) == fold(info.slug) or _NOT_A_NAME.search(title):
            return f"{name}]]"
        shown = (title, name) if self._kb.library.dendron else (name, title)
        return f"{shown[0]}|{shown[1]}]]"

    def _headings(self, request: CompletionRequest, text: str) -> list[Choice[str]]:
        if request.of:
            try:
                text = self._kb.library.find(request.of).text
            except KbtuiError:
                return []
        headings = {each.text: each for each in reversed(headings_of(text))}
        found = fitting(request.query, dict(reversed(headings.items())))
        return [
            Choice(name, "#" * headings[name].level, f"{_NOT_A_NAME.sub(' ', name)}]]")
            for name in found
        ]

    def _properties(self) -> dict[str, Counter[str]]:
        """Return the properties of all notes with the frequency of each value.

        Parses the frontmatter of each file line by line, ignoring unusual syntax.
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


def _matching_alias(query: str, info: EntryInfo) -> str:
    """Return the alias that matches the query if title and slug don't, or an empty string."""
    folded = fold(query).strip()
    if not folded or any(folded in fold(name) for name in (info.title, info.slug)):
        return ""
    return next((clean_line(each) for each in info.aliases if folded in fold(each)), "")


def _pairs(data: bytes) -> Iterable[tuple[str, str]]:
    """Yield the properties in the frontmatter of a file, one pair for each value."""
    key = ""
    for line in frontmatter.split(data).head.decode("utf-8", "replace").splitlines():
        if match := _KEY.match(line):
            key = match[1]
            text = line[match.end() :].strip()
            values = text[1:-1].split(",") if text.startswith("[") and text[1:2] != "[" else [text]
        elif key and line.lstrip().startswith("- "):
            values = [line.lstrip()[2:]]
        else:
            continue
        for value in values:
            yield key, clean_line(value.strip().strip("\"'"))[:_MAX_VALUE_CHARACTERS]


def fitting(query: str, words: Iterable[str]) -> list[str]:
    """Return words that start with the query, then others that contain it, in their order."""
    prefix = fold(query.strip())
    folded = [(word, fold(word)) for word in islice(words, 20_000) if word]
    first = [word for word, key in folded if key.startswith(prefix)]
    rest = [word for word, key in folded if prefix in key and not key.startswith(prefix)]
    return [*first, *rest][:_MAX_OFFERED]


class Completer:
    """A popup of completions for the word at the cursor of an editor."""

    def __init__(self, node: Widget, area: NoteArea, popup: Popup, words: Vocabulary) -> None:
        self._node = node
        self._area = area
        self._popup = popup
        self._words = words
        self._shown_request: CompletionRequest | None = None

    @property
    def _request(self) -> CompletionRequest | None:
        row, column = self._area.cursor_location
        if self._area.selection.start != self._area.selection.end:
            return None
        return request_at(self._area.document.lines, row, column, self._area.kind_of_line(row))

    def typed(self) -> None:
        """Show completions for the text just typed."""
        request = self._request
        if request is None:
            self.close()
        else:
            run_latest(self._node, "complete", self._offer, request, self._area.text)

    async def _offer(self, request: CompletionRequest, text: str) -> None:
        choices = await asyncio.to_thread(self._words.offers, request, text)
        if self._request != request:
            return
        # A word typed in full needs no popup, which would take the Enter key.
        complete = len(choices) == 1 and choices[0].value == request.query
        self._shown_request = request
        # Leave half of the height to the text, including the line being edited.
        self._popup.rows = max(1, min(_MAX_ROWS, self._node.size.height // 2 - 2))
        self._popup.show_choices(request.kind, () if complete else choices)
        self._area.call_after_refresh(self._area.scroll_cursor_visible)

    def moved(self) -> None:
        """Close the popup if the cursor left the word."""
        request = self._request
        if self._shown_request is not None and (
            request is None or request[2:] != self._shown_request[2:]
        ):
            self.close()

    def close(self) -> bool:
        """Close the popup, and return whether it was open."""
        shown = self._popup.display
        self._shown_request = None
        self._popup.hide()
        return shown

    def key(self, key: str) -> bool:
        """Handle a key while the popup is open, and return whether it was handled."""
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
        """Insert the selected choice; return False if the popup is out of date."""
        choice, request = self._popup.chosen, self._shown_request
        self.close()
        if choice is None or request is None or self._request != request:
            return False
        row, column = self._area.cursor_location
        rest = self._area.document.get_line(row)[column:]
        closed = choice.value.endswith("]]") and rest.startswith("]]")
        end = (row, column + 2 if closed else column)
        self._area.replace(choice.value, (row, request.start), end, maintain_selection_offset=False)
        return True
