"""Purge: after it no byte that kbtui keeps holds the secret, and the rest is as it was."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import pytest

from kbtui.cache import COMPILED, cache_folder, compiled
from kbtui.errors import RefusedHistoryError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.history.door import Door
from kbtui.history.history import History
from kbtui.history.objects.repository import Repository
from kbtui.history.sync.sync import parse_address
from kbtui.logs import log_file
from kbtui.maintenance.purge import Purging
from kbtui.memory.background.service import Inbox
from kbtui.redaction.secret import MARKER, Secret
from kbtui.workspace.jsonl import append_line, read_lines
from kbtui.workspace.opening import create_workspace, open_workspace
from kbtui.workspace.scan import Scanner
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.workspace.layout import Workspace

SECRET = 'hunter "2" sk-äöü/+line'
A, B = "knowledge/topics/a.md", "knowledge/topics/b.md"
C = "knowledge/topics/c.md"


def history_of(workspace: Workspace) -> History:
    history = History(workspace, Scanner(workspace))
    history.open()
    return history


def write(history: History, path: str, text: str | None, reason: str = "why", **origin: object):
    with history.change(Actor.YOU, reason, Origin(**origin)) as change:  # type: ignore[arg-type]
        if text is None:
            change.delete(path)
        else:
            change.write(path, text)
    assert change.result is not None
    return change.result


def forms() -> list[bytes]:
    """Every form that this test plants; worked out apart from the code under test."""
    plain = SECRET.encode()
    return [
        plain,
        json.dumps(SECRET)[1:-1].encode(),
        json.dumps(SECRET, ensure_ascii=False)[1:-1].encode(),
        SECRET.encode("utf-16-le"),
        base64.b64encode(plain)[:-4],
        base64.b64encode(b"x" + plain)[4:-4],
        base64.b64encode(b"xy" + plain)[4:-4],
    ]


def everything(workspace: Workspace) -> list[tuple[str, bytes]]:
    """All bytes of the workspace and of what is kept beside it, compressed objects opened."""
    found: list[tuple[str, bytes]] = []
    roots = [workspace.root, platformdirs.user_cache_path("kbtui")]
    roots += [platformdirs.user_state_path("kbtui", appauthor=False), log_file().parent]
    for root in roots:
        for file in root.rglob("*"):
            if file.is_file():
                data = file.read_bytes()
                found += [(str(file), data), (f"name of {file}", os.fsencode(file.name))]
                if data[:1] == b"\x78":
                    found.append((f"inside {file}", zlib.decompress(data)))
    git = ["git", "--git-dir", workspace.repository, "cat-file", "--batch-all-objects"]
    run = subprocess.run([*git, "--batch"], capture_output=True, check=True)
    return [*found, ("all objects", run.stdout)]


def leaks(workspace: Workspace) -> list[str]:
    return [
        name for name, data in everything(workspace) for form in forms() if form and form in data
    ]


def plant(workspace: Workspace) -> History:
    """A history, and the secret in many places of it and around it."""
    history = history_of(workspace)
    write(history, A, "clean\n")
    write(history, B, f"one\n{SECRET}\ntwo\n", f"noted {SECRET}")
    bad = write(history, A, f"clean\nkey: {json.dumps(SECRET)}\n")
    write(history, "memory/history.jsonl", json.dumps({"cursor": 1, "content": SECRET}) + "\n")
    write(history, B, "one\ntwo\n")
    history.undo(bad.id)
    write(history, "knowledge/people/c.md", "later\n")
    history.tidy()
    root = workspace.root
    for name, data in {
        "sessions/s.jsonl": json.dumps({"text": SECRET}).encode() + b"\n",
        ".kbtui/inbox/ab12.json": json.dumps({"edits": [{"text": SECRET}]}).encode(),
        "knowledge/topics/a.conflict-20260101T000000.md": SECRET.encode(),
        "docs/manual.txt": f"see {SECRET}".encode("utf-16-le"),
        "docs/picture.txt": base64.b64encode(b"--" + SECRET.encode() + b"--"),
        "knowledge/topics/.a.md.swp": SECRET.encode(),
    }.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for folder in (log_file().parent, platformdirs.user_state_path("kbtui", appauthor=False)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kbtui.log.1").write_text(f"INFO {SECRET}\n")
    (workspace.cache / "index.bin").write_bytes(b"\0" + SECRET.encode())
    (root / "knowledge/topics/outside.md").write_text(f"edited outside: {SECRET}\n")
    return history


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "notes")


def fsck(workspace: Workspace) -> None:
    git = ["git", "--git-dir", workspace.repository, "fsck", "--full", "--strict", "--no-dangling"]
    run = subprocess.run(git, capture_output=True, text=True, check=False)
    assert run.stdout + run.stderr == ""


def test_nothing_that_is_kept_holds_the_secret_any_more(workspace: Workspace) -> None:
    history = plant(workspace)
    before = [
        {path: history.read(path, commit.id) for path in history.tree(commit.id)}
        for commit in history.log()
    ]
    shown = [(commit.time, commit.actor, commit.origin.undoes) for commit in history.log()]
    ids = [commit.id for commit in history.log()]
    done = Purging(workspace, history).run(Secret(SECRET))
    assert leaks(workspace) == []
    assert done.left == ()
    assert done.epoch == 1
    assert {"sessions/s.jsonl", "docs/manual.txt"} <= {place.name for place in done.found}
    fsck(workspace)
    again = history_of(workspace)
    end, outside, *commits = again.log()
    assert end.origin.epoch == 1
    assert outside.subject == "topics/outside created"
    assert [(commit.time, commit.actor) for commit in commits] == [each[:2] for each in shown]
    renamed = dict(zip(ids, (commit.id for commit in commits), strict=True))
    assert [commit.origin.undoes for commit in commits] == [
        each[2] and renamed[each[2]] for each in shown
    ]
    assert commits[-1].id == ids[-1]  # the first commit never held it
    for commit, files in zip(commits, before, strict=True):
        assert {path: again.read(path, commit.id) for path in again.tree(commit.id)} == {
            path: Secret(SECRET).without(data) for path, data in files.items()
        }
    assert again.adopt(settle=0) is None
    assert (workspace.root / A).read_text() == "clean\n"
    assert MARKER in (workspace.root / "sessions/s.jsonl").read_text()
    json.loads((workspace.root / "sessions/s.jsonl").read_text())


def test_a_dry_run_says_where_and_changes_nothing(workspace: Workspace) -> None:
    history = plant(workspace)
    head = history.head()
    found = Purging(workspace, history).find(Secret(SECRET))
    assert found.objects == 4
    assert {place.name: place.count for place in found.found}["sessions/s.jsonl"] == 1
    assert history.head() == head
    assert leaks(workspace)


def test_a_purge_where_nothing_stands_changes_nothing(workspace: Workspace) -> None:
    history = history_of(workspace)
    head = write(history, A, "clean\n").id
    done = Purging(workspace, history).run(Secret("not to be found"))
    assert (done.found, done.objects, done.epoch, done.left) == ((), 0, None, ())
    assert history.head() == head


def test_what_comes_with_the_program_is_no_place_of_a_secret(workspace: Workspace) -> None:
    history = history_of(workspace)
    compiled("words", [], ["kbtui.text"], lambda: ["wednesday"])
    file = cache_folder(COMPILED) / "words.json"
    before = file.read_bytes()
    done = Purging(workspace, history).run(Secret("wednesday"))
    assert (done.found, done.left) == ((), ())
    assert file.read_bytes() == before


def test_a_secret_in_the_name_of_a_file_goes_too(workspace: Workspace) -> None:
    history = history_of(workspace)
    write(history, "knowledge/topics/hunter2secret.md", "one\n")
    (workspace.root / "docs" / "hunter2secret.txt").write_text("two")
    Purging(workspace, history).run(Secret("hunter2secret"))
    assert [file.name for file in (workspace.root / "docs").iterdir()] == ["removed.txt"]
    assert "knowledge/topics/removed.md" in history_of(workspace).tree("HEAD")
    assert (workspace.root / "knowledge/topics/removed.md").read_text() == "one\n"


@pytest.mark.parametrize("text", ["", "abc", "  \n", MARKER, "no text \udcff\udcfe"])
def test_what_is_too_short_or_no_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Secret(text)


def _killed_at(root: Path, moment: int) -> tuple[int, int]:
    """Purge in a child that dies at one rename or removal: how it ended, and how many it began."""
    told, tells = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            status = _purge_until(root, moment, tells)
        finally:
            os._exit(status)
    os.close(tells)
    with os.fdopen(told) as begun:
        count = len(begun.read())
    _, ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended), count


def _purge_until(root: Path, moment: int, tells: int) -> int:
    seen = itertools.count(1)

    def counted(name: str, real: Callable[..., None]) -> None:
        def act(*arguments: Any, **options: Any) -> None:
            os.write(tells, b".")
            if next(seen) == moment:
                os._exit(9)
            real(*arguments, **options)

        setattr(os, name, act)

    workspace = open_workspace(root)
    history = history_of(workspace)
    for name in ("rename", "unlink", "link", "replace"):
        counted(name, getattr(os, name))
    Purging(workspace, history).run(Secret(SECRET))
    return 0


def test_a_purge_that_was_killed_is_run_again(tmp_path: Path) -> None:
    """The process dies at one rename or removal after another, at several points of the way."""
    original = create_workspace(tmp_path / "original")
    plant(original)
    whole = tmp_path / "whole"
    shutil.copytree(original.root, whole)
    _, total = _killed_at(whole, 0)
    moments = range(1, total) if os.environ.get("KBTUI_LONG") else (total // 3, total * 3 // 4)
    for moment in moments:
        root = tmp_path / f"at{moment}"
        shutil.copytree(original.root, root)
        assert _killed_at(root, moment)[0] == 9
        workspace = create_workspace(root)
        fsck(workspace)
        history = history_of(workspace)
        done = Purging(workspace, history).run(Secret(SECRET))
        assert done.left == ()
        assert leaks(workspace) == []
        fsck(workspace)
        assert (root / A).read_text() == "clean\n"
        shutil.rmtree(root)


def _plumb(workspace: Workspace, *arguments: str, stdin: str = "") -> str:
    git = ["git", "--git-dir", workspace.repository, *arguments]
    return subprocess.run(git, input=stdin, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("where", ["reachable", "unreachable"])
def test_a_branch_that_a_git_has_packed_survives_a_purge_and_its_death(
    tmp_path: Path, where: str
) -> None:
    """After `git pack-refs --all` the branch stands in no file of its own."""
    original = create_workspace(tmp_path / "original")
    history = history_of(original)
    last = write(history, A, f"{SECRET}\n" if where == "reachable" else "clean\n").id
    _plumb(original, "hash-object", "-w", "--stdin", stdin=SECRET)
    _plumb(original, "tag", "old", last)
    _plumb(original, "pack-refs", "--all")
    assert not (original.repository / "refs/heads/main").exists()
    whole = tmp_path / "whole"
    shutil.copytree(original.root, whole)
    _, total = _killed_at(whole, 0)
    few = {1, total // 2, total - 2} if where == "unreachable" else {total - 8}
    for moment in range(1, total) if os.environ.get("KBTUI_LONG") else sorted(few):
        root = tmp_path / f"at{moment}"
        shutil.copytree(original.root, root)
        # Two runs differ by a step or two: the last moment may not come.
        assert _killed_at(root, moment)[0] == 9 or moment == total - 2
        history = history_of(create_workspace(root))
        assert history.head() is not None
        Purging(create_workspace(root), history).run(Secret(SECRET))
    for done in (whole, root):
        workspace = create_workspace(done)
        assert leaks(workspace) == []
        fsck(workspace)
        assert _plumb(workspace, "tag") == ""
        again = history_of(workspace)
        assert (again.head() == last) is (where == "unreachable")
        assert again.adopt(settle=0) is None
        write(again, B, "goes on\n")
        fsck(workspace)


def test_a_purge_replaces_the_remote_and_stops_older_clones(tmp_path: Path) -> None:
    address = parse_address(str(tmp_path / "remote.git"))
    here, there = (create_workspace(tmp_path / name) for name in ("here", "there"))
    mine, theirs = history_of(here), history_of(there)
    write(mine, A, "clean\n")
    write(mine, B, f"{SECRET}\n")
    mine.sync(address)
    theirs.sync(address)
    write(theirs, A, "clean, and more\n")
    Purging(here, mine).run(Secret(SECRET))
    mine = history_of(here)
    report = mine.sync(address)
    assert report.replaced
    with pytest.raises(RefusedHistoryError, match="purged"):
        theirs.sync(address)
    assert (there.root / A).read_text() == "clean, and more\n"
    assert mine.sync(address).replaced is False
    fresh = history_of(create_workspace(tmp_path / "fresh"))
    fresh.sync(address)
    assert fresh.tree("HEAD") == mine.tree("HEAD")


def test_what_is_said_while_a_purge_writes_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An app that is open goes on appending to its session."""
    workspace = create_workspace(tmp_path / "here")
    history = history_of(workspace)
    file = workspace.sessions / "s.jsonl"
    append_line(file, {"text": SECRET})
    waits, lock, without = threading.Event(), fcntl.flock, Secret.without
    appender = threading.Thread(target=append_line, args=(file, {"text": "goes on"}))

    def tell(descriptor: int, operation: int) -> None:
        waits.set()
        lock(descriptor, operation)

    def append_first(secret: Secret, data: bytes) -> bytes:
        if appender.ident is None:
            monkeypatch.setattr(fcntl, "flock", tell)
            appender.start()
            assert waits.wait(PATIENCE)
        return without(secret, data)

    monkeypatch.setattr(Secret, "without", append_first)
    Purging(workspace, history).run(Secret(SECRET))
    appender.join(PATIENCE)
    assert read_lines(file).records == ({"text": MARKER}, {"text": "goes on"})


class _Cut(BaseException):
    """The purge ends here."""


@pytest.mark.parametrize("gone_on", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_purge_that_was_cut_off_is_finished_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool, gone_on: bool
) -> None:
    address = parse_address(str(tmp_path / "remote.git"))
    workspace = create_workspace(tmp_path / "here")
    history = history_of(workspace)
    write(history, B, f"{SECRET}\n")
    if is_known:
        history.sync(address)

    def cut(*_: object, **__: object) -> None:
        raise _Cut

    with monkeypatch.context() as patch:
        patch.setattr(Door, "forward", cut)
        with pytest.raises(_Cut):
            Purging(workspace, history).run(Secret(SECRET))
    history = history_of(workspace)
    if gone_on:
        write(history, A, "later\n")
    before = history.head()
    for replace in (False, True):
        with pytest.raises(RefusedHistoryError, match="was not finished") as refused:
            history.sync(address, replace_theirs=replace)
        assert "kbtui purge" in refused.value.hint
    assert history.head() == before
    Purging(workspace, history).run(Secret(SECRET))
    history = history_of(workspace)
    assert history.sync(address).replaced is is_known
    assert history.sync(address).sent == 0
    write(history, A, "goes on\n")
    assert history.sync(address).sent == 1


def test_a_remote_that_has_gone_on_since_is_not_replaced_unasked(tmp_path: Path) -> None:
    address = parse_address(str(tmp_path / "remote.git"))
    here, there = (create_workspace(tmp_path / name) for name in ("here", "there"))
    mine, theirs = history_of(here), history_of(there)
    write(mine, B, f"{SECRET}\n")
    mine.sync(address)
    theirs.sync(address)
    write(theirs, A, "new there\n")
    theirs.sync(address)
    Purging(here, mine).run(Secret(SECRET))
    mine = history_of(here)
    with pytest.raises(RefusedHistoryError, match="synced with"):
        mine.sync(address)
    assert Purging(here, mine).find(Secret(SECRET)).objects == 0  # it didn't come back
    head = mine.head()
    _plumb(here, "fetch", "-q", str(tmp_path / "remote.git"), "main")
    with pytest.raises(RefusedHistoryError, match="synced with"):
        mine.sync(address)  # though a git program has brought over what was built on it
    assert mine.head() == head
    repository = Repository(here.repository)
    assert repository.head() == mine.head()
    assert mine.sync(address, replace_theirs=True).replaced


def test_no_proposal_holds_the_secret_whether_it_waits_was_dropped_or_accepted(
    workspace: Workspace,
) -> None:
    history = history_of(workspace)
    write(history, A, "clean\n")
    inbox = Inbox(workspace, history)
    waits = inbox.add(Actor.MCP, f"found {SECRET}", {A: f"clean\n{SECRET}\n", B: f"{SECRET}\n"})
    reworded = inbox.add(Actor.DREAM, "why", {A: f"clean\nand {SECRET}\n"})
    inbox.edit(reworded.id, "1", "nothing\n")
    inbox.reject(inbox.add(Actor.DREAM, "no", {A: f"clean\nor {SECRET}\n"}).id)
    inbox.accept(inbox.add(Actor.DREAM, "yes", {C: f"{SECRET}\n"}).id)
    assert leaks(workspace)
    Purging(workspace, history).run(Secret(SECRET))
    assert leaks(workspace) == []
    fsck(workspace)
    inbox = Inbox(workspace, history_of(workspace))
    assert [each.id for each in inbox.list()] == [waits.id, reworded.id]
    inbox.accept(waits.id)
    assert MARKER in (workspace.root / A).read_text()


BINARY = {
    "zip": b"PK\x03\x04\x14\0\0\0" + SECRET.encode(),
    "pdf": b"%PDF-1.7\n" + SECRET.encode(),
    "picture": b"\x89PNG\r\n\x1a\n" + SECRET.encode(),
    "unknown": b"\0\x01\x02" + SECRET.encode(),
}


@pytest.mark.parametrize("kind", BINARY)
def test_a_binary_file_is_listed_and_left_until_its_owner_deletes_it(
    tmp_path: Path, kind: str
) -> None:
    workspace = create_workspace(tmp_path / "notes")
    history = history_of(workspace)
    write(history, A, f"my own: {SECRET}\n")
    file = workspace.root / "knowledge/topics/thing.bin"
    file.write_bytes(BINARY[kind])
    history.adopt(settle=0)
    done = Purging(workspace, history).run(Secret(SECRET))
    assert file.read_bytes() == BINARY[kind]
    assert SECRET not in (workspace.root / A).read_text()
    assert any("thing.bin" in each and "never rewritten" in each for each in done.left)
    assert history.adopt(settle=0) is None, "what stands in the file is what the history says"
    file.unlink()
    history.adopt(settle=0)
    assert Purging(workspace, history).run(Secret(SECRET)).left == ()
    assert not history.find_secret(Secret(SECRET))
