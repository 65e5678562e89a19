"""Workspaces of Dendron's: vaults, links that name one, new notes and notes of days."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from kbtui.knowledge.entries.dendron import dendron_at
from kbtui.knowledge.entries.entry import parse_entry
from kbtui.knowledge.format.body import line_named
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.notes.documents import load_document, load_links

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = """version: 5
workspace:
  journal: {dailyDomain: days, name: log, dateFormat: y-MM-dd}
  vaults:
    - fsPath: vault
    - fsPath: work/notes
      name: Second
    - fsPath: ../elsewhere
"""
LINKS = [
    ("[[dendron://vault/proj.alpha]]", "vault/proj.alpha"),
    ("[[Beta|dendron://Second/proj.beta#how]]", "work/notes/proj.beta"),
    ("![[dendron://second/proj.beta#how:#*]]", "work/notes/proj.beta"),
    ("[[dendron://Second/proj.alpha]]", "work/notes/proj.alpha"),
    ("[[dendron://elsewhere/proj.beta]]", None),
    ("[[dendron://unknown/proj.beta]]", "work/notes/proj.beta"),
    ("[[dendron://vault/]]", None),
    ("[[dendron://[b]/x|\x1b[1m日本]]", None),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    notes = {
        "vault/root.md": "\n".join(written for written, _ in LINKS),
        "vault/proj.alpha.md": "---\ntitle: Alpha\n---\n",
        "work/notes/proj.alpha.md": "---\ntitle: Alpha of work\n---\n",
        "work/notes/proj.beta.md": "---\ntitle: Beta\n---\n## how\n\ntext\n",
    }
    for name, text in {"dendron.yml": SETTINGS, **notes}.items():
        file = tmp_path / "ws" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return tmp_path / "ws"


@pytest.fixture
def kb(root: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(root, create=True) as kb:
        yield kb


def _ends(kb: KnowledgeBase, path: str) -> list[str | None]:
    return [each.path for each in kb.library.outgoing(f"knowledge/{path}.md")]


def test_a_link_leads_to_the_note_in_the_vault_that_it_names(kb: KnowledgeBase) -> None:
    wanted = [path and f"knowledge/{path}.md" for _, path in LINKS]
    assert _ends(kb, "vault/root")[: len(LINKS) - 1] == wanted[:-1]


def test_links_keep_their_vault_when_a_note_is_renamed_and_get_the_new_one_when_it_moves(
    kb: KnowledgeBase, root: Path
) -> None:
    kb.library.rename("proj.beta", "proj.gamma")
    kb.library.rename("work/notes/proj.alpha", "vault/proj.delta")
    text = (root / "vault" / "root.md").read_text("utf-8")
    assert "[[Beta|dendron://Second/proj.gamma#how]]" in text
    assert "![[dendron://second/proj.gamma#how:#*]]" in text
    assert "[[dendron://vault/proj.delta]]" in text
    assert "[[dendron://vault/proj.alpha]]" in text
    assert "[[dendron://elsewhere/proj.beta]]" in text


def test_a_link_is_shown_by_its_label_or_the_notes_name(kb: KnowledgeBase) -> None:
    path = "knowledge/vault/root.md"
    document = load_document(kb, path)
    shown = load_links(kb, document).shown(document).split("\n")
    assert shown[0] == "[[dendron://vault/proj.alpha|proj.alpha]]"
    assert shown[1] == "[[dendron://Second/proj.beta#how|Beta]]"
    said = parse_entry("knowledge/x.md", f"See {LINKS[0][0]} and {LINKS[1][0]}.\n".encode())
    assert said.summary == "See proj.alpha and Beta."
    assert line_named("a\n\n## how\n", "how:#*") == 3


def test_new_notes_and_those_of_days_go_to_the_first_vault_in_its_names(kb: KnowledgeBase) -> None:
    assert kb.library.create("topic", "What Is It?").path == "knowledge/vault/what-is-it.md"
    assert kb.library.daily_note(date(2026, 11, 4)) == (
        "knowledge/vault/days.log.2026-11-04.md",
        "",
    )


def test_a_vault_alone_is_known_as_one_of_its_workspace(root: Path) -> None:
    with KnowledgeBase.open(root / "work" / "notes", create=True) as kb:
        dendron = kb.library.dendron
        assert dendron is not None
        assert dendron.top == root
        assert dendron.folders == [""]
        kb.library.create("topic", "Here", body="[[dendron://second/proj.beta]] [[x|proj.beta]]")
        assert _ends(kb, "here") == ["knowledge/proj.beta.md"] * 2


@pytest.mark.parametrize(
    "settings",
    [b"", b"\xff\xfe", b"workspace: [1", b"workspace: {vaults: 3}", b"vaults: [x, {fsPath: [3]}]"],
)
def test_settings_that_say_nothing_are_no_hindrance(root: Path, settings: bytes) -> None:
    (root / "dendron.yml").write_bytes(settings)
    dendron = dendron_at(root)
    assert dendron is not None
    assert dendron.folders == []
    with KnowledgeBase.open(root, create=True) as kb:
        assert _ends(kb, "vault/root")[0] == "knowledge/vault/proj.alpha.md"


def test_a_folder_beside_the_vaults_is_no_part_of_them(root: Path) -> None:
    (root / "other").mkdir()
    assert dendron_at(root / "other") is None
