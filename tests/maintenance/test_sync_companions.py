"""Documents and conversations travel with the notes where that is wanted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from wsgiref.simple_server import make_server

import pytest
from dulwich.repo import Repo
from dulwich.server import DictBackend, UploadPackHandler
from dulwich.web import WSGIRequestHandlerLogger, make_wsgi_chain

from kbtui.errors import RefusedHistoryError
from kbtui.history.change import Actor, Change, Commit
from kbtui.history.door import Door
from kbtui.history.history import History
from kbtui.history.sync.sync import SyncReport
from kbtui.history.sync.transport import Incoming
from kbtui.history.sync.unversioned import UnversionedSync
from kbtui.knowledge_base import KnowledgeBase
from kbtui.maintenance.purge import Purging
from kbtui.redaction.secret import Secret
from kbtui.sessions.log_records import Mask
from kbtui.sessions.store import Claim
from kbtui.workspace.opening import create_workspace, open_workspace
from kbtui.workspace.scan import Scanner


@pytest.fixture(autouse=True)
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DOCUMENTS", "CONVERSATIONS"):
        monkeypatch.setenv(f"KBTUI_SYNC__{name}", "true")


class World:
    """Two machines and the place between them; `in_place` the second has its notes in place."""

    def __init__(self, folder: Path, *, in_place: bool = False) -> None:
        self.remote, self.here, self.there = (folder / n for n in ("remote.git", "here", "there"))
        create_workspace(self.here)
        create_workspace(self.there, in_place=in_place)
        self._below = {self.here: "", self.there: ".kbtui/" if in_place else ""}

    def file(self, machine: Path, path: str) -> Path:
        return machine / f"{self._below[machine]}{path}"

    def write(self, machine: Path, path: str, data: bytes | str) -> None:
        file = self.file(machine, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())

    def say(self, machine: Path, text: str, session: str = "talk") -> None:
        file = self.file(machine, f"sessions/{session}.jsonl")
        if not file.exists():
            head = {"kind": "session", "format": 1, "id": session, "channel": "tui", "title": ""}
            self.write(machine, f"sessions/{session}.jsonl", json.dumps(head) + "\n")
        number = file.read_bytes().count(b"\n")
        message = {"id": number, "time": "2026-11-20T10:00:00+00:00", "role": "user"}
        with file.open("a") as stream:
            stream.write(json.dumps({**message, "content": text}) + "\n")

    def sync(self, machine: Path, *, replace: bool = False) -> SyncReport:
        with KnowledgeBase.open(machine) as kb:
            return kb.syncing.run(str(self.remote), replace_theirs=replace).report

    def everywhere(self) -> None:
        for machine in (self.here, self.there, self.here, self.there):
            self.sync(machine)
        assert self.files(self.here) == self.files(self.there)
        for machine in (self.here, self.there):
            with KnowledgeBase.open(machine) as kb:
                assert [each for each in kb.checking.run() if each.damage] == []

    def purge(self, machine: Path, secret: str) -> None:
        workspace = open_workspace(machine)
        history = History(workspace, Scanner(workspace))
        history.open()
        assert not Purging(workspace, history).run(Secret(secret)).left

    def files(self, machine: Path) -> dict[str, bytes]:
        return {
            str(file.relative_to(self.file(machine, "docs").parent)): file.read_bytes()
            for area in ("docs", "sessions")
            for file in sorted(self.file(machine, area).rglob("*"))
            if file.is_file()
        }


@pytest.fixture(params=[False, True], ids=["own layout", "in place"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path, in_place=request.param)


@pytest.fixture
def plain(tmp_path: Path) -> World:
    return World(tmp_path)


def test_they_come_whole_and_go_on_on_either_side(world: World) -> None:
    world.write(world.here, "docs/house/Plan of the roof.pdf", b"%PDF" + bytes(range(256)) * 2000)
    world.say(world.here, "The kestrel nests in the tower.")
    world.everywhere()
    assert len(world.files(world.there)) == 2
    with KnowledgeBase.open(world.there) as kb:
        assert kb.search.search("kestrel", scope="sessions").hits
    world.say(world.there, "It left in August.")
    world.write(world.there, "docs/house/Plan of the roof.pdf", b"%PDF of another year")
    world.write(world.there, "docs/new.txt", "new\n")
    world.everywhere()
    assert b"August" in world.file(world.here, "sessions/talk.jsonl").read_bytes()
    assert "docs/new.txt" in world.files(world.here)


def test_each_stays_unless_it_is_wanted_and_what_is_not_wanted_here_is_left_to_others(
    plain: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.write(plain.here, "docs/a.txt", "a\n")
    plain.say(plain.here, "Hello there.")
    monkeypatch.setenv("KBTUI_SYNC__CONVERSATIONS", "false")
    done = plain.sync(plain.here)
    assert done.files_sent == 1
    assert "conversations and the settings stay on this machine" in done.notes[0]
    assert "sync.conversations" in done.notes[0]
    monkeypatch.setenv("KBTUI_SYNC__CONVERSATIONS", "true")
    plain.sync(plain.there)
    assert set(plain.files(plain.there)) == {"docs/a.txt"}
    plain.say(plain.there, "Of the other machine.", session="other")
    plain.sync(plain.there)
    plain.write(plain.here, "docs/b.txt", "b\n")
    monkeypatch.setenv("KBTUI_SYNC__CONVERSATIONS", "false")
    plain.sync(plain.here)
    assert "sessions/other.jsonl" not in plain.files(plain.here)
    monkeypatch.setenv("KBTUI_SYNC__CONVERSATIONS", "true")
    plain.everywhere()
    assert len(plain.files(plain.here)) == 4


def test_what_both_changed_stays_in_both_versions_and_of_a_log_the_longer_one(
    world: World,
) -> None:
    world.write(world.here, "docs/a.txt", "one\n")
    world.say(world.here, "First.")
    world.say(world.here, "First.", session="longer")
    world.everywhere()
    for machine, word in ((world.here, "here"), (world.there, "there")):
        world.write(machine, "docs/a.txt", f"{word}\n")
        world.say(machine, word)
        world.say(machine, "Both were told this.", session="longer")
    world.say(world.there, "And this.", session="longer")
    world.everywhere()
    files = world.files(world.here)
    assert sorted(data for name, data in files.items() if name.startswith("docs/a")) == [
        b"here\n",
        b"there\n",
    ]
    talks = [data for name, data in files.items() if name.startswith("sessions/talk")]
    assert sorted(b"there" in data for data in talks) == [False, True]
    assert b"And this." in files["sessions/longer.jsonl"]
    with KnowledgeBase.open(world.there) as kb:
        assert len(kb.sessions.list()) == 3


def test_what_is_deleted_or_moved_is_so_everywhere_and_what_was_edited_meanwhile_stays(
    plain: World,
) -> None:
    for name in "abcdefghij":
        plain.write(plain.here, f"docs/{name}.txt", f"{name}\n")
    plain.everywhere()
    plain.file(plain.there, "docs/a.txt").unlink()
    plain.file(plain.there, "docs/b.txt").rename(plain.file(plain.there, "docs/moved.txt"))
    plain.file(plain.there, "docs/c.txt").unlink()
    plain.write(plain.here, "docs/c.txt", "edited\n")
    plain.everywhere()
    files = plain.files(plain.here)
    assert {"docs/a.txt", "docs/b.txt"}.isdisjoint(files)
    assert files["docs/moved.txt"] == b"b\n"
    assert files["docs/c.txt"] == b"edited\n"


def test_a_folder_that_is_gone_at_once_comes_back(plain: World) -> None:
    for name in "abcdefgh":
        plain.write(plain.here, f"docs/{name}.txt", f"{name}\n")
    plain.everywhere()
    shutil.rmtree(plain.file(plain.there, "docs"))
    said = " ".join(plain.sync(plain.there).notes)
    assert "8 files were gone here at once and are back" in said
    plain.everywhere()
    assert len(plain.files(plain.here)) == 8


def test_an_open_conversation_is_left_alone_and_comes_later(plain: World) -> None:
    plain.say(plain.here, "First.")
    plain.everywhere()
    plain.say(plain.here, "Second.")
    plain.sync(plain.here)
    claim = Claim.take(plain.there / ".kbtui/sessions", "talk")
    said = " ".join(plain.sync(plain.there).notes)
    assert "Not synced: sessions/talk.jsonl: The session talk is open" in said
    assert b"Second" not in plain.file(plain.there, "sessions/talk.jsonl").read_bytes()
    claim.release()
    plain.everywhere()
    assert b"Second" in plain.file(plain.there, "sessions/talk.jsonl").read_bytes()


def test_a_file_against_a_folder_an_odd_name_and_a_link_are_said_and_the_rest_travels(
    plain: World,
) -> None:
    plain.write(plain.here, "docs/x/a.txt", "a\n")
    plain.write(plain.here, "docs/odd. /b.txt", "b\n")
    plain.write(plain.here, "docs/c.txt", "c\n")
    plain.file(plain.here, "docs/link.txt").symlink_to("c.txt")
    said = " ".join(plain.sync(plain.here).notes)
    assert "docs/odd." in said
    assert "link.txt" in said
    plain.write(plain.there, "docs/x", "a file\n")
    said = " ".join(plain.sync(plain.there).notes)
    assert "docs/x" in said
    assert plain.file(plain.there, "docs/x").read_bytes() == b"a file\n"
    assert plain.file(plain.there, "docs/c.txt").read_bytes() == b"c\n"
    plain.file(plain.there, "docs/x").unlink()
    plain.sync(plain.there)
    assert plain.file(plain.there, "docs/x/a.txt").read_bytes() == b"a\n"


def test_a_purge_takes_a_secret_out_of_the_remote_and_of_the_other_machine(plain: World) -> None:
    secret = "hunter2-kestrel-99"
    plain.write(plain.here, "docs/a.txt", f"The word is {secret}.\n")
    plain.say(plain.here, f"It is {secret}.")
    plain.everywhere()
    plain.purge(plain.here, secret)
    plain.everywhere()
    for machine in (plain.here, plain.there):
        assert all(secret.encode() not in data for data in plain.files(machine).values())
    objects = subprocess.run(
        ["git", "--git-dir", plain.remote, "cat-file", "--batch", "--batch-all-objects"],
        check=True,
        capture_output=True,
    )
    assert secret.encode() not in objects.stdout
    assert b"The word is" in objects.stdout


def test_after_a_purge_what_was_gone_on_with_elsewhere_is_asked_about(plain: World) -> None:
    plain.say(plain.here, "It is hunter2-kestrel-99.")
    plain.everywhere()
    plain.purge(plain.here, "hunter2-kestrel-99")
    plain.say(plain.there, "More.")
    plain.sync(plain.there)
    with pytest.raises(RefusedHistoryError) as refused:
        plain.sync(plain.here)
    assert "--replace" in refused.value.hint
    plain.sync(plain.here, replace=True)


def test_a_third_machine_gets_all_after_the_first_has_lost_its_cache(
    plain: World, tmp_path: Path
) -> None:
    for number in range(5):
        plain.write(plain.here, f"docs/{number}.bin", os.urandom(50_000))
        plain.everywhere()
    third = tmp_path / "third"
    create_workspace(third)
    plain.sync(third)
    assert len(list((third / "docs").iterdir())) == 5
    (plain.here / ".kbtui/history.git/beside").unlink()
    plain.everywhere()
    assert len(plain.files(plain.here)) == 5


def test_what_the_other_side_has_lost_or_has_an_older_version_of_is_not_lost_here(
    plain: World,
) -> None:
    plain.write(plain.here, "docs/a.txt", "old\n")
    plain.everywhere()
    older = _git(plain, "rev-parse", "kbtui-beside")
    plain.write(plain.here, "docs/a.txt", "new\n")
    plain.write(plain.here, "docs/b.txt", "b\n")
    plain.say(plain.here, "Hello there.")
    plain.everywhere()
    _git(plain, "update-ref", "refs/heads/kbtui-beside", older)  # as a backup of it would be
    plain.everywhere()
    kept = plain.files(plain.there)
    assert kept["docs/a.txt"] == b"new\n"
    assert {"docs/b.txt", "sessions/talk.jsonl"} <= kept.keys()
    _git(plain, "update-ref", "-d", "refs/heads/kbtui-beside")
    plain.everywhere()
    assert plain.files(plain.here) == kept


def test_a_machine_that_knows_the_newest_alone_takes_an_older_version_of_it_too(
    plain: World,
) -> None:
    for number in range(3):
        plain.write(plain.here, "docs/a.txt", f"{number}\n")
        plain.sync(plain.here)
    plain.sync(plain.there)
    _git(plain, "update-ref", "refs/heads/kbtui-beside", "kbtui-beside~1")
    plain.sync(plain.there)
    plain.everywhere()
    assert plain.files(plain.there)["docs/a.txt"] == b"2\n"


def test_documents_come_from_a_server_that_sends_no_newest_versions_alone(plain: World) -> None:
    class Whole(UploadPackHandler):
        def capabilities(self) -> list[bytes]:
            return [each for each in super().capabilities() if each != b"shallow"]

        @classmethod
        def required_capabilities(cls) -> tuple[bytes, ...]:
            return ()

    for number in range(3):
        plain.write(plain.here, "docs/a.txt", f"{number}\n")
        plain.sync(plain.here)
    with closing(Repo(str(plain.remote))) as repository:
        backend = DictBackend({"/notes": repository})
        served = make_wsgi_chain(backend, handlers={b"git-upload-pack": Whole})
        server = make_server("127.0.0.1", 0, served, handler_class=WSGIRequestHandlerLogger)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            with KnowledgeBase.open(plain.there) as kb:
                kb.syncing.run(f"http://127.0.0.1:{server.server_port}/notes")
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
    assert plain.files(plain.there)["docs/a.txt"] == b"2\n"


def test_a_secret_in_the_name_of_a_document_does_not_come_back_after_a_purge(plain: World) -> None:
    secret = "hunter2-kestrel-99"
    plain.write(plain.here, f"docs/{secret}.txt", f"The word is {secret}.\n")
    plain.everywhere()
    plain.purge(plain.here, secret)
    plain.everywhere()
    assert plain.files(plain.there) == {"docs/removed.txt": b"The word is (removed).\n"}
    assert secret not in _git(plain, "ls-tree", "-r", "--name-only", "kbtui-beside")


def _git(world: World, *arguments: str) -> str:
    command = ["git", "--git-dir", str(world.remote), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("forgetting_first", [True, False])
def test_what_one_machine_forgot_doesnt_come_back_from_one_that_went_on(world, forgetting_first):
    world.say(world.here, "the code of the gate is blue heron")
    world.everywhere()
    with KnowledgeBase.open(world.here) as kb:
        kb.sessions.mask("talk", [Mask(1, ((24, 34),))])
    world.say(world.there, "and the gate squeaks")
    machines = [world.here, world.there]
    notes = [world.sync(each).notes for each in (machines if forgetting_first else machines[::-1])]
    notes += [world.sync(each).notes for each in machines]
    assert any("something was forgotten in it" in note for said in notes for note in said)
    with KnowledgeBase.open(world.here) as kb:
        assert [info.id for info in kb.sessions.list()] == ["talk"]
        assert "heron" not in kb.sessions.read_log("talk").messages[0].content
    world.file(world.there, "sessions/talk.jsonl").unlink()
    world.everywhere()
    with KnowledgeBase.open(world.there) as kb:
        assert "heron" not in kb.sessions.read_log("talk").messages[0].content


def test_a_new_machine_fetches_the_newest_versions_alone_and_goes_on_with_both(
    plain: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for year in range(6):
        plain.write(plain.here, "docs/plan.pdf", os.urandom(200_000))
        plain.say(plain.here, f"Year {year}.")
        plain.sync(plain.here)
    came = 0
    take = Incoming.write

    def counted(incoming: Incoming, data: bytes) -> int:
        nonlocal came
        came += len(data)
        return take(incoming, data)

    monkeypatch.setattr(Incoming, "write", counted)
    plain.sync(plain.there)
    assert 200_000 < came < 300_000
    assert plain.files(plain.there) == plain.files(plain.here)
    plain.say(plain.there, "And one more.")
    plain.write(plain.there, "docs/plan.pdf", b"%PDF of there")
    plain.everywhere()
    assert b"one more" in plain.file(plain.here, "sessions/talk.jsonl").read_bytes()
    assert plain.file(plain.here, "docs/plan.pdf").read_bytes() == b"%PDF of there"


class Named:
    """The machines of a world, each with a name of its own in the archive."""

    def __init__(self, world: World, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._world, self._folder, self._patch = world, folder, patch

    def be(self, machine: Path) -> None:
        state = self._folder / f"state of {machine.name}"
        self._patch.setenv("XDG_STATE_HOME", str(state))
        (state / "kbtui").mkdir(parents=True, exist_ok=True)
        (state / "kbtui/machine").write_text(f"{machine.name}\n")

    def sync(self, *machines: Path) -> None:
        for machine in machines:
            self.be(machine)
            self._world.sync(machine)

    def condense(self, machine: Path, line: str, messages: tuple[int, int]) -> None:
        self.be(machine)
        with KnowledgeBase.open(machine) as kb, kb.history.change(Actor.CONSOLIDATOR, "x") as made:
            before = made.read("memory/MEMORY.md") or b"# Memory\n"
            made.write("memory/MEMORY.md", before + f"- {line}\n".encode())
            time = "2026-11-20 10:00"
            kb.archive.stage(made, line, session="talk", messages=messages, timestamp=time)


@pytest.fixture
def named(plain: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Named:
    return Named(plain, tmp_path, monkeypatch)


@pytest.mark.parametrize("same", [True, False], ids=["the same messages", "others"])
def test_what_two_machines_condensed_both_stands_in_the_notes_once(
    plain: World, named: Named, same: bool
) -> None:
    here, there = plain.here, plain.there
    plain.say(here, "The kestrel nests in the tower.")
    plain.say(here, "It left in August.")
    named.sync(here, there)
    named.condense(here, "The kestrel nests, says here.", (1, 2))
    named.condense(there, "The kestrel nests, says there.", (1, 2 if same else 1))
    named.sync(here, there, here, there, here)
    texts = [(machine / "memory/MEMORY.md").read_text() for machine in (here, there)]
    assert texts[0] == texts[1]
    assert texts[0].count("kestrel nests") == (1 if same else 2)
    assert "says here" in texts[0]
    with KnowledgeBase.open(there) as kb:
        assert len(kb.archive.entries()) == 2
        assert sum(each.origin.undoes is not None for each in kb.history.log()) == same
        assert not kb.memory.tombstones.buried("The kestrel nests, says there.")
        assert not kb.memory.pending.parts(kb.memory.pending.conversation("talk"))
        assert [each for each in kb.checking.run() if each.damage] == []


def test_an_edit_in_the_moment_in_which_a_line_is_taken_back_neither_fails_the_sync_nor_is_lost(
    plain: World, named: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = plain.here, plain.there
    plain.say(here, "The kestrel nests in the tower.")
    named.sync(here, there)
    named.condense(here, "The kestrel nests, says here.", (1, 1))
    named.condense(there, "The kestrel nests, says there.", (1, 1))
    named.sync(here)
    apply = Door.apply

    def late(door: Door, change: Change) -> Commit | None:
        if change.actor is Actor.SYNC and change.origin.undoes:
            plain.write(there, "memory/MEMORY.md", "# Memory\n- I typed this.\n")
        return apply(door, change)

    with monkeypatch.context() as patch:
        patch.setattr(Door, "apply", late)
        named.sync(there)
    assert (there / "memory/MEMORY.md").read_text() == "# Memory\n- I typed this.\n"


@pytest.mark.parametrize("is_typed", [False, True], ids=["condensed there", "typed there"])
@pytest.mark.parametrize("is_new", [False, True], ids=["in an old file", "in a new one"])
def test_a_line_that_stands_there_for_another_reason_too_is_not_taken_back_with_one_of_them(
    plain: World, named: Named, is_new: bool, is_typed: bool
) -> None:
    here, there, line = plain.here, plain.there, "The kestrel nests in the tower."
    plain.say(here, line)
    if not is_new:
        plain.write(here, "memory/MEMORY.md", "# Memory\n- Tea is at four.\n")
    named.sync(here, there)
    if is_typed:
        plain.write(here, "memory/MEMORY.md", f"# Memory\n- Tea is at four.\n- {line}\n")
    named.condense(here, "It nests." if is_typed else line, (1, 1))
    named.condense(there, line, (1, 1))
    named.sync(here, there, here, there, here)
    texts = [(machine / "memory/MEMORY.md").read_text() for machine in (here, there)]
    assert texts[0] == texts[1]
    assert texts[0].count(line) == 1


@pytest.mark.parametrize("condenses", ["here", "there", ""])
def test_of_a_conversation_that_both_went_on_with_each_message_is_condensed_once(
    plain: World, named: Named, condenses: str
) -> None:
    here, there = plain.here, plain.there
    plain.say(here, "The kestrel nests in the tower.")
    named.condense(here, "The kestrel nests.", (1, 1))
    named.sync(here, there)
    plain.say(here, "Here it flew.")
    plain.say(there, "There it sat.")
    if condenses:
        named.condense(plain.here.parent / condenses, "Went on.", (2, 2))
    named.sync(there, here, there, here)
    assert plain.files(here) == plain.files(there)
    logs = {name: data for name, data in plain.files(here).items() if name.startswith("sessions/")}
    assert len(logs) == 2
    whole = b"".join(logs.values())
    assert [whole.count(said) for said in (b"nests", b"Here it", b"There it")] == [1, 1, 1]
    with KnowledgeBase.open(here) as kb:
        waiting = kb.memory.unfinished()
        parts = [
            message.content
            for each in waiting
            for part in kb.memory.pending.parts(kb.memory.pending.conversation(each))
            for unit in part
            for message in unit.messages
        ]
    wanted = {"here": ["There it sat."], "there": ["Here it flew."]}
    assert sorted(parts) == wanted.get(condenses, ["Here it flew.", "There it sat."])


@pytest.mark.parametrize("renamed", ["here", "there"])
def test_a_conversation_that_one_goes_on_with_and_another_renames_stays_one(
    plain: World, named: Named, renamed: str
) -> None:
    here, there = plain.here, plain.there
    plain.say(here, "The kestrel nests in the tower.")
    named.sync(here, there)
    plain.say(there if renamed == "here" else here, "It left in August.")
    with KnowledgeBase.open(here.parent / renamed) as kb, kb.sessions.open("talk") as talk:
        talk.rename("Birds")
    named.sync(there, here, there)
    assert plain.files(here) == plain.files(there)
    with KnowledgeBase.open(there) as kb:
        assert [(each.title, each.messages) for each in kb.sessions.list()] == [("Birds", 2)]


def test_a_sync_that_ends_between_the_copy_and_the_conversation_loses_no_message(
    plain: World, named: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = plain.here, plain.there
    plain.say(here, "First.")
    named.sync(here, there)
    plain.say(here, "Here it flew.")
    plain.say(there, "There it sat.")
    named.condense(there, "Sat.", (2, 2))
    named.sync(there)
    write = UnversionedSync._write

    def cut(self: UnversionedSync, path: str, before: str | None, data: bytes | None) -> None:
        if path == "sessions/talk.jsonl":
            raise KeyboardInterrupt
        write(self, path, before, data)

    with monkeypatch.context() as patch:
        patch.setattr(UnversionedSync, "_write", cut)
        with pytest.raises(KeyboardInterrupt):
            named.sync(here)
    assert len([*plain.file(here, "sessions").glob("talk*.jsonl")]) == 2
    named.sync(here, there, here)
    assert plain.files(here) == plain.files(there)
    whole = b"".join(plain.files(here).values())
    assert [whole.count(said) for said in (b"First", b"Here it", b"There it")] == [1, 1, 1]
