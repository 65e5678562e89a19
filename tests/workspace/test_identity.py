"""The id of a workspace: who makes it, and what is believed of it."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import WorkspaceGoneError
from kbtui.workspace import identity
from kbtui.workspace.identity import read_id
from kbtui.workspace.known import note_opened
from kbtui.workspace.opening import create_workspace, open_workspace

if TYPE_CHECKING:
    from pathlib import Path

ID = ".kbtui/id"


def test_an_older_workspace_gets_an_id_when_it_is_opened_and_keeps_it(tmp_path: Path) -> None:
    create_workspace(tmp_path)
    (tmp_path / ID).unlink()
    ids = {open_workspace(tmp_path).identity.id for _ in range(2)}  # type: ignore[union-attr]
    assert ids == {read_id(tmp_path / ID)} != {""}


def test_processes_that_open_an_older_workspace_at_once_agree_on_its_id(tmp_path: Path) -> None:
    create_workspace(tmp_path)
    for _ in range(20):
        (tmp_path / ID).unlink()
        with ThreadPoolExecutor(4) as pool:
            opened = [*pool.map(open_workspace, [tmp_path] * 4)]
        for each in opened:
            each.confirm()


def test_the_id_is_read_again_only_if_the_file_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = create_workspace(tmp_path)
    reads = 0

    def counted(file: Path) -> str:
        nonlocal reads
        reads += 1
        return read_id(file)

    monkeypatch.setattr(identity, "read_id", counted)
    for _ in range(5):
        workspace.confirm()
    assert reads == 0
    text = (tmp_path / ID).read_text()
    (tmp_path / ID).unlink()
    (tmp_path / ID).write_text(text)
    os.utime(tmp_path / ID, ns=(0, 0))
    for _ in range(5):
        workspace.confirm()
    assert reads == 1
    (tmp_path / ID).write_text("0" * 32)
    for _ in range(2):
        with pytest.raises(WorkspaceGoneError, match="another workspace"):
            workspace.confirm()


@pytest.mark.parametrize("damage", [b"", b"../../evil\n\xff", b"0" * 31])
def test_a_workspace_without_a_valid_id_is_another_one_until_it_is_opened(
    tmp_path: Path, damage: bytes
) -> None:
    workspace = create_workspace(tmp_path)
    (tmp_path / ID).write_bytes(damage)
    with pytest.raises(WorkspaceGoneError, match="no id"):
        workspace.confirm()
    open_workspace(tmp_path).confirm()


def test_one_that_could_get_no_id_is_known_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "notes"
    with monkeypatch.context() as patch:
        patch.setattr("kbtui.workspace.opening._make_id", lambda _root: None)
        workspace = create_workspace(root)
    workspace.confirm()
    open_workspace(root).confirm()  # gives it one
    workspace.confirm()
    shutil.rmtree(root)
    with pytest.raises(WorkspaceGoneError, match="moved, deleted or unmounted"):
        workspace.confirm()


def test_a_copy_that_gets_an_id_of_its_own_goes_on_with_that(tmp_path: Path) -> None:
    note_opened(create_workspace(tmp_path / "one"))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copy = open_workspace(tmp_path / "two")
    note_opened(copy)
    copy.confirm()
    assert read_id(tmp_path / "one" / ID) != read_id(tmp_path / "two" / ID)


def test_the_same_folder_by_another_path_is_no_copy(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "one")
    note_opened(workspace)
    (tmp_path / "two").mkdir()
    os.link(tmp_path / "one" / ID, tmp_path / "id")  # as a disk that is mounted twice shows it
    shutil.copytree(tmp_path / "one/.kbtui", tmp_path / "two/.kbtui")
    (tmp_path / "two" / ID).unlink()
    (tmp_path / "id").rename(tmp_path / "two" / ID)
    note_opened(open_workspace(tmp_path / "two"))
    workspace.confirm()
