"""The inbox screen, where changes proposed by machines are accepted or rejected place by place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial, wraps
from time import monotonic
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from kbtui.errors import KbtuiError
from kbtui.history.change import Commit
from kbtui.history.places import Plan, ProposedPlace
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.background.service import Evidence
from kbtui.presentation.actors import actor_name
from kbtui.presentation.commit_summary import told
from kbtui.presentation.notes import Names, names_of
from kbtui.presentation.proposals import format_files, paths_of, reason_of
from kbtui.presentation.times import format_time
from kbtui.text import clean_line, counted, shorten
from kbtui.tui.actions.registry import actions, bindings
from kbtui.tui.diff.diff_view import ListAndDiff
from kbtui.tui.diff.undo_conflict import confirm_and_undo
from kbtui.tui.inbox.proposals import PlaceEditor, PlaceView, ProposalList
from kbtui.tui.messages import (
    InboxChanged,
    KnowledgeChanged,
    OpenEntry,
    OpenMessage,
    TimePassed,
    leave_for,
    show_errors,
    tell,
    tell_error,
)
from kbtui.tui.notes.preview import Preview
from kbtui.tui.terminal.background import SerialQueue, latest, run_latest
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.tui.widgets.dialogs import ask
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.text_field import why_too_long

_FRAME_ROWS = 2
_MIN_NOTE_ROWS = 40
"""The screen height from which the note is shown below its diff."""
_MAX_SAID = 160
_NOBODY_SAID = "No message that was found says so: look twice."
_MANY_PLACES = 5
"""The number of places from which deciding on all of them needs a confirmation."""
_ACTION_NAMES = {action.call.partition("(")[0] for action in actions("inbox")}
_EMPTY_TITLE = "Nothing waits for you."
_EMPTY_TEXT = """

What kbtui does by itself never changes a line that you wrote. If Dream finds one that is out of \
date, if a conversation contradicts your memory, or if another machine changed the same line, the \
change comes here first, and you decide on it place by place.

To decide on all that is written, set "Ask before writing" of Memory to `ask` in /config."""


def _queued_decision(
    work: Callable[[InboxScreen, Plan, ProposedPlace], Coroutine[Any, Any, None]],
) -> Callable[[InboxScreen], None]:
    """Queue an action on the selected place behind the actions that were typed before it.

    The place is looked up when the action's turn comes, so it may be another one by then. Nothing
    is done if another proposal is selected or an earlier action has opened the editor.
    """

    @wraps(work)
    def do(screen: InboxScreen) -> None:
        plan = screen.rows.item
        if plan is not None and screen.was_seen():
            screen.turns.run(screen.decide, plan.proposal.id, work)

    return do


class InboxScreen(ListAndDiff):
    """A list of proposals, with the places of the selected one beside or below it.

    `turns` runs decisions one after another, each on what the previous one left.
    """

    DEFAULT_CSS = """
    InboxScreen {
        #inbox-empty {
            display: none; height: 1fr; align: center top;
            & > Static { width: 1fr; max-width: 80; margin: 2 1; color: $text-muted; }
        }
        &.-low #inbox-empty > Static { margin: 0 1; }
        #inbox-what { height: auto; max-height: 5; padding: 0 1; }
        PlaceView { height: 1fr; }
        .split-detail { height: 2fr; }
        &.-low .split-list { min-height: 4; }
        &.-low #inbox-what { max-height: 2; }
        &.-low.-full #inbox-what { display: none; }
        #inbox-note { display: none; }
        &.-with-note PlaceView { height: auto; max-height: 60%; }
        &.-with-note #inbox-note {
            display: block; height: 1fr; margin-top: 1;
            border-top: solid $border-blurred; border-title-color: $text-muted;
        }
        &.-editing PlaceView { height: 1fr; max-height: 100%; }
        &.-editing #inbox-note { display: none; }
        &.-editing .split-list { height: 6; }
        &.-editing.-low .split-list { display: none; }
        &.-editing.-beside .split-list { height: 100%; }
        &.-empty .parts { display: none; }
        &.-empty #inbox-empty { display: block; }
    }
    """
    BINDINGS = bindings("inbox")
    TITLE_TEXT = "Inbox"
    CHOOSES = "zoom"
    rows: ProposalList
    diff: PlaceView

    def __init__(self, kb: KnowledgeBase, proposal: str = "") -> None:
        """Show the waiting proposals, with the one whose id is `proposal` selected if it exists."""
        super().__init__(kb)
        self.rows = ProposalList(classes="split-list framed")
        self.diff = PlaceView()
        self._note = Preview(kb, id="inbox-note")
        self._note.border_title = " As it is now "
        self.turns = SerialQueue(self, "decide")
        self._inbox = kb.memory.inbox
        self._selected_id = proposal
        self._status = ""
        self._said: Mapping[str, Evidence] = {}
        self._accepted: Commit | None = None
        self._selected_at = 0.0

    def compose_body(self) -> ComposeResult:
        with Vertical(id="inbox-empty", classes="framed"):
            yield Static(Content("Looking …"))
        with Divided(classes="parts"):
            yield self.rows
            with Vertical(classes="split-detail framed"):
                yield Static(id="inbox-what")
                yield self.diff
                yield self._note

    def on_mount(self) -> None:
        self.rows.focus()
        run_latest(self, "inbox", self._read, settle=True)

    def check_action(
        self,
        action: str,
        parameters: tuple[object, ...],  # noqa: ARG002 - Textual's signature
    ) -> bool | None:
        """Disable the decisions while the editor is open or the inbox is empty."""
        if self.has_class("-editing"):
            return action not in _ACTION_NAMES
        return action not in _ACTION_NAMES - {"back", "undo"} or not self.has_class("-empty")

    # Reading

    @on(TimePassed)
    def _time_passed(self) -> None:
        self.rows.rows_changed()

    @on(KnowledgeChanged)
    @on(InboxChanged)
    def _inbox_changed(self) -> None:
        """Read the proposals again, merged into the current files."""
        run_latest(self, "inbox", self._read)

    async def _read(self, *, settle: bool = False) -> None:
        """Read and show the proposals; `settle` first removes those already in the files."""
        with show_errors(self):
            if settle and self.kb.workspace.writable:
                await asyncio.to_thread(self._inbox.settle)
            self._show_plans(*await asyncio.to_thread(self._waiting))

    def _waiting(self) -> tuple[Sequence[Plan], Names, Mapping[str, Evidence]]:
        """Return the waiting proposals, the names of their notes, and what says so, by place."""
        finder = self.kb.memory.evidence()
        plans = finder.ordered(self._inbox.waiting())
        names = names_of(self.kb.library, (path for each in plans for path in paths_of(each)))
        said = {
            f"{plan.proposal.id} {key}": evidence
            for plan in plans
            for key, evidence in finder.of_plan(plan).items()
        }
        return plans, names, said

    def _show_plans(
        self, plans: Sequence[Plan], names: Names, said: Mapping[str, Evidence]
    ) -> None:
        self._said = said
        at = self.rows.item.proposal.id if self.rows.item is not None else self._selected_id
        self._selected_id = ""
        max_height = max(1, len(plans)) * ProposalList.ROW_HEIGHT + _FRAME_ROWS
        self.rows.styles.max_height = None if self.has_class("-beside") else max_height
        self.diff.names = names
        self.rows.show_plans(plans, names, at)
        if self.rows.item is None or self.rows.item.proposal.id != at:
            self._selected_at = monotonic()
        self.look_at()
        self._show_status(self._status)
        self.set_class(not plans, "-empty")
        if not plans:
            self.remove_class("-full")
            empty_text = Content.assemble((_EMPTY_TITLE, "bold $foreground"), _EMPTY_TEXT)
            self.query_one("#inbox-empty > Static", Static).update(empty_text)
        self.refresh_bindings()

    def _show_status(self, text: str) -> None:
        """Show the outcome of the last action in the frame, where it covers nothing."""
        self._status = text
        count = self.rows.row_count
        empty = self.query_one("#inbox-empty")
        self.rows.border_title = empty.border_title = Content(f"Inbox {count or ''}".rstrip())
        detail = self.query_one(".split-detail")
        detail.border_title = "What would change"
        for frame in (empty, detail):
            frame.border_subtitle = Content(clean_line(text))

    def look_at(self) -> None:
        plan = self.rows.item
        if plan is not None:
            self.diff.show_plan(plan)
            self._show_place(plan)

    @property
    def evidence(self) -> Evidence | None:
        """The message that says what the selected place would write."""
        plan, place = self.rows.item, self.diff.place
        if plan is None or place is None:
            return None
        return self._said.get(f"{plan.proposal.id} {place.key}")

    def _show_place(self, plan: Plan) -> None:
        """Show who proposed the selected place, what says so, and its note."""
        text = _description(plan, self.rows.names, self.evidence)
        self.query_one("#inbox-what", Static).update(text)
        self._show_note()

    def _show_note(self) -> None:
        """Show the place's note below the diff if there is room."""
        place = self.diff.place
        has_room = self.size.height >= _MIN_NOTE_ROWS and place is not None and not place.whole
        self.set_class(has_room, "-with-note")
        if place is not None and has_room:
            self._note.look_at(self.diff.path, (place.first + 1, max(place.first + 1, place.last)))

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self._show_note()

    def action_hunk(self, by: int) -> None:
        super().action_hunk(by)
        if self.rows.item is not None:
            self._show_place(self.rows.item)

    def action_zoom(self) -> None:
        if self.rows.item is not None:
            self.give_room(to_diff=not self.has_class("-full"))

    def action_open(self) -> None:
        """Open the message that says so; without one, the note."""
        said = self.evidence
        if said is not None:
            leave_for(self, OpenMessage(said.session, said.message.id))
        else:
            self.action_open_note()

    def action_open_note(self) -> None:
        path = self.diff.path
        if path:
            leave_for(self, OpenEntry(path))

    # Deciding

    def was_seen(self) -> bool:
        """Return whether the proposal was selected when the key being handled was typed."""
        return not isinstance(self.app, KeysInOrder) or self.app.handling_since >= self._selected_at

    async def decide(
        self,
        proposal: str,
        work: Callable[[InboxScreen, Plan, ProposedPlace], Coroutine[Any, Any, None]],
    ) -> None:
        """Run `work` on the selected place if it belongs to `proposal`."""
        plan, place = self.rows.item, self.diff.place
        if self.has_class("-editing") or plan is None or place is None:
            return
        if plan.proposal.id == proposal:
            await work(self, plan, place)

    @_queued_decision
    async def action_accept(self, plan: Plan, place: ProposedPlace) -> None:
        if not place.why:
            await self._accept(plan, [place.key])
            return
        keys = {"t": "take the proposed", "e": "write it", "x": "keep what is there"}
        text = f"It can't be merged by itself: {place.why}. What shall stand there?"
        answer = await ask(self, "Conflict", text, keys)
        if answer == "t":
            await self._accept(plan, [place.key], theirs=True)
        elif answer == "e":
            await self._edit(plan, place)
        elif answer == "x":
            await self._reject(plan, place)

    @_queued_decision
    async def action_accept_all(self, plan: Plan, _hunk: ProposedPlace) -> None:
        keys = [place.key for place in plan.places if not place.why]
        if not keys:
            self._show_status("Every place conflicts: decide on each (a), or write it (e).")
        elif await self._confirm_all(plan, "Accept"):
            await self._accept(plan, keys)

    @_queued_decision
    async def action_reject(self, plan: Plan, place: ProposedPlace) -> None:
        await self._reject(plan, place)

    @_queued_decision
    async def action_reject_all(self, plan: Plan, _hunk: ProposedPlace) -> None:
        if await self._confirm_all(plan, "Reject"):
            work = partial(self._inbox.reject, plan.proposal.id)
            await self._run_and_reload(work, "The proposal is rejected; it isn't made again.")

    @_queued_decision
    async def action_edit(self, plan: Plan, place: ProposedPlace) -> None:
        await self._edit(plan, place)

    def action_undo(self) -> None:
        self.turns.run(self._undo)

    async def _undo(self) -> None:
        commit = self._accepted
        if commit is None:
            self._show_status("Nothing was accepted here yet; F4 shows every change.")
            return
        history = self.kb.history
        with show_errors(self):
            undo, own = partial(history.undo, commit.id), [each.path for each in commit.paths]
            did = await asyncio.to_thread(told, self.kb.library, commit)
            done = await confirm_and_undo(self, history, did, undo, own)
            if done is None:
                return
            self._accepted = None
            self._show_status("Taken back.")
        await self._read()

    async def _accept(self, plan: Plan, keys: Sequence[str], *, theirs: bool = False) -> None:
        work = partial(self._inbox.accept, plan.proposal.id, hunks=keys, theirs=theirs)
        with show_errors(self):
            commit = await asyncio.to_thread(work)
            left = len(plan.places) - len(keys)
            rest = f"; {left} still wait{'s' * (left == 1)}" if left else ""
            self._accepted = commit or self._accepted
            done = "Accepted, u takes it back" if commit else "It stood there already"
            self._show_status(f"{done}{rest}.")
        await self._read()

    async def _reject(self, plan: Plan, place: ProposedPlace) -> None:
        work = partial(self._inbox.reject, plan.proposal.id, hunks=[place.key])
        await self._run_and_reload(work, "Rejected; it isn't proposed again.")

    async def _run_and_reload(self, work: Callable[[], object], status: str) -> None:
        with show_errors(self):
            await asyncio.to_thread(work)
            self._show_status(status)
        await self._read()

    async def _confirm_all(self, plan: Plan, what: str) -> bool:
        """Return whether to decide on all places of a proposal, asking first if there are many."""
        count = len(plan.places)
        if count < _MANY_PLACES:
            return True
        text = f"{what} {count} places in {format_files(plan, self.rows.names)}?"
        return await ask(self, f"{what} all", text, {"y": f"{what.lower()} all"}) == "y"

    # Writing

    async def _edit(self, plan: Plan, place: ProposedPlace) -> None:
        """Open an editor below the diff; the keys of the inbox are disabled meanwhile."""
        try:
            draft = await asyncio.to_thread(self._inbox.draft, plan.proposal.id, place.key)
        except KbtuiError as error:
            tell_error(self, error)
            await self._read()
            return
        if why_not := why_too_long(draft.text):
            tell(self, why_not, "warning")
            return
        conflict = bool(place.why)
        editor = PlaceEditor(plan.proposal.id, place.key, draft, conflict=conflict)
        await self.query_one(".split-detail").mount(editor)
        self.add_class("-editing")
        self.refresh_bindings()

    @on(PlaceEditor.Saved)
    @latest("take")
    async def _save_edit(self, event: PlaceEditor.Saved) -> None:
        """Save the edited text; if that fails, the editor stays open."""
        edit = partial(self._inbox.edit, event.proposal, event.place, event.text, seen=event.seen)
        with show_errors(self):
            await asyncio.to_thread(edit)
            self._show_status("Your text is proposed there now: a accepts it.")
            self._close_editor()
            await self._read()

    @on(PlaceEditor.Finished)
    @latest("leave")
    async def _cancel_edit(self, event: PlaceEditor.Finished) -> None:
        """Close the editor without saving, after a confirmation if there are edits."""
        keys = {"d": "give it up"}
        question = "What you wrote isn't taken yet."
        if not event.unsaved or await ask(self, "Your text", question, keys) == "d":
            self._close_editor()

    def _close_editor(self) -> None:
        self.query(PlaceEditor).remove()
        self.remove_class("-editing")
        (self.diff if self.has_class("-full") else self.rows).focus()
        self.refresh_bindings()


def _description(plan: Plan, names: Names, said: Evidence | None) -> Content:
    """Describe why and by whom a change is proposed, and which message says so."""
    proposal = plan.proposal
    facts = [actor_name(proposal.actor, proposal.origin), format_time(proposal.created)]
    lines = [
        Content.styled(reason_of(plan, names), "bold"),
        _evidence_line(said),
        Content.styled(" · ".join(clean_line(fact) for fact in facts), "$text-muted"),
    ]
    if plan.conflicts:
        places = counted(len(plan.conflicts), "place")
        text = f"{places} can't be merged: a asks, e writes your own text."
        lines.append(Content.styled(text, "$text-warning"))
    return Content("\n").join(lines)


def _evidence_line(said: Evidence | None) -> Content:
    if said is None:
        return Content.styled(_NOBODY_SAID, "$text-warning")
    text = shorten(clean_line(said.message.content), _MAX_SAID)
    return Content.assemble(
        (f"You said {format_time(said.message.time)}: ", "$text-muted"),
        (f"“{text}”", "$text-success"),
        ("  o opens it", "$text-accent"),
    )
