"""What is found near at hand to begin with."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from kbtui.tui.chat import nearby
from kbtui.tui.chat.nearby import NotesNearby, exports_nearby, notes_nearby

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    return home


@pytest.mark.parametrize(
    ("mark", "program"),
    [(".obsidian", "Obsidian"), ("logseq", "Logseq"), (".zk", "zk"), (".foam", "Foam")],
)
def test_a_vault_is_known_by_what_its_program_keeps_there(home, mark, program):
    (home / "Documents" / "Mine" / mark).mkdir(parents=True)
    assert notes_nearby(home) == [NotesNearby(home / "Documents" / "Mine", program)]


def test_what_lies_in_a_vault_or_is_no_place_for_notes_is_left_out(home):
    for place in ("Mine", "Mine/inner", "node_modules/pkg", ".hidden", "a/b/c/d/e"):
        (home / place / ".obsidian").mkdir(parents=True)
    assert [each.path for each in notes_nearby(home)] == [home / "Mine"]


def test_a_folder_named_notes_counts_if_there_are_some(home):
    (home / "notes").mkdir()
    (home / "wiki").mkdir()
    (home / "wiki" / "a.md").touch()
    assert notes_nearby(home) == [NotesNearby(home / "wiki")]


def test_vaults_that_obsidian_lists_come_first_wherever_they_lie(home, tmp_path):
    far, near = tmp_path / "far", home / "Near"
    far.mkdir()
    (near / ".obsidian").mkdir(parents=True)
    known = {"vaults": {"1": {"path": str(far)}, "2": {"path": str(tmp_path / "gone")}}}
    (home / ".config" / "obsidian").mkdir(parents=True)
    (home / ".config" / "obsidian" / "obsidian.json").write_text(json.dumps(known))
    assert [each.path for each in notes_nearby(home)] == [far, near]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"vaults": 3}', '{"vaults": {"1": 5}}', "[" * 9999]
)
def test_a_broken_list_of_obsidians_is_passed_over(home, text):
    (home / ".config" / "obsidian").mkdir(parents=True)
    (home / ".config" / "obsidian" / "obsidian.json").write_text(text)
    assert notes_nearby(home) == []


def test_links_are_not_followed_and_closed_folders_passed_over(home, tmp_path):
    (tmp_path / "elsewhere" / ".obsidian").mkdir(parents=True)
    (home / "link").symlink_to(tmp_path / "elsewhere")
    (home / "loop").symlink_to(home)
    closed = home / "closed"
    closed.mkdir(mode=0)
    assert notes_nearby(home) == []
    closed.chmod(0o700)


def test_looking_ends_when_its_time_is_up(home):
    for number in range(50):
        (home / str(number)).mkdir()
    (home / "9" / ".obsidian").mkdir()
    assert notes_nearby(home, seconds=0.0) == []


def test_exports_are_known_by_their_names_the_newest_first(home):
    downloads = home / "Downloads"
    downloads.mkdir()
    names = ("claude-export.zip", "takeout-2026.zip", "conversations.json")
    for age, name in enumerate(names):
        (downloads / name).touch()
        os.utime(downloads / name, (1_000_000 - age, 1_000_000 - age))
    for other in ("holiday.zip", "song.mp3", "package.json"):
        (downloads / other).touch()
    assert [path.name for path in exports_nearby(home)] == list(names)


def test_a_folder_without_end_is_read_in_part(home, monkeypatch):
    monkeypatch.setattr(nearby, "_MAX_ENTRIES", 3)
    for number in range(20):
        (home / str(number)).mkdir()
    assert len(nearby._entries(home)) == 3
