"""The newer line behind an older one, wherever a prompt has it.

A model takes what it is shown for what holds. So the line that holds now stands in brackets, with
the day on which it was said, directly behind the older one; of several only the newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from kbtui.memory.recall.remembered import said_label
from kbtui.offline.lines import lines_of
from kbtui.search.results import NewerLine
from kbtui.text import clean_line, fold
from kbtui.views.view import View

# What a list puts before a line: the name of an entry, in the catalogue.
_NAME = re.compile(r"[\w./-]+: (?=\S)")
_SAID = re.compile(r" \u00b7 said \d{1,2} \w+(?: \d{4})?$")


def with_newer(view: View, text: str, today: date, message: str = "") -> str:
    """Return a text with the newer line of each older one in brackets behind it.

    Args:
        view: The workspace, as the reader sees it; private entries aren't shown unasked.
        text: Any part of a prompt.
        today: The day, to say how long ago it was said.
        message: What the user says now, which is repeated nowhere.
    """
    found = [(told, end) for told, end in _lines(text)]
    newest = view.unasked.newer([told for told, _ in found])
    said = fold(message)
    for told, end in reversed(found):
        newer = newest.get(told)
        if (
            newer is not None
            and fold(newer.text) not in said
            and newer.text not in text[end:][:400]
        ):
            text = f"{text[:end]} {bracketed(newer, today)}{text[end:]}"
    return text


def bracketed(newer: NewerLine, today: date) -> str:
    """Return a newer line as it stands behind an older one."""
    return f"[newer, {said_label(newer.day, today)}: {clean_line(newer.text)}]"


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield the statements of a text, each with where it ends; also without a name before it."""
    for line in lines_of(text):
        told = _SAID.sub("", line.text)
        yield told, line.end
        if named := _NAME.match(told):
            yield told[named.end() :], line.end
