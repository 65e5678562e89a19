"""The pieces that a conversation is shown as, each laid out into lines of a given width.

Items know nothing of widgets: the transcript asks for their lines and tells them of changes. They
can be laid out in any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.style import Style

from kbtui.text import clean, clean_line
from kbtui.tui.widgets.line_view import Line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.agent.events import Citation, TurnChange
    from kbtui.errors import KbtuiError

_USER_MARK = "> "
_MAX_OUTPUT_LINES = 200
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SHOW_SECONDS_AFTER = 2


@dataclass(frozen=True, slots=True)
class Target:
    """Where an item leads: lines of a file of the workspace."""

    path: str
    line: int | None = None


@dataclass(eq=False, slots=True)
class Item:
    """One piece of a conversation.

    `gap` is the number of blank lines before it, `turn` the turn that it belongs to, and `message`
    the id of the stored message that it shows, where it shows one.
    """

    gap: ClassVar[int] = 1
    turn: str = field(default="", kw_only=True)
    message: int | None = field(default=None, kw_only=True)
    _width: int = field(default=0, init=False)
    _lines: list[Line] = field(default_factory=list, init=False)

    def lines(self, width: int) -> list[Line]:
        """The lines for a width, laid out anew only after a change."""
        if width != self._width:
            self._lines = self.lay_out(width)
            self._width = width
        return self._lines

    def changed(self) -> None:
        """Forget the layout."""
        self._width = 0

    def lay_out(self, width: int) -> list[Line]:
        """Make the lines; subclasses say how."""
        raise NotImplementedError

    @property
    def source(self) -> str:
        """The text that copying takes."""
        return ""

    @property
    def target(self) -> Target | None:
        """Where Enter or `o` leads."""
        return None


@dataclass(eq=False, slots=True)
class UserItem(Item):
    """What the person said; `queued` while it waits for the answer before."""

    text: str = ""
    queued: bool = False

    def lay_out(self, width: int) -> list[Line]:
        """The text as it was written, on a ground of its own."""
        style = ".chat--queued" if self.queued else ".chat--user-text"
        lines = []
        for index, part in enumerate(_wrapped(self.text, width - len(_USER_MARK))):
            mark = Content.styled(_USER_MARK if index == 0 else "  ", ".chat--user-mark")
            text = part.content.stylize(style)
            lines.append(Line(mark + text, 0, "chat--user", part.joined))
        if self.queued:
            lines.append(Line(Content.styled("  queued · Up takes it back", ".chat--muted")))
        return lines

    @property
    def source(self) -> str:
        """The text."""
        return self.text


@dataclass(eq=False, slots=True)
class AnswerItem(Item):
    """What the model said, as Markdown; while it streams, only its end is laid out anew."""

    text: str = ""
    streaming: bool = False
    interrupted: bool = False
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
            lines = _markdown(self.text, width)
        else:
            self._settle(width)
            rest = self.text[self._stable :]
            lines = [*self._stable_lines, *(_markdown(rest, width) if rest.strip() else ())]
        if self.interrupted:
            lines = [*lines, Line(Content.styled("stopped", ".chat--warning"))]
        return lines

    def _settle(self, width: int) -> None:
        if width != self._stable_width:
            self._stable, self._stable_lines, self._stable_width = 0, [], width
        end = settled(self.text, self._stable)
        if end > self._stable:
            part = _markdown(self.text[self._stable : end], width)
            self._stable_lines = [*self._stable_lines, *part, Line(Content())]
            self._stable = end

    @property
    def source(self) -> str:
        """The Markdown."""
        return self.text


@dataclass(eq=False, slots=True)
class PendingItem(Item):
    """An answer is being waited for; `since` is a reading of the monotonic clock."""

    since: float = 0.0

    def lay_out(self, width: int) -> list[Line]:
        """A moving sign and, after a while, how long it has been."""
        waited = monotonic() - self.since
        sign = _SPINNER[int(waited * 5) % len(_SPINNER)]
        seconds = f" {waited:.0f} s" if waited >= _SHOW_SECONDS_AFTER else ""
        text = Content.styled(f"{sign} thinking{seconds} · Esc stops", ".chat--muted")
        return [Line(text.truncate(width, ellipsis=True))]


@dataclass(eq=False, slots=True)
class ReasoningItem(Item):
    """What the model thought aloud: one line, more when expanded."""

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

    gap: ClassVar[int] = 0
    tool: str = ""
    arguments: str = ""
    details: str = ""
    summary: str = ""
    output: str = ""
    ok: bool | None = None
    changes: tuple[TurnChange, ...] = ()
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
        parts: list[Content | str | tuple[str, str]] = [
            (f"{_arrow(self.expanded)} ", ".chat--muted"),
            (f"{mark} ", style),
            (clean_line(self.tool), ".chat--tool"),
        ]
        if self.summary:
            parts += [" ", self._summary()]
        elif self.arguments:
            parts += [" ", (clean_line(self.arguments), ".chat--muted")]
        return Content.assemble(*parts)

    def _summary(self) -> Content:
        """The summary, with what was written as a place to click."""
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
        """What the model was told, else the summary."""
        return self.output or self.summary

    @property
    def target(self) -> Target | None:
        """The first entry that was changed."""
        return Target(self.paths[0]) if self.paths else None


@dataclass(eq=False, slots=True)
class LinkItem(Item):
    """A line that leads to an entry: a citation, or what a tool changed."""

    gap: ClassVar[int] = 0
    label: str = ""
    to: Target = field(default_factory=lambda: Target(""))
    note: str = ""

    def lay_out(self, width: int) -> list[Line]:
        """One line."""
        place = shown(self.to.path) + (f":{self.to.line}" if self.to.line else "")
        head = Content.assemble(
            ("  ", ""),
            (f"{self.label} ", ".chat--cite"),
            (place, ".chat--link"),
            (f"  {clean_line(self.note)}" if self.note else "", ".chat--muted"),
        )
        return [Line(head.truncate(width, ellipsis=True))]

    @property
    def source(self) -> str:
        """The place."""
        return self.to.path + (f":{self.to.line}" if self.to.line else "")

    @property
    def target(self) -> Target | None:
        """The place."""
        return self.to


@dataclass(eq=False, slots=True)
class NoticeItem(Item):
    """Something that kbtui itself says: a card with a title, perhaps a failure."""

    title: str = ""
    text: str = ""
    kind: str = "info"

    def lay_out(self, width: int) -> list[Line]:
        """The title in the colour of its kind, the text below."""
        style = f".chat--{self.kind}"
        bar = Content.styled("▎ ", style)
        head = [part.content.stylize(style) for part in _wrapped(clean_line(self.title), width - 2)]
        body = [part.content for part in _wrapped(self.text, width - 2)] if self.text else []
        return [Line((bar + line).truncate(width, ellipsis=True)) for line in [*head, *body]]

    @property
    def source(self) -> str:
        """Title and text."""
        return f"{self.title}\n{self.text}".strip()


@dataclass(eq=False, slots=True)
class MoreItem(Item):
    """Stands for the earlier messages that aren't laid out yet."""

    gap: ClassVar[int] = 0
    count: int = 0

    def lay_out(self, width: int) -> list[Line]:
        """One line that says how many there are."""
        text = f"▲ {self.count:,} earlier messages (Enter loads more)"
        return [Line(Content.styled(text, ".chat--cite").truncate(width, ellipsis=True))]


def failure(error: KbtuiError) -> NoticeItem:
    """The card of an error: the sentence, and what to do about it."""
    return NoticeItem(title=error.message, text=error.hint, kind="bad")


def citation_items(citations: Sequence[Citation], turn: str) -> list[LinkItem]:
    """A line for each citation of an answer."""
    return [
        LinkItem(
            label=f"[{cited.n}]", to=Target(cited.path, cited.first), note=cited.title, turn=turn
        )
        for cited in citations
    ]


def change_items(item: ToolItem) -> list[LinkItem]:
    """A line for each entry that a tool changed."""
    return [LinkItem(label="→", to=Target(path), turn=item.turn) for path in item.paths]


def entry_paths(changes: Sequence[TurnChange]) -> tuple[str, ...]:
    """The paths of changes, each once; catalogues only where nothing else changed."""
    paths = tuple(dict.fromkeys(path for change in changes for path in change.paths))
    return tuple(path for path in paths if not path.endswith("INDEX.md")) or paths


def shown(path: str) -> str:
    """A path as people know it: inside knowledge/, without the ending."""
    return clean_line(path.removeprefix("knowledge/").removesuffix(".md"))


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


def _arrow(expanded: bool) -> str:  # noqa: FBT001 - read as a word where it is called
    return "▾" if expanded else "▸"


def _markdown(text: str, width: int) -> list[Line]:
    from kbtui.tui.markdown.layout import render_markdown

    return render_markdown(text, width).lines


def _wrapped(text: str, width: int) -> list[Line]:
    from kbtui.tui.markdown.layout import render_plain

    return render_plain(text, width).lines


def _below(text: str, width: int, *, expanded: bool) -> list[Line]:
    if not expanded or not text.strip():
        return []
    lines = _wrapped(text.strip("\n"), width - 4)
    rest = len(lines) - _MAX_OUTPUT_LINES
    shown_lines = [
        Line(Content("    ") + line.content.stylize(".chat--muted"), 0, "", line.joined)
        for line in lines[:_MAX_OUTPUT_LINES]
    ]
    if rest > 0:
        more = Content.styled(f"    and {rest:,} more lines (y copies all)", ".chat--muted")
        shown_lines.append(Line(more))
    return shown_lines
