"""Folders of notes that people have: looking at them changes nothing, and much costs little."""

from __future__ import annotations

import hashlib
import shutil
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.knowledge.conftest import Room

VAULTS = ["foam", "jackyzha0-site", "kepano-obsidian", "obsidian-help-en", "odd-frontmatter"]


def _hashes(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.mark.data
@pytest.mark.parametrize("vault", VAULTS)
def test_opening_and_listing_a_vault_changes_no_byte_of_a_file(
    data_dir: Path, room: Room, vault: str
) -> None:
    folder = room.workspace.knowledge
    shutil.copytree(data_dir / "vaults" / vault, folder, symlinks=True, dirs_exist_ok=True)
    before = _hashes(folder)
    room.adopt()
    infos = room.library.infos()
    notes = [name for name in before if name.endswith(".md") and "/." not in f"/{name}"]
    assert len(infos) >= len(notes) * 0.9
    for info in infos:
        entry = room.library.get(info.path)
        assert entry.blob == info.blob
        room.library.outgoing(info.path)
    room.library.backlinks(infos[0].path)
    room.library.flush()
    after = _hashes(folder)
    assert {name: after.get(name) for name in before} == before
    assert set(after) - set(before) <= {"INDEX.md"}


@pytest.mark.data
def test_links_of_a_real_vault_resolve(data_dir: Path, room: Room) -> None:
    vault = data_dir / "vaults" / "obsidian-help-en"
    shutil.copytree(vault, room.workspace.knowledge, dirs_exist_ok=True)
    room.adopt()
    found = [
        link
        for info in room.library.infos()
        for link in room.library.outgoing(info.path)
        if link.link.kind == "wiki" and "." not in link.link.target
    ]
    resolved = sum(link.path is not None for link in found)
    assert len(found) > 500
    assert resolved / len(found) > 0.95


def _fill(room: Room, count: int) -> None:
    folder = room.workspace.knowledge / "topics"
    for number in range(count):
        text = f"---\ntype: topic\nupdated: 2026-01-01\nrelated: [topics/n{number // 2}]\n---\n"
        body = f"# Note {number}\n\nSays something about number {number}. [[n{number // 3}]]\n"
        (folder / f"n{number}.md").write_text(text + body)


def test_three_thousand_entries_are_listed_at_once_by_the_next_process(room: Room) -> None:
    _fill(room, 3_000)
    room.library.refresh()
    again = room.reopened()
    began = time.process_time()
    infos = again.library.infos()
    took = time.process_time() - began
    assert len(infos) == 3_000
    assert took < 3
    text = again.library.prompt_index("note 1234", 2_000, lambda text: len(text) // 4)
    assert "- n1234: " in text
    assert len(text) // 4 <= 2_000
