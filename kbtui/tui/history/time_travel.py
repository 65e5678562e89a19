"""Going back: a look at everything as it was at a commit, and bringing files back from there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import ClassVar, NamedTuple, cast

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Static

from kbtui.errors import KbtuiError
from kbtui.history.change import Commit
from kbtui.history.history import History, HistoryReader
from kbtui.knowledge.entries.entry import is_entry
from kbtui.knowledge.library.library import PastLibrary
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.records.journal import day_of
from kbtui.presentation.notes import Names, name_of
from kbtui.presentation.times import format_day
from kbtui.text import counted
from kbtui.tui.actions.registry import actions, bindings
from kbtui.tui.diff.confirm import Question, confirm, make_change
from kbtui.tui.history.time_slider import TimeSlider, read_commits
from kbtui.tui.messages import (
    AskAbout,
    OpenEntry,
    OpenHistory,
    OpenSearch,
    tell,
    tell_error,
)
from kbtui.tui.notes.knowledge_tree import ChangeMark
from kbtui.tui.notes.notes_pane import NotesPane
from kbtui.tui.terminal.background import SerialQueue, latest
from kbtui.tui.widgets.dialogs import ask_text
from kbtui.tui.widgets.full_screen import FullScreen
from kbtui.tui.widgets.kinds import sentence_drawn
from kbtui.tui.widgets.line_view import coloured

_STEP_SECONDS = 0.08
"""Seconds that one stands at a change until its notes are read: one may only pass by."""
_READING = frozenset(
    {"down", "up", "left", "right", "open", "filter", "backlinks", "back", "forward", "history",
     "tags", "map"}
)  # fmt: skip
_TAKEN = {key for action in actions("past") for key in action.keys.split(",")}
# They say why nothing happens, but aren't offered.
_REFUSED = [
    Binding(action.keys, "refuse", action.title, show=False, id=action.id)
    for action in actions("notes")
    if action.keys and action.method not in _READING and action.keys not in _TAKEN
]
_READ = [
    each
    for each in bindings("notes")
    if isinstance(each, Binding) and str(each.id).partition(".")[2] in _READING
]


def past_knowledge(kb: KnowledgeBase, commit: Commit) -> KnowledgeBase:
    """As much of a knowledge base as readers of notes ask for, as it was at a commit.

    It is searched by meaning as well where the vectors are still there, but not ahead, nor are
    conversations; pages of names are made of what is written now.
    """

    def days() -> list[str]:
        found = (path for path in kb.history.tree(commit.id) if path.startswith("memory/"))
        return sorted((path for path in found if day_of(path) is not None), reverse=True)

    past = SimpleNamespace(
        workspace=kb.workspace,
        history=kb.history,
        sessions=kb.sessions,
        library=PastLibrary(kb.history, commit.id, kb.library),
        search=SimpleNamespace(
            search=partial(kb.search.search, at=commit.id),
            in_conversations=lambda *_: 0,
            prioritize=lambda _: None,
        ),
        journal=SimpleNamespace(days=days),
        names=SimpleNamespace(pages=dict, lines=lambda _: []),
    )
    return cast("KnowledgeBase", past)


class PastPane(NotesPane, inherit_bindings=False):
    """The notes of a `PastKnowledge`: everything that reads works, nothing that writes does."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("past"), *_REFUSED, *_READ]
    WITH_RECENT = False  # the slider says what was done

    def offer_to_make(self, target: str) -> None:
        """A link led nowhere then."""
        del target
        tell(self, "That note wasn't there then.")

    def action_refuse(self) -> None:
        tell(
            self,
            "This is how it was: nothing can be changed here. R restores the note, T leads back"
            " to now.",
            "warning",
        )

    def action_want(self, what: str) -> None:
        if isinstance(self.screen, TimeTravelScreen):
            self.screen.want(what, self.target())

    def action_search(self) -> None:
        self.post_message(OpenSearch())


class Since(NamedTuple):
    """What differs from now: the files of then, marks for the tree, and a word for the banner."""

    then: Mapping[str, str]
    marks: Mapping[str, ChangeMark]
    said: str


def read_since(history: HistoryReader, at: str) -> Since:
    """Compare the notes at a commit with those of the newest one; called in a thread."""
    then, now = history.tree(at), history.tree("HEAD")
    marks = {
        path: ChangeMark(
            new=False, machine="", word="changed since" if path in now else "gone since"
        )
        for path, blob in then.items()
        if is_entry(path) and now.get(path) != blob
    }
    later = sum(is_entry(path) and path not in then for path in now)
    parts = [f"{counted(len(marks), 'note')} changed since"] if marks else []
    parts += [f"{counted(later, 'note')} came later"] if later else []
    return Since(then, marks, f"{' · '.join(parts)}  " if parts else "")


class TimeTravelScreen(FullScreen[None]):
    """Shows the notes of a commit; `R` brings an entry of it back."""

    AUTO_FOCUS = "KnowledgeTree"
    TITLE_TEXT = "Back in time"
    DEFAULT_CSS = """
    TimeTravelScreen {
        #past-banner {
            height: 1; padding: 0 1; color: $text-warning;
            text-wrap: nowrap; text-overflow: ellipsis;
        }
        #past { height: 1fr; }
    }
    """

    def __init__(self, kb: KnowledgeBase, commit: Commit, path: str | None = None) -> None:
        """Show the state after `commit`, perhaps with an entry open."""
        super().__init__(kb)
        self._commit = commit
        self._path = path
        self._past: KnowledgeBase | None = None
        self._turns = SerialQueue(self, "do")

    def compose_body(self) -> ComposeResult:
        yield Static(self._banner(), id="past-banner")
        yield TimeSlider(self._commit, id="past-slider")
        yield PastPane(id="past")

    def _banner(self, names: Names | None = None, differs: str = "") -> Content:
        commit = self._commit
        return Content.assemble(
            (f"AS IT WAS {when_text(commit).removeprefix('on ')} · read-only", "bold"),
            f"  {differs}",
            coloured(self, sentence_drawn(commit, names or Names())),
        )

    notes = getters.query_one(PastPane)

    def on_mount(self) -> None:
        """Read the commit, and which others there are."""
        self._open()
        self._read_commits()

    @latest("slider")
    async def _read_commits(self) -> None:
        commits = await asyncio.to_thread(read_commits, self.kb.history, self._commit)
        self.slider.show(commits)

    slider = getters.query_one(TimeSlider)

    def on_time_slider_stepped(self, event: TimeSlider.Stepped) -> None:
        """Show everything as it was after another change."""
        self._commit = event.commit
        self.query_one("#past-banner", Static).update(self._banner())
        self._open()

    @latest("past")
    async def _open(self) -> None:
        if self._past is not None:
            await asyncio.sleep(_STEP_SECONDS)
        try:
            past = await asyncio.to_thread(past_knowledge, self.kb, self._commit)
            since = await asyncio.to_thread(read_since, self.kb.history, self._commit.id)
            names = Names(await asyncio.to_thread(past.library.infos))
        except KbtuiError as error:
            tell_error(self, error)
            self.dismiss(None)
            return
        first, self._past = self._past is None, past
        self.notes.panel.mark(since.marks)
        self.query_one("#past-banner", Static).update(self._banner(names, since.said))
        if not first:
            self.notes.turn_to(past)
            return
        self.notes.knowledge_ready(past)
        if self._path in since.then:
            self.notes.open_entry(str(self._path))
        else:
            self.notes.focus_tree()

    # What the notes ask for

    @on(OpenSearch)
    def _search(self, event: OpenSearch) -> None:
        """Search in what was there then."""
        if self._past is None:
            return
        from kbtui.tui.search.search import SearchScreen

        self.app.push_screen(SearchScreen(self._past, event.query))

    @on(OpenEntry)
    def _open_entry(self, event: OpenEntry) -> None:
        self.notes.open_entry(event.path, event.line)

    @on(AskAbout)
    def _refuse(self) -> None:
        self.notes.action_refuse()

    @on(OpenHistory)
    def _history(self, event: OpenHistory) -> None:
        self.app.screen_stack[0].post_message(OpenHistory(event.path, event.commit, self.kb))

    def want(self, what: str, path: str | None) -> None:
        """Do something with the past: ``now``, ``restore``, ``compare``, or a step."""
        steps: Mapping[str, Callable[[], object]] = {
            "earlier": lambda: self.slider.action_step(-1),
            "later": lambda: self.slider.action_step(1),
            "day before": lambda: self.slider.step_days(-1),
            "day after": lambda: self.slider.step_days(1),
            "now": lambda: self.dismiss(None),
        }
        if what in steps:
            steps[what]()
        elif path is None:
            tell(self, "Choose a note first.")
        else:
            self._turns.run(self._restore if what == "restore" else self._compare, path)

    async def _compare(self, path: str) -> None:
        """Show what became of an entry since."""
        name = name_of(path)
        diffs = await asyncio.to_thread(self.kb.history.diff, self._commit.id, None, [path])
        if not diffs:
            tell(self, f"{name} is the same today.")
            return
        text = f"From {when_text(self._commit).removeprefix('on ')} to now."
        await confirm(self, f"{name} since then", text, {}, diffs)

    async def _restore(self, path: str) -> None:
        await restore_file(self, self.kb.history, path, self._commit)


async def travel(screen: Screen[None], kb: KnowledgeBase, moment: str) -> None:
    """Show everything as it was at a date, a time or a revision; asks where none is given."""
    wanted: str | None = moment.strip()
    if not wanted:
        about = "A date like 2026-11-21, a time, a commit, HEAD~1."
        wanted = await ask_text(screen, "Back to when?", about=about)
    if not wanted:
        return
    commit = await asyncio.to_thread(kb.history.commit, wanted)
    screen.app.push_screen(TimeTravelScreen(kb, commit))


def when_text(commit: Commit) -> str:
    """When a commit was made, to be read in a sentence."""
    local = commit.time.astimezone()
    return f"on {format_day(local.date())} at {local:%H:%M}"


async def restore_file(node: DOMNode, history: History, path: str, commit: Commit) -> Commit | None:
    """Make a file what it was after a commit; where that deleted it, what it was before.

    Args:
        node: Whose app asks.
        history: The history that holds `commit`.
        path: The file, in the workspace.
        commit: The moment.

    Returns:
        The new commit; None where nothing had to be done, or the person left it.

    Raises:
        KbtuiError: It can't be restored.
    """
    deleted = any(change.path == path and change.kind == "deleted" for change in commit.paths)
    at = commit.parent if deleted and commit.parent is not None else commit.id
    preview = await asyncio.to_thread(history.restore_preview, path, at)
    name, when = name_of(path), when_text(commit)
    if not preview:
        tell(node, f"{name} is as it was then already.")
        return None
    text = f"It becomes what it was {when}. That is a change of its own."
    if await confirm(node, f"Restore {name}?", text, {"enter": "restores it"}, preview) is None:
        return None
    done = await asyncio.to_thread(history.restore, path, at)
    if done is not None:
        tell(node, f"{name} is as it was {when}.")
    return done


async def restore_before(node: DOMNode, history: History, commit: Commit) -> Commit | None:
    """Bring everything durable back to how it was before a commit; as `restore_file` else."""
    text = (
        f"{sentence_drawn(commit, Names()).plain} ({when_text(commit)})\n"
        "{files} would become what they were before it; later changes go too. What was edited by "
        "hand is recorded first, and this can be undone."
    )
    nothing = "Everything is as it was before that already."
    question = Question(
        "Back to before this change", text, "goes back", unasked=-1, nothing=nothing
    )
    restore = partial(history.restore_before, commit.id)
    done = await make_change(node, history, restore, question)
    if done is not None:
        tell(node, f"Everything is as it was before {when_text(commit).removeprefix('on ')}.")
    return done
