"""Search conditions: the chips before the input, and completions while the user types."""

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
"""The conditions that are completed; a search understands more."""
_DAYS = ("today", "yesterday", "week", "month", "year")
_MAX_OFFERS = 8
_MIN_LETTERS = 2
_GAP = "   "


class QueryInput(Input):
    """An input that reports Backspace at its start, which removes the chip before it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("backspace", "delete_left", "Delete", show=False),
        Binding("enter", "submit", "Open"),
    ]

    class AtStart(Message):
        """Posted when Backspace is pressed at the start of the text."""

    def action_delete_left(self) -> None:
        if self.cursor_position == 0 and self.selection.is_empty:
            self.post_message(self.AtStart())
        else:
            super().action_delete_left()


def condition_values(kb: KnowledgeBase) -> Mapping[str, Sequence[str]]:
    """Return the values of each condition, most frequent first; call in a thread."""
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
    """Return completions of the last word: condition names, or values after a colon."""
    word = typed.rpartition(" ")[2]
    sign = "-" if word.startswith("-") else ""
    name, colon, prefix = word.removeprefix("-").partition(":")
    if not colon:
        is_long_enough = not typed or len(name) >= _MIN_LETTERS
        names = [f"{sign}{each}:" for each in NAMES if each.startswith(name.lower())]
        return names if is_long_enough else []
    needle = fold(prefix.strip('"'))
    matches = (each for each in values.get(name.lower(), ()) if fold(each).startswith(needle))
    offers = [f"{sign}{name}:{_quoted(each)}" for each in islice(matches, _MAX_OFFERS)]
    return offers if offers != [word] else []


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


def draw_chips(chips: Iterable[str]) -> Content:
    """Return the chips in a row; a click removes one."""
    styled = [
        Content.styled(f" {_chip_text(chip)} ", "$text-secondary on $secondary-muted").stylize(
            Style.from_meta({"@click": f"screen.drop_chip({number})"})
        )
        for number, chip in enumerate(chips)
    ]
    return Content(" ").join(styled) + Content(" " if styled else "")


def _chip_text(chip: str) -> str:
    name, colon, value = clean_line(chip).partition(":")
    if not colon:
        return name
    is_negated = name.startswith("-")
    return f"{'not ' if is_negated else ''}{name.removeprefix('-')} {value.strip(chr(34))}"


def draw_offers(offers: Sequence[str], before: str = "") -> Content:
    """Return the completions in a row; Tab accepts the first, a click any."""
    return Content.assemble((before, "$text-muted"), *_offers(offers))


def _offers(offers: Sequence[str]) -> Iterator[Content]:
    for number, offer in enumerate(offers):
        style = "$text-accent" if number == 0 else "$text-muted"
        yield Content(_GAP if number else "")
        yield Content.styled(clean_line(offer), style).stylize(
            Style.from_meta({"@click": f"screen.take_offer({number})"})
        )
    yield Content.styled(f"{_GAP}Tab" if offers else "", "$text-muted")
