"""Tools and thoughts: one line each, more when somebody wants to know."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.content import Content
from textual.style import Style

from kbtui.agent.events import KEEP, TurnChange
from kbtui.text import clean, clean_line, shorten
from kbtui.tui.chat.items import Item, LinkItem, Target, shown, wrapped
from kbtui.tui.widgets.line_view import Line

_MAX_OUTPUT_LINES = 200
_SHORT_ARGUMENT_CHARACTERS = 60
_ARGUMENT_LINE_CHARACTERS = 100


@dataclass(eq=False, slots=True)
class ReasoningItem(Item):
    """Thinking aloud of the model: one line, more when expanded."""

    click: ClassVar[str] = "expand"
    text: str = ""
    expanded: bool = False

    def add(self, piece: str) -> None:
        """Append a piece of the stream."""
        self.text += clean(piece)
        self.changed()

    def lay_out(self, width: int) -> list[Line]:
        """A summary line, and the text below it."""
        words = len(self.text.split())
        head = Content.styled(f"{_arrow(self.expanded)} thought, {words} words", ".chat--muted")
        return [Line(head), *_below(self.text, width, expanded=self.expanded)]

    @property
    def source(self) -> str:
        """The reasoning."""
        return self.text


@dataclass(eq=False, slots=True)
class ToolItem(Item):
    """A tool at work or done: one line; expanded, its arguments and what the model was told."""

    dense: ClassVar[bool] = True
    click: ClassVar[str] = "expand"
    tool: str = ""
    arguments: str = ""
    details: str = ""
    summary: str = ""
    output: str = ""
    ok: bool | None = None
    changes: tuple[TurnChange, ...] = ()
    proposal: str = ""
    expanded: bool = False

    def lay_out(self, width: int) -> list[Line]:
        """The card's line, and the details below it."""
        lines = [Line(self._head().truncate(width, ellipsis=True))]
        if self.expanded:
            lines += _below(self.details, width, expanded=True)
            lines += _below(self.output, width, expanded=True)
        return lines

    def _head(self) -> Content:
        mark, style = {None: ("…", ".chat--muted"), True: ("✓", ".chat--good")}.get(
            self.ok, ("✗", ".chat--bad")
        )
        if self.proposal:
            mark, style = "◇", ".chat--link"
        parts: list[Content | str | tuple[str, str]] = [
            (f"{_arrow(self.expanded)} ", ".chat--muted"),
            (mark, style),
        ]
        if self.tool != KEEP:  # what was noted says all that there is to say
            parts += [" ", (clean_line(self.tool), ".chat--tool")]
        # What was written says it all; what was looked for needs the words as well.
        if self.arguments and not (self.ok and (self.paths or self.proposal)):
            parts += [" ", (clean_line(self.arguments), ".chat--muted")]
        if self.summary:
            parts += [" ", self._summary()]
        return Content.assemble(*parts)

    def _summary(self) -> Content:
        """The summary, with what was written as a place to click."""
        if self.proposal:
            text = Content(f"{clean_line(self.summary)} · F6")
            return text.stylize(".chat--link").stylize(Style.from_meta({"target": 0}))
        text = Content.styled(clean_line(self.summary), ".chat--muted")
        for index, path in enumerate(self.paths):
            name = shown(path)
            start = text.plain.find(name)
            if start >= 0:
                end = start + len(name)
                text = text.stylize(".chat--link", start, end)
                text = text.stylize(Style.from_meta({"target": index}), start, end)
        return text

    @property
    def paths(self) -> tuple[str, ...]:
        """The entries that the tool changed; the catalogue only where nothing else changed."""
        return entry_paths(self.changes)

    @property
    def source(self) -> str:
        """The result that the model was given, else the summary."""
        return self.output or self.summary

    @property
    def target(self) -> Target | None:
        """The first entry that was changed."""
        return self.linked(0)

    def linked(self, number: int) -> Target | None:
        """One of the entries that were changed, or the proposal in the inbox."""
        if self.proposal:
            return Target("", proposal=self.proposal)
        return Target(self.paths[number]) if number < len(self.paths) else None


def change_items(item: ToolItem) -> list[LinkItem]:
    """A line for each entry that a tool changed."""
    return [LinkItem(label="→", to=Target(path), turn=item.turn) for path in item.paths]


def entry_paths(changes: Sequence[TurnChange]) -> tuple[str, ...]:
    """The paths of changes, each once; catalogues only where nothing else changed."""
    paths = tuple(dict.fromkeys(path for change in changes for path in change.paths))
    return tuple(path for path in paths if not path.endswith("INDEX.md")) or paths


def _arrow(expanded: bool) -> str:
    return "▾" if expanded else "▸"


def _below(text: str, width: int, *, expanded: bool) -> list[Line]:
    if not expanded or not text.strip():
        return []
    lines = wrapped(text.strip("\n"), width - 4)
    rest = len(lines) - _MAX_OUTPUT_LINES
    shown_lines = [
        Line(Content("    ") + line.content.stylize(".chat--muted"), 0, "", line.joined)
        for line in lines[:_MAX_OUTPUT_LINES]
    ]
    if rest > 0:
        more = Content.styled(f"    and {rest:,} more lines (y copies all)", ".chat--muted")
        shown_lines.append(Line(more))
    return shown_lines


def argument_line(arguments: Mapping[str, Any]) -> str:
    """The arguments that identify the call, e.g. ``"auth" limit=5``; long texts are left out."""
    parts: list[str] = []
    for name, value in arguments.items():
        if isinstance(value, str):
            if 0 < len(value) <= _SHORT_ARGUMENT_CHARACTERS and "\n" not in value:
                parts.append(f'"{value}"' if not parts else f"{name}={value}")
        elif isinstance(value, bool | int | float):
            parts.append(f"{name}={value}")
    return shorten(" ".join(parts), _ARGUMENT_LINE_CHARACTERS)


def argument_details(arguments: Mapping[str, Any]) -> str:
    """All arguments, each on a line of its own or below its name."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{name}: {text}" if "\n" not in text else f"{name}:\n{text}")
    return "\n".join(lines)


def parsed_arguments(text: str) -> dict[str, Any]:
    """A call's arguments as the model wrote them; what isn't an object is shown as it is."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": text}
