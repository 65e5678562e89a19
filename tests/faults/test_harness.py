"""The fault tests themselves are tested: without a defence they must fail."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import pytest

from kbtui.history.door import Door
from kbtui.history.intent import IntentLog
from kbtui.workspace.opening import WorkspaceLock
from tests.faults.disk import CALLS
from tests.faults.every_call import kill_everywhere
from tests.faults.test_every_call import KINDS
from tests.faults.test_power_loss import lose_power
from tests.faults.world import copy_world, make_world, restart
from tests.faults.writers import run_writers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def no_lock(self: WorkspaceLock, timeout: float = 5.0) -> Iterator[None]:
    yield


def test_without_the_lock_two_writers_lose_something(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkspaceLock, "hold", no_lock)
    assert run_writers(place / "notes", each=60, meetings=60).wrong != []


def test_without_the_hash_check_a_writer_overwrites_the_other(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Door, "_check_expected", lambda *_: None)
    wrong = run_writers(place / "notes", each=60, meetings=60).wrong
    assert any("overwrote a version" in fault for fault in wrong)


def test_without_fsync_a_power_loss_leaves_half_a_change(
    template: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy_world(template, place / "notes")
    monkeypatch.setattr("tests.faults.disk.CALLS", tuple(c for c in CALLS if c != "fsync"))
    monkeypatch.setattr(os, "fsync", lambda _: None)
    assert lose_power(root, place / "states", 60, seed=2) != {}


def test_without_the_intent_a_crash_leaves_half_a_change(
    template: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy_world(template, place / "notes")
    monkeypatch.setattr(IntentLog, "write", lambda *_: None)
    assert lose_power(root, place / "states", 60, seed=3) != {}


@pytest.mark.parametrize(
    ("defence", "without", "kind"),
    [
        ("kbtui.history.intent.IntentLog.write", None, "a change"),
        ("kbtui.history.intent.IntentLog.recover", "none", "a change"),
        ("kbtui.workspace.scan.Scanner.sweep", None, "a conflict"),
        ("kbtui.history.sync.shared_folder.SharedFolder.clear", None, "a first sync"),
        ("kbtui.history.sync.shared_folder.SharedFolder.remove_half_made", None, "a first sync"),
        ("kbtui.workspace.jsonl._repair_end", 0, "a conversation"),
    ],
)
def test_without_a_defence_a_kill_at_some_call_is_noticed(
    defence: str, without: object, kind: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(defence, lambda *_: without)
    for variable in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, "")
    folders = place / "stage", place / "case"
    assert kill_everywhere(KINDS[kind], *folders, most=24, one_is_enough=True).wrong != []


def test_the_check_after_a_restart_sees_damage(place: Path) -> None:
    root = make_world(place / "notes")
    assert restart(root, range(1)).wrong == []
    (root / "knowledge/topics/a.md").write_bytes(b"half")
    wrong = restart(root, range(1)).wrong
    assert any("mixture" in fault for fault in wrong)
    assert any("recorded as the user's" in fault for fault in wrong)
    objects = sorted((root / ".kbtui/history.git/objects").glob("??/*"))
    objects[0].chmod(0o600)
    objects[0].write_bytes(b"garbage")
    assert any("git fsck" in fault for fault in restart(root, range(1)).wrong)
