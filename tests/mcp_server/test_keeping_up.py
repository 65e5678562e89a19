"""What others change is seen at the next call, without a look at every file at each."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.knowledge.library.library import Library
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.mcp_server.backend import Backend

    Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(backend: Backend) -> Ask:
    def run(name: str, **arguments: Any) -> dict[str, Any]:
        return dict(backend.call(name, json.dumps(arguments), "tester").data)

    return run


def _becomes(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_once_the_watcher_runs_a_call_looks_at_no_file_that_did_not_change(
    kb: KnowledgeBase, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    refresh = Library.refresh

    def counted(library: Library) -> None:
        nonlocal looked
        looked += 1
        refresh(library)

    monkeypatch.setattr(Library, "refresh", counted)
    kb.library.create("topic", "Sea", body="Salty.")

    def is_quiet() -> bool:
        before = looked
        assert ask("memory_search", query="salty")["hits"]
        return looked == before

    _becomes(is_quiet)
    assert is_quiet()


def test_what_is_edited_comes_or_goes_outside_is_found(kb: KnowledgeBase, ask: Ask) -> None:
    path = kb.library.create("topic", "Sea", body="Salty.").path
    file = kb.workspace.root / path
    ask("memory_search", query="salty")
    file.write_text(file.read_text().replace("Salty", "Briny"))
    _becomes(lambda: ask("memory_search", query="briny")["hits"])
    folder = kb.workspace.root / "knowledge/places"
    folder.mkdir()
    (folder / "harbour.md").write_text("---\ntype: topic\n---\n\nCranes and gulls.\n")
    _becomes(lambda: ask("memory_search", query="gulls")["hits"])
    _becomes(lambda: ask("list_entries", category="places")["entries"])
    (folder / "harbour.md").unlink()
    folder.rmdir()
    _becomes(lambda: not ask("memory_search", query="gulls")["hits"])
    _becomes(lambda: not ask("list_entries", category="places")["entries"])


def test_what_another_program_of_ours_commits_is_there_at_once(kb: KnowledgeBase, ask: Ask) -> None:
    ask("list_entries")
    with type(kb).open(kb.workspace.root, overrides={"search": {"semantic": False}}) as other:
        other.library.create("topic", "Gulls", body="Loud.")
    assert [each["title"] for each in ask("list_entries")["entries"]] == ["Gulls"]
