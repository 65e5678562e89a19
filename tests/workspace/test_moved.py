"""A workspace that is moved, replaced or gone while it is open: nothing is written elsewhere.

Whoever writes is told so, and where it comes back, as the same folder or as a copy, they go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui import programs
from kbtui.agent.events import TurnFailed
from kbtui.cli.root import run
from kbtui.errors import KbtuiError, WorkspaceGoneError
from kbtui.history.change import Actor
from kbtui.importers.batches import Batch
from kbtui.knowledge_base import KnowledgeBase
from kbtui.maintenance.purge import Purging
from kbtui.mcp_server.backend import Backend
from kbtui.memory.records.committing import MemoryLock
from kbtui.redaction.secret import Secret
from kbtui.sessions.imported import Imported
from kbtui.sessions.log_records import Mask
from kbtui.tui.notes.entry_editor import find_draft
from kbtui.tui.terminal.state import Drafts
from kbtui.workspace import files
from kbtui.workspace.removals import Removals
from tests.faults.world import check_with_git
from tests.patience import PATIENCE
from tests.tui.pty_app import start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kbtui.sessions.store import Session

OVERRIDES = {
    "search": {"semantic": False},
    "sync": {"documents": True, "conversations": True},
}


class Place:
    """Where the workspace is opened, and what is done to it there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parent = folder / "disk"
        self.root = self.parent / "notes"
        self.away = folder / "elsewhere"
        self.other = folder / "other"
        self.backup = folder / "backup"

    def all_files(self) -> dict[str, object]:
        """Whatever is at that path or beside it by now, and in the other workspace."""
        return {
            str(file): file.read_bytes() if file.is_file() else file.is_symlink()
            for top in (self.parent, self.other)
            for file in sorted(top.rglob("*"))
        }


def _moved(place: Place) -> None:
    place.root.rename(place.away)


def _replaced_by_an_empty_folder(place: Place) -> None:
    _moved(place)
    place.root.mkdir()


def _replaced_by_another_workspace(place: Place) -> None:
    _moved(place)
    shutil.copytree(place.other, place.root)


def _deleted(place: Place) -> None:
    shutil.rmtree(place.root)


def _below_a_renamed_folder(place: Place) -> None:
    place.parent.rename(place.folder / "disk of old")


def _below_a_link_that_leads_elsewhere_now(place: Place) -> None:
    place.parent.rename(place.folder / "disk of old")
    shutil.copytree(place.other, place.folder / "new/notes")
    place.parent.symlink_to(place.folder / "new")


def _without_its_own_files(place: Place) -> None:
    (place.root / ".kbtui").rename(place.away)


def _with_the_own_files_of_another(place: Place) -> None:
    _without_its_own_files(place)
    shutil.copytree(place.other / ".kbtui", place.root / ".kbtui")


def _on_a_stick_that_was_pulled(place: Place) -> None:
    _moved(place)
    place.root.mkdir()
    (place.root / "lost+found").mkdir()


def _replaced_by_one_without_an_id(place: Place) -> None:
    _replaced_by_another_workspace(place)
    (place.root / ".kbtui/id").unlink()


GONE = [
    _moved,
    _replaced_by_an_empty_folder,
    _replaced_by_another_workspace,
    _deleted,
    _below_a_renamed_folder,
    _below_a_link_that_leads_elsewhere_now,
    _without_its_own_files,
    _with_the_own_files_of_another,
    _on_a_stick_that_was_pulled,
    _replaced_by_one_without_an_id,
]


def _moved_and_back(place: Place) -> None:
    _moved(place)
    with contextlib.suppress(KbtuiError), KnowledgeBase.open(place.away, overrides=OVERRIDES):
        pass  # it is used there meanwhile
    place.away.rename(place.root)


def _mounted_again(place: Place) -> None:
    shutil.copytree(place.root, place.away, symlinks=True)
    shutil.rmtree(place.root)
    shutil.copytree(place.away, place.root, symlinks=True)


def _restored_from_a_backup(place: Place) -> None:
    shutil.rmtree(place.root)
    shutil.copytree(place.backup, place.root, symlinks=True)


def _copied(place: Place) -> None:
    shutil.copytree(place.root, place.away, symlinks=True)
    with KnowledgeBase.open(place.away, overrides=OVERRIDES):
        pass


def _without_its_knowledge(place: Place) -> None:
    (place.root / "knowledge").rename(place.away)


STAYS = [_moved_and_back, _mounted_again, _restored_from_a_backup, _copied, _without_its_knowledge]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.parent.mkdir()
    for root in (made.root, made.other):
        with KnowledgeBase.open(root, create=True, overrides=OVERRIDES) as kb:
            for name in ("Heron", "Kestrel", "Owl", "Swift"):
                kb.library.create("topic", name, body=f"The {name} nests.\n")
            with kb.sessions.create("tui", id="talk") as talk:
                talk.append("user", "The heron fishes.")
    shutil.copytree(made.root, made.backup, symlinks=True)
    with KnowledgeBase.open(made.root, overrides=OVERRIDES) as kb:
        kb.library.create("topic", "Wren", body="Written after the backup.\n")
    return made


class Writers:
    """Everything of one open workspace that writes."""

    def __init__(self, kb: KnowledgeBase, session: Session, folder: Path) -> None:
        self.kb = kb
        self.session = session
        self.remote = folder / "remote.git"

    def each(self) -> Iterator[tuple[str, Callable[[], object]]]:
        kb, workspace = self.kb, self.kb.workspace
        sessions, history = kb.sessions, kb.history
        yield "a note", lambda: kb.library.create("topic", "Crane", body="New.\n")
        yield "a change", self._change
        yield "a proposal", self._propose
        yield "outside edits", lambda: history.adopt(timeout=1.0, settle=0.0)
        yield "undo", lambda: history.undo("HEAD")
        yield "a message", lambda: self.session.append("user", "Said too late.")
        yield "a title", lambda: self.session.rename("Birds")
        yield "a session", lambda: sessions.create("tui")
        yield "opening a session", lambda: sessions.open("another")
        yield "forgetting", lambda: sessions.mask("other", [Mask(1, ((0, 3),))])
        yield "deleting a session", lambda: sessions.delete("other")
        yield "an import", lambda: Imported(workspace).write({"x": [{"kind": "session"}]})
        yield "its progress", lambda: Batch(workspace, "b").add_file("docs/a.txt", "0" * 40)
        yield "memory", lambda: asyncio.run(self._memory())
        yield "a document", lambda: files.write_atomic(workspace, "docs/a.txt", b"a")
        yield "removing", lambda: files.remove(workspace, "memory/MEMORY.md")
        yield "a removal", lambda: Removals(workspace).note("docs/a.txt", b"a")
        yield "the index", kb.search.sync
        yield "a sync", lambda: kb.syncing.run(str(self.remote))
        yield "a purge", lambda: Purging(workspace, history).run(Secret("hunter2-kestrel-99"))
        yield "a turn", lambda: asyncio.run(self._turn())

    def _change(self) -> None:
        with self.kb.history.change(Actor.YOU, "by hand") as change:
            change.write("memory/MEMORY.md", b"# Memory\n- New.\n")

    def _propose(self) -> None:
        with self.kb.history.change(Actor.DREAM, "x", sink=self.kb.history.proposals.add) as change:
            change.write("memory/MEMORY.md", b"# Memory\n- Proposed.\n")

    async def _memory(self) -> None:
        async with MemoryLock(self.kb.workspace).hold():
            pass

    async def _turn(self) -> None:
        async for event in self.kb.agent.turn(self.session, "Remember: tea is at four."):
            if isinstance(event, TurnFailed):
                raise WorkspaceGoneError(event.error, event.hint)


@contextlib.contextmanager
def _opened(place: Place, *, starts: bool = False) -> Iterator[Writers]:
    with KnowledgeBase.open(place.root, overrides=OVERRIDES) as kb:
        kb.load()
        kb.search.sync()
        with kb.sessions.create("tui", id="other") as other:
            other.append("user", "Of another day.")
        session = kb.sessions.open("talk")
        if starts:
            kb.start()
        yield Writers(kb, session, place.folder)


def _error_of(write: Callable[[], object]) -> KbtuiError | None:
    try:
        write()
    except KbtuiError as error:
        return error
    return None


@pytest.mark.parametrize("way", GONE)
def test_nothing_is_written_elsewhere_and_each_writer_is_told(
    place: Place, way: Callable[[Place], None]
) -> None:
    with _opened(place) as writers:
        way(place)
        before = place.all_files()
        for name, write in writers.each():
            told = _error_of(write)
            assert isinstance(told, WorkspaceGoneError), (name, told)
            assert f"The workspace is no longer at {place.root}" in told.message
            assert "kbtui -w FOLDER" in told.hint
            assert place.all_files() == before, name
        writers.kb.history.tidy()
        assert not (place.folder / "remote.git").exists()
    assert place.all_files() == before, "closing"


@pytest.mark.parametrize("way", [_moved, _replaced_by_another_workspace])
def test_a_change_that_is_cut_in_two_is_finished_or_taken_back_where_it_is_now(
    place: Place, way: Callable[[Place], None]
) -> None:
    before: dict[str, object] = {}

    def watch(done: int, _total: int) -> None:
        if done and not before:
            way(place)
            before.update(place.all_files())

    with _opened(place) as writers:
        history, held = writers.kb.history, []
        with history.change(Actor.YOU, "many", sink=held.append) as change:
            for number in range(120):
                change.write(f"knowledge/topics/{number}.md", b"# Many\n")
        with pytest.raises(WorkspaceGoneError):
            history.apply(held[0], watch)
        assert place.all_files() == before
    assert place.all_files() == before
    with KnowledgeBase.open(place.away, overrides=OVERRIDES) as kb:
        assert len([*(place.away / "knowledge/topics").glob("[0-9]*.md")]) in (0, 120)
        assert kb.history.adopt(settle=0) is None
    assert check_with_git(place.away / ".kbtui/history.git") == []


@pytest.mark.parametrize("way", [_moved, _replaced_by_another_workspace])
def test_the_background_writes_nothing_elsewhere_and_says_it(
    place: Place, way: Callable[[Place], None]
) -> None:
    said: list[str] = []
    with _opened(place, starts=True) as writers:
        writers.kb.on_notice = said.append
        way(place)
        before = place.all_files()
        writers.kb.memory.worker.turn_ended("talk")
        deadline = time.monotonic() + PATIENCE
        while not any("no longer at" in each for each in said):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with contextlib.suppress(KbtuiError):
            writers.kb.search.search("heron")
    assert place.all_files() == before


def test_the_index_keeps_what_it_had_until_the_workspace_is_back(place: Place) -> None:
    with _opened(place) as writers:
        _moved(place)
        with pytest.raises(WorkspaceGoneError):
            writers.kb.search.sync()
        place.away.rename(place.root)
        assert writers.kb.search.sync().removed == 0
        assert writers.kb.search.search("wren backup").hits


@pytest.mark.parametrize("way", STAYS)
def test_the_same_workspace_goes_on_by_whatever_way_it_came_back(
    place: Place, way: Callable[[Place], None]
) -> None:
    with _opened(place) as writers:
        way(place)
        kb = writers.kb
        writers.session.append("user", "Said after that.")
        created = kb.library.create("topic", "Crane", body="New.\n")
        with kb.history.change(Actor.YOU, "by hand") as change:
            change.write("memory/MEMORY.md", b"# Memory\n- New.\n")
        assert (place.root / created.path).read_text().endswith("New.\n")
        assert len([*kb.history.log()]) > 1
    assert check_with_git(place.root / ".kbtui/history.git") == []
    assert "Said after that" in (place.root / "sessions/talk.jsonl").read_text()
    with KnowledgeBase.open(place.root, overrides=OVERRIDES) as kb:
        assert kb.library.get(created.path)
        gone = way is _without_its_knowledge
        assert any("gone at once" in notice for notice in kb.notices) == gone


def test_a_link_that_leads_elsewhere_now_is_not_followed(place: Place) -> None:
    link = place.folder / "link"
    link.symlink_to(place.root)
    with KnowledgeBase.open(link, overrides=OVERRIDES) as kb:
        link.unlink()
        link.symlink_to(place.other)
        before = sorted(place.other.rglob("*"))
        kb.library.create("topic", "Crane", body="New.\n")
    assert (place.root / "knowledge/topics/crane.md").exists()
    assert sorted(place.other.rglob("*")) == before


@pytest.mark.parametrize("way", [_moved, _replaced_by_another_workspace])
def test_a_command_that_waited_for_a_person_keeps_what_was_written(
    place: Place,
    way: Callable[[Place], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before: dict[str, object] = {}

    def edit(copy: Path, _command: object) -> programs.Edited:
        copy.write_text(copy.read_text().replace("nests", "fishes"))
        way(place)
        before.update(place.all_files())
        return programs.Edited("editor", 0, changed=True, seconds=20.0)

    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setattr(programs, "edit", edit)
    assert run(["-w", str(place.root), "edit", "heron"]) == WorkspaceGoneError.exit_code
    said = capsys.readouterr().err
    assert "The workspace is no longer at" in said
    copy = said.partition("What you wrote is in ")[2].split()[0].rstrip(".")
    assert "fishes" in Path(copy).read_text()
    shutil.rmtree(Path(copy).parent)
    assert place.all_files() == before


def test_a_command_makes_no_workspace_of_what_is_left(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    _without_its_own_files(place)
    (place.root / "knowledge").rename(place.folder / "knowledge")
    before = place.all_files()
    for command in (["list"], ["remember", "Tea is at four."], ["search", "heron"]):
        assert run(["-w", str(place.root), *command]) == WorkspaceGoneError.exit_code
        assert f"The workspace is no longer at {place.root}" in capsys.readouterr().err
    assert place.all_files() == before
    assert run(["init", str(place.root)]) == 0
    assert run(["-w", str(place.root), "list"]) == 0


def test_a_command_is_told_where_a_workspace_is_now(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    _replaced_by_an_empty_folder(place)
    with KnowledgeBase.open(place.away, overrides=OVERRIDES):
        pass
    assert run(["-w", str(place.root), "remember", "Tea is at four."]) != 0
    assert f"it is at {place.away} now" in capsys.readouterr().err
    assert [*place.root.iterdir()] == []


def test_in_the_app_a_message_and_an_edit_stay_drafts(place: Place) -> None:
    with start(place.root) as app:
        app.wait_for("Heron", "no model")
        app.send("Tea is at four.\r")
        app.wait_for("✓ today")
        app.send("\x1bOR")  # F3
        app.send("\x1b[B\x1b[B\re")
        app.wait_for("Ctrl+S")
        app.send("Typed too late. ")
        app.wait_for("Typed too late.")
        _replaced_by_an_empty_folder(place)
        app.send("\x13")  # Ctrl+S
        app.wait_for("no longer at")
        app.send("\x1bOQ")  # F2
        app.send("Remember: coffee is at five.\r")
        app.wait_for("Nothing was written.", "> Remember: coffee is at five.", "│ Remember: coffee")
        app.send("\x11")  # Ctrl+Q
        app.wait_exit()
    assert [*place.root.iterdir()] == []
    place.root.rmdir()
    place.away.rename(place.root)
    assert Drafts(place.root).load() == "Remember: coffee is at five."
    with KnowledgeBase.open(place.root, overrides=OVERRIDES) as kb:
        drafts = [
            draft.text
            for path in kb.history.tree("HEAD")
            if (draft := find_draft(place.root, path)) is not None
        ]
        assert len(drafts) == 1
        assert "Typed too late." in drafts[0]


@pytest.mark.parametrize("way", GONE)
def test_an_agent_over_mcp_is_told_and_writes_nothing(
    place: Place, way: Callable[[Place], None]
) -> None:
    def call(name: str, **arguments: str) -> str:
        try:
            return backend.call(name, json.dumps(arguments), "agent").output
        except KbtuiError as error:
            return str(error)

    backend = Backend(lambda: KnowledgeBase.open(place.root, overrides=OVERRIDES), "batch")
    try:
        assert "Heron" in call("memory_search", query="heron")
        way(place)
        before = place.all_files()
        assert "no longer at" in call("write_entry", title="Crane", body="New.", kind="topic")
        assert "no longer at" in call("delete_entry", entry="heron")
        assert "no longer at" in call("edit_entry", entry="heron", old="nests", new="fishes")
        assert place.all_files() == before
    finally:
        backend.close()
    assert place.all_files() == before
