"""A small knowledge base and the smallest app that shows the notes of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from kbtui.clock import local_now
from kbtui.history.change import Actor
from kbtui.history.history import History
from kbtui.knowledge.library.library import Library
from kbtui.memory.recall.agenda import agenda_of
from kbtui.memory.recall.names import NameIndex
from kbtui.memory.recall.newer import Newer
from kbtui.memory.records.archive import Tombstones
from kbtui.memory.records.journal import Journal
from kbtui.search.results import Explain, Hit, SearchResult
from kbtui.sessions.store import SessionStore
from kbtui.settings import Settings
from kbtui.tui.history.history import HistoryScreen
from kbtui.tui.notes.notes_pane import NotesPane
from kbtui.tui.terminal.layout import TellsSizes
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.views.view import View
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.tui import at_rest
from tests.tui.shell import key_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from textual.pilot import Pilot

    from kbtui.tui.messages import AskAbout, OpenEntry, OpenHistory, OpenSearch

ALICE = """---
type: person
aliases: [Al]
tags: [team]
summary: Owns analytics.
---
# Alice

Works on [[postgresql]] with [Bob](bob.md), see [[nobody]] and <https://example.org/a>.

## Notes

- likes tea
"""
BOB = "---\ntype: person\n---\n# Bob\n\nKnows [[people/alice|Alice]].\n"
POSTGRESQL = "---\ntype: topic\ntags: [database]\n---\n# PostgreSQL\n\nA database.\n"
DEFAULT = {
    "people/alice.md": ALICE,
    "people/bob.md": BOB,
    "topics/postgresql.md": POSTGRESQL,
    "topics/docker.md": "# Docker\n\nContainers.\n",
}


class ScriptedSearch:
    """Answers every query with the same hits, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bool]] = []
        self.hits: tuple[Hit, ...] = ()
        self.notice = ""
        self.suggestion: str | None = None
        self.at: str | None = None
        self.elsewhere = 0
        self.first: tuple[str, ...] = ()

    def prioritize(self, paths: Iterable[str]) -> None:
        self.first = tuple(paths)

    def in_conversations(self, _query: str, scope: str = "default") -> int:
        return self.elsewhere if scope == "default" else 0

    def search(
        self,
        query: str,
        scope: str = "default",
        limit: int = 10,
        *,
        semantic: bool = True,
        at: str | None = None,
    ) -> SearchResult:
        self.at = at
        self.asked.append((query, scope, semantic))
        hits = self.hits[:limit]
        return SearchResult(query, scope, 1.0, semantic, hits, self.notice, self.suggestion)


def hit(path: str, line: int, snippet: str, *matches: tuple[int, int], heading: str = "") -> Hit:
    explain = Explain(1, None, 1.0, 0.0)
    title = path.rpartition("/")[2].removesuffix(".md").capitalize()
    return Hit(path, title, heading, (line, line), snippet, matches, 1.0, explain, line=line)


def make_kb(root: Path, entries: Mapping[str, str | bytes] = DEFAULT) -> Any:
    workspace = create_workspace(root)
    for path, text in entries.items():
        file = workspace.knowledge / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    scanner = Scanner(workspace)
    history = History(workspace, scanner)
    library = Library(workspace, history, scanner)
    history.open()
    history.adopt(settle=0)
    journal = Journal(workspace, history, library, Tombstones(workspace, history))
    sessions = SessionStore(workspace)
    kb: Any = SimpleNamespace(
        workspace=workspace,
        history=history,
        library=library,
        journal=journal,
        agenda=lambda: agenda_of(library, journal),
        names=NameIndex(workspace, library, journal),
        sessions=sessions,
        search=ScriptedSearch(),
        settings=Settings(),
        newer=Newer(workspace, history, sessions, local_now),
    )
    kb.seen_by = lambda audience: View(kb, audience)
    return kb


def agent_writes(kb: Any, path: str, text: str) -> None:
    old = kb.history.tree("HEAD").get(path)
    kb.library.write(path, text, expecting=old, actor=Actor.AGENT, reason="told so")


class _NotesScreen(TellsSizes, Screen[None]):
    """Laid out as the app's own screens are."""


class NotesApp(KeysInOrder):
    """Shows a `NotesPane` and remembers what it asks of the rest of the app."""

    def __init__(self, kb: Any, screen: Callable[[], Screen[Any]] | None = None) -> None:
        super().__init__()
        self.kb = kb
        self.seen: list[Any] = []
        self._first_screen = screen

    def get_default_screen(self) -> Screen[Any]:
        return _NotesScreen(id="_default")

    def compose(self) -> Any:
        yield NotesPane(id="notes")

    def on_mount(self) -> None:
        self._unsubscribe = self.kb.history.subscribe(self._changed)
        self.notes.knowledge_ready(self.kb)
        self.notes.focus_tree()
        if self._first_screen is not None:
            self.push_screen(self._first_screen())

    def on_unmount(self) -> None:
        self._unsubscribe()

    def _changed(self, event: Any) -> None:
        self.call_later(self.notes.knowledge_changed, event.paths, event.actor)

    async def _press_keys(self, keys: Iterable[str]) -> None:
        for key in keys:
            event = key_event(key)
            event.set_sender(self)
            self._driver.send_message(event)
            await at_rest.rest(self, typing=True)
        await at_rest.rest(self)

    @property
    def notes(self) -> NotesPane:
        return self.screen_stack[0].query_one(NotesPane)

    def on_open_entry(self, event: OpenEntry) -> None:
        self.seen.append(event)
        self.notes.open_entry(event.path, event.line, edit=event.edit)

    def on_open_history(self, event: OpenHistory) -> None:
        self.seen.append(event)
        if event.kb is not None:
            self.push_screen(HistoryScreen(event.kb, event.path, event.commit))

    def on_open_search(self, event: OpenSearch) -> None:
        self.seen.append(event)

    def on_ask_about(self, event: AskAbout) -> None:
        self.seen.append(event)

    def copy_to_clipboard(self, text: str) -> None:
        self._clipboard = text
        self.seen.append(text)

    @property
    def toasts(self) -> str:
        return "\n".join(str(note.message) for note in self._notifications)


async def until(pilot: Pilot[Any], condition: Callable[[], object], what: str = "") -> None:
    """Let the app work until something is so, and everything that follows from it is done."""
    await at_rest.until(pilot.app, condition, what)


async def arrived(pilot: Pilot[Any], kind: type[Screen[Any]], part: str) -> Any:
    """Wait until a screen of that kind is in front with a part of it; gives the screen."""
    app = pilot.app
    await until(
        pilot, lambda: isinstance(app.screen, kind) and app.screen.query(part), f"{kind.__name__}"
    )
    return app.screen


async def ready(pilot: Pilot[Any]) -> NotesPane:
    """Wait until the tree is filled."""
    notes = pilot.app.screen_stack[0].query_one(NotesPane)
    await until(pilot, lambda: notes.knowledge_tree.items, "the tree is there")
    return notes


async def opened(pilot: Pilot[Any], path: str, line: int | None = None) -> NotesPane:
    """Open an entry and wait until it is on the screen, links included."""
    notes = await ready(pilot)
    notes.open_entry(path, line)
    await shown(pilot, notes, path)
    return notes


async def shown(pilot: Pilot[Any], notes: NotesPane, path: str) -> None:
    await until(pilot, lambda: notes.current_path == path, f"{path} is shown")
    view = notes.view
    assert view is not None
    document = view.document
    assert document is not None
    await until(
        pilot,
        lambda: (view.body.lines or not document.body) and (document.entry is None or view.links),
        f"{path} is laid out",
    )


def text_of(widget: Any) -> str:
    """What a widget that draws lines shows now, without colours."""
    lines = [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]
    return "\n".join(lines).rstrip()
