"""Correcting everywhere: one screen with every place that repeats an old value."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import Static

from kbtui.errors import KbtuiError
from kbtui.history.change import Commit
from kbtui.knowledge.format.facts import plain_fact
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.background.service import CorrectedPlace, CorrectionPlan, SaidBy
from kbtui.presentation.notes import Names, names_of
from kbtui.presentation.times import format_day
from kbtui.text import clean_line, counted
from kbtui.tui.actions.registry import bindings
from kbtui.tui.diff.confirm import run_with_progress
from kbtui.tui.messages import OpenEntry, leave_for, tell, tell_error
from kbtui.tui.terminal.background import latest
from kbtui.tui.widgets.dialogs import ask_text
from kbtui.tui.widgets.full_screen import FullScreen
from kbtui.tui.widgets.row_list import RowList

_KINDS = {
    "line": "",
    "task": "task",
    "heading": "heading",
    "summary": "summary",
    "decision": "decision, what was so goes under Evolution",
    "journal": "said on its day: struck out, with a pointer",
    "index": "follows by itself",
}
_TITLE = "Correct everywhere"
_ABOUT = "Put the value right: this is what stands there now."


async def correct_everywhere(
    node: DOMNode, kb: KnowledgeBase, old: str, new: str = "", about: str = ""
) -> Commit | None:
    """Show every place that repeats what a line says, and correct those that the person leaves in.

    Without a `new` statement the person is asked for it. Return None if nothing was changed.

    Raises:
        KbtuiError: It can't be told what is to be corrected.
    """
    old = clean_line(old)
    said = new or await ask_text(node, _TITLE, old, _ABOUT)
    if said is None or said == old:
        return None
    find = partial(kb.memory.correcting.plan, old, said, about)
    plan = await run_with_progress(node, _TITLE, "Looking where it stands …", lambda _: find())
    if not any(not each.follows for each in plan.places):
        tell(node, "No place repeats that.")
        return None
    paths = dict.fromkeys(each.path for each in plan.places)
    names = await asyncio.to_thread(names_of, kb.library, paths)
    commit: Commit | None = await node.app.push_screen_wait(CorrectScreen(kb, plan, names))
    if commit is not None:
        tell(node, f"Corrected in {counted(len(commit.paths), 'file')}. F4 takes it back.")
    return commit


class PlacesToCorrect(RowList[CorrectedPlace]):
    """The places, three lines each; `chosen` are the ids of those to correct."""

    ROW_HEIGHT = 3
    CLICK_SELECTS = False

    def __init__(self, plan: CorrectionPlan, names: Names, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._names = names
        self.plan = plan
        self.chosen = {each.id for each in plan.places if not each.follows}

    def toggle(self, place: CorrectedPlace) -> None:
        """Take a place in, or leave it out."""
        if not place.follows:
            self.chosen ^= {place.id}
            self.row_changed(self.cursor)

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Render where a place is, as it is, and as it would be."""
        place = self.items[index]
        mark = " " if place.follows else "✓" if place.id in self.chosen else "·"
        line = f":{place.line}" if place.line else ""
        kind = f"  {_KINDS[place.kind]}" if _KINDS[place.kind] else ""
        head = Content.assemble(
            (f" {mark} ", ".rows--good"),
            (f"{self._names[place.path].title}{line}", ".rows--accent"),
            (f"{_said(place.said)}{kind}", ".rows--muted"),
        )
        now = Content.assemble("   - ", (plain_fact(place.before), ".rows--gone"))
        then = plain_fact(place.after if place.kind != "journal" else self.plan.new)
        is_in = place.follows or place.id in self.chosen
        after = Content.assemble("   + ", (then, "" if is_in else ".rows--muted"))
        return [each.truncate(width, ellipsis=True) for each in (head, now, after)]


class CorrectScreen(FullScreen[Commit]):
    """Old and new with who said which when, and every place that repeats the old value."""

    DEFAULT_CSS = """
    CorrectScreen {
        #correct-what { height: auto; max-height: 6; padding: 0 1; }
        PlacesToCorrect { height: 1fr; }
        &.-low #correct-what { max-height: 2; }
    }
    """
    BINDINGS = bindings("correct")
    TITLE_TEXT = _TITLE

    def __init__(self, kb: KnowledgeBase, plan: CorrectionPlan, names: Names) -> None:
        super().__init__(kb)
        self._plan = plan
        self._names = names
        self.rows = PlacesToCorrect(plan, names, classes="framed")

    def compose_body(self) -> ComposeResult:
        yield Static(self._statements(), id="correct-what", classes="framed")
        yield self.rows

    def on_mount(self) -> None:
        self.query_one("#correct-what").border_title = "What was so, and what is"
        self.rows.show(self._plan.places)
        self._show_count()
        self.rows.focus()

    def _statements(self) -> Content:
        plan = self._plan
        rows = (
            ("-", plan.old, plan.old_said, "$text-error"),
            ("+", plan.new, plan.new_said, "$text-success"),
        )
        return Content("\n").join(
            Content.assemble(
                (f"{sign} {clean_line(text)}", style), (_who(said, self._names), "$text-muted")
            )
            for sign, text, said, style in rows
        )

    def _show_count(self) -> None:
        count = sum(not each.follows for each in self._plan.places)
        self.rows.border_title = Content(f"{len(self.rows.chosen)} of {counted(count, 'place')}")

    def action_move(self, by: int) -> None:
        self.rows.cursor += by

    def action_take(self) -> None:
        if self.rows.item is not None:
            self.rows.toggle(self.rows.item)
            self._show_count()

    def action_all(self) -> None:
        """Take in all places; none, if all were in."""
        every = {each.id for each in self._plan.places if not each.follows}
        self.rows.chosen = set() if self.rows.chosen == every else every
        self.rows.rows_changed()
        self._show_count()

    @on(RowList.Selected)
    def _row_selected(self) -> None:
        self.action_correct()

    @latest("correct")
    async def action_correct(self) -> None:
        if not self.rows.chosen:
            tell(self, "No place is chosen: space takes one in, a all.")
            return
        work = partial(self.kb.memory.correcting.correct, self._plan, self.rows.chosen)
        try:
            commit = await asyncio.to_thread(work)
        except KbtuiError as error:
            tell_error(self, error)
            return
        self.dismiss(commit)

    def action_open(self) -> None:
        if self.rows.item is not None:
            place = self.rows.item
            leave_for(self, OpenEntry(place.path, place.line or None))


def _said(said: SaidBy) -> str:
    when = format_day(said.said.day) if said.said is not None else ""
    return "".join(f"  {part}" for part in (said.who, when) if part)


def _who(said: SaidBy | None, names: Names) -> str:
    if said is None:
        return ""
    return f"{_said(said)}  in {names[said.path].title}"
