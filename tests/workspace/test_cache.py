"""Derived data is believed, so what others may have written is never read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from kbtui.workspace.layout import Workspace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "notes")


def test_what_lies_where_others_may_write_is_thrown_away(workspace: Workspace) -> None:
    (workspace.cache / "planted").write_text("x")
    workspace.cache.chmod(0o777)
    folder = workspace.cache
    assert not list(folder.iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_link_in_its_place_is_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "planted").write_text("x")
    place = workspace.cache
    place.rmdir()
    place.symlink_to(theirs)
    assert not list(workspace.cache.iterdir())
    assert (theirs / "planted").read_text() == "x"


def test_the_folder_of_somebody_else_is_left_alone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workspace.cache
    (place / "planted").write_text("x")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert workspace.cache != place
    assert not list(workspace.cache.iterdir())
    assert workspace.cache == workspace.cache
    assert (place / "planted").read_text() == "x"


def test_a_folder_of_caches_that_lies_elsewhere_is_fine(workspace: Workspace) -> None:
    place = workspace.cache
    (place / "mine").write_text("x")
    elsewhere = place.parent.parent / "other disk"
    place.parent.rename(elsewhere)
    place.parent.symlink_to(elsewhere)
    assert (workspace.cache / "mine").read_text() == "x"
