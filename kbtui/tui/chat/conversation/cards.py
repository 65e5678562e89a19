"""Items for tool calls and reasoning: one line each, with details when expanded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from textual.content import Content
from textual.style import Style

from kbtui.agent.events import TurnChange
from kbtui.presentation.notes import Names
from kbtui.presentation.tools import tool_phrase
from kbtui.sessions import KEEP
from kbtui.text import clean, clean_line, counted, shorten
from kbtui.tui.chat.conversation.items import Item, LinkItem, Target, wrapped
from kbtui.tui.chat.conversation.written import WrittenNote, card_lines
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.line_view import Line
from kbtui.workspace.layout import ENTRIES, entry_path, short_name

_MAX_OUTPUT_LINES = 200
_MIN_PHRASE_WIDTH = 20
_SHORT_ARGUMENT_CHARACTERS = 60
_ARGUMENT_LINE_CHARACTERS = 100
_NOTE_ARGUMENTS = {"read": "path", "edit_entry": "entry", "rename_entry": "entry"}
"""Tool names mapped to the argument that names the note they are about."""


@dataclass(eq=False, slots=True)
class ReasoningItem(Item):
    """The model's reasoning: one line, or the full text when expanded."""

    click: ClassVar[str] = "expand"
    expanded: bool = False

    def add(self, piece: str) -> None:
        self.text += clean(piece)
        self.changed()

    def lay_out(self, width: int) -> list[Line]:
        words = len(self.text.split())
        head = Content.styled(f"{_arrow(self.expanded)} thought, {words} words", ".chat--muted")
        return [Line(head), *_detail_lines(self.text, width, expanded=self.expanded)]


@dataclass(eq=False, slots=True)
class ToolItem(Item):
    """A running or finished tool call: one line or, expanded, its arguments and output too."""

    dense: ClassVar[bool] = True
    click: ClassVar[str] = "expand"
    tool: str = ""
    arguments: str = ""
    about: str = ""
    query: str = ""
    details: str = ""
    summary: str = ""
    output: str = ""
    ok: bool | None = None
    changes: tuple[TurnChange, ...] = ()
    names: Names = field(default_factory=Names)
    proposal: str = ""
    written: tuple[WrittenNote, ...] = ()
    undone: bool = False
    expanded: bool = False

    def lay_out(self, width: int) -> list[Line]:
        """Lay out cards of the notes written, or else one line, followed by the details."""
        lines = [
            line
            for each in self.written
            for line in card_lines(each, self._linked_title(each.path), width, undone=self.undone)
        ]
        shown = {each.path for each in self.written}
        rest = sum(path not in shown for path in self.paths)
        if lines and rest:
            more = f"  and {counted(rest, 'more note')} · Enter names them"
            lines.append(Line(Content.styled(more, ".chat--muted").truncate(width, ellipsis=True)))
        lines = lines or [Line(self._head(width).truncate(width, ellipsis=True))]
        if self.expanded:
            lines += _detail_lines(self.details, width, expanded=True)
            lines += _detail_lines(self.output, width, expanded=True)
        return lines

    def _linked_title(self, path: str) -> Content:
        """Return the name of a note, clickable if the tool changed it."""
        title = with_sign(self.names[path], ".md--strike" if self.undone else ".chat--link")
        if path not in self.paths:
            return title
        return title.stylize(Style.from_meta({"target": self.paths.index(path)}))

    def _head(self, width: int) -> Content:
        """Return a muted line about the call, with writes and failures highlighted.

        If it is too long, the call is truncated rather than its outcome.
        """
        summary = self._summary() if self.summary else Content()
        room = max(_MIN_PHRASE_WIDTH, width - summary.cell_length - 7)
        parts: list[Content | str | tuple[str, str]] = [
            (f"{_arrow(self.expanded)} ", ".chat--muted"),
            self._status_mark(),
        ]
        if self.ok is None or self.ok is False or not self._wrote:
            phrase = self._phrase().truncate(room, ellipsis=True)
            parts.append(phrase.stylize_before(".chat--muted" if self.ok else ".chat--tool"))
        if self.summary:
            parts += [("" if self._wrote else " · ", ".chat--muted"), summary]
        return Content.assemble(*parts)

    @property
    def _wrote(self) -> bool:
        """Whether something was written, proposed or kept, so that the summary says it all."""
        return bool(self.ok and (self.paths or self.proposal)) or self.tool == KEEP

    def _status_mark(self) -> tuple[str, str]:
        if self.proposal:
            return "◇ ", ".chat--link"
        if self.ok is None:
            return "… ", ".chat--muted"
        if not self.ok:
            return "✗ ", ".chat--bad"
        return ("✓ ", ".chat--good") if self._wrote else ("", "")

    def _phrase(self) -> Content:
        """Return a phrase for what the tool does, or its name if it isn't one of ours."""
        phrase = tool_phrase(self.tool)
        if self.about:
            return Content(f"{phrase.removesuffix(' a note')} ") + with_sign(self.names[self.about])
        return Content(clean_line(f"{phrase} {self.arguments}".rstrip()))

    def _summary(self) -> Content:
        """Return the summary, with changed notes by name and clickable."""
        if self.proposal:
            text = Content(f"{clean_line(self.summary)} · F6")
            return text.stylize(".chat--link").stylize(Style.from_meta({"target": 0}))
        rest, pieces = clean_line(self.summary).removeprefix(f"{_summary_path(self.about)}, "), []
        for index, path in enumerate(self.paths):
            before, found, rest = rest.partition(_summary_path(path))
            if not found:
                rest = before
                continue
            named = with_sign(self.names[path], ".chat--link")
            pieces += [Content.styled(before, ".chat--muted")]
            pieces += [named.stylize(Style.from_meta({"target": index}))]
        return Content.assemble(*pieces, (rest, ".chat--muted"))

    @property
    def paths(self) -> tuple[str, ...]:
        """The entries that the tool changed; the catalogue only if nothing else changed."""
        return entry_paths(self.changes)

    @property
    def source(self) -> str:
        """The output that the model was given, or else the summary."""
        return self.output or self.summary

    @property
    def target(self) -> Target | None:
        """The proposal in the inbox, or the first changed entry."""
        return self.linked(0)

    def linked(self, number: int) -> Target | None:
        """Return the proposal in the inbox, or the changed entry `number`."""
        if self.proposal:
            return Target("", proposal=self.proposal)
        return Target(self.paths[number]) if number < len(self.paths) else None


def change_items(item: ToolItem) -> list[LinkItem]:
    """Return a link line for each entry that a tool changed."""
    return [
        LinkItem(label="→", to=Target(path), named=item.names[path], turn=item.turn)
        for path in item.paths
    ]


def entry_paths(changes: Sequence[TurnChange]) -> tuple[str, ...]:
    """Return the distinct paths of changes; catalogues only if nothing else changed."""
    paths = tuple(dict.fromkeys(path for change in changes for path in change.paths))
    return tuple(path for path in paths if not path.endswith("INDEX.md")) or paths


def _summary_path(path: str) -> str:
    """Return a path as it is written in summaries."""
    return clean_line(short_name(path))


def _arrow(expanded: bool) -> str:
    return "▾" if expanded else "▸"


def _detail_lines(text: str, width: int, *, expanded: bool) -> list[Line]:
    if not expanded or not text.strip():
        return []
    lines = wrapped(text.strip("\n"), width - 4)
    rest = len(lines) - _MAX_OUTPUT_LINES
    shown_lines = [
        Line(Content("    ") + line.content.stylize(".chat--muted"), 0, "", line.joined)
        for line in lines[:_MAX_OUTPUT_LINES]
    ]
    if rest > 0:
        more = Content.styled(
            f"    and {counted(rest, 'more line')} (y copies all)", ".chat--muted"
        )
        shown_lines.append(Line(more))
    return shown_lines


def argument_line(arguments: Mapping[str, Any]) -> str:
    """Return the arguments that identify a call, without long texts, e.g. ``"auth" limit=5``."""
    parts: list[str] = []
    for name, value in arguments.items():
        if isinstance(value, str):
            if not parts and value and "\n" not in value:
                parts.append(f'"{shorten(value, _SHORT_ARGUMENT_CHARACTERS)}"')
            elif 0 < len(value) <= _SHORT_ARGUMENT_CHARACTERS and "\n" not in value:
                parts.append(f"{name}={value}")
        elif isinstance(value, bool | int | float):
            parts.append(f"{name}={value}")
    return shorten(" ".join(parts), _ARGUMENT_LINE_CHARACTERS)


def note_about(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the workspace path of the note that a tool call is about, or an empty string."""
    path = arguments.get(_NOTE_ARGUMENTS.get(tool, ""))
    if not isinstance(path, str) or "/" not in path or "\n" in path:
        return ""
    is_whole = path.startswith((ENTRIES, "memory/", "docs/", "sessions/"))
    return path if is_whole else entry_path(path)


def argument_details(arguments: Mapping[str, Any]) -> str:
    """Return all arguments, one a line; texts of several lines start below their names."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{name}: {text}" if "\n" not in text else f"{name}:\n{text}")
    return "\n".join(lines)
