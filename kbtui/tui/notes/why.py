"""The dialog that explains a line: its commit, and the messages it was made from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor, Commit
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.provenance import Why
from kbtui.presentation.actors import committer
from kbtui.presentation.commit_summary import reason_of, summarize
from kbtui.presentation.notes import Names, name_of, names_of
from kbtui.presentation.times import day_heading
from kbtui.sessions.imported import speaker
from kbtui.sessions.store import SessionMessage
from kbtui.settings import OFFLINE
from kbtui.text import clean, clean_line, moment, shorten
from kbtui.tui.markdown.plain import as_read
from kbtui.tui.messages import OpenHistory, OpenMessage, leave_for, tell
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.dialogs import ListDialog
from kbtui.tui.widgets.kinds import draw_pieces
from kbtui.tui.widgets.row_list import Choice, ChoiceList

_MESSAGE_ROWS = 12
_ARCHIVE_CHARACTERS = 600
_MESSAGE_CHARACTERS = 400


class WhyScreen(ListDialog[None]):
    """A dialog that shows the origin of a line and leads to it."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    WhyScreen {
        VerticalScroll { height: auto; max-height: 24; scrollbar-size-vertical: 1; }
        ChoiceList { display: none; }
        &.-said ChoiceList { display: block; }
    }
    """
    HINT = "Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("H", "history", "Show the change"),
        Binding("y", "copy", "Copy the id"),
    ]

    def __init__(self, kb: KnowledgeBase, path: str, line: int, at: str | None = None) -> None:
        """Create the dialog for a line of a file, now or as of the commit `at`."""
        super().__init__()
        self.TITLE_TEXT = f"Why {name_of(path)}, line {line}"
        self._commit = at
        self._kb = kb
        self._path = path
        self._line = line
        self.why: Why | None = None
        self._names = Names()

    def compose_question(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Static(Content.styled("Looking it up …", "$text-muted"), id="why-text")
        yield ChoiceList(id="why-said")

    @latest("why")
    async def on_mount(self) -> None:
        text = self.query_one("#why-text", Static)
        try:
            why, self._names = await asyncio.to_thread(
                look_up, self._kb, self._path, self._line, self._commit
            )
        except KbtuiError as error:
            text.update(Content.styled(clean(str(error)), "$text-error"))
            return
        self.why = why
        named = f"Why {self._names[self._path].title}, line {why.line}"
        self.query_one(Vertical).border_title = Content(clean_line(named))
        text.update(Content("\n").join(explanation(why, self._names)))
        hints = ["Enter goes there"] if why.messages else []
        hints += ["H change", "y copy id"] if why.commit is not None else []
        self.HINT = " · ".join([*hints, "Esc close"])
        self.say(self.HINT)
        if why.messages:
            self.add_class("-said")
            choices = [_message_choice(message, why) for message in why.messages]
            first = next((n for n, m in enumerate(why.messages) if m.id in why.telling), 0)
            said = self.choices
            said.show(choices, first)
            said.styles.height = min(_MESSAGE_ROWS, len(choices))
            said.focus()

    def action_move(self, by: int) -> None:
        if self.has_class("-said"):
            super().action_move(by)
        else:
            self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_take(self) -> None:
        choice = self.choices.item
        if choice is not None and self.why is not None and self.why.session is not None:
            leave_for(self, OpenMessage(self.why.session, choice.value))

    def action_history(self) -> None:
        why = self.why
        if why is not None and why.origin.commit is not None:
            leave_for(self, OpenHistory(why.origin.path, why.origin.commit))
        else:
            tell(self, "The line isn't recorded yet.")

    def action_copy(self) -> None:
        if self.why is not None and self.why.origin.commit is not None:
            self.app.copy_to_clipboard(self.why.origin.commit)


def look_up(kb: KnowledgeBase, path: str, line: int, at: str | None = None) -> tuple[Why, Names]:
    """Return the origin of a line, and the names of the notes in it; run in a thread."""
    why = kb.provenance.why(path, line, at)
    paths = [change.path for change in why.commit.paths] if why.commit is not None else []
    return why, names_of(kb.library, [*paths, path, *filter(None, [why.moved_from])])


def said(why: Why) -> Iterator[Content]:
    """Yield the messages that a line was made of, each as one paragraph."""
    for message in why.messages:
        if message.id in why.telling:
            who = speaker(message.role, why.session or "")
            text = shorten(clean_line(message.content), _MESSAGE_CHARACTERS)
            yield Content.assemble((f"{who}: ", "$text-muted"), (f"“{text}”", "$text-success"))


def explanation(why: Why, names: Names) -> Iterator[Content]:
    """Yield the lines that say where a line is from."""
    line = as_read(clean_line(why.text.strip()), names) or "(an empty line)"
    is_head = why.line == 1 and not line.strip("-")
    yield Content.styled("(its properties)" if is_head else line, "bold $text-primary")
    yield Content(clean(why.note))
    if why.commit is not None:
        yield Content()
        yield description(why.commit, names)
    if why.moved_from:
        place = f"{names[why.moved_from].title}, line {why.origin.line},"
        yield Content.styled(f"It stood in {clean_line(place)} first.", "$text-muted")
    for entry in why.archives[:2]:
        yield Content()
        head = f"Archive entry {entry.cursor}, {clean_line(entry.timestamp)}"
        yield Content.styled(head, "bold")
        yield Content(shorten(clean(entry.content), _ARCHIVE_CHARACTERS))
    if why.messages:
        yield Content()
        yield Content.styled(clean_line(why.title), "bold")


def _message_choice(message: SessionMessage, why: Why) -> Choice[int]:
    who = speaker(message.role, why.session or "")
    mark = "●" if message.id in why.telling else "·"
    said = shorten(clean_line(message.content), _MESSAGE_CHARACTERS)
    when = moment(message.time)
    return Choice(f"{mark} {who}: {said}", when, message.id)


def description(commit: Commit, names: Names | None = None) -> Content:
    """Describe in a few lines what a commit did, when and why."""
    local = commit.time.astimezone()
    facts = [f"{day_heading(local.date())}, {local:%H:%M}"]
    if commit.origin.model not in {None, "", OFFLINE} and commit.actor is not Actor.MCP:
        facts.append(commit.origin.model)
    if commit.origin.session:
        facts.append("from a conversation")
    if commit.origin.batch:
        facts.append("one of several at once")
    drawn = draw_pieces(summarize(commit, names or Names()).pieces)
    lines = [
        Content.assemble(committer(commit), " ", *drawn).stylize("bold"),
        Content.styled(" · ".join(clean_line(fact) for fact in facts), "$text-muted"),
    ]
    reason = clean(reason_of(commit))
    is_said = reason.startswith("new ") and reason.partition(": ")[2] in lines[0].plain
    if reason and not is_said:
        lines.append(Content.styled(reason, "italic"))
    return Content("\n").join(lines)
