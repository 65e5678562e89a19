"""One walk over the workspace with a stat cache."""

from __future__ import annotations

import os
import time
import unicodedata
from typing import TYPE_CHECKING

import pytest

from kbtui.workspace import files
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.workspace.durable import Written
    from kbtui.workspace.layout import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "notes")


def put(workspace: Workspace, path: str, text: str, *, age: float = 60) -> Path:
    """Write a file that looks `age` seconds old to the scanner's clock."""
    file = workspace.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    then = time.time() - age
    os.utime(file, (then, then))
    return file


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are read to be hashed."""
    seen: list[str] = []
    real = files.read_bytes

    def spy(root: Path, path: str, limit: int = files.READ_LIMIT) -> bytes:
        seen.append(path)
        return real(root, path, limit)

    monkeypatch.setattr(files, "read_bytes", spy)
    return seen


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files' change times lie in the past, as they do a few seconds later."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 10_000_000_000)


def test_a_scan_tells_hash_and_size(workspace: Workspace) -> None:
    put(workspace, "knowledge/people/alice.md", "hello\n")
    put(workspace, "SOUL.md", "soul\n")
    put(workspace, "docs/p/readme.md", "doc\n")
    found = Scanner(workspace).scan()
    assert sorted(found) == ["SOUL.md", "docs/p/readme.md", "knowledge/people/alice.md"]
    state = found["knowledge/people/alice.md"]
    assert (state.blob, state.size) == (files.blob_id(b"hello\n"), 6)


def test_only_the_areas_that_were_asked_for_are_walked(workspace: Workspace) -> None:
    put(workspace, "knowledge/people/alice.md", "a")
    put(workspace, "docs/p/readme.md", "b")
    put(workspace, "sessions/x.jsonl", "{}\n")
    scanner = Scanner(workspace)
    assert list(scanner.scan("docs")) == ["docs/p/readme.md"]
    assert list(scanner.scan("docs/p", "sessions")) == ["docs/p/readme.md", "sessions/x.jsonl"]
    assert scanner.scan("nowhere") == {}


def test_an_unchanged_file_is_hashed_once_even_across_processes(
    workspace: Workspace, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, "knowledge/a.md", "one")
    settle(monkeypatch)
    scanner = Scanner(workspace)
    first = scanner.scan()
    assert scanner.scan() == first
    assert Scanner(workspace).scan() == first
    assert hashed == ["knowledge/a.md"]


def test_what_a_scan_had_to_read_is_handed_on_and_read_once_where_areas_overlap(
    workspace: Workspace, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, "knowledge/people/a.md", "one")
    settle(monkeypatch)
    scanner, contents = Scanner(workspace), dict[str, bytes]()
    scanner.scan("knowledge/people", "knowledge/people/a.md", contents=contents)
    assert (contents, hashed) == ({"knowledge/people/a.md": b"one"}, ["knowledge/people/a.md"])
    scanner.scan("knowledge", contents=(known := {}))
    assert known == {}


def test_a_file_hashed_while_it_may_still_change_is_hashed_again(
    workspace: Workspace, hashed: list[str]
) -> None:
    """Git's racy-clean rule: an edit within the clock's tick leaves the same status."""
    file = put(workspace, "knowledge/a.md", "one", age=0)
    scanner = Scanner(workspace)
    assert scanner.scan()["knowledge/a.md"].blob == files.blob_id(b"one")
    status = file.stat()
    with file.open("r+b") as stream:
        stream.write(b"two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert scanner.scan()["knowledge/a.md"].blob == files.blob_id(b"two")
    assert len(hashed) == 2


def test_an_edit_that_keeps_size_and_time_is_seen(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(workspace, "knowledge/a.md", "one")
    with monkeypatch.context() as patch:
        settle(patch)
        scanner = Scanner(workspace)
        scanner.scan()
    status = file.stat()
    deadline = time.monotonic() + PATIENCE
    while file.stat().st_ctime_ns == status.st_ctime_ns:  # until the kernel's clock ticks
        assert time.monotonic() < deadline
        file.write_text("two")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert scanner.scan()["knowledge/a.md"].blob == files.blob_id(b"two")


def test_what_is_removed_is_forgotten(workspace: Workspace) -> None:
    file = put(workspace, "knowledge/a.md", "one")
    scanner = Scanner(workspace)
    scanner.scan()
    file.unlink()
    assert scanner.scan() == {}
    assert Scanner(workspace).scan() == {}


def test_our_own_write_is_noted(workspace: Workspace) -> None:
    scanner = Scanner(workspace)
    written = files.write_atomic(workspace.root, "knowledge/a.md", b"ours")
    scanner.note("knowledge/a.md", files.blob_id(b"ours"), written)
    assert scanner.scan()["knowledge/a.md"].blob == files.blob_id(b"ours")


def written_by_us(workspace: Workspace, path: str, data: bytes) -> Written:
    """A file whose last write the file system's clock tells from its being moved into place."""
    file = workspace.root / path
    deadline = time.monotonic() + PATIENCE
    while True:
        written = files.write_atomic(workspace.root, path, data)
        status = file.stat()
        if status.st_mtime_ns < status.st_ctime_ns:
            return written
        assert time.monotonic() < deadline


def test_our_own_write_is_not_read_again(workspace: Workspace, hashed: list[str]) -> None:
    scanner = Scanner(workspace)
    written = written_by_us(workspace, "knowledge/a.md", b"ours")
    scanner.note("knowledge/a.md", files.blob_id(b"ours"), written)
    assert scanner.scan()["knowledge/a.md"].blob == files.blob_id(b"ours")
    assert hashed == []


def test_a_write_of_the_same_size_at_once_behind_ours_is_seen(workspace: Workspace) -> None:
    for number in range(20):
        scanner, path = Scanner(workspace), f"knowledge/{number}.md"
        written = written_by_us(workspace, path, b"ours")
        scanner.note(path, files.blob_id(b"ours"), written)
        (workspace.root / path).write_text("mine")
        assert scanner.scan()[path].blob == files.blob_id(b"mine")


@pytest.mark.parametrize("is_moved", [True, False], ids=["moved into place", "written in place"])
def test_what_an_editor_wrote_right_behind_our_write_is_not_taken_for_ours(
    workspace: Workspace, is_moved: bool
) -> None:
    scanner, path = Scanner(workspace), "knowledge/a.md"
    written = files.write_atomic(workspace.root, path, b"ours")
    if is_moved:
        written_by_us(workspace, path, b"mine")
    else:
        (workspace.root / path).write_text("mine")
    scanner.note(path, files.blob_id(b"ours"), written)
    assert scanner.scan()[path].blob == files.blob_id(b"mine")


@pytest.mark.parametrize(
    "path",
    [
        "knowledge/.hidden.md",
        "knowledge/.obsidian/app.json",
        "knowledge/a.md~",
        "knowledge/#a.md#",
        "knowledge/a.md.swp",
        "knowledge/download.part",
        "knowledge/alice.conflict-20261121T101010.md",
        "knowledge/back\\slash.md",
        "knowledge/esc\x1b[31m.md",
    ],
)
def test_what_is_no_note_is_left_out(workspace: Workspace, path: str) -> None:
    put(workspace, path, "x")
    put(workspace, "knowledge/real.md", "x")
    assert list(Scanner(workspace).scan()) == ["knowledge/real.md"]


def test_a_name_that_is_no_text_is_left_out(workspace: Workspace) -> None:
    (workspace.knowledge / os.fsdecode(b"bad-\xff.md")).write_text("x")
    assert Scanner(workspace).scan() == {}


def test_links_are_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("x")
    (workspace.knowledge / "folder").symlink_to(tmp_path / "outside")
    (workspace.knowledge / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
    assert Scanner(workspace).scan() == {}


def test_the_ignore_file_is_obeyed_and_read_again(workspace: Workspace) -> None:
    for path in (
        "knowledge/a.md",
        "knowledge/drafts/b.md",
        "knowledge/keep.tmp.md",
        "docs/big/x.md",
    ):
        put(workspace, path, "x")
    rules = workspace.root / ".kbtuiignore"
    rules.write_text("# mine\ndrafts/\n/docs/big\n")
    scanner = Scanner(workspace)
    assert sorted(scanner.scan()) == ["knowledge/a.md", "knowledge/keep.tmp.md"]
    rules.write_text("*.md\n!keep.tmp.md\n")
    assert sorted(scanner.scan()) == ["knowledge/keep.tmp.md"]
    rules.unlink()
    assert len(scanner.scan()) == 4


@pytest.mark.parametrize("text", ["drafts/\n!\n", "\\\ndrafts/\n", "\ufeffdrafts/\n"])
def test_a_line_that_is_no_pattern_lets_nothing_else_through(
    workspace: Workspace, text: str
) -> None:
    """What somebody keeps out may be private: a slip, or an editor's mark, mustn't let it in."""
    for path in ("knowledge/a.md", "knowledge/drafts/b.md"):
        put(workspace, path, "x")
    (workspace.root / ".kbtuiignore").write_text(text)
    assert sorted(Scanner(workspace).scan()) == ["knowledge/a.md"]


def test_the_ignore_file_is_obeyed_for_what_is_named_itself(workspace: Workspace) -> None:
    names = ("knowledge/a.md", "knowledge/drafts/b.md", "docs/big/x.md", "docs/big/deep/y.md")
    for path in (*names, "SOUL.md"):
        put(workspace, path, "x")
    rules = workspace.root / ".kbtuiignore"
    rules.write_text("drafts/\n/docs/big\n!x.md\nSOUL.md\n")
    scanner = Scanner(workspace)
    everything = scanner.scan()
    assert list(everything) == ["knowledge/a.md"]
    assert scanner.scan(*names, "SOUL.md") == everything
    assert scanner.scan("docs/big", "docs/big/deep", "knowledge/drafts") == {}
    rules.unlink()
    assert sorted(scanner.scan(*names)) == sorted(names)


def test_a_decomposed_name_is_one_path(workspace: Workspace) -> None:
    put(workspace, unicodedata.normalize("NFD", "knowledge/é.md"), "one")
    found = Scanner(workspace).scan()
    assert list(found) == ["knowledge/é.md"]
    assert found["knowledge/é.md"].blob == files.blob_id(b"one")


def test_a_name_in_both_forms_counts_once(workspace: Workspace) -> None:
    put(workspace, unicodedata.normalize("NFD", "knowledge/é.md"), "decomposed")
    put(workspace, "knowledge/é.md", "composed")
    found = Scanner(workspace).scan()
    assert {path: state.blob for path, state in found.items()} == {
        "knowledge/é.md": files.blob_id(b"composed")
    }


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_cache_is_rebuilt(workspace: Workspace, damage: bytes | None) -> None:
    put(workspace, "knowledge/a.md", "one")
    expected = Scanner(workspace).scan()
    cache = workspace.cache / "files.sqlite"
    if damage is None:
        cache.unlink()
        cache.mkdir()
    else:
        cache.write_bytes(damage * 1000)
    assert Scanner(workspace).scan() == expected


def test_a_flipped_hash_in_the_cache_is_not_believed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, "knowledge/a.md", "one")
    settle(monkeypatch)
    scanner = Scanner(workspace)
    expected = scanner.scan()
    scanner._cache().run(lambda db: db.execute("UPDATE files SET blob = ?", ("0" * 40,)))
    assert Scanner(workspace).scan() == expected


def test_a_cache_folder_that_cannot_be_written_costs_only_time(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, "knowledge/a.md", "one")
    (workspace.cache / "files.sqlite").mkdir()
    (workspace.cache / "files.sqlite" / "in the way").write_text("x")
    assert list(Scanner(workspace).scan()) == ["knowledge/a.md"]


def test_conflict_copies_can_be_listed(workspace: Workspace) -> None:
    put(workspace, "knowledge/people/alice.conflict-20261121T101010.md", "x")
    put(workspace, "knowledge/people/alice.md", "x")
    assert Scanner(workspace).conflict_copies() == [
        "knowledge/people/alice.conflict-20261121T101010.md"
    ]


def test_a_file_over_the_reading_limit_is_hashed_piece_by_piece(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "READ_LIMIT", 10)
    put(workspace, "docs/big.bin", "x" * 100)
    assert Scanner(workspace).scan()["docs/big.bin"].blob == files.blob_id(b"x" * 100)
