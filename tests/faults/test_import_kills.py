"""An import that is killed at any point goes on, and is as if nothing had been."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

from kbtui.workspace import durable
from tests.importers.exports import claude, written
from tests.importers.test_engine import bring, opened_base, said

if TYPE_CHECKING:
    from pathlib import Path

POINTS = 50
_CALLS = ("write", "fsync", "rename", "unlink")


def _killed_after(root: Path, export: Path, calls: int) -> bool:
    """Import in a process that dies before its so manieth write; tells whether it died."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    left = calls

    def counting(real: Any) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os._exit(9)
            return real(*args, **named)

        return call

    try:
        with opened_base(root) as kb:
            for name in _CALLS:
                setattr(os, name, counting(getattr(os, name)))
            bring(kb, export)
    finally:
        os._exit(0)


def test_killed_at_fifty_points_and_gone_on_with_it_is_as_once(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("kbtui.importers.engine._MAX_SESSIONS", 5)
    monkeypatch.setattr("kbtui.importers.notes._MAX_NOTES", 5)
    monkeypatch.setattr(durable, "_SYNC_THREADS", 1)
    folder = tmp_path / "x"
    talks = [claude(f"c{n}", *(f"text {n} {m}" for m in range(n % 4 + 1))) for n in range(25)]
    written(folder / "conversations.json", talks)
    docs = [{"uuid": f"d{n}", "filename": f"{n}.md", "content": f"Text {n}"} for n in range(12)]
    written(
        folder / "projects.json", [{"uuid": "p", "name": "P", "is_private": True, "docs": docs}]
    )
    with opened_base(tmp_path / "once") as kb:
        bring(kb, folder)
        wanted, entries = said(kb), sorted(_entries(kb.workspace.root))
    chance = random.Random(7)
    died = 0
    for round_ in range(10):
        root = tmp_path / f"often-{round_}"
        opened_base(root).close()
        for _ in range(POINTS // 10):
            died += _killed_after(root, folder, chance.randrange(120))
            with opened_base(root) as kb:
                assert said(kb).items() <= wanted.items()
        with opened_base(root) as kb:
            bring(kb, folder)
            assert said(kb) == wanted
            assert sorted(_entries(kb.workspace.root)) == entries
            assert kb.history.check().problems == ()
    assert died > POINTS // 2


def _entries(root: Path) -> list[str]:
    return [each.relative_to(root).as_posix() for each in root.glob("knowledge/references/**/*.md")]
