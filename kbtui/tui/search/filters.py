"""The conditions of a search: chips before what is typed, and what is offered while one types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Input

from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.notes import KINDS
from kbtui.text import clean_line, fold
from kbtui.workspace.layout import short_name

NAMES = ("type", "tag", "folder", "after", "before")
"""The conditions that are offered; a search understands more."""
_DAYS = ("today", "yesterday", "week", "month", "year")
_MOST_OFFERED = 8
_LEAST_LETTERS = 2
_GAP = "   "


class QueryInput(Input):
    """A line to type in; Backspace at its beginning is meant for the chip before it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("backspace", "delete_left", "Delete", show=False),
        Binding("enter", "submit", "Open"),
    ]

    class AtStart(Message):
        """Backspace was pressed where nothing stands before the cursor."""

    def action_delete_left(self) -> None:
        """Delete, or say that there is nothing."""
        if self.cursor_position == 0 and self.selection.is_empty:
            self.post_message(self.AtStart())
        else:
            super().action_delete_left()


def values_of(kb: KnowledgeBase) -> Mapping[str, Sequence[str]]:
    """What each condition may ask for, the most frequent first; called in a thread."""
    infos = kb.library.infos()
    types = Counter(info.type for info in infos if info.type)
    folders = Counter(short_name(info.path).rpartition("/")[0] for info in infos)
    return {
        "type": [name for name, _ in types.most_common()] or [*KINDS],
        "tag": [*kb.library.tags()],
        "folder": [name for name, _ in folders.most_common() if name],
        "after": _DAYS,
        "before": _DAYS,
    }


def offered(typed: str, values: Mapping[str, Sequence[str]]) -> list[str]:
    """What the last word may become: names of conditions where none is there yet, then values."""
    word = typed.rpartition(" ")[2]
    sign = "-" if word.startswith("-") else ""
    name, colon, begun = word.removeprefix("-").partition(":")
    if not colon:
        begins = not typed or len(name) >= _LEAST_LETTERS
        names = [f"{sign}{each}:" for each in NAMES if each.startswith(name.lower())]
        return names if begins else []
    wanted = fold(begun.strip('"'))
    fitting = (each for each in values.get(name.lower(), ()) if fold(each).startswith(wanted))
    found = [f"{sign}{name}:{_quoted(each)}" for each in islice(fitting, _MOST_OFFERED)]
    return found if found != [word] else []


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


def chips_drawn(chips: Iterable[str]) -> Content:
    """The chips beside each other; a click takes one away."""
    drawn = [
        Content.styled(f" {_said(chip)} ", "$text-secondary on $secondary-muted").stylize(
            Style.from_meta({"@click": f"screen.drop_chip({number})"})
        )
        for number, chip in enumerate(chips)
    ]
    return Content(" ").join(drawn) + Content(" " if drawn else "")


def _said(chip: str) -> str:
    name, colon, value = clean_line(chip).partition(":")
    if not colon:
        return name
    without = name.startswith("-")
    return f"{'not ' if without else ''}{name.removeprefix('-')} {value.strip(chr(34))}"


def offers_drawn(offers: Sequence[str], before: str = "") -> Content:
    """The offers beside each other; the first is what Tab takes, a click takes any."""
    return Content.assemble((before, "$text-muted"), *_offers(offers))


def _offers(offers: Sequence[str]) -> Iterator[Content]:
    for number, offer in enumerate(offers):
        style = "$text-accent" if number == 0 else "$text-muted"
        yield Content(_GAP if number else "")
        yield Content.styled(clean_line(offer), style).stylize(
            Style.from_meta({"@click": f"screen.take_offer({number})"})
        )
    yield Content.styled(f"{_GAP}Tab" if offers else "", "$text-muted")
