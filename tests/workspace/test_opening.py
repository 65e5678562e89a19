"""Finding, making and opening a workspace."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError, StorageError, WorkspaceError
from kbtui.setting_values import write_setting
from kbtui.workspace.layout import conflict_copy_of, is_conflict_copy, is_recorded, short_name
from kbtui.workspace.opening import (
    NotAnsweringError,
    can_become_workspace,
    create_workspace,
    find_workspace,
    open_workspace,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def as_nobody(act: Callable[[], object]) -> str:
    """Act in a child process whom permissions stop, which they don't stop root; what it said."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            said = str(act())
        except KbtuiError as error:
            said = str(error)
        except BaseException as error:  # noqa: BLE001 — the child has nobody to raise it to
            said = repr(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return pipe.read()


def test_a_new_workspace_has_its_folders_and_a_private_machine_room(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "notes")
    assert workspace.writable
    assert (workspace.knowledge / "people").is_dir()
    assert stat.S_IMODE(workspace.machine.stat().st_mode) == 0o700
    assert stat.S_IMODE(workspace.sessions.stat().st_mode) == 0o700
    assert (workspace.machine / "format").read_text() == "1\n"
    assert open_workspace(tmp_path / "notes") == workspace


def test_making_a_workspace_of_a_full_folder_touches_no_file(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "a.md").write_text("mine")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "MEMORY.md").write_text("facts")
    before = {path: path.read_text() for path in tmp_path.rglob("*.md")}
    create_workspace(tmp_path)
    assert {path: path.read_text() for path in tmp_path.rglob("*.md")} == before


def test_a_disk_that_does_not_answer_is_not_waited_for_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = threading.Event()
    monkeypatch.setattr(Path, "is_dir", lambda _path: back.wait())
    with pytest.raises(NotAnsweringError, match="doesn't answer"):
        find_workspace(tmp_path, patience=0.01)
    back.set()
    assert find_workspace(tmp_path) == tmp_path.resolve()


def test_a_named_workspace_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="There is no workspace at") as caught:
        find_workspace(tmp_path / "nowhere")
    assert "kbtui init" in caught.value.hint


@pytest.mark.parametrize("use", [find_workspace, open_workspace, create_workspace])
def test_a_file_is_no_workspace(tmp_path: Path, use: object) -> None:
    file = tmp_path / "notes.md"
    file.write_text("mine")
    with pytest.raises(WorkspaceError, match="is a file"):
        use(file)  # type: ignore[operator]
    assert file.read_text() == "mine"


def test_a_file_where_a_folder_belongs_is_named(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("mine")
    with pytest.raises(WorkspaceError, match="memory is a file"):
        create_workspace(tmp_path)


def test_a_folder_without_machine_room_is_no_workspace_yet(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        open_workspace(tmp_path)


def test_the_nearest_parent_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_workspace(tmp_path / "outer")
    inner = create_workspace(tmp_path / "outer" / "inner")
    below = inner.knowledge / "people"
    monkeypatch.chdir(below)
    assert find_workspace() == inner.root
    monkeypatch.setenv("KBTUI_WORKSPACE", str(tmp_path / "outer"))
    assert find_workspace() == tmp_path / "outer"
    assert find_workspace(inner.root) == inner.root


def test_without_any_the_default_one_is_named(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_workspace() == home / ".local/share/kbtui/workspace"


def test_a_newer_format_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path)
    (workspace.machine / "format").write_text("3\n")
    with pytest.raises(WorkspaceError, match="newer kbtui") as caught:
        open_workspace(tmp_path)
    assert "Update kbtui" in caught.value.hint
    assert (workspace.machine / "format").read_text() == "3\n"


def test_a_format_file_that_is_none_is_refused(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path)
    (workspace.machine / "format").write_text("¯\\_(ツ)_/¯")
    with pytest.raises(WorkspaceError, match="format number"):
        open_workspace(tmp_path)


def test_a_lost_format_file_is_written_again(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path)
    (workspace.machine / "format").unlink()
    open_workspace(tmp_path)
    assert (workspace.machine / "format").read_text() == "1\n"


def test_the_cache_is_private_and_of_this_workspace(tmp_path: Path, home: Path) -> None:
    one, other = create_workspace(tmp_path / "one"), create_workspace(tmp_path / "other")
    assert one.cache != other.cache
    assert one.cache.is_relative_to(home)
    assert stat.S_IMODE(one.cache.stat().st_mode) == 0o700


def test_a_workspace_reached_through_a_link_is_the_same_workspace(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert open_workspace(tmp_path / "link") == workspace


@pytest.mark.parametrize("use", [open_workspace, create_workspace])
@pytest.mark.parametrize("room", ["", "/history.git", "/history.git/refs", "/history.git/objects"])
def test_a_machine_room_that_is_a_link_is_refused(
    tmp_path: Path, use: Callable[[Path], object], room: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    place = tmp_path / f"notes/.kbtui{room}"
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkspaceError, match="is a link"):
        use(tmp_path / "notes")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("use", [open_workspace, create_workspace])
def test_conversations_are_not_written_through_a_link(
    tmp_path: Path, use: Callable[[Path], object]
) -> None:
    workspace = create_workspace(tmp_path / "notes")
    workspace.sessions.rmdir()
    (tmp_path / "elsewhere").mkdir()
    workspace.sessions.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkspaceError, match="is a link"):
        use(workspace.root)


def test_a_folder_that_may_not_be_written_gives_a_hint() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        said = as_nobody(lambda: create_workspace(Path(folder) / "notes"))
        Path(folder).chmod(0o755)
    assert "Permission denied" in said
    assert "Choose a folder" in said


def test_a_workspace_that_may_not_be_written_can_be_opened() -> None:
    with tempfile.TemporaryDirectory() as folder:
        create_workspace(Path(folder))
        for path in (Path(folder), Path(folder) / ".kbtui"):
            path.chmod(0o555)
        assert as_nobody(lambda: open_workspace(Path(folder)).writable) == "False"


def test_the_format_of_a_read_only_workspace_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = create_workspace(tmp_path)
    (workspace.machine / "format").unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not open_workspace(tmp_path).writable
    assert not (workspace.machine / "format").exists()


def test_a_disk_that_refuses_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system", str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match="Read-only"):
        create_workspace(tmp_path / "notes")


@pytest.mark.parametrize(
    ("files", "is_vault"),
    [
        (("Home.md", "SOUL.md"), True),
        (("Home.md", "SOUL.md", "USER.md", "AGENTS.md"), True),
        (("Home.md", "HISTORY.md", "MEMORY.md"), True),
        (("SOUL.md", "memory/the sea.md"), True),
        (("Home.md", "sessions/s.jsonl"), True),
        (("Home.md", "SOUL.md", "memory/MEMORY.md"), False),
        (("Home.md", "SOUL.md", "sessions/telegram_1.jsonl"), False),
        (("Home.md", "MEMORY.md", "memory/2026-03-05.md"), False),
        (("Home.md", "memory/MEMORY.md", "memory/history.jsonl"), False),
        (("SOUL.md", "USER.md"), False),
    ],
)
def test_a_vault_is_nanobots_by_more_than_one_file(
    tmp_path: Path, files: tuple[str, ...], is_vault: bool
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\n")
    assert can_become_workspace(tmp_path)
    assert create_workspace(tmp_path).in_place is is_vault


@pytest.mark.parametrize(
    ("path", "recorded"),
    [
        ("knowledge/people/alice.md", True),
        ("memory/MEMORY.md", True),
        ("skills/x/SKILL.md", True),
        ("SOUL.md", True),
        ("docs/p/readme.md", False),
        ("sessions/a.jsonl", False),
        ("notes.md", False),
        ("knowledge", False),
        (".kbtui/format", False),
    ],
)
def test_what_is_recorded(path: str, recorded: bool) -> None:
    assert is_recorded(path) is recorded


def test_names_for_people_and_for_copies() -> None:
    assert short_name("knowledge/people/alice.md") == "people/alice"
    assert short_name("memory/MEMORY.md") == "MEMORY.md"
    assert short_name("skills/cooking/SKILL.md") == "skills/cooking/SKILL"
    copy = conflict_copy_of("knowledge/people/alice.md", "20261121T101010")
    assert copy == "knowledge/people/alice.conflict-20261121T101010.md"
    assert is_conflict_copy(copy)
    assert not is_conflict_copy("knowledge/topics/conflict-handling.md")


def test_a_current_folder_that_was_deleted_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = create_workspace(tmp_path / "notes").root
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for named in (None, Path("notes")):
        with pytest.raises(WorkspaceError, match="isn't there any more"):
            find_workspace(named)
    with pytest.raises(WorkspaceError, match="isn't there any more"):
        create_workspace(Path("new"))
    assert find_workspace(root) == root


def test_the_default_workspace_of_the_settings_is_found_outside_of_any(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = create_workspace(home / "notes").root
    other = create_workspace(tmp_path / "other").root
    write_setting("workspace.default", "~/notes")
    monkeypatch.chdir(tmp_path)
    assert find_workspace() == chosen
    monkeypatch.chdir(other)
    assert find_workspace() == other
    monkeypatch.setenv("KBTUI_WORKSPACE", str(tmp_path))
    assert find_workspace() == tmp_path


def test_a_default_workspace_that_is_away_is_not_made_anew(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (home / "disk" / "notes", home):
        write_setting("workspace.default", str(folder))
        with pytest.raises(WorkspaceError, match=r"workspace\.default") as caught:
            find_workspace()
        assert f"kbtui init {folder}" in caught.value.hint
    assert not (home / "disk").exists()
    assert not (home / ".kbtui").exists()
