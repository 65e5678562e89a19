"""Search hits as rows: grouped by note, markup removed, weak hits folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from textual.content import Content

from kbtui.presentation.notes import INTO, Named, Names, day_of_note
from kbtui.presentation.times import format_day
from kbtui.search.query.parser import SEPARATOR
from kbtui.search.results import Hit, answers_by_meaning, without_weak
from kbtui.sessions.imported import speaker
from kbtui.text import clean_line, counted
from kbtui.tui.markdown.plain import as_read, excerpt
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.row_list import RowList, justified_row
from kbtui.workspace.layout import CATEGORIES, entry_path, short_name

_PATH_LINK = re.compile(r"\[\[([^\[\]|#]+/[^\[\]|#]+)")
_TITLE_PREFIX = re.compile(rf"# (.+?) {SEPARATOR} (?=.)")


def by_note(hits: Iterable[Hit]) -> list[Hit]:
    """Group hits by note, notes in the order of their best hit."""
    notes: dict[str, list[Hit]] = {}
    for hit in hits:
        notes.setdefault(_note(hit), []).append(hit)
    return [hit for group in notes.values() for hit in group]


class HitList(RowList[Hit | tuple[Hit, ...]]):
    """A list of hits, four lines each: note and section, two lines of snippet, a blank line."""

    ROW_HEIGHT = 4
    empty = "Nothing found."

    def __init__(self, *, id: str | None = None) -> None:
        self.items: tuple[Hit | tuple[Hit, ...], ...] = ()  # the last may be all weak hits, folded
        self._names = Names()
        super().__init__(id=id)

    def show_hits(self, hits: Sequence[Hit], names: Names) -> None:
        """Show hits, keeping the current hit if the user moved the cursor."""
        kept = self.hit if self.cursor else None
        strong, weak = without_weak(hits)
        self._names = names
        if answers_by_meaning(strong, weak):
            strong, weak = weak, []
        grouped = by_note(strong)
        places = (
            index
            for index, hit in enumerate(grouped)
            if kept is not None and (hit.path, hit.lines) == (kept.path, kept.lines)
        )
        self.show((*grouped, *([tuple(by_note(weak))] if weak else ())), next(places, 0))

    def unfold(self) -> bool:
        """Unfold the weak hits if the cursor is on their row; return whether it was."""
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
        """Return the title and kind of a hit's note or conversation."""
        if hit.session is not None and hit.path != log_of(hit):
            return self._names[log_of(hit)]  # condensed: the hit's own title is the archive's
        if hit.session is not None:
            return Named(hit.path, clean_line(hit.title or hit.heading))
        return self._names[hit.path]

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one hit, or the row of the folded weak hits."""
        hit, above = self.items[index], self.items[index - 1] if index else None
        if isinstance(hit, tuple):
            label = f" {counted(len(hit), 'weaker hit')}, without a word of it · Enter shows them"
            return [Content.styled(label, ".rows--muted").truncate(width, ellipsis=True)]
        head = self._head(hit, same_note=isinstance(above, Hit) and _note(above) == _note(hit))
        right = Content.styled(place_of(hit), ".rows--muted")
        lines = snippet_of(hit, self._names).wrap(max(10, width - 4))
        if len(lines) > 2:
            lines[1] = (lines[1].rstrip() + " …").truncate(max(10, width - 4), ellipsis=True)
        below = [Content("   ") + line for line in lines[:2]]
        if hit.newer is not None:
            day = format_day(hit.newer.day)
            newer = f"   newer, {day}: {clean_line(hit.newer.text)}"
            below.append(Content.styled(newer, "$text-warning").truncate(width, ellipsis=True))
        return [justified_row(head, right, width), *below]

    def _head(self, hit: Hit, *, same_note: bool) -> Content:
        """Return the note, omitted after its first hit, and the section."""
        named, section = self.named(hit), _section(hit)
        section = "" if section in {named.title, str(day_of_note(hit.path))} else section
        also = f"  also in {counted(len(hit.also), 'place')}" if hit.also else ""
        also += f"  {hit.why_weak}" if hit.why_weak else ""
        if same_note:
            return Content.styled(f"   {section or '…'}{also}", ".rows--muted")
        into = f"{INTO}{section}" if section else ""
        return Content.assemble(
            " ", with_sign(named, ".rows--strong"), (into + also, ".rows--muted")
        )


def _note(hit: Hit) -> str:
    return hit.session or hit.path


def _section(hit: Hit) -> str:
    """Return the heading above a hit, or the speaker and time in a conversation."""
    heading = clean_line(hit.heading)
    if hit.session is not None:
        who = speaker(hit.speaker or "", hit.session)
        heading = f"{who}, {heading.partition(', ')[2]}".removesuffix(", ")
    return as_read(heading.rpartition(" > ")[2])


def place_of(hit: Hit) -> str:
    """Return a hit's folder unless its sign implies it; of a conversation, that it is one."""
    if hit.session is not None and hit.messages is not None:
        return "conversation"
    folder = clean_line(short_name(hit.path).rpartition("/")[0])
    return "" if folder in CATEGORIES else folder


def log_of(hit: Hit) -> str:
    """Return the log path of a hit's conversation."""
    return f"sessions/{hit.session}.jsonl"


def paths_in(hits: Iterable[Hit]) -> Iterator[str]:
    """Yield the paths of the hits' files, and of the links in their snippets."""
    for hit in hits:
        yield hit.path
        if hit.session is not None and hit.path != log_of(hit):
            yield log_of(hit)
        yield from map(entry_path, _PATH_LINK.findall(hit.snippet))


def snippet_of(hit: Hit, names: Names | None = None) -> Content:
    """Return a hit's snippet as one line, without markup and with its matches highlighted.

    A leading title is left out, as the row shows it. A link by path is shown as its target's title,
    looked up in `names`.
    """
    title = _TITLE_PREFIX.match(hit.snippet)
    repeats = title is not None and clean_line(title[1]) == hit.title
    start = title.end() if title is not None and repeats else 0
    matches = [(a - start, b - start) for a, b in hit.matches if a >= start]
    return excerpt(hit.snippet[start:], matches, names, style=".rows--match")
