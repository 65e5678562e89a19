"""The hits of a search as rows: by note, what matched without its markup, weak ones folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from textual.content import Content

from kbtui.presentation.notes import INTO, Named, Names, day_of_note
from kbtui.search.query.parser import SEPARATOR
from kbtui.search.results import Hit, without_weak
from kbtui.sessions.imported import speaker
from kbtui.text import clean, clean_line, counted
from kbtui.tui.markdown.plain import kept, without_markup
from kbtui.tui.widgets.kinds import signed
from kbtui.tui.widgets.row_list import RowList, at_both_ends
from kbtui.workspace.layout import CATEGORIES, ENTRIES, short_name

_LINK = re.compile(r"\[\[([^\[\]|#]+/[^\[\]|#]+)")
_TITLE = re.compile(rf"# (.+?) {SEPARATOR} (?=.)")


def by_note(hits: Iterable[Hit]) -> list[Hit]:
    """Hits with those of one note together, notes in the order of their best hit."""
    notes: dict[str, list[Hit]] = {}
    for hit in hits:
        notes.setdefault(_note(hit), []).append(hit)
    return [hit for group in notes.values() for hit in group]


class HitList(RowList[Hit | tuple[Hit, ...]]):
    """Hits of four lines each: the note and the section, what stands there, a blank line."""

    ROW_HEIGHT = 4
    empty = "Nothing found."

    def __init__(self, *, id: str | None = None) -> None:
        self.items: tuple[Hit | tuple[Hit, ...], ...] = ()  # the last one may be all weak ones
        self._names = Names()
        super().__init__(id=id)

    def show_hits(self, hits: Sequence[Hit], names: Names) -> None:
        """Show hits; the cursor stays with its hit if the person moved it."""
        kept = self.hit if self.cursor else None
        strong, weak = without_weak(hits)
        self._names = names
        found = by_note(strong)
        places = (
            index
            for index, hit in enumerate(found)
            if kept is not None and (hit.path, hit.lines) == (kept.path, kept.lines)
        )
        self.show((*found, *([tuple(by_note(weak))] if weak else ())), next(places, 0))

    def unfold(self) -> bool:
        """Show the weak hits as well where the cursor is on their line; True if it was."""
        weak = self.item
        if not isinstance(weak, tuple):
            return False
        self.show((*self.items[:-1], *weak))
        return True

    @property
    def hit(self) -> Hit | None:
        """The hit under the cursor."""
        return self.item if isinstance(self.item, Hit) else None

    def named(self, hit: Hit) -> Named:
        """What a hit is in."""
        if hit.session is not None and hit.path != log_of(hit):
            return self._names[log_of(hit)]  # it was condensed: the title is the archive's
        if hit.session is not None:
            return Named(hit.path, clean_line(hit.title or hit.heading))
        return self._names[hit.path]

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one hit, or the line that stands for the weak ones."""
        hit, above = self.items[index], self.items[index - 1] if index else None
        if isinstance(hit, tuple):
            more = f" {counted(len(hit), 'weaker hit')}, by meaning alone · Enter shows them"
            return [Content.styled(more, ".rows--muted").truncate(width, ellipsis=True)]
        head = self._head(hit, same_note=isinstance(above, Hit) and _note(above) == _note(hit))
        right = Content.styled(place_of(hit), ".rows--muted")
        lines = snippet_of(hit, self._names).wrap(max(10, width - 4))
        if len(lines) > 2:
            lines[1] = (lines[1].rstrip() + " …").truncate(max(10, width - 4), ellipsis=True)
        below = (Content("   ") + line for line in lines[:2])
        return [at_both_ends(head, right, width), *below]

    def _head(self, hit: Hit, *, same_note: bool) -> Content:
        """The note, once for all its hits, and the section."""
        named, section = self.named(hit), _section(hit)
        section = "" if section in {named.title, str(day_of_note(hit.path))} else section
        also = f"  also in {counted(len(hit.also), 'place')}" if hit.also else ""
        if same_note:
            return Content.styled(f"   {section or 'further down'}{also}", ".rows--muted")
        into = f"{INTO}{section}" if section else ""
        return Content.assemble(" ", signed(named, ".rows--strong"), (into + also, ".rows--muted"))


def _note(hit: Hit) -> str:
    return hit.session or hit.path


def _section(hit: Hit) -> str:
    """The heading that a hit is below; of a conversation who said it, and when."""
    heading = clean_line(hit.heading)
    if hit.session is not None:
        who = speaker(hit.speaker or "", hit.session)
        heading = f"{who}, {heading.partition(', ')[2]}".removesuffix(", ")
    return without_markup(heading.rpartition(" > ")[2])


def place_of(hit: Hit) -> str:
    """Where a hit is beside its title: its folder, where its sign doesn't say so, and line."""
    if hit.session is not None and hit.messages is not None:
        return f"conversation · message {hit.messages[0]}"
    folder = clean_line(short_name(hit.path).rpartition("/")[0])
    return f"line {hit.line}" if folder in {"", *CATEGORIES} else f"{folder} · line {hit.line}"


def log_of(hit: Hit) -> str:
    """The path of the conversation that a hit is from."""
    return f"sessions/{hit.session}.jsonl"


def paths_in(hits: Iterable[Hit]) -> Iterator[str]:
    """The files that hits are in, and those that links in what is shown of them name by path."""
    for hit in hits:
        yield hit.path
        if hit.session is not None and hit.path != log_of(hit):
            yield log_of(hit)
        yield from (_linked(link) for link in _LINK.findall(hit.snippet))


def _linked(path: str) -> str:
    return f"{ENTRIES}{path}.md"


def snippet_of(hit: Hit, names: Names | None = None) -> Content:
    """The snippet in one line, without its markup, with its matches marked.

    The title that it begins with is left out: the row names the note already. A link by a path is
    said as the title that is at its end, of which `names` knows.
    """
    title = _TITLE.match(hit.snippet)
    repeats = title is not None and clean_line(title[1]) == hit.title
    start = title.end() if title is not None and repeats else 0
    return Content.assemble(*_marked(hit, start, names or Names()))


def _marked(hit: Hit, start: int, names: Names) -> Iterator[tuple[str, str]]:
    """The pieces of the snippet that stay, each with its style."""
    snippet, matches = hit.snippet, sorted(hit.matches)
    for first, last in kept(snippet[start:]):
        at, end = start + first, start + last
        path, _, section = snippet[at:end].partition("#")
        if snippet[:at].endswith("[[") and "/" in path:
            found = any(at <= match[0] < end for match in matches)
            said = names[_linked(path)].title + (f"{INTO}{section}" if section else "")
            yield _flat(said), ".rows--match" if found else ""
            continue
        for match_start, match_end in matches:
            if match_start >= at and match_end <= end:
                yield _flat(snippet[at:match_start]), ""
                yield _flat(snippet[match_start:match_end]), ".rows--match"
                at = match_end
        yield _flat(snippet[at:end]), ""


def _flat(text: str) -> str:
    return clean(text).replace("\n", " ").replace("\t", " ")
