"""The hits of a search: where, and the words around."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from kbtui.text import clean, clean_line, slugify
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.search.results import Hit


class HitList(RowList):
    """Hits of three lines each: title and place, then the snippet."""

    ROW_HEIGHT: ClassVar[int] = 3

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        self.hits: tuple[Hit, ...] = ()
        self.nothing = "Type to search in the text of all entries."
        super().__init__(id=id)

    def show_hits(self, hits: Sequence[Hit]) -> None:
        """Show hits; the cursor stays with its hit if the person moved it."""
        kept = self.hit if self.cursor else None
        self.hits = tuple(hits)
        places = (
            index
            for index, hit in enumerate(self.hits)
            if kept is not None and (hit.path, hit.lines) == (kept.path, kept.lines)
        )
        self.rows_changed(next(places, 0))

    @property
    def hit(self) -> Hit | None:
        """The hit under the cursor."""
        return self.hits[self.cursor] if self.cursor < len(self.hits) else None

    @property
    def row_count(self) -> int:
        """How many hits there are."""
        return len(self.hits)

    def empty_text(self) -> Content:
        """Why there is nothing."""
        return Content.styled(f" {self.nothing}", ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one hit."""
        hit = self.hits[index]
        head = Content.assemble(
            (f" {clean_line(hit.title)}", ".rows--strong"),
            (f"  {clean_line(hit.heading)}" if hit.heading else "", ".rows--muted"),
        )
        right = Content.styled(short_place_of(hit), ".rows--accent").truncate(
            width // 2, ellipsis=True
        )
        head = head.truncate(max(4, width - right.cell_length - 3), ellipsis=True)
        gap = " " * (width - head.cell_length - right.cell_length - 1)
        snippet = snippet_of(hit)
        lines = snippet.wrap(max(10, width - 4))[:2]
        indented = [Content("   ") + line for line in lines]
        return [head + Content(gap) + right, *indented]


def place_of(hit: Hit) -> str:
    """Where a hit is, as it is cited: path and line, or conversation and messages."""
    if hit.session is not None and hit.messages is not None:
        return f"{clean_line(hit.session)} {hit.messages[0]}-{hit.messages[1]}"
    name = clean_line(hit.path.removeprefix("knowledge/").removesuffix(".md"))
    return f"{name}:{hit.line}"


def short_place_of(hit: Hit) -> str:
    """Like `place_of`, without the name of the file where the title says the same."""
    place = place_of(hit)
    folder, _, name = place.rpartition("/")
    if folder and slugify(name.rpartition(":")[0]) == slugify(hit.title):
        return f"{folder}:{hit.line}"
    return place


def snippet_of(hit: Hit) -> Content:
    """The snippet in one line with its matches marked."""
    parts: list[str | tuple[str, str]] = []
    at = 0
    for start, end in sorted(hit.matches):
        if start >= at:
            parts += [_flat(hit.snippet[at:start]), (_flat(hit.snippet[start:end]), ".rows--match")]
            at = end
    parts.append(_flat(hit.snippet[at:]))
    return Content.assemble(*parts)


def _flat(text: str) -> str:
    return clean(text).replace("\n", " ").replace("\t", " ")
