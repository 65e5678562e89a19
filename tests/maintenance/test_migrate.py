"""Workspaces of older programs: what somebody wrote into their files is taken over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kbtui.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from pathlib import Path

INDEX = """\
# Knowledge Index

## Topics
- docker: How we run containers, and why not on Windows
- painting - Which paint for which wall

## People
- [[kim]]: Paints our walls since 2019
- people/lee: Says it first.
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for path, text in {
        "knowledge/INDEX.md": INDEX,
        "knowledge/topics/docker.md": "---\ntype: topic\nupdated: 2025-01-02\n---\n# Docker\n\nIt is.\n",
        "knowledge/topics/painting.md": "# Painting\n\nWalls.\n",
        "knowledge/people/kim.md": "---\nsummary: Her own line\n---\n# Kim\n\nPaints.\n",
        "knowledge/people/lee.md": "# Lee\n\nSays it first.\n",
        "memory/MEMORY.md": "# Memory\n",
    }.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_the_lines_of_an_old_index_become_summaries(old: Path) -> None:
    with KnowledgeBase.open(old, create=True) as kb:
        told = {info.slug: info.summary for info in kb.library.infos()}
        index = (old / "knowledge/INDEX.md").read_text()
    assert told["docker"] == "How we run containers, and why not on Windows"
    assert told["painting"] == "Which paint for which wall"
    assert told["kim"] == "Her own line", "what the entry says itself stays"
    assert "summary" not in (old / "knowledge/people/lee.md").read_text(), "it says so already"
    assert "updated: 2025-01-02" in (old / "knowledge/topics/docker.md").read_text()
    assert "How we run containers, and why not on Windows" in index
    with KnowledgeBase.open(old) as kb:
        assert kb.notices == []


def test_an_old_history_beside_an_archive_is_taken_in_once(old: Path) -> None:
    memory = old / "memory"
    lines = [
        {"cursor": 1, "timestamp": "2025-03-01 10:00", "content": "They spoke about docker."},
        {"cursor": 2, "timestamp": "2025-03-02 10:00", "content": "They spoke about Kim."},
    ]
    (memory / "history.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (memory / ".dream_cursor").write_text("2")
    old_text = "[2025-02-01 09:00] They spoke about paint.\n\n[2025-03-01 10:00] They spoke about docker.\n"
    (memory / "HISTORY.md").write_text(old_text)
    for _ in range(2):
        with KnowledgeBase.open(old, create=True) as kb:
            said = [(entry.cursor, entry.content) for entry in kb.archive.entries()]
            assert said == [
                (1, "They spoke about docker."),
                (2, "They spoke about Kim."),
                (3, "They spoke about paint."),
            ]
            fresh = kb.archive.entries({"": 2})
            assert [entry.cursor for entry in fresh] == [3]
    assert (memory / "HISTORY.md.bak").read_text() == old_text
    shown = (memory / "HISTORY.md").read_text()
    assert [shown.count(word) for word in ("paint", "docker", "Kim")] == [1, 1, 1]
