"""The items of a conversation, each laid out into lines of a given width.

Items are independent of widgets: the transcript asks for their lines and notifies them of changes.
They can be laid out in any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.content import Content
from textual.style import Style

from kbtui.agent.events import Citation, Earlier
from kbtui.errors import KbtuiError
from kbtui.knowledge.format.document import Document
from kbtui.presentation.notes import INTO, Named, Names, day_of_note
from kbtui.presentation.times import format_written_day, recent_day
from kbtui.sessions import FROM_NOTES
from kbtui.text import clean, clean_line, shorten
from kbtui.tui.markdown.layout import Rendered
from kbtui.tui.markdown.plain import as_read
from kbtui.tui.markdown.syntax import LinkRef
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.line_view import Line

if TYPE_CHECKING:
    from kbtui.memory.recall.differing import Difference

_USER_MARK = "> "
_path_names = Names()  # derives names from paths alone
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SHOWN_AFTER_SECONDS = 2
_JOURNAL = "the journal"
_NOT_KEPT = "  ○ not kept: "
_KEEPS = " · Shift+Tab Enter keeps it"
_BEFORE = "  ↶ before: "
_DIFFERS = "  ≠ differs from "
_UNFOUNDED = "  not in your notes"
_INDENT = "    "
_RECEIPT_GAP = 2
_BETWEEN = " · "
_QUOTE = "> "
_MARKS_PAST = " · Shift+Tab r marks it as past"


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a link: lines of a file of the workspace, or a proposal in the inbox."""

    path: str
    line: int | None = None
    proposal: str = ""


@dataclass(eq=False, slots=True)
class Item:
    """One item of a conversation.

    `turn` is the id of its turn, `message` that of the stored message it shows, if any. Two dense
    items in a row have no blank line between them. `click` is the action of a click on the item.
    """

    dense: ClassVar[bool] = False
    click: ClassVar[str] = ""
    text: str = field(default="", kw_only=True)
    turn: str = field(default="", kw_only=True)
    message: int | None = field(default=None, kw_only=True)
    stale: bool = field(default=True, init=False)
    _layout: tuple[int, list[Line]] = field(default=(0, []), init=False)

    def lines(self, width: int) -> list[Line]:
        """Return the lines for a width; the layout is cached until `changed`."""
        if self.stale or width != self._layout[0]:
            self.adopt(width, self.lay_out(width))
        return self._layout[1]

    def changed(self) -> None:
        """Invalidate the cached layout."""
        self.stale = True

    def adopt(self, width: int, lines: list[Line]) -> None:
        """Cache lines that were laid out for a width."""
        self._layout = (width, lines)
        self.stale = False

    def hold(self, width: int) -> None:
        """Keep the former lines, or none, as current until new ones are adopted."""
        self.adopt(width, self._layout[1])

    @property
    def weight(self) -> int:
        """The approximate number of characters to lay out."""
        return len(self.text)

    def lay_out(self, width: int) -> list[Line]:
        """Return new lines for a width."""
        del width
        return []

    @property
    def source(self) -> str:
        """The text to copy."""
        return self.text

    @property
    def target(self) -> Target | None:
        """The target of Enter and `o`."""
        return None

    @property
    def sources(self) -> Sequence[LinkItem]:
        """The sources that are named in the item itself."""
        return ()

    def select(self, is_selected: bool) -> bool:
        """Note whether it is selected, and return whether it shows that."""
        del is_selected
        return False

    def linked(self, number: int) -> Target | None:
        """Return the target of link `number` in the text."""
        del number
        return None

    def link(self, number: int) -> LinkRef | None:
        """Return Markdown link `number` of the text."""
        del number
        return None

    def gap_after(self, before: Item) -> int:
        """Return the number of blank lines between the item before and this one."""
        return int(not (before.dense and self.dense))


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a message was kept, and when, as ``HH:MM``; without a time it is remembered.

    If it was `known` before, that says so instead: ``known since 20:33``.
    """

    path: str
    time: str = ""
    is_task: bool = False
    undone: bool = False
    known: str = ""

    @property
    def labels(self) -> Sequence[str]:
        """The receipt in words, such as ``✓ today 20:33 · u``, and in fewer where there is no room.

        `u` takes back what was kept.
        """
        if self.known:
            return f"✓ {self.known}", "✓ known"
        day = day_of_note(self.path)
        when = f"{recent_day(day)} {self.time}".strip() if day else "remembered"
        if self.undone:
            return f"undone · {when}", "undone"
        short = f"✓ {self.time} u" if self.time else "✓ u"
        return f"✓ {'task, ' if self.is_task else ''}{when} · u", short


@dataclass(eq=False, slots=True)
class UserItem(Item):
    """A message of the person; `queued` while an earlier answer is being generated."""

    queued: bool = False
    receipt: Receipt | None = None

    def lay_out(self, width: int) -> list[Line]:
        style = ".chat--queued" if self.queued else ".chat--user-text"
        lines = []
        for index, part in enumerate(wrapped(self.text, width - len(_USER_MARK))):
            mark = Content.styled(_USER_MARK if index == 0 else "  ", ".chat--user-mark")
            text = part.content.stylize(style)
            lines.append(Line(mark + text, 0, "chat--user", part.joined))
        if self.receipt is not None:
            _add_receipt(lines, self.receipt, width)
        if self.queued:
            lines.append(Line(Content.styled("  queued · Up takes it back", ".chat--muted")))
        return lines

    @property
    def target(self) -> Target | None:
        """The page that it was kept in."""
        return Target(self.receipt.path) if self.receipt is not None and self.receipt.path else None


def _add_receipt(lines: list[Line], receipt: Receipt, width: int) -> None:
    """Put a receipt at the right end of a message, or below it where it doesn't fit."""
    last = lines[-1].content
    room = width - last.cell_length - _RECEIPT_GAP
    label = next((each for each in receipt.labels if cell_len(each) <= room), "")
    if not label:
        last, label = Content(), receipt.labels[0]
        lines.append(Line(last))
    blank = " " * max(0, width - last.cell_length - cell_len(label))
    whole = Content.assemble(last, blank, (label, ".chat--muted"))
    joined = lines[-1].joined
    lines[-1] = Line(whole.truncate(width, ellipsis=True), 0, "chat--user", joined)


@dataclass(eq=False, slots=True)
class AnswerItem(Item):
    """An answer of the model in Markdown; while it streams, only its end is laid out again."""

    streaming: bool = False
    interrupted: bool = False
    is_unfounded: bool = False
    is_selected: bool = False
    cites: tuple[LinkItem, ...] = ()
    links: list[LinkRef] = field(default_factory=list, init=False)
    _stable: int = field(default=0, init=False)
    _stable_lines: list[Line] = field(default_factory=list, init=False)
    _stable_width: int = field(default=0, init=False)

    def add(self, piece: str) -> None:
        self.text += clean(piece)
        self.changed()

    def finish(self, text: str | None = None) -> None:
        """End the stream; `text`, if given, replaces the streamed text."""
        if text is not None:
            self.text = clean(text)
        self.streaming = False
        self._stable, self._stable_lines = 0, []
        self.changed()

    def lay_out(self, width: int) -> list[Line]:
        """Lay out the text; while streaming, only what follows the last settled paragraph."""
        if not self.streaming:
            lines, self.links, _ = _markdown(without_lead(self.text), width)
            lines = self._with_sources(lines, width)
        else:
            self._settle_paragraphs(width)
            rest = self.text[self._stable :]
            lines = [*self._stable_lines, *(_markdown(rest, width).lines if rest.strip() else ())]
        if self.interrupted:
            lines = [*lines, Line(Content.styled("stopped", ".chat--warning"))]
        if self.is_unfounded and self.is_selected:
            lines = [*lines, Line(Content.styled(_UNFOUNDED, ".chat--muted"))]
        return lines

    def select(self, is_selected: bool) -> bool:
        """Note whether it is selected, and return whether it shows that."""
        self.is_selected = is_selected
        if self.is_unfounded:
            self.changed()
        return self.is_unfounded

    def _settle_paragraphs(self, width: int) -> None:
        if width != self._stable_width:
            self._stable, self._stable_lines, self._stable_width = 0, [], width
        end = settled(self.text, self._stable)
        if end > self._stable:
            part = _markdown(self.text[self._stable : end], width)
            self._stable_lines = [*self._stable_lines, *part.lines, Line(Content())]
            self._stable = end

    def _with_sources(self, lines: Sequence[Line], width: int) -> list[Line]:
        """Name each source behind the quote that has its number, or below where it doesn't fit."""
        shown, below, seen = list(lines), [], set[str]()
        for number, source in enumerate(self.cites):
            if source.to.path in seen:
                continue
            seen.add(source.to.path)
            name = source.name.stylize(Style.from_meta({"target": number}))
            at = max((at for at, line in enumerate(shown) if source.label in line.text), default=-1)
            quote = shown[at].content if at >= 0 else Content()
            room = width - quote.cell_length - len(_BETWEEN)
            # Behind the line of a journal stands its day.
            names = (name, name[: len(_JOURNAL)]) if name.plain.startswith(_JOURNAL) else (name,)
            fitting = next((each for each in names if each.cell_length <= room), None)
            if at >= 0 and fitting is not None:
                whole = Content.assemble(quote, (_BETWEEN, ".chat--muted"), fitting)
                shown[at] = Line(whole, shown[at].source, shown[at].fill, shown[at].joined)
            else:
                label = Content.styled(f"  {source.label} ", ".chat--cite")
                below.append(Line((label + name).truncate(width, ellipsis=True)))
        return [*shown, *below]

    @property
    def sources(self) -> Sequence[LinkItem]:
        return self.cites

    @property
    def target(self) -> Target | None:
        """The first source."""
        return self.linked(0)

    def linked(self, number: int) -> Target | None:
        """Return source `number`."""
        return self.cites[number].to if number < len(self.cites) else None

    def gap_after(self, before: Item) -> int:
        """Return 0 below the question if the answer is a quote, whose bar sets it off."""
        is_quote = without_lead(self.text).startswith(_QUOTE)
        return 0 if is_quote and isinstance(before, UserItem) else Item.gap_after(self, before)

    def link(self, number: int) -> LinkRef | None:
        """Return Markdown link `number` of the text, once the answer is complete."""
        return self.links[number] if number < len(self.links) else None

    @property
    def weight(self) -> int:
        """The number of characters not settled yet."""
        return len(self.text) - self._stable


@dataclass(eq=False, slots=True)
class PendingItem(Item):
    """The spinner while an answer is pending; `since` is a monotonic time in seconds.

    A `still` one neither turns nor counts.
    """

    since: float = 0.0
    still: bool = False

    def lay_out(self, width: int) -> list[Line]:
        waited = 0.0 if self.still else monotonic() - self.since
        sign = "" if self.still else f"{_SPINNER[int(waited * 5) % len(_SPINNER)]} "
        seconds = f" {waited:.0f} s" if waited >= _SHOWN_AFTER_SECONDS else ""
        text = Content.styled(f"{sign}thinking{seconds} · Esc stops", ".chat--muted")
        return [Line(text.truncate(width, ellipsis=True))]


@dataclass(eq=False, slots=True)
class LinkItem(Item):
    """A link to an entry: a citation, or an entry that a tool changed."""

    dense: ClassVar[bool] = True
    click: ClassVar[str] = "open"
    label: str = ""
    to: Target = field(default_factory=lambda: Target(""))
    note: str = ""
    named: Named | None = None

    def lay_out(self, width: int) -> list[Line]:
        head = Content.assemble(("  ", ""), (f"{self.label} ", ".chat--cite"), self.name)
        return [Line(head.truncate(width, ellipsis=True))]

    @property
    def name(self) -> Content:
        """The name of the entry with its sign, and the note about it."""
        named = self.named or _path_names[self.to.path]
        note = clean_line(self.note)
        return Content.assemble(
            with_sign(named, ".chat--link"), (note and f"  {note}", ".chat--muted")
        )

    @property
    def source(self) -> str:
        """The path, with the line number if there is one."""
        return self.to.path + (f":{self.to.line}" if self.to.line else "")

    @property
    def target(self) -> Target:
        return self.to


@dataclass(eq=False, slots=True)
class NoticeItem(Item):
    """A card with a title for a notice of kbtui itself, such as an error."""

    title: str = ""
    kind: str = "info"

    def lay_out(self, width: int) -> list[Line]:
        style = f".chat--{self.kind}"
        bar = Content.styled("▎ ", style)
        head = [part.content.stylize(style) for part in wrapped(clean_line(self.title), width - 2)]
        body = [part.content for part in wrapped(self.text, width - 2)] if self.text else []
        return [Line((bar + line).truncate(width, ellipsis=True)) for line in [*head, *body]]

    @property
    def source(self) -> str:
        """The title and the text."""
        return f"{self.title}\n{self.text}".strip()


@dataclass(eq=False, slots=True)
class NotKeptItem(Item):
    """A statement that wasn't kept; `kept` is the path once the person has it kept."""

    dense: ClassVar[bool] = True
    kept: str = ""

    def lay_out(self, width: int) -> list[Line]:
        if self.kept:
            parts = [("  ✓ kept in ", ".chat--good"), (_path_names[self.kept].title, ".chat--link")]
        else:
            text = shorten(clean_line(self.text), max(10, width - len(_NOT_KEPT) - len(_KEEPS)))
            parts = [(_NOT_KEPT, ".chat--warning"), (text, ".chat--muted"), (_KEEPS, ".chat--cite")]
        return [Line(Content.assemble(*parts).truncate(width, ellipsis=True))]

    @property
    def target(self) -> Target | None:
        """The file it was kept in."""
        return Target(self.kept) if self.kept else None


@dataclass(eq=False, slots=True)
class BeforeItem(Item):
    """An earlier line that a new note may be about; `past` once it is struck out."""

    dense: ClassVar[bool] = True
    click: ClassVar[str] = "open"
    earlier: Earlier
    past: bool = False

    def lay_out(self, width: int) -> list[Line]:
        """Lay out the line and, below it, when it was written and the keys."""
        keys = " · past" if self.past else _MARKS_PAST
        when = f"{format_written_day(self.earlier.when[:10])} · " if self.earlier.when else ""
        read = as_read(clean_line(self.earlier.text), _path_names)
        text = Content(shorten(read, max(10, width - len(_BEFORE))))
        text = text.stylize(".md--strike" if self.past else ".chat--link")
        below = Content.assemble((f"{_INDENT}{when}", ".chat--muted"), (keys[3:], ".chat--cite"))
        return [
            Line(Content.assemble((_BEFORE, ".chat--muted"), text).truncate(width, ellipsis=True)),
            Line(below.truncate(width, ellipsis=True)),
        ]

    def gap_after(self, before: Item) -> int:
        """Return 0 below the message that it is about, where its receipt is all between them."""
        return 0 if isinstance(before, UserItem) else Item.gap_after(self, before)

    @property
    def source(self) -> str:
        return self.earlier.text

    @property
    def target(self) -> Target | None:
        """The location of the earlier line."""
        return Target(self.earlier.path, self.earlier.first)


@dataclass(eq=False, slots=True)
class DiffersItem(Item):
    """A remark that the answer above differs from a line that the model was shown.

    `text` is that line, once it is known; `shown` whether it stands below the remark.
    """

    dense: ClassVar[bool] = True
    click: ClassVar[str] = "open"
    n: int
    what: str
    to: Target
    shown: bool = False

    @property
    def label(self) -> str:
        """The number of the source, or whose line it is."""
        is_said = self.to.path.startswith("sessions/")
        return f"[{self.n}]" if self.n else "what you said" if is_said else "your notes"

    def lay_out(self, width: int) -> list[Line]:
        what = "the opposite" if self.what == "denial" else f"another {self.what}"
        key = " · w hides it" if self.shown else " · w shows the line"
        head = Content.assemble(
            (_DIFFERS, ".chat--warning"),
            (self.label, ".chat--cite"),
            (f" · {what}", ".chat--muted"),
            (key, ".chat--cite"),
        )
        lines = [Line(head.truncate(width, ellipsis=True))]
        if self.shown:
            read = as_read(clean_line(self.text), _path_names)
            lines += [
                Line(Content(_INDENT) + part.content, 0, "", part.joined)
                for part in wrapped(read, width - len(_INDENT))
            ]
        return lines

    def gap_after(self, before: Item) -> int:
        """Return 0: it belongs to what stands above it."""
        del before
        return 0

    @property
    def source(self) -> str:
        return self.text

    @property
    def target(self) -> Target | None:
        """The line."""
        return self.to


@dataclass(eq=False, slots=True)
class MoreItem(Item):
    """The placeholder for earlier messages that aren't loaded yet."""

    click: ClassVar[str] = "expand"
    count: int = 0

    def lay_out(self, width: int) -> list[Line]:
        text = f"▲ {self.count:,} earlier messages (Enter loads more)"
        return [Line(Content.styled(text, ".chat--cite").truncate(width, ellipsis=True))]


def failure(error: KbtuiError) -> NoticeItem:
    """Return the card of an error: its message and hint."""
    return NoticeItem(title=error.message, text=error.hint, kind="bad")


def citation_items(citations: Sequence[Citation], turn: str, names: Names) -> list[LinkItem]:
    """Return a link for each citation of an answer: the note, and the section, page or slide."""
    items = []
    for cited in citations:
        named = names[cited.path]
        # A passage is called "note > heading > heading", a line of a note "note: heading".
        section = cited.title.rpartition(" > ")[2].removeprefix(f"{named.title}: ")
        section = cited.place.replace(" > ", INTO) or section
        file = cited.path.rpartition("/")[2]
        says_more = section not in {"", named.title, file, str(day_of_note(cited.path))}
        note = f"{INTO}{section}".strip() if says_more else ""
        to = Target(cited.path, cited.first)
        items.append(LinkItem(label=f"[{cited.n}]", to=to, note=note, named=named, turn=turn))
    return items


def difference_items(differences: Sequence[Difference], turn: str) -> list[DiffersItem]:
    """Return a remark for each line from which an answer differs."""
    return [
        DiffersItem(each.n, each.kind, Target(each.path, each.line), text=each.text, turn=turn)
        for each in differences
    ]


def quotes_all(text: str, sources: Sequence[LinkItem]) -> bool:
    """Return whether all that an answer cites stands in its quotes."""
    cited = [line for line in text.splitlines() if any(each.label in line for each in sources)]
    return bool(cited) and all(line.startswith(_QUOTE) for line in cited)


def without_lead(answer: str) -> str:
    """Return an answer that only quotes without the line that says so: its bars say it."""
    quotes = answer.removeprefix(FROM_NOTES).lstrip("\n")
    return quotes if quotes.startswith(_QUOTE) else answer


def wrapped(text: str, width: int) -> list[Line]:
    """Wrap plain text into lines of a width."""
    from kbtui.tui.markdown.layout import render_plain

    return render_plain(text, width).lines


def settled(text: str, start: int) -> int:
    """Return the offset up to which later text can't change how a streaming text is rendered.

    That is where the last block begins that has a blank line above and is in no list or quote.
    """
    document = Document(text[start:], has_head=False)
    for block in reversed(document.blocks):
        if block.first and not block.depth and not document.line(block.first - 1).strip():
            return start + document.line_starts[block.first]
    return start


def _markdown(text: str, width: int) -> Rendered:
    from kbtui.tui.markdown.layout import render
    from kbtui.tui.markdown.source import SourceText

    return render(SourceText(text, whole=True), width)
