"""Workspaces that 0.2.0 and 0.3.0 wrote open with all that is in them, and go on.

They are in ``tests/data/released``; `tests.maintenance.released` made them with those builds.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import NotFoundError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.settings import load_settings
from kbtui.views.view import Audience
from tests.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.history.places import Proposal

RELEASED = ROOT / "tests" / "data" / "released"
BOILER = "knowledge/topics/boiler.md"
ROOF = "knowledge/topics/roof.md"
ENTRIES = {
    "decisions/2026-11-keep-the-boiler": "Keep the boiler",
    "decisions/2026-11-paint-the-kitchen-green": "Paint the kitchen green",
    "people/alice-novak": "Alice Novak",
    "people/doctor": "Doctor",
    "topics/boiler": "Boiler",
    "topics/garden": "Garden",
}


def _unpack(version: str, into: Path) -> Path:
    with zipfile.ZipFile(RELEASED / f"{version}.zip") as archive:
        archive.extractall(into)
    (into / "notes" / ".kbtui").chmod(0o700)
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "kbtui" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(into / "config.toml", config)
    return into / "notes"


@pytest.fixture(params=["0.2.0", "0.3.0"])
def notes(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return _unpack(request.param, tmp_path)


@pytest.fixture
def kb(notes: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(notes) as kb:
        kb.load()
        yield kb


def _proposal(kb: KnowledgeBase, path: str) -> Proposal:
    (found,) = [each for each in kb.memory.inbox.list() if each.paths == (path,)]
    return found


def _text(kb: KnowledgeBase, path: str) -> str:
    return (kb.workspace.root / path).read_text("utf-8")


def test_opening_a_released_workspace_changes_no_file_of_the_users(notes: Path) -> None:
    def own() -> dict[str, bytes]:
        files = [each for each in notes.rglob("*") if each.is_file()]
        names = {str(each.relative_to(notes)): each for each in files}
        kept = {name: each for name, each in names.items() if not name.startswith(".kbtui/")}
        return {name: each.read_bytes() for name, each in kept.items() if "skills/" not in name}

    before = own()
    with KnowledgeBase.open(notes) as kb:
        kb.load()
        assert kb.notices == []
    assert own() == before


def test_its_entries_links_and_edits_by_hand_are_there(kb: KnowledgeBase) -> None:
    titles = {info.name: info.title for info in kb.library.infos()}
    assert ENTRIES.items() <= titles.items()
    assert "- Added by hand" in _text(kb, BOILER)
    assert "[[Alice Novak]]" in _text(kb, "knowledge/decisions/2026-11-keep-the-boiler.md")
    links = kb.library.outgoing("knowledge/people/alice-novak.md")
    assert [link.path for link in links] == [BOILER]


def test_its_memory_archive_and_conversations_are_there(kb: KnowledgeBase) -> None:
    assert "I drink tea without sugar." in _text(kb, "memory/MEMORY.md")
    said = [entry.content for entry in kb.archive.entries()]
    assert said[-1] == "The garden has four apple trees; Marta cuts the hedge in June."
    assert len(said) == 2
    titles = {session.title for session in kb.sessions.list()}
    assert {"boiler 1", "boiler 2", "roof"} <= titles
    audit = kb.memory.audit()
    assert audit.unaccounted == 0
    assert audit.archived > 0


def test_what_was_forgotten_stays_buried(kb: KnowledgeBase) -> None:
    tombstones = kb.memory.tombstones
    assert "third floor" not in _text(kb, "memory/MEMORY.md")
    assert tombstones.buried("My flat is on the third floor.")
    assert not tombstones.buried("I drink tea without sugar.")


def test_its_history_says_who_wrote_what_and_why(kb: KnowledgeBase) -> None:
    by = {(commit.actor.value, path.path) for commit in kb.history.log() for path in commit.paths}
    assert {("you", BOILER), ("agent", "knowledge/topics/garden.md")} <= by
    lines = _text(kb, "knowledge/topics/garden.md").splitlines()
    number = lines.index("The garden has four apple trees.") + 1
    why = kb.provenance.why("knowledge/topics/garden.md", number)
    assert [each.content for each in why.messages][:1] == [
        "Please keep a note: the garden has four apple trees."
    ]


def test_waiting_proposals_are_decided_place_by_place(kb: KnowledgeBase) -> None:
    inbox = kb.memory.inbox
    assert {each.paths for each in inbox.list()} == {(BOILER,), (ROOF,)}
    boiler = _proposal(kb, BOILER)
    first, second = inbox.plan(boiler.id).places
    inbox.accept(boiler.id, hunks=[first.key])
    assert "- Serviced in June" in _text(kb, BOILER)
    assert "- Burns gas" in _text(kb, BOILER)
    inbox.reject(boiler.id, hunks=[second.key])
    assert {each.paths for each in inbox.list()} == {(ROOF,)}


def test_a_proposal_that_a_person_reworded_is_accepted_as_they_worded_it(kb: KnowledgeBase) -> None:
    commit = kb.memory.inbox.accept(_proposal(kb, ROOF).id)
    assert commit is not None
    assert "The roof was tiled in 2012." in _text(kb, ROOF)
    kb.history.undo(commit.id)
    assert not (kb.workspace.root / ROOF).exists()


def test_what_was_rejected_there_is_not_proposed_again(kb: KnowledgeBase) -> None:
    text = _text(kb, BOILER)
    edits = {BOILER: text.replace("hangs in the hall", "hangs in the cellar")}
    assert kb.memory.inbox.was_rejected(_proposal(kb, BOILER).actor, edits)


def test_changes_made_there_are_undone_byte_for_byte(kb: KnowledgeBase) -> None:
    (rename,) = [each for each in kb.history.log() if any(path.old_path for path in each.paths)]
    kb.history.undo(rename.id)
    assert "[[Alice Meyer]]" in _text(kb, "knowledge/decisions/2026-11-keep-the-boiler.md")
    assert "Alice Meyer" in _text(kb, "knowledge/people/alice-meyer.md")
    with pytest.raises(NotFoundError):
        kb.library.read("people/alice-novak")


def test_its_settings_are_understood_and_retired_ones_passed_over(notes: Path) -> None:
    settings = load_settings(notes)
    assert settings.search.chunk_tokens == 256
    assert settings.dream.interval_hours == 6
    assert settings.models.first_token_seconds == 300
    assert settings.privacy.private_paths == ("knowledge/people/doctor.md",)


def test_what_was_private_there_stays_private(kb: KnowledgeBase) -> None:
    seen = {info.name for info in kb.seen_by(Audience.OTHER_AGENT).library.infos()}
    assert "people/doctor" not in seen
    assert "people/alice-novak" in seen


def test_doctor_and_check_are_content(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBTUI_SEARCH__SEMANTIC", "false")
    assert [finding for finding in kb.doctor() if finding.ok is False] == []
    assert kb.checking.run() == []


def test_a_vault_that_0_3_0_used_in_place_goes_on(tmp_path: Path) -> None:
    vault = _unpack("0.3.0", tmp_path).parent / "vault"
    with KnowledgeBase.open(vault) as kb:
        kb.load()
        assert {info.title for info in kb.library.infos()} == {"2026-11-20", "Seeds", "Sweet peas"}
        assert "[[Sweet peas|peas]]" in (vault / "Seeds.md").read_text("utf-8")
        assert "The seeds are in the shed." in _text(kb, ".kbtui/memory/MEMORY.md")
        (rename,) = [each for each in kb.history.log() if any(path.old_path for path in each.paths)]
        kb.history.undo(rename.id)
    assert (vault / "Peas.md").read_text("utf-8") == "Sow in March.\nPick in June.\n"
    assert "[[Peas|peas]]" in (vault / "Seeds.md").read_text("utf-8")
