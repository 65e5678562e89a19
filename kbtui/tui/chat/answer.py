"""What a model says, and how it is laid out while it is still coming."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.content import Content

from kbtui.text import clean
from kbtui.tui.chat.items import Item
from kbtui.tui.widgets.line_view import Line

if TYPE_CHECKING:
    from kbtui.tui.markdown.inline import LinkRef
    from kbtui.tui.markdown.layout import Rendered


@dataclass(eq=False, slots=True)
class AnswerItem(Item):
    """What the model said, as Markdown; while it streams, only its end is laid out anew."""

    text: str = ""
    streaming: bool = False
    interrupted: bool = False
    links: list[LinkRef] = field(default_factory=list, init=False)
    _stable: int = field(default=0, init=False)
    _stable_lines: list[Line] = field(default_factory=list, init=False)
    _stable_width: int = field(default=0, init=False)

    def add(self, piece: str) -> None:
        """Append a piece of the stream."""
        self.text += clean(piece)
        self.changed()

    def finish(self, text: str | None = None) -> None:
        """End the stream; `text` replaces what was streamed."""
        if text is not None:
            self.text = clean(text)
        self.streaming = False
        self._stable, self._stable_lines = 0, []
        self.changed()

    def lay_out(self, width: int) -> list[Line]:
        """Lay out all of it, or what came after the last finished paragraph."""
        if not self.streaming:
            lines, self.links = _markdown(self.text, width)
        else:
            self._settle(width)
            rest = self.text[self._stable :]
            lines = [*self._stable_lines, *(_markdown(rest, width)[0] if rest.strip() else ())]
        if self.interrupted:
            lines = [*lines, Line(Content.styled("stopped", ".chat--warning"))]
        return lines

    def _settle(self, width: int) -> None:
        if width != self._stable_width:
            self._stable, self._stable_lines, self._stable_width = 0, [], width
        end = settled(self.text, self._stable)
        if end > self._stable:
            part, _ = _markdown(self.text[self._stable : end], width)
            self._stable_lines = [*self._stable_lines, *part, Line(Content())]
            self._stable = end

    def link(self, number: int) -> LinkRef | None:
        """The Markdown link of that number, once the answer is whole."""
        return self.links[number] if number < len(self.links) else None

    @property
    def weight(self) -> int:
        """The length of what isn't laid out yet."""
        return len(self.text) - self._stable

    @property
    def source(self) -> str:
        """The Markdown."""
        return self.text


def settled(text: str, start: int) -> int:
    """Where the part of a streaming text ends that later text can't change the looks of.

    That is after the last blank line outside of a code fence that is followed by a line which
    continues neither a list nor an indented block.
    """
    fence, end, at, blank = "", start, start, False
    for line in text[start:].splitlines(keepends=True):
        stripped = line.strip()
        if not fence and blank and stripped and not line[0].isspace() and not _in_list(stripped):
            end = at
        mark = stripped[:3]
        if mark in ("```", "~~~") and (not fence or (mark == fence and not stripped.strip(mark))):
            fence = "" if fence else mark
        blank = not stripped
        at += len(line)
    return end


def _in_list(line: str) -> bool:
    return line[:2] in ("- ", "* ", "+ ", "> ") or line.split(maxsplit=1)[0].rstrip(".)").isdigit()


def _markdown(text: str, width: int) -> Rendered:
    from kbtui.tui.markdown.layout import render_markdown

    return render_markdown(text, width)
