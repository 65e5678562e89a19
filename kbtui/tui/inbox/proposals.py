"""The widgets of the inbox: the list of proposals, the diff of their places, and the editor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from textual import getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from kbtui.history.places import Plan, ProposedPlace
from kbtui.memory.background.service import PlaceDraft, plan_diff
from kbtui.presentation.actors import actor_name
from kbtui.presentation.notes import Names, name_of
from kbtui.presentation.proposals import named_files, reason_of
from kbtui.presentation.times import format_time
from kbtui.text import counted
from kbtui.tui.actions.registry import bindings
from kbtui.tui.diff.diff_view import DiffView
from kbtui.tui.notes.entry_editor import normalize_line_ends, restore_line_ends
from kbtui.tui.notes.note_area import NoteArea
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.kinds import with_sign
from kbtui.tui.widgets.row_list import RowList, justified_row


class ProposalList(RowList[Plan]):
    """The list of proposals, two lines each."""

    ROW_HEIGHT = 2

    def __init__(self, *, classes: str | None = None) -> None:
        self.names = Names()
        super().__init__(classes=classes)

    def show_plans(self, plans: Sequence[Plan], names: Names, at: str = "") -> None:
        """Show proposals, with the cursor on the one with id `at`, or where it was."""
        self.names = names
        places = (index for index, plan in enumerate(plans) if plan.proposal.id == at)
        self.show(tuple(plans), next(places, self.cursor))

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Render one proposal: who would change what, and why."""
        plan = self.items[index]
        proposal = plan.proposal
        parts: list[Content | tuple[str, str]] = [
            (f" {actor_name(proposal.actor, proposal.origin)} ", ".rows--accent"),
            ("would change ", ".rows--muted"),
            self._file_names(plan),
        ]
        if plan.conflicts:
            parts.append((f"  {counted(len(plan.conflicts), 'conflict')}", ".rows--bad"))
        when = Content.styled(format_time(proposal.created), ".rows--muted")
        why = Content.styled(f"   {reason_of(plan, self.names)}", ".rows--muted")
        first = justified_row(Content.assemble(*parts), when, width)
        return [first, why.truncate(width, ellipsis=True)]

    def _file_names(self, plan: Plan) -> Content:
        named, more = named_files(plan, self.names)
        return Content(", ").join(map(with_sign, named)) + more


class PlaceView(DiffView):
    """A diff whose hunks are the waiting places of a proposal, in order."""

    SIDE_BY_SIDE_COLUMNS = 72
    keep_flash = True

    def __init__(self) -> None:
        super().__init__()
        self._plan: Plan | None = None
        self._at = 0

    def show_plan(self, plan: Plan) -> None:
        """Show a proposal, keeping the selected place if it is the same proposal.

        Keys act on it at once, though drawing it takes a moment.
        """
        if plan is self._plan:
            return
        same = self._plan is not None and self._plan.proposal.id == plan.proposal.id
        self._plan = plan
        self._at = max(0, min(self._at, len(plan.places) - 1)) if same else 0
        self._load_plan(plan, same=same)

    @latest("plan")
    async def _load_plan(self, plan: Plan, *, same: bool) -> None:
        self.show(await asyncio.to_thread(plan_diff, plan), keep=same)

    @property
    def place(self) -> ProposedPlace | None:
        """The selected place."""
        hunks = self._plan.places if self._plan is not None else ()
        return hunks[self._at] if self._at < len(hunks) else None

    @property
    def path(self) -> str:
        """The workspace path of the selected place's file; empty if no place is selected."""
        return self._plan.find(self.place.key)[0].path if self._plan and self.place else ""

    def on_diff_view_shown(self) -> None:
        """Highlight the selected place."""
        self.go_to_hunk(0)

    def go_to_hunk(self, by: int) -> None:
        """Select the place `by` positions further down, even if it isn't drawn yet."""
        count = len(self._plan.places) if self._plan is not None else 0
        self._at = max(0, min(count - 1, self._at + by))
        if self._at < len(self._hunks):
            line = self._hunks[self._at].line
            self.flash(range(line, line + 1))


class PlaceEditor(Vertical):
    """A text area with the proposed lines or, in a conflict, both sides."""

    DEFAULT_CSS = """
    PlaceEditor {
        height: 1fr; border-top: solid $primary 60%;
        #place-title { height: auto; padding: 0 1; background: $boost; color: $text-muted; }
        NoteArea { height: 1fr; }
    }
    """
    BINDINGS = bindings("editor")

    @dataclass
    class Saved(Message):
        """The person saved `text` for a place of a proposal."""

        proposal: str
        place: str
        text: str
        seen: str

    @dataclass
    class Finished(Message):
        """The person wants to close the editor; `unsaved` says whether there are edits."""

        unsaved: bool = field(kw_only=True)

    def __init__(self, proposal: str, place: str, draft: PlaceDraft, *, conflict: bool) -> None:
        super().__init__(id="place-editor")
        self.proposal = proposal
        self.place = place
        self._draft = draft
        self._conflict = conflict

    def compose(self) -> ComposeResult:
        name = name_of(self._draft.path)
        what = f"all of {name}" if self._draft.whole else f"lines of {name}"
        hint = "Ctrl+S takes your text, Esc leaves it"
        if self._conflict:
            hint = f"both sides are marked: leave what shall stand there. {hint}"
        yield Static(Content(f"Your text for {what}: {hint}"), id="place-title")
        yield NoteArea(normalize_line_ends(self._draft.text), id="place-text")

    def on_mount(self) -> None:
        self.area.focus()

    area = getters.query_one("#place-text", NoteArea)

    def action_save(self) -> None:
        text = restore_line_ends(self._draft.text, self.area.text)
        if text and not text.endswith("\n") and not self._draft.whole:
            text += "\n"  # a place is made of whole lines
        self.post_message(self.Saved(self.proposal, self.place, text, self._draft.seen))

    def action_close(self) -> None:
        unsaved = self.area.text != normalize_line_ends(self._draft.text)
        self.post_message(self.Finished(unsaved=unsaved))
