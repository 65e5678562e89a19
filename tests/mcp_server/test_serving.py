"""Read-only, under review, and on what can't be opened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.cli.root import run
from kbtui.errors import NotFoundError, WorkspaceError
from kbtui.history.change import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from kbtui.mcp_server.schemas import OUTPUTS, output_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_server_that_only_reads_offers_nothing_that_writes(kb: KnowledgeBase) -> None:
    backend = Backend(lambda: kb, "b", read_only=True)
    names = [offer.spec.name for offer in backend.offers()]
    assert "memory_search" in names
    assert not any(offer.writes for offer in backend.offers())
    for name in ("write_entry", "edit_entry", "rename_entry", "undo_change"):
        with pytest.raises(NotFoundError, match="that only reads"):
            backend.call(name, json.dumps({"type": "fact", "title": "X", "entry": "x"}), "c")
    assert kb.library.infos() == []


def test_where_the_user_reviews_every_change_a_client_only_proposes(tmp_path: Path) -> None:
    overrides = {"search": {"semantic": False}, "memory": {"review": "ask"}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as kb:
        backend = Backend(lambda: kb, "b")
        arguments = {"type": "person", "title": "Alice", "body": "Likes tea."}
        done = backend.call("write_entry", json.dumps(arguments), "codex")
        assert done.ok
        assert done.output.startswith("Proposed, not written")
        assert not (kb.workspace.root / "knowledge/people/alice.md").exists()
        (proposal,) = kb.memory.inbox.list()
        assert (proposal.id, proposal.actor) == (done.proposal, Actor.MCP)
        # The next edit of the same client builds on that, another one's can't.
        more = json.dumps({"entry": "alice", "append": "- and coffee"})
        assert backend.call("edit_entry", more, "codex").proposal == proposal.id
        assert not backend.call("edit_entry", more, "claude-code").ok
        kb.memory.inbox.accept(proposal.id)
        text = (kb.workspace.root / "knowledge/people/alice.md").read_text()
        assert "Likes tea." in text
        assert "- and coffee" in text


def test_a_proposed_undo_takes_nothing_back_yet(tmp_path: Path) -> None:
    overrides: dict[str, Any] = {"search": {"semantic": False}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as kb:
        made = Backend(lambda: kb, "a").call("write_entry", '{"type":"fact","title":"X"}', "c")
        review = kb.settings.memory.model_copy(update={"review": "ask"})
        kb.settings = kb.settings.model_copy(update={"memory": review})
        commit = json.dumps({"commit": made.changes[0].commit})
        done = Backend(lambda: kb, "b").call("undo_change", commit, "c")
        assert done.proposal
        assert (kb.workspace.root / "knowledge/facts/x.md").is_file()


def test_a_workspace_that_cannot_be_opened_is_tried_again_with_the_next_call(
    kb: KnowledgeBase,
) -> None:
    tries = iter([WorkspaceError("It is somewhere else."), kb])

    def open_workspace() -> KnowledgeBase:
        found = next(tries)
        if isinstance(found, WorkspaceError):
            raise found
        return found

    backend = Backend(open_workspace, "b")
    with pytest.raises(WorkspaceError, match="somewhere else"):
        backend.call("list_entries", "{}", "c")
    assert backend.call("list_entries", "{}", "c").ok


def test_a_workspace_without_write_permission_is_read(
    kb: KnowledgeBase, forbid_writing: Callable[[Path], None]
) -> None:
    kb.library.create("fact", "Known", body="Words.")
    kb.close()
    forbid_writing(kb.workspace.root)
    backend = Backend(lambda: KnowledgeBase.open(kb.workspace.root), "b")
    assert "Words." in backend.call("read_entry", '{"entry":"known"}', "c").output
    assert backend.call("entry_history", '{"entry":"known"}', "c").data["commits"]
    told = backend.call("write_entry", '{"type":"fact","title":"New"}', "c")
    assert not told.ok
    assert "read-only" in told.output or "can't be written" in told.output, told.output
    backend.close()


@pytest.mark.parametrize("kind", ["missing", "file", "foreign"])
def test_where_there_is_no_workspace_the_program_says_so_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    place = tmp_path / kind
    if kind == "file":
        place.write_text("x")
    if kind == "foreign":
        place.mkdir()
        (place / "thesis.tex").write_text("x")
    assert run(["-w", str(place), "mcp"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("kbtui: ")
    assert not (place / ".kbtui").exists()


def test_every_tool_says_what_its_results_look_like(kb: KnowledgeBase) -> None:
    names = [offer.spec.name for offer in Backend(lambda: kb, "b").offers()]
    assert set(OUTPUTS) <= set(names)
    assert {"summary", "changes"} <= set(output_of("a tool that nobody described")["required"])
    assert {"memory_search", "vector_search", "read_entry", "read_file", "search"} <= set(names)
