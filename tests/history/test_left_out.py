"""One thing that can't be handled never stops the rest."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("all_settled")


def _too_large(folder: Path) -> str:
    with (folder / "huge.md").open("wb") as file:
        file.truncate(files.READ_LIMIT + 1)
    return "huge.md is left out of the history: it is larger than 50 MB"


def _unreadable(folder: Path) -> str:
    if os.getuid() == 0:
        pytest.skip("root reads everything")
    (folder / "locked.md").write_text("x")
    (folder / "locked.md").chmod(0)
    return "locked.md is left out of the history: it can't be read"


def _unlookable(folder: Path) -> str:
    if os.getuid() == 0:
        pytest.skip("root looks at everything")
    (folder / "listed").mkdir()
    (folder / "listed/inner.md").write_text("x")
    (folder / "listed").chmod(0o444)
    return "listed/inner.md is left out of the history: it can't be looked at"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe.md")
    return "pipe.md is left out of the history: it is no ordinary file"


def _socket(folder: Path) -> str:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)  # such a path may have 108 bytes
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket.md")
    finally:
        os.fchdir(here)
        os.close(here)
    return "socket.md is left out of the history: it is no ordinary file"


def _link(folder: Path) -> str:
    (folder / "link.md").symlink_to("/etc/hostname")
    return "link.md is left out of the history: it is a link"


def _unusual_name(folder: Path) -> str:
    (folder / "line\nbreak.md").write_text("x")
    return "line break.md is left out of the history: its name can't be used"


def _no_text(folder: Path) -> str:
    (folder / os.fsdecode(b"bad\xff.md")).write_text("x")
    return "bad?.md is left out of the history: its name can't be used"


def _two_forms(folder: Path) -> str:
    (folder / "caf\u00e9.md").write_text("x")
    (folder / "cafe\u0301.md").write_text("y")
    return "is left out of the history: another file has the same name"


def _too_deep(folder: Path) -> str:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        for _ in range(300):
            Path("d" * 20).mkdir()
            os.chdir("d" * 20)
    finally:
        os.fchdir(here)
        os.close(here)
    return "is left out of the history: its name can't be used"


def _odd_clock(folder: Path) -> str:
    (folder / "ahead.md").write_text("x")
    os.utime(folder / "ahead.md", (10**11, 10**11))
    (folder / "before.md").write_text("x")
    os.utime(folder / "before.md", (-(10**9), -(10**9)))
    return ""


ATTACKS = [_too_large, _unreadable, _unlookable, _pipe, _socket, _link, _unusual_name, _no_text]
ATTACKS += [_two_forms, _too_deep, _odd_clock]


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_is_named_once_and_everything_else_goes_on(
    tmp_path: Path, attack: Callable[[Path], str]
) -> None:
    root = tmp_path / "notes"
    with KnowledgeBase.open(root, create=True) as kb:
        kb.library.create("topic", "Zoo", body="Animals.")
    folder = root / "knowledge/topics"
    expected = attack(folder)
    (folder / "edited.md").write_text("Edited outside.\n")
    with KnowledgeBase.open(root) as kb:
        kb.history.adopt(settle=0)
        kb.library.refresh()
        kb.search.sync()
        assert "knowledge/topics/edited.md" in kb.history.tree(kb.history.head() or "")
        assert kb.library.create("topic", "More", body="x")
        assert {info.slug for info in kb.library.infos()} >= {"zoo", "edited", "more"}
        told = [problem.text for problem in kb.checking.run()]
        notices = [notice for notice in kb.notices if "Left out" in notice]
    assert len(notices) == (1 if expected else 0)
    if expected:
        assert any(expected in text for text in told)


def test_the_doctor_names_it_too(tmp_path: Path) -> None:
    without_a_model = {"search": {"semantic": False}}  # which it would prepare first
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=without_a_model) as kb:
        kb.library.create("topic", "Zoo", body="Animals.")
        expected = _link(kb.workspace.root / "knowledge/topics")
        kb.history.adopt(settle=0)
        shown = [finding.text for finding in kb.doctor() if finding.ok is False]
    assert any(expected in text for text in shown)


def test_a_file_that_outgrows_the_limit_is_not_taken_for_deleted(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    with KnowledgeBase.open(root, create=True) as kb:
        path = kb.library.create("topic", "Zoo", body="Animals.").path
        with (root / path).open("ab") as file:
            file.truncate(files.READ_LIMIT + 1)
        kb.history.adopt(settle=0)
        assert path in kb.history.tree(kb.history.head() or "")
