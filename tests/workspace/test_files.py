"""Names that are refused, reads that are capped, writes that are whole."""

from __future__ import annotations

import os
import stat
import subprocess
import unicodedata
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import NotFoundError, StorageError, UnreadableError, UnsafePathError
from kbtui.workspace import durable, files
from kbtui.workspace.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def names(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


UNSAFE = [
    "",
    ".",
    "..",
    "/etc/passwd",
    "../outside.md",
    "knowledge/../../outside.md",
    "knowledge/.hidden.md",
    ".kbtui/format",
    ".git/config",
    "knowledge/.git/hooks/post-commit",
    "knowledge\\..\\x.md",
    "knowledge/a\0b.md",
    "knowledge/a\nb.md",
    "knowledge/a\tb.md",
    "knowledge/\x1b[31mred.md",
    "knowledge/\u202egnp.md",
    "\u200c.git/config",
    "\ufeff.kbtui/format",
    "knowledge/\ud800.md",
    "knowledge/" + "x" * 256 + ".md",
    "knowledge/" + "x/" * 600 + "y.md",
]


@pytest.mark.parametrize("path", UNSAFE)
def test_a_path_that_could_leave_the_workspace_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(UnsafePathError):
        files.checked_path(path)
    with pytest.raises(UnsafePathError):
        files.write_atomic(tmp_path, path, b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("knowledge/topics/a.md", "knowledge/topics/a.md"),
        ("./knowledge//topics/./a.md", "knowledge/topics/a.md"),
        ("knowledge/Überblick (2026), v1.2 文.md", "knowledge/Überblick (2026), v1.2 文.md"),
        ("knowledge/👩‍👧.md", "knowledge/👩‍👧.md"),
        (unicodedata.normalize("NFD", "knowledge/é.md"), "knowledge/é.md"),
        ("knowledge/...md/..x", None),
    ],
)
def test_paths_are_normalised(path: str, normal: str | None) -> None:
    if normal is None:
        with pytest.raises(UnsafePathError):
            files.checked_path(path)
    else:
        assert files.checked_path(path) == normal


def test_nothing_is_read_or_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    root = tmp_path / "root"
    (root / "knowledge").mkdir(parents=True)
    (root / "knowledge" / "folder").symlink_to(outside)
    (root / "knowledge" / "file.md").symlink_to(outside / "secret.md")
    for path in ("knowledge/folder/secret.md", "knowledge/file.md"):
        assert not files.exists(root, path)
        with pytest.raises(UnsafePathError):
            files.read_bytes(root, path)
        with pytest.raises(UnsafePathError):
            files.write_atomic(root, path, b"overwritten")
    assert (outside / "secret.md").read_text() == "secret"
    assert [file.name for file in outside.iterdir()] == ["secret.md"]


def test_a_link_put_in_place_of_a_folder_is_not_followed_when_writing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "root" / "knowledge").mkdir(parents=True)
    (tmp_path / "root" / "knowledge" / "people").symlink_to(outside)
    with pytest.raises(UnsafePathError):
        files.write_atomic(tmp_path / "root", "knowledge/people/deep/a.md", b"x")
    assert not any(outside.iterdir())


def test_a_write_replaces_the_whole_file_and_keeps_its_mode(tmp_path: Path) -> None:
    files.write_atomic(tmp_path, "notes/a.md", b"one")
    (tmp_path / "notes" / "a.md").chmod(0o600)
    files.write_atomic(tmp_path, "notes/a.md", b"two")
    assert (tmp_path / "notes" / "a.md").read_bytes() == b"two"
    assert stat.S_IMODE((tmp_path / "notes" / "a.md").stat().st_mode) == 0o600
    assert names(tmp_path / "notes") == ["a.md"]


def test_a_failed_write_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write_atomic(tmp_path, "a.md", b"old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="no space left") as caught:
        files.write_atomic(tmp_path, "a.md", b"new")
    monkeypatch.undo()
    assert "Free some space" in caught.value.hint
    assert files.read_bytes(tmp_path, "a.md") == b"old"
    assert names(tmp_path) == ["a.md"]


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, bytes(data)[:3]))
    files.write_atomic(tmp_path, "a.md", b"longer than three bytes")
    assert files.read_bytes(tmp_path, "a.md") == b"longer than three bytes"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"knowledge/a\.md"):
        files.read_bytes(tmp_path, "knowledge/a.md")


def test_a_read_is_capped(tmp_path: Path) -> None:
    files.write_atomic(tmp_path, "a.md", b"x" * 100)
    assert files.read_bytes(tmp_path, "a.md", limit=100) == b"x" * 100
    with pytest.raises(UnreadableError, match="too large"):
        files.read_bytes(tmp_path, "a.md", limit=99)


def test_a_pipe_does_not_hang_a_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(UnreadableError):
        files.read_bytes(tmp_path, "a.md")
    with pytest.raises(UnsafePathError):
        files.write_atomic(tmp_path, "a.md", b"x")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").mkdir()
    with pytest.raises(UnreadableError):
        files.read_bytes(tmp_path, "a.md")
    assert not files.exists(tmp_path, "a.md")


def test_a_file_whose_name_is_decomposed_on_disk_is_found_and_replaced(tmp_path: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "é.md")
    (tmp_path / decomposed).write_text("old")
    assert files.read_bytes(tmp_path, "é.md") == b"old"
    files.write_atomic(tmp_path, "é.md", b"new")
    assert names(tmp_path) == [decomposed]
    assert not files.is_gone(tmp_path, "é.md")
    files.remove(tmp_path, "é.md")
    assert files.is_gone(tmp_path, "é.md")


def test_only_what_is_surely_not_there_counts_as_gone(tmp_path: Path) -> None:
    assert files.is_gone(tmp_path, "a/b.md")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    assert not files.is_gone(tmp_path, "a/b.md")
    (tmp_path / "file").write_text("x")
    assert files.is_gone(tmp_path, "file/b.md")
    assert not files.is_gone(tmp_path, "file")


def test_a_name_that_differs_only_in_case_is_noticed(tmp_path: Path) -> None:
    files.write_atomic(tmp_path, "people/Alice.md", b"x")
    assert files.twin(tmp_path, "people/alice.md") == "people/Alice.md"
    assert files.twin(tmp_path, "people/Alice.md") is None


def test_what_a_folder_lists_may_be_there_and_all_where_it_cannot_be_listed(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    (tmp_path / "soul.md").write_text("Be brief.\n")
    assert files.listed(layout, ["SOUL.md", "USER.md"]) == ["SOUL.md"], "some disks know no case"
    assert files.listed(layout, ["gone/a.md", "gone/b.md"]) == []
    (tmp_path / "linked").symlink_to(tmp_path)
    assert files.listed(layout, ["linked/a.md", "linked/b.md"]) == ["linked/a.md", "linked/b.md"]


def test_a_folder_is_listed_once_however_many_new_files_are_asked_about(tmp_path, monkeypatch):
    (tmp_path / "people").mkdir()
    (tmp_path / "people/Alice.md").touch()
    listed = []
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda place: listed.append(place) or real(place))
    names = ["people/alice.md", "people/bob.md", "people/ALICE.md", "Top.md"]
    assert files.twins(tmp_path, names) == dict.fromkeys(names[::2], "people/Alice.md")
    assert len(listed) == 2
    assert files.twin(tmp_path, "nowhere/alice.md") is None


@pytest.mark.parametrize(
    ("data", "text", "exact"),
    [
        (b"plain", "plain", True),
        (b"\xef\xbb\xbfwith bom", "with bom", True),
        ("größe".encode("utf-16"), "größe", True),
        (b"cut \xe9", "cut \ufffd", False),
        (b"\x84M\xfcll\x93 \x96 10 \x80\n", "„Müll“ \u2013 10 €\n", False),
        ("Größe, Höhe".encode() + b"\xe9 n", "Größe, Höhe\ufffd n", False),
        (b"\x00\x84\xe9\xfc 1234", "\x00\ufffd\ufffd\ufffd 1234", False),
        (b"\x81\xe9\xfc 1234", "\ufffd\ufffd\ufffd 1234", False),
    ],
)
def test_text_is_read_in_the_encoding_that_it_has(data: bytes, text: str, exact: bool) -> None:
    decoded = files.decode(data)
    assert (decoded.text, decoded.exact) == (text, exact)


def test_the_content_hash_is_gits(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello\n")
    hashed = subprocess.run(
        ["git", "hash-object", tmp_path / "a"], check=True, capture_output=True, text=True
    )
    assert files.blob_id(b"hello\n") == hashed.stdout.strip()


def test_many_files_are_looked_at_with_each_folder_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "knowledge" / "topics"
    folder.mkdir(parents=True)
    for name in ("a.md", "b.md"):
        (folder / name).write_text(name)
    (folder / "link.md").symlink_to(folder / "a.md")
    opened: list[tuple[str, ...]] = []
    open_folder = durable.open_folder

    def counted(top: Path, parts: Sequence[str], **options: bool) -> int:
        opened.append(tuple(parts))
        return open_folder(top, parts, **options)

    monkeypatch.setattr(durable, "open_folder", counted)
    names = ("a.md", "b.md", "link.md", "none.md")
    paths = [*(f"knowledge/topics/{name}" for name in names), "knowledge/topics", "gone/a.md"]

    found = list(files.file_statuses(Layout(tmp_path), paths))

    assert [None if each is None else each.st_size for each in found] == [4, 4, *[None] * 4]
    assert opened == [("knowledge", "topics"), ("knowledge",), ("gone",)]
