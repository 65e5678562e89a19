"""Real vaults: open, list, search; no byte changes by looking."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import ok

if TYPE_CHECKING:
    from pathlib import Path

VAULTS = ["foam", "jackyzha0-site", "kepano-obsidian", "obsidian-help-en", "odd-frontmatter"]


def _hashes(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "INDEX.md"
    }


@pytest.mark.data
@pytest.mark.parametrize("vault", VAULTS)
def test_a_vault_opens_lists_and_searches_and_keeps_every_byte(
    data_dir: Path, tmp_path: Path, vault: str
) -> None:
    workspace = tmp_path / "notes"
    workspace.mkdir()
    shutil.copytree(data_dir / "vaults" / vault, workspace / "knowledge", symlinks=True)
    before = _hashes(workspace / "knowledge")
    ok("init", workspace)
    listed = ok("list", "--json", workspace=workspace).json
    notes = [name for name in before if name.endswith(".md")]
    assert len(listed) >= len(notes) * 0.9
    assert ok("search", "the", "--json", workspace=workspace).json["hits"]
    ok("show", listed[0]["path"], workspace=workspace)
    ok("log", workspace=workspace)
    assert _hashes(workspace / "knowledge") == before
