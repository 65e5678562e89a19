"""Several at once, read-only, under review, and on what can't be opened."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.agent.tools.toolbox import Toolbox
from kbtui.cli.root import run
from kbtui.errors import NotFoundError, WorkspaceError
from kbtui.history.commit import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from kbtui.mcp_server.schemas import OUTPUTS
from tests.mcp_server.conftest import connected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.mcp_server.conftest import Client

EACH = 8


def test_two_servers_and_a_person_write_at_once_and_nothing_is_lost(place: Path) -> None:
    notes = place / "notes"
    overrides = {"search": {"semantic": False}}
    with (
        connected(notes, place, name="claude-code") as first,
        connected(notes, place, name="codex") as second,
        KnowledgeBase.open(notes, create=True, overrides=overrides) as kb,
    ):
        first.ok("write_entry", type="topic", title="Shared", body="- start")

        def write(client: Client, who: str) -> None:
            for number in range(EACH):
                client.ok("edit_entry", entry="shared", append=f"- {who} {number}")

        def edit() -> None:
            for number in range(EACH):
                kb.library.create("fact", f"Mine {number}", body="By hand.")

        jobs = [
            threading.Thread(target=_persistent, args=(write, first, "claude")),
            threading.Thread(target=_persistent, args=(write, second, "codex")),
            threading.Thread(target=edit),
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        assert "- start" in second.ok("read_entry", entry="shared")["text"]
        hit = second.ok("memory_search", query="By hand.", limit=20)["hits"]
        assert hit
        made = [c["commit"] for c in first.ok("entry_history", limit=1, actor="mcp")["commits"]]
        other = second if _author(kb, made[0]) == "claude-code" else first
        assert "isn't yours" in other.error("undo_change", commit=made[0])

        kb.library.refresh()
        lines = kb.library.find("shared").text.splitlines()
        wanted = {f"- {who} {n}" for who in ("claude", "codex") for n in range(EACH)}
        assert wanted <= set(lines)
        assert len(kb.library.infos()) == EACH + 1
        assert kb.history.diff("HEAD") == ()
        by_client = [c.origin.model for c in kb.history.log(actor=Actor.MCP)]
        assert by_client.count("claude-code") == EACH + 1
        assert by_client.count("codex") == EACH
        batches = {c.origin.batch for c in kb.history.log(actor=Actor.MCP)}
        assert len(batches) == 2, "each connection can be undone as a whole"


def _persistent(work: Callable[..., None], client: Client, who: str) -> None:
    work(_Retrying(client), who)


class _Retrying:
    """A client that reads again and tries again where somebody was faster, as it is told to."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def ok(self, name: str, **arguments: Any) -> None:
        for _ in range(50):
            result = self._client.call(name, **arguments)
            if not result.is_error:
                return
        raise AssertionError(result.content)


def _author(kb: KnowledgeBase, commit: str) -> str | None:
    return kb.history.commit(commit).origin.model


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
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb.library.create("fact", "Known", body="Words.")
    kb.close()
    # Not by permissions, which the superuser doesn't mind.
    monkeypatch.setattr("kbtui.workspace.layout._can_write", lambda _root: False)
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
    assert list(OUTPUTS) == names
    assert {spec.name for spec in Toolbox().specs} <= set(names)
