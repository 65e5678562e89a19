"""Every tool that writes tells its commit, or proposes where a person is to decide."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from kbtui.mcp_server.client_tools import ALWAYS_PROPOSED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENT = "tester"
CALLS: dict[str, dict[str, Any]] = {
    "write_entry": {"type": "fact", "title": "Sky", "body": "It is blue."},
    "edit_entry": {"entry": "bridge", "append": "- It is old."},
    "rename_entry": {"entry": "bridge", "new_name": "Old bridge"},
    "move_entry": {"entry": "bridge", "category": "projects"},
    "delete_entry": {"entry": "bridge"},
    "undo_change": {},
}


def _opened(tmp_path: Path, review: str) -> Iterator[KnowledgeBase]:
    overrides = {"search": {"semantic": False}, "memory": {"review": review}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as kb:
        yield kb


def _call(kb: KnowledgeBase, name: str) -> tuple[Any, str | None]:
    made = kb.library.create(
        "topic", "Bridge", body="Wood.", actor=Actor.MCP, origin=Origin(model=CLIENT)
    )
    assert made.commit is not None
    arguments = CALLS[name] or {"commit": made.commit.id}
    return Backend(lambda: kb, "b").call(name, json.dumps(arguments), CLIENT), made.commit.id


def test_every_tool_that_writes_is_called_here(tmp_path: Path) -> None:
    for kb in _opened(tmp_path, "auto"):
        offers = Backend(lambda kb=kb: kb, "b").offers()
        assert {offer.spec.name for offer in offers if offer.writes} == set(CALLS)


@pytest.mark.parametrize("name", sorted(set(CALLS) - ALWAYS_PROPOSED))
def test_what_is_written_is_told_with_its_commit(tmp_path: Path, name: str) -> None:
    for kb in _opened(tmp_path, "auto"):
        done, before = _call(kb, name)
        assert done.ok, done.output
        assert not done.proposal
        newest = kb.history.head()
        assert newest != before
        assert [change.commit for change in done.changes] == [newest]
        assert kb.history.commit(newest).actor is Actor.MCP
        assert kb.memory.inbox.list() == []


@pytest.mark.parametrize(
    ("name", "review"),
    [*((name, "ask") for name in CALLS), *((name, "auto") for name in sorted(ALWAYS_PROPOSED))],
)
def test_what_a_person_is_to_decide_on_is_proposed_and_not_written(
    tmp_path: Path, name: str, review: str
) -> None:
    for kb in _opened(tmp_path, review):
        done, before = _call(kb, name)
        assert done.ok, done.output
        assert not done.changes
        assert kb.history.head() == before
        (proposal,) = kb.memory.inbox.list()
        assert (proposal.id, proposal.actor) == (done.proposal, Actor.MCP)
