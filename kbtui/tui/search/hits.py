"""The hits of a search as rows: by note, what matched without its markup, weak ones folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from kbtui.presentation.notes import Named, Names
from kbtui.search.results import without_weak
from kbtui.text import clean, clean_line, counted
from kbtui.tui.markdown.plain import kept, without_markup
from kbtui.tui.widgets.kinds import signed
from kbtui.tui.widgets.row_list import RowList
from kbtui.workspace.layout import CATEGORIES, short_name

if TYPE_CHECKING:
    from kbtui.search.results import Hit

_INTO = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "


def by_note(hits: Iterable[Hit]) -> list[Hit]:
    """Hits with those of one note together, notes in the order of their best hit."""
    notes: dict[str, list[Hit]] = {}
    for hit in hits:
        notes.setdefault(hit.session or hit.path, []).append(hit)
    return [hit for group in notes.values() for hit in group]


class HitList(RowList):
    """Hits of three lines each: the note and the place in it, then what stands there."""

    ROW_HEIGHT: ClassVar[int] = 3

    def __init__(self, *, id: str | None = None) -> None:
        self.hits: tuple[Hit, ...] = ()
        self.weak: tuple[Hit, ...] = ()
        self.nothing = "Type to search in the text of all entries."
        self._names = Names()
        super().__init__(id=id)

    def show_hits(self, hits: Sequence[Hit], names: Names) -> None:
        """Show hits; the cursor stays with its hit if the person moved it."""
        kept = self.hit if self.cursor else None
        strong, weak = without_weak(hits)
        self._names = names
        self.hits, self.weak = tuple(by_note(strong)), tuple(by_note(weak))
        places = (
            index
            for index, hit in enumerate(self.hits)
            if kept is not None and (hit.path, hit.lines) == (kept.path, kept.lines)
        )
        self.rows_changed(next(places, 0))

    def unfold(self) -> bool:
        """Show the weak hits as well where the cursor is on their line; True if it was."""
        if not self.weak or self.cursor < len(self.hits):
            return False
        self.hits, self.weak = (*self.hits, *self.weak), ()
        self.rows_changed()
        return True

    @property
    def hit(self) -> Hit | None:
        """The hit under the cursor."""
        return self.hits[self.cursor] if self.cursor < len(self.hits) else None

    @property
    def row_count(self) -> int:
        """The hits, and the line that the weak ones are behind."""
        return len(self.hits) + bool(self.weak)

    def empty_text(self) -> Content:
        """Why there is nothing."""
        return Content.styled(f" {self.nothing}", ".rows--muted")

    def named(self, hit: Hit) -> Named:
        """What a hit is in."""
        if hit.session is not None:
            return Named(hit.path, clean_line(hit.heading or hit.title))
        return self._names[hit.path]

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one hit, or the line that stands for the weak ones."""
        if index >= len(self.hits):
            more = f" {counted(len(self.weak), 'weaker hit')}, by meaning alone · Enter shows them"
            return [Content.styled(more, ".rows--muted").truncate(width, ellipsis=True)]
        hit = self.hits[index]
        right = Content.styled(place_of(hit), ".rows--muted").truncate(width // 2, ellipsis=True)
        head = self._head(index).truncate(max(4, width - right.cell_length - 3), ellipsis=True)
        gap = " " * (width - head.cell_length - right.cell_length - 1)
        lines = snippet_of(hit).wrap(max(10, width - 4))[:2]
        return [head + Content(gap) + right, *(Content("   ") + line for line in lines)]

    def _head(self, index: int) -> Content:
        """The note, once for all its hits, and the section."""
        hit, named = self.hits[index], self.named(self.hits[index])
        before = self.hits[index - 1] if index else None
        heading = "" if hit.session is not None else clean_line(hit.heading)
        section = without_markup(heading.rpartition(" > ")[2])
        section = "" if section == named.title else section
        also = f"  also in {counted(len(hit.also), 'place')}" if hit.also else ""
        if before is not None and (before.session or before.path) == (hit.session or hit.path):
            return Content.styled(f"   {section or 'further down'}{also}", ".rows--muted")
        into = f"{_INTO}{section}" if section else ""
        return Content.assemble(" ", signed(named, ".rows--strong"), (into + also, ".rows--muted"))


def place_of(hit: Hit) -> str:
    """Where a hit is beside its title: its folder and line, or the message of a conversation."""
    if hit.session is not None and hit.messages is not None:
        return f"conversation · message {hit.messages[0]}"
    folder = clean_line(short_name(hit.path).rpartition("/")[0])
    shown = folder.capitalize() if folder in CATEGORIES else folder
    return f"{shown} · line {hit.line}" if shown else f"line {hit.line}"


def snippet_of(hit: Hit) -> Content:
    """The snippet in one line, without its markup, with its matches marked."""
    return Content.assemble(*_marked(hit))


def _marked(hit: Hit) -> Iterator[tuple[str, str]]:
    """The pieces of the snippet that stay, each with its style."""
    matches = sorted(hit.matches)
    for start, end in kept(hit.snippet):
        at = start
        for first, last in matches:
            if first >= at and last <= end:
                yield _flat(hit.snippet[at:first]), ""
                yield _flat(hit.snippet[first:last]), ".rows--match"
                at = last
        yield _flat(hit.snippet[at:end]), ""


def _flat(text: str) -> str:
    return clean(text).replace("\n", " ").replace("\t", " ")
