"""Workspaces are remembered, and a folder that is moved brings along what the machine keeps of it."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kbtui.cli.root import run
from kbtui.knowledge_base import KnowledgeBase
from kbtui.maintenance.sync import Remotes
from kbtui.tui.terminal.state import Drafts
from kbtui.workspace.known import known_workspaces, note_opened

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OVERRIDES = {"search": {"semantic": False}}


def _open(root: Path) -> KnowledgeBase:
    return KnowledgeBase.open(root, create=True, overrides=OVERRIDES)


def test_the_last_used_workspace_is_the_first_known(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    for days, name in ((3, "a"), (1, "b"), (2, "c")):
        with _open(tmp_path / name) as kb:
            note_opened(kb.workspace, now=now + timedelta(days=9 - days))
    assert [each.path.name for each in known_workspaces()] == ["b", "c", "a"]


def test_a_workspace_that_is_moved_loses_nothing(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "elsewhere" / "new"
    with _open(old) as kb:
        kb.library.create("topic", "Heron", body="It fishes.")
        kb.search.sync()
        head = kb.history.head()
        Remotes(kb.workspace).put("/srv/notes.git")
        Drafts(kb.workspace.root).save("half a thought")
        cache = kb.workspace.cache
        made = {file.name for file in (cache / "search").rglob("*") if file.suffix == ".words"}
    new.parent.mkdir()
    shutil.move(old, new)
    with _open(new) as kb:
        assert kb.history.head() == head
        assert not cache.exists()
        assert made
        assert made <= {file.name for file in kb.workspace.cache.rglob("*")}
        assert [hit.path for hit in kb.search.search("heron fishes").hits] == [
            "knowledge/topics/heron.md"
        ]
        assert Remotes(kb.workspace).get() == "/srv/notes.git"
        assert Drafts(kb.workspace.root).load() == "half a thought"
    assert [each.path for each in known_workspaces()] == [new]


def test_a_copy_is_a_workspace_of_its_own(tmp_path: Path) -> None:
    with _open(tmp_path / "one") as kb:
        Drafts(kb.workspace.root).save("of the first")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for name, draft in (("two", ""), ("one", "of the first"), ("two", "")):
        with _open(tmp_path / name) as kb:
            assert Drafts(kb.workspace.root).load() == draft
    assert {each.path.name for each in known_workspaces()} == {"one", "two"}


def test_damaged_records_are_passed_over(tmp_path: Path, home: Path) -> None:
    with _open(tmp_path / "one"):
        pass
    (record,) = home.rglob("workspaces/*.json")
    for damage in (
        "",
        "[]",
        "{",
        '{"path": 3, "used": "x"}',
        '{"path": "/x", "used": "2026-01-01"}',
    ):
        record.with_name("f" * 32 + ".json").write_text(damage)
        assert len(known_workspaces()) == 1
    (tmp_path / "one/.kbtui/id").write_bytes(b"../../evil\n\xff")
    with _open(tmp_path / "one"):
        assert {each.path.name for each in known_workspaces()} == {"one"}


def test_the_list_is_shown_and_one_is_taken_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("here", "gone"):
        with _open(tmp_path / name):
            pass
    shutil.rmtree(tmp_path / "gone")
    assert run(["workspaces"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted("not there" in line for line in lines) == [False, True]
    assert run(["workspaces", "--forget", str(tmp_path / "gone")]) == 0
    assert run(["workspaces", "--forget", str(tmp_path / "gone")]) != 0
    capsys.readouterr()
    assert run(["workspaces", "--json"]) == 0
    assert [each["path"] for each in json.loads(capsys.readouterr().out)] == [
        str(tmp_path / "here")
    ]
