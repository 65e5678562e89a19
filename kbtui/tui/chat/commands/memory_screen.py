"""The memory screen: the parts of a prompt by tokens, the lines of memory, and recent changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice, zip_longest
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from kbtui.errors import KbtuiError, ModelError, StoppedError
from kbtui.history.change import Actor, Commit
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.remembered import RememberedLine, change_fact, remembered
from kbtui.presentation.actors import actor_name, committer
from kbtui.presentation.commit_summary import is_upkeep, summarize
from kbtui.presentation.notes import Names, all_names
from kbtui.presentation.times import format_day, format_time
from kbtui.sessions.store import Session
from kbtui.settings import OFFLINE
from kbtui.text import clean_line, counted, has_words, usd
from kbtui.tui.actions.registry import bindings
from kbtui.tui.chat.commands.forgetting import confirm_and_forget
from kbtui.tui.diff.correct import correct_everywhere
from kbtui.tui.messages import OpenEntry, leave_for, tell
from kbtui.tui.notes.why import WhyScreen, explanation, look_up, said
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.dialogs import ask_text
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.finder import Finder
from kbtui.tui.widgets.kinds import draw_pieces
from kbtui.tui.widgets.line_view import resolve_styles
from kbtui.tui.widgets.row_list import RowList
from kbtui.workspace.layout import MEMORY

_DEBOUNCE_SECONDS = 0.1
_WEEK = timedelta(days=7)
_MIN_PRICE_USD = 0.0001  # the smallest price that four decimals can show
_MAX_KEPT = 40
_PART_NAMES = {
    "identity": "who kbtui is", "tools": "tools", "bootstrap": "your files about you",
    "skills": "how-tos", "MEMORY.md": "memory", "notes": "the last days", "earlier": "earlier talk",
    "session": "this conversation", "index": "list of notes", "recall": "what fits the message",
    "now": "the time", "message": "the message",
}  # fmt: skip
_BAR_STYLES = (
    ("█", "$primary"), ("▓", "$secondary"), ("█", "$accent"), ("▓", "$success"),
    ("█", "$warning"), ("▓", "$error"), ("█", "$primary-lighten-2"), ("▓", "$accent-lighten-2"),
)  # fmt: skip


class Share(NamedTuple):
    """A part of the prompt, and its size in tokens."""

    name: str
    tokens: int


class MemoryData(NamedTuple):
    """The data of the screen: `kept` are kbtui's commits of this week, `dreams` when Dream runs.

    `price` is the cost of the prompt in words; empty if it is free or unknown.
    """

    price: str
    shares: tuple[Share, ...]
    facts: tuple[RememberedLine, ...]
    kept: tuple[Commit, ...]
    names: Names
    dreams: str


def read_memory(kb: KnowledgeBase, session: Session | None, draft: str) -> MemoryData:
    """Read the data of the screen; run in a thread."""
    parts = kb.agent.prompt_parts(session, draft)
    shares = tuple(Share(_PART_NAMES.get(each.name, each.name), each.tokens) for each in parts)
    since = datetime.now(UTC) - _WEEK
    others = (Actor.YOU, Actor.IMPORT, Actor.SYNC)
    kept = (
        commit
        for commit in kb.history.log(since=since)
        if commit.actor not in others and not is_upkeep(commit)
    )
    names = all_names(kb.library.infos(), kb.sessions)
    price = _price(kb, sum(share.tokens for share in shares))
    return MemoryData(
        price,
        shares,
        remembered(kb.history, kb.library),
        tuple(islice(kept, _MAX_KEPT)),
        names,
        _dreams(kb),
    )


def _price(kb: KnowledgeBase, tokens: int) -> str:
    from kbtui.models.litellm_model import price_of

    try:
        model = kb.models.chat()
    except ModelError:
        return ""
    price = None if model.is_local or model.name == OFFLINE else price_of(model.name, tokens, 0)
    text = f"${price:.4f}" if price and price >= _MIN_PRICE_USD else usd(price or 0)
    return f"{text} a message before the answer" if price else ""


def _dreams(kb: KnowledgeBase) -> str:
    last = next(iter(kb.memory.dream_log.log(1)), None)
    was = (
        f"Last Dream: {format_time(last.time)}."
        if last is not None
        else "Dream has changed nothing yet."
    )
    now = datetime.now(UTC)
    due = kb.memory.next_dream(now)
    if due is not None:
        return f"{was} Next: {'soon' if due <= now else format_time(due)}."
    by_itself = "when something is new" if kb.settings.dream.interval_hours else "on /dream alone"
    return f"{was} Next: {by_itself}."


def stacked_bar(shares: Sequence[Share], width: int, window: int = 0, price: str = "") -> Content:
    """Render the parts of the prompt as a bar in proportion to their tokens, with a legend."""
    shown = [share for share in shares if share.tokens]
    total = sum(share.tokens for share in shown)
    bar, names, before = Content(), [], 0
    for share, (glyph, color) in zip(shown, cycle(_BAR_STYLES), strict=False):
        after = before + share.tokens
        cells = round(width * after / total) - round(width * before / total)
        bar += Content.styled(glyph * cells, color)
        names.append(Content.assemble((f"{glyph} ", color), f"{share.name} {share.tokens:,}"))
        before = after
    legend = Content("\n").join(_wrap_names(names, width))
    of = f" of {window:,}, {total / window:.0%}" if window else ""
    costs = f" · {price}" if price else ""
    total_line = Content.styled(f"{total:,} tokens{of}{costs}", "$text-muted")
    return Content("\n").join([bar, legend, total_line])


def _wrap_names(names: Sequence[Content], width: int) -> Iterator[Content]:
    """Yield lines with as many names as fit."""
    line = Content()
    for name in names:
        if line and line.cell_length + name.cell_length + 3 > width:
            yield line
            line = Content()
        line = Content("   ").join([line, name]) if line else name
    yield line


def _source(fact: RememberedLine) -> str:
    """Return who wrote a line, and on which day."""
    origin = fact.origin
    if origin is None:
        return ""
    day = f", {format_day(origin.time.astimezone().date())}" if origin.time else ""
    return clean_line(f"{actor_name(origin.actor, origin.origin)}{day}")


class FactList(RowList[RememberedLine]):
    """The lines of memory, below their headings."""

    empty = "Nothing is remembered yet. /remember keeps a line."
    items: Sequence[RememberedLine] = ()

    @property
    def fact(self) -> RememberedLine | None:
        """The line under the cursor; None on a heading."""
        return self.item if self.item is not None and not self.item.is_heading else None

    def can_stop_on(self, index: int) -> bool:
        return not self.items[index].is_heading

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Render a heading, or a line and who wrote it."""
        fact = self.items[index]
        if fact.is_heading:
            return [Content.styled(f" {fact.text}", ".rows--strong")]
        source = Content.styled(_source(fact), ".rows--muted")
        room = max(8, width - source.cell_length - 4)
        text = Content(f"   {fact.text}").truncate(room, ellipsis=True, pad=True)
        return [(text + "  " + source).truncate(width)]


class MemoryScreen(Finder):
    """The parts of the prompt above; below them the memory, and what was kept this week."""

    DEFAULT_CSS = """
    MemoryScreen {
        #memory-bar { height: auto; max-height: 40%; }
        FactList { height: 2fr; }
        #memory-why { height: auto; max-height: 50%; }
        #memory-week { height: 1fr; }
        &.-short FactList { height: 1fr; }
        &.-short #memory-why { display: none; }
        &.-beside .split-list { width: 3fr; }
        &.-beside .split-detail { width: 2fr; }
        &.-low #memory-bar, &.-low .split-detail { display: none; }
    }
    """
    BINDINGS = bindings("facts")
    TITLE_TEXT = "Memory"
    FILTER_HINT = "words of a line"
    BESIDE_COLUMNS = 100
    rows: FactList

    def __init__(
        self, kb: KnowledgeBase, session: Session | None = None, draft: str = "", window: int = 0
    ) -> None:
        """Show the prompt of a session with a draft; `window` is the model's context in tokens."""
        super().__init__(kb)
        self._prompt_of = session, draft
        self._window = window
        self._memory: MemoryData | None = None
        self._query = ""
        self.rows = FactList(classes="split-list framed")

    def compose_body(self) -> ComposeResult:
        yield Static(id="memory-bar", classes="framed")
        with Divided(id="memory-split", classes="parts"):
            yield self.rows
            with Vertical(classes="split-detail"):
                with VerticalScroll(id="memory-why", classes="framed", can_focus=False):
                    yield Static(id="memory-origin")
                with VerticalScroll(id="memory-week", classes="framed", can_focus=False):
                    yield Static(id="memory-kept")

    def on_mount(self) -> None:
        self.query_one("#memory-bar").border_title = "What a prompt holds"
        self.rows.border_title = "Memory"
        self.query_one("#memory-why").border_title = "Where it is from"
        self.query_one("#memory-week").border_title = "Kept this week"
        self.rows.focus()
        self._read()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self._update_view)

    def on_knowledge_changed(self) -> None:
        self._read()

    @latest("memory")
    async def _read(self) -> None:
        self._memory = data = await asyncio.to_thread(read_memory, self.kb, *self._prompt_of)
        self._show_facts(data.facts)
        self._update_view()

    def _show_facts(self, facts: Sequence[RememberedLine]) -> None:
        """Show the lines that match the filter below their headings."""
        fitting = [each for each in facts if each.is_heading or has_words(each.text, self._query)]
        shown = [
            each
            for each, after in zip_longest(fitting, fitting[1:])
            if not each.is_heading or (after is not None and not after.is_heading)
        ]
        lines = sum(not fact.is_heading for fact in shown)
        self.rows.border_title = Content(f"Memory · {counted(lines, 'line')}")
        self.rows.show(shown if self._query else facts)

    async def find(self, query: str) -> None:
        self._query = query
        if self._memory is not None:
            self._show_facts(self._memory.facts)

    def look_at(self) -> None:
        if self.rows.fact is not None:
            self._look_up(self.rows.fact)

    @latest("look")
    async def _look_up(self, fact: RememberedLine) -> None:
        """Show where a line of memory is from, unless the cursor only passes over it."""
        await asyncio.sleep(_DEBOUNCE_SECONDS)
        origin = self.query_one("#memory-origin", Static)
        try:
            why, names = await asyncio.to_thread(look_up, self.kb, MEMORY, fact.line)
        except KbtuiError as error:
            origin.update(Content.styled(clean_line(str(error)), "$text-muted"))
            return
        lines = [*explanation(why, names), *said(why)]
        origin.update(resolve_styles(self.rows, Content("\n").join(lines)))

    def _update_view(self) -> None:
        if self._memory is None:
            return
        bar = self.query_one("#memory-bar", Static)
        width, data = max(1, bar.content_size.width), self._memory
        bar.update(stacked_bar(data.shares, width, self._window, data.price))
        kept = [_change_line(commit, self._memory.names) for commit in self._memory.kept]
        empty_text = Content.styled("kbtui has written nothing this week.", "$text-muted")
        dreams = Content.styled(self._memory.dreams, "$text-muted")
        text = Content("\n").join([*(kept or [empty_text]), Content(), dreams])
        kept_view = self.query_one("#memory-kept", Static)
        kept_view.update(resolve_styles(self.rows, text))

    # Keys

    @latest("change")
    async def action_edit(self) -> None:
        if (fact := self.rows.fact) is None:
            return
        text = await ask_text(self, "Edit the line", fact.text)
        if text is not None and text != fact.text:
            await asyncio.to_thread(change_fact, self.kb.library, fact, text)
            self._read()

    @latest("change")
    async def action_correct(self) -> None:
        if (fact := self.rows.fact) is not None:
            await correct_everywhere(self, self.kb, fact.text)
            self._read()

    @latest("change")
    async def action_forget(self) -> None:
        if (fact := self.rows.fact) is None:
            return
        try:
            forgotten = await confirm_and_forget(self, self.kb, fact.text)
        except StoppedError as stopped:
            tell(self, stopped.message)
            return
        if forgotten is not None:
            tell(self, f"{forgotten.title}. {forgotten.text}")
            self._read()

    def action_why(self) -> None:
        if self.rows.fact is not None:
            self.app.push_screen(WhyScreen(self.kb, MEMORY, self.rows.fact.line))

    def action_open(self) -> None:
        fact = self.rows.fact
        if fact is None and not self.rows.items:
            tell(self, FactList.empty)
        else:
            leave_for(self, OpenEntry(MEMORY, fact.line if fact is not None else None))


def _change_line(commit: Commit, names: Names) -> Content:
    """Render one change of the week: when, who, what."""
    pieces = draw_pieces(summarize(commit, names).pieces)
    when = Content.styled(f"{format_time(commit.time)}  ", "$text-muted")
    return Content.assemble(when, (committer(commit), "$text-accent"), " ", *pieces)
