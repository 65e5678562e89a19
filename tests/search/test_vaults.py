"""Search in real vaults written by others: they open, and not a byte changes."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import hits_without, paths

if TYPE_CHECKING:
    from pathlib import Path

    from tests.search.helpers import Desk

pytestmark = pytest.mark.data


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(file.relative_to(folder)): (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize(
    ("vault", "query"),
    [
        ("obsidian-help-en", "how do I publish my notes"),
        ("kepano-obsidian", "jazz album"),
        ("jackyzha0-site", "local-first software and CRDTs"),
        ("foam", "daily note template"),
        ("odd-frontmatter", "title post"),
    ],
)
@pytest.mark.parametrize("area", ["knowledge", "docs/vault"])
def test_a_vault_is_searched_as_it_is(
    desk: Desk, data_dir: Path, vault: str, query: str, area: str
) -> None:
    if area == "docs/vault" and vault == "jackyzha0-site":
        pytest.skip("once is enough for the largest")
    shutil.copytree(data_dir / "vaults" / vault, desk.root / area, dirs_exist_ok=True)
    for file in (desk.root / area).rglob("*"):
        file.chmod(0o755 if file.is_dir() else 0o644)
    before = contents(desk.root)
    index = desk.index()
    report = index.sync()
    assert report.files > 50
    assert report.chunks >= report.files // 2
    result = index.search(query, limit=20)
    assert result.hits
    assert len(set(paths(result))) >= 5
    for hit in result.hits:
        text = (desk.root / hit.path).read_bytes().decode("utf-8", "replace")
        assert 1 <= hit.lines[0] <= hit.lines[1] <= text.count("\n") + 2
        assert hit.lines[0] <= hit.line <= hit.lines[1]
        assert all(0 <= a < b <= len(hit.snippet) for a, b in hit.matches)
    assert contents(desk.root) == before


def test_every_entry_of_a_vault_is_found_by_its_title(desk: Desk, data_dir: Path) -> None:
    shutil.copytree(data_dir / "vaults" / "kepano-obsidian", desk.root / "knowledge", dirs_exist_ok=True)  # fmt: skip
    index = desk.index()
    index.sync()
    missed = [
        file.name
        for file in (desk.root / "knowledge").rglob("*.md")
        if str(file.relative_to(desk.root)) not in paths(index.search(file.stem, limit=10))
    ]
    assert len(missed) <= 2, missed


WORDS_LISTED = """
    plugin sync theme vault template link daily folder image markdown
    publish graph tag canvas embed search hotkey backup property mobile
"""
WORDS = WORDS_LISTED.split()


@pytest.mark.parametrize("vault", ["obsidian-help-en", "foam"])
def test_no_hit_above_the_line_lacks_the_word_in_a_vault(
    desk: Desk, data_dir: Path, vault: str
) -> None:
    shutil.copytree(data_dir / "vaults" / vault, desk.root / "knowledge", dirs_exist_ok=True)
    index = desk.index(model=ReadyModel(WordEmbedder()))
    assert {word: hits_without(index, desk.root, word) for word in WORDS} == {
        word: [] for word in WORDS
    }
