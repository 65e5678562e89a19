"""Time travel: browsing everything as it was at a commit, and restoring files from there."""

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
from textual.screen import Screen
from textual.widgets import Static

from kbtui.errors import KbtuiError
from kbtui.history.change import Commit
from kbtui.history.history import HistoryReader
from kbtui.knowledge.entries.entry import is_entry
from kbtui.knowledge.library.library import PastLibrary
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.records.journal import day_of
from kbtui.presentation.notes import Names, all_names, name_of
from kbtui.text import counted
from kbtui.tui.actions.registry import actions, bindings
from kbtui.tui.diff.confirm import confirm
from kbtui.tui.diff.restoring import restore_file, when_text
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
from kbtui.tui.widgets.kinds import draw_sentence
from kbtui.tui.widgets.line_view import resolve_styles
from kbtui.workspace.layout import ENTRIES

_DEBOUNCE_SECONDS = 0.08
_MAX_FOLLOWED = 500
"""The most notes that are gone whose renames are looked for."""
"""The debounce before the notes of a change are read, as the slider may only pass over it."""
_READ_ACTIONS = frozenset(
    {"down", "up", "left", "right", "open", "filter", "backlinks", "back", "forward", "history",
     "tags", "map", "version_before", "version_after"}
)  # fmt: skip
_PAST_KEYS = {key for action in actions("past") for key in action.keys.split(",")}
# These keys explain why nothing happens, but aren't shown as hints.
_REFUSED_BINDINGS = [
    Binding(action.keys, "refuse", action.title, show=False, id=action.id)
    for action in actions("notes")
    if action.keys and action.method not in _READ_ACTIONS and action.keys not in _PAST_KEYS
]
_READ_BINDINGS = [
    each
    for each in bindings("notes")
    if isinstance(each, Binding) and str(each.id).partition(".")[2] in _READ_ACTIONS
]


def past_knowledge(kb: KnowledgeBase, commit: Commit) -> KnowledgeBase:
    """Return a read-only stand-in for `KnowledgeBase`, as it was at a commit.

    Search by meaning covers notes whose vectors still exist. Conversations aren't searched, nothing
    is read ahead, and there are no name pages.
    """

    def days() -> list[str]:
        paths = (path for path in kb.history.tree(commit.id) if path.startswith("memory/"))
        return sorted((path for path in paths if day_of(path) is not None), reverse=True)

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
        # What was said later isn't there yet.
        newer=SimpleNamespace(lines_in=lambda *_: {}, with_newer=lambda hits, _: hits),
        seen_by=lambda _: None,
    )
    return cast("KnowledgeBase", past)


class PastPane(NotesPane, inherit_bindings=False):
    """The notes of `past_knowledge`: whatever reads works, whatever writes is refused."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("past"), *_REFUSED_BINDINGS, *_READ_BINDINGS]
    WITH_RECENT = False  # the slider shows recent changes

    def offer_to_make(self, target: str) -> None:
        """Say that a link had no target then."""
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


class ChangesSince(NamedTuple):
    """The differences from now: the files of then, marks for the tree, and a summary."""

    then: Mapping[str, str]
    marks: Mapping[str, ChangeMark]
    summary: str


def read_since(history: HistoryReader, at: str) -> ChangesSince:
    """Compare the notes at a commit with the newest ones; run in a thread."""
    then, now = history.tree(at), history.tree("HEAD")
    differing = [path for path, blob in then.items() if is_entry(path) and now.get(path) != blob]
    gone = [path for path in differing if path not in now]
    moved = {path: history.path_now(at, path) for path in gone[:_MAX_FOLLOWED]}
    marks = {
        path: ChangeMark(new=False, machine="", word=_since(path, now, moved.get(path, "")))
        for path in differing
    }
    later = sum(is_entry(path) and path not in then for path in {*now}.difference(moved.values()))
    parts = [f"{counted(len(marks), 'note')} changed since"] if marks else []
    parts += [f"{counted(later, 'note')} came later"] if later else []
    return ChangesSince(then, marks, f"{' · '.join(parts)}  " if parts else "")


def _since(path: str, now: Mapping[str, str], moved: str) -> str:
    """Return what became of a note since then."""
    if path in now:
        return "changed since"
    if moved not in now:
        return "gone since"
    stem, stem_now = (each.rpartition("/")[2] for each in (path, moved))
    folder = moved.removeprefix(ENTRIES).rpartition("/")[0]
    if stem == stem_now:
        return f"moved to {folder or 'the top'}"
    return f"renamed to {name_of(moved)}"


class TimeTravelScreen(FullScreen[None]):
    """The notes as of a commit; `R` restores one of them."""

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
        """Show the state after `commit`, with the entry `path` open if it existed."""
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
            resolve_styles(self, draw_sentence(commit, names or Names())),
        )

    notes = getters.query_one(PastPane)

    def on_mount(self) -> None:
        self._open()
        self._read_commits()

    @latest("slider")
    async def _read_commits(self) -> None:
        commits = await asyncio.to_thread(read_commits, self.kb.history, self._commit)
        self.slider.show(commits)

    slider = getters.query_one(TimeSlider)

    def on_time_slider_stepped(self, event: TimeSlider.Stepped) -> None:
        self._commit = event.commit
        self.query_one("#past-banner", Static).update(self._banner())
        self._open()

    @latest("past")
    async def _open(self) -> None:
        if self._past is not None:
            await asyncio.sleep(_DEBOUNCE_SECONDS)
        try:
            past = await asyncio.to_thread(past_knowledge, self.kb, self._commit)
            since = await asyncio.to_thread(read_since, self.kb.history, self._commit.id)
            names = await asyncio.to_thread(
                lambda: all_names(past.library.infos(), self.kb.sessions)
            )
        except KbtuiError as error:
            tell_error(self, error)
            self.dismiss(None)
            return
        first, self._past = self._past is None, past
        self.notes.panel.mark(since.marks)
        self.query_one("#past-banner", Static).update(self._banner(names, since.summary))
        if not first:
            self.notes.switch_to(past)
            return
        self.notes.knowledge_ready(past)
        if self._path in since.then:
            self.notes.open_entry(str(self._path))
        else:
            self.notes.focus_tree()

    # Requests of the notes

    @on(OpenSearch)
    def _search(self, event: OpenSearch) -> None:
        """Search the past state."""
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
        """Run an action of the past: ``now``, ``restore``, ``compare``, or a step in time."""
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
        """Show the diff of an entry from then to now."""
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
    """Show everything as it was at a date, a time or a revision, asking if none is given."""
    wanted: str | None = moment.strip()
    if not wanted:
        about = "A date like 2026-11-21, a time, a commit, HEAD~1."
        wanted = await ask_text(screen, "Back to when?", about=about)
    if not wanted:
        return
    commit = await asyncio.to_thread(kb.history.commit, wanted)
    screen.app.push_screen(TimeTravelScreen(kb, commit))
