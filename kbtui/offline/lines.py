"""A line of somebody's notes, or of what he said: what facts are compared with and answers quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kbtui.knowledge.entries.templates import EVOLUTION, TYPE_OF_FOLDER
from kbtui.text import clean_line

Source = Literal["entry", "memory", "note", "said", "told"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        path: The file, relative to the workspace.
        title: What the file is called; of a conversation, its title.
        text: The line without its bullet.
        number: Where it stands, from 1.
        source: An entry, MEMORY.md, a note, a message of the user's, or what another program's
            assistant told the user.
        current: False for what stands under Evolution: it held once.
        heading: The section that it stands in.
        day: When it was said, as YYYY-MM-DD; "" where that isn't known.
        relevance: How well search found it to fit, from 0 to 1; 0 where it didn't look.
        code: True for a line of a fenced block: it says nothing by itself.
    """

    path: str
    title: str
    text: str
    number: int = 0
    source: Source = "entry"
    current: bool = True
    heading: str = ""
    day: str = ""
    relevance: float = 0.0
    code: bool = False

    @property
    def kind(self) -> str:
        """The type of the entry that it stands in; ``fact`` elsewhere."""
        parts = self.path.split("/")
        return TYPE_OF_FOLDER.get(parts[1], "fact") if len(parts) > 2 else "fact"


_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|^\s*>\s?")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_DATED = re.compile(r"^\d{4}-\d\d-\d\d(?:, until then)?:?\s+")
_BEFORE = re.compile(r"\(before: (?P<was>.+)\)$")
# A table, markup, a definition of a link, a link to a heading, a label, a rule, a fence.
_NOT_SAID = re.compile(
    r"^\s*(?:\||</?[a-z][\w-]*[\s>/]|\[[^\]]+\](?:: |\(#[^)]*\)\W*$|\s*$)|-{3,}|\*{3,}|<!--|```|~~~)"
    r"|^\d{4}-\d\d-\d\d:? (?:recorded|created)\.?$",
    re.IGNORECASE,
)


def lines_of(path: str, title: str, text: str, source: Source, first: int = 1) -> Iterator[Line]:
    """What a Markdown text says, line by line; headings, rules and tables say nothing.

    The text may be a part of the file, without frontmatter; `first` is the number of its first line.
    """
    heading, fence = "", False
    for number, raw in enumerate(text.split("\n"), first):
        if raw.lstrip().startswith(("```", "~~~")):
            fence = not fence
            continue
        if fence:
            if raw.strip():
                yield Line(path, title, raw.rstrip(), number, source, heading=heading, code=True)
            continue
        if head := _HEADING.match(raw):
            heading = head[2] if len(head[1]) > 1 else heading
            continue
        said = clean_line(_BULLET.sub("", raw))
        if not said or _NOT_SAID.match(said):
            continue
        past = source == "entry" and heading.casefold() == EVOLUTION.casefold()
        if past:
            said = _DATED.sub("", said)
            was = _BEFORE.search(said)
            said = was["was"] if was else said
        yield Line(path, title, said, number, source, not past, heading)
