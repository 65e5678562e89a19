"""What a person deleted of documents and conversations is deleted on every machine, and stays so."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.sessions.imported import Imported, block
from kbtui.sessions.log_records import Mask
from kbtui.workspace.removals import Content, Removal, Removals, hidden_name
from tests.maintenance.test_sync_companions import World

if TYPE_CHECKING:
    from pathlib import Path

TALK = "sessions/talk.jsonl"
BRANCH = "refs/heads/kbtui-beside"


@pytest.fixture(autouse=True)
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DOCUMENTS", "CONVERSATIONS"):
        monkeypatch.setenv(f"KBTUI_SYNC__{name}", "true")


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    for name in ("talk", "other", "third", "fourth"):
        made.say(made.here, f"The kestrel nests in {name}.", session=name)
    for name in "abcd":
        made.write(made.here, f"docs/{name}.txt", f"{name}\n")
    made.write(made.here, "docs/house/plan.txt", "plan\n")
    made.everywhere()
    return made


def _delete(world: World, machine: Path, *sessions: str) -> None:
    with KnowledgeBase.open(machine) as kb:
        for each in sessions:
            kb.sessions.delete(each)


def _by_hand(world: World, machine: Path, *sessions: str) -> None:
    for each in sessions:
        world.file(machine, f"sessions/{each}.jsonl").unlink()


def _git(world: World, *arguments: str, stdin: str = "") -> str:
    command = ["git", "--git-dir", str(world.remote), *arguments]
    run = subprocess.run(command, check=True, capture_output=True, text=True, input=stdin)
    return run.stdout.strip()


def _as_older(world: World, edits: dict[str, str | None]) -> None:
    """Push as a version does that makes no records, and takes along what it doesn't know."""
    entries = dict(
        line.split("\t")[::-1] for line in _git(world, "ls-tree", "-r", BRANCH).splitlines()
    )
    for path, text in edits.items():
        entries.pop(path, None)
        if text is not None:
            blob = _git(world, "hash-object", "-w", "--stdin", stdin=text)
            entries[path] = f"100644 blob {blob}"
    index = {"GIT_INDEX_FILE": str(world.remote / "index-of-a-test")}
    lines = "".join(f"{how}\t{path}\n" for path, how in entries.items())
    for arguments, stdin in (
        (["read-tree", "--empty"], ""),
        (["update-index", "--index-info"], lines),
    ):
        subprocess.run(
            ["git", "--git-dir", world.remote, *arguments],
            env=index,
            check=True,
            input=stdin,
            text=True,
        )
    tree = subprocess.run(
        ["git", "--git-dir", world.remote, "write-tree"],
        env=index,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    who = ["-c", "user.name=Old", "-c", "user.email=old@example.org"]
    commit = _git(world, *who, "commit-tree", "-p", BRANCH, "-m", "1 file", tree)
    _git(world, "update-ref", BRANCH, commit)


def _records(world: World) -> list[str]:
    names = _git(world, "ls-tree", "-r", "--name-only", BRANCH).splitlines()
    return [name for name in names if name.startswith("removed/")]


@pytest.mark.parametrize("delete", [_delete, _by_hand])
@pytest.mark.parametrize("deleting_first", [True, False])
def test_a_deleted_conversation_is_deleted_where_it_was_gone_on_with_too(
    world: World, delete, deleting_first: bool
) -> None:
    delete(world, world.here, "talk")
    world.say(world.there, "And it left in August.")
    order = [world.here, world.there]
    said = [
        note
        for each in (order if deleting_first else order[::-1])
        for note in world.sync(each).notes
    ]
    world.everywhere()
    assert TALK not in world.files(world.there)
    assert len(world.files(world.there)) == 8
    if deleting_first:
        assert any("Deleted on another machine, with what was added" in note for note in said)


@pytest.mark.parametrize("delete", [_delete, _by_hand])
def test_one_in_which_something_was_forgotten_meanwhile_stays(world: World, delete) -> None:
    delete(world, world.here, "talk")
    with KnowledgeBase.open(world.there) as kb:
        kb.sessions.mask("talk", [Mask(1, ((4, 11),))])
    world.sync(world.there)
    world.everywhere()
    with KnowledgeBase.open(world.here) as kb:
        assert "kestrel" not in kb.sessions.read_log("talk").messages[0].content


def test_many_that_are_deleted_by_command_are_deleted_and_by_hand_come_back(world: World) -> None:
    _delete(world, world.here, "talk", "other", "third")
    world.everywhere()
    assert [name for name in world.files(world.there) if name.startswith("sessions")] == [
        "sessions/fourth.jsonl"
    ]
    for name in "abcd":
        world.file(world.there, f"docs/{name}.txt").unlink()
    assert "4 files were gone here at once" in " ".join(world.sync(world.there).notes)
    world.everywhere()
    assert len([name for name in world.files(world.here) if name.startswith("docs")]) == 5


def test_a_folder_that_is_gone_comes_back_and_one_that_is_moved_is_moved(world: World) -> None:
    shutil.rmtree(world.file(world.there, "docs/house"))
    said = " ".join(world.sync(world.there).notes)
    assert "Damaged or gone here, and back as on the other side: docs/house/plan.txt." in said
    world.file(world.there, "docs/house").rename(world.file(world.there, "docs/home"))
    world.everywhere()
    assert {"docs/home/plan.txt", "docs/house/plan.txt"} & world.files(world.here).keys() == {
        "docs/home/plan.txt"
    }


@pytest.mark.parametrize("path", [TALK, "docs/a.txt"])
def test_what_is_put_back_after_it_was_deleted_comes_back_everywhere(
    world: World, path: str
) -> None:
    file = world.file(world.here, path)
    data = file.read_bytes()
    file.unlink()
    world.everywhere()
    assert path not in world.files(world.there)
    assert len(_records(world)) == 1
    file.write_bytes(data)
    world.everywhere()
    assert world.files(world.there)[path] == data
    assert _records(world) == []
    file.unlink()
    world.everywhere()
    assert path not in world.files(world.there)


def test_what_is_put_back_before_the_next_sync_stays(world: World) -> None:
    file = world.file(world.here, TALK)
    data = file.read_bytes()
    _delete(world, world.here, "talk")
    file.write_bytes(data)
    world.everywhere()
    assert world.files(world.there)[TALK] == data
    world.say(world.there, "It left in August.")
    world.everywhere()
    assert TALK in world.files(world.here)


def test_what_an_older_version_sends_again_is_deleted_again(world: World) -> None:
    longer = world.files(world.here)[TALK].decode() + '{"id": 2, "role": "user", "content": "x"}\n'
    _delete(world, world.here, "talk")
    world.everywhere()
    kept = _records(world)
    for machine in (world.there, world.here):
        _as_older(world, {TALK: longer})
        world.sync(machine)
        assert TALK not in world.files(machine)
        assert TALK not in _git(world, "ls-tree", "-r", "--name-only", BRANCH)
    assert _records(world) == kept


def test_what_an_older_version_deletes_comes_back_and_it_is_said(world: World) -> None:
    _as_older(world, {TALK: None, "docs/a.txt": None})
    said = " ".join(world.sync(world.here).notes)
    assert f"back there as here: docs/a.txt, {TALK}." in said
    world.everywhere()
    assert {TALK, "docs/a.txt"} <= world.files(world.there).keys()


def test_what_an_older_version_sends_damaged_is_mended(world: World) -> None:
    whole = world.files(world.here)[TALK]
    _as_older(world, {TALK: whole.decode()[:90], "docs/a.txt": ""})
    assert "Damaged or gone on the other side" in " ".join(world.sync(world.here).notes)
    world.everywhere()
    assert world.files(world.there)[TALK] == whole
    assert world.files(world.there)["docs/a.txt"] == b"a\n"


def test_an_import_that_is_taken_back_is_so_on_every_machine(world: World) -> None:
    name, message = (
        "chatgpt_20260101-000000-0123456789",
        {"id": 1, "role": "user", "content": "Hi."},
    )
    head = {"kind": "session", "format": 1, "id": name, "channel": "chatgpt", "title": ""}
    batches = [block(each, "chatgpt", "c", "", "", "", [], 1) for each in ("one", "two")]
    with KnowledgeBase.open(world.here) as kb:
        imported = Imported(kb.workspace)
        imported.write({name: [head, batches[0], message]})
        imported.extend(name, [batches[1], {**message, "id": 2, "content": "And bye."}])
    world.everywhere()
    path = f"sessions/{name}.jsonl"
    assert b"And bye." in world.files(world.there)[path]
    for batch, left in (("two", True), ("one", False)):
        with KnowledgeBase.open(world.here) as kb:
            assert len(Imported(kb.workspace).take_back(batch)) == 1
        world.everywhere()
        assert (path in world.files(world.there)) == left
        assert b"And bye." not in b"".join(world.files(world.there).values())


def test_what_was_added_elsewhere_to_a_log_with_a_secret_goes_on_from_the_purged_one(
    world: World,
) -> None:
    secret = "hunter2-kestrel-99"
    world.say(world.here, f"It is {secret}.")
    world.write(world.here, "docs/word.txt", f"The word is {secret}.\n")
    world.everywhere()
    world.purge(world.here, secret)
    world.say(world.there, "More.")
    for machine in (world.here, world.there):
        world.sync(machine)
    world.everywhere()
    files = world.files(world.here)
    assert not [name for name, data in files.items() if secret.encode() in data]
    assert b"More." in files[TALK]
    assert not [name for name in files if name.startswith("sessions/talk-")]
    assert secret not in "".join(_records(world))


def test_a_record_says_nothing_of_what_was_removed_and_is_read_as_it_is_written(
    world: World,
) -> None:
    _delete(world, world.here, "talk")
    world.everywhere()
    (name,) = _records(world)
    assert "talk" not in name
    assert _git(world, "cat-file", "-s", f"{BRANCH}:{name}") == "0"
    made = Removal.parse(name.removeprefix("removed/"))
    assert made is not None
    assert made.path == hidden_name(TALK)
    shorter = Removal(made.path, made.was, Content.of(b"x"))
    assert Removal.parse(shorter.name) == shorter
    assert [Removal.parse(each) for each in ("", "x-y", f"{name}-1", made.name[1:])] == [None] * 4


def test_records_that_are_damaged_are_passed_over(world: World) -> None:
    with KnowledgeBase.open(world.here) as kb:
        records = Removals(kb.workspace)
        records.note(TALK, b"one\n")
        records.note(TALK, b"two\n", b"t")
        (file,) = (world.here / ".kbtui").glob("removals*")
        file.write_bytes(
            b"{\n[]\n" + json.dumps({"removal": 3}).encode() + b"\n" + file.read_bytes()
        )
        assert len(records.all()) == 2
        records.drop([records.all()[0].name])
        assert [each.now for each in records.all()] == [Content.of(b"t")]
