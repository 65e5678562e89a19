"""Somebody's own folder of notes: everything works in it, and nothing in it changes unasked."""

from __future__ import annotations

import hashlib
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from kbtui.history.objects.commit import Actor
from kbtui.knowledge_base import KnowledgeBase
from kbtui.search.results import SearchResult
from tests.e2e.program import kbtui, ok

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VAULTS = ["foam", "jackyzha0-site", "kepano-obsidian", "obsidian-help-en", "odd-frontmatter"]
_NOTES = {
    "Home.md": "# Home\n\nSee [[My Great Note]] and [the plan](Work/The%20Plan.md).\n",
    "My Great Note.md": "A kestrel hovers over the motorway.\n\n![[falcon.png]]\n",
    "Work/The Plan.md": "---\ntags: plan\n---\nBuild it in spring. Back [home](../Home.md).\n",
    "Work/falcon.png": "\x89PNG",
    "INDEX.md": "My own index: [[Home]].\n",
    ".obsidian/app.json": "{}\n",
}


def tree_of(root: Path) -> dict[str, str]:
    """Every file outside of kbtui's own folder with its SHA-256, and every folder."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "folder"
        for path in root.rglob("*")
        if path.relative_to(root).parts[0] != ".kbtui"
    }


def undo(vault: Path) -> None:
    """Take back the newest change."""
    newest = ok("log", "--json", workspace=vault).json[0]
    ok("undo", newest["commit"], workspace=vault)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for name, text in _NOTES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return root


@pytest.mark.data
@pytest.mark.parametrize("name", VAULTS)
def test_a_vault_is_byte_for_byte_the_same_after_looking_and_after_each_undo(
    data_dir: Path, tmp_path: Path, name: str
) -> None:
    root = tmp_path / name
    shutil.copytree(data_dir / "vaults" / name, root, symlinks=True)
    before = tree_of(root)
    with KnowledgeBase.open(root, create=True) as kb:
        infos = kb.library.infos()
        notes = [path for path in before if path.endswith(".md") and "/." not in path]
        assert {kb.workspace.file(info.path) for info in infos} == set(notes)
        for info in infos:
            kb.library.get(info.path)
            kb.library.outgoing(info.path)
            kb.library.backlinks(info.path)
        kb.search.sync()
        found = kb.search.search("the", "default", 5, semantic=False)
        assert isinstance(found, SearchResult)
        assert found.hits
        assert tree_of(root) == before

        def undone(write: Callable[[], str]) -> None:
            kb.history.undo(write())
            assert tree_of(root) == before

        chosen = random.Random(1).sample(infos, 12)
        for info in chosen:
            undone(lambda path=info.path: kb.library.rename(path, "Some Better Name").commit.id)
            undone(lambda path=info.path: kb.library.delete(path).id)
        undone(
            lambda: kb.library.create("topic", "New", actor=Actor.AGENT, body="A fact.").commit.id
        )
    assert tree_of(root) == before


def test_notes_are_listed_shown_linked_searched_and_logged_where_they_lie(vault: Path) -> None:
    before = tree_of(vault)
    assert "4 entries" in ok("init", vault).err
    listed = {row["path"]: row["title"] for row in ok("list", "--json", workspace=vault).json}
    assert listed.keys() == {"Home.md", "My Great Note.md", "Work/The Plan.md", "INDEX.md"}
    assert "kestrel" in ok("show", "My Great Note", workspace=vault).out
    assert "Build it" in ok("show", "Work/The Plan.md", workspace=vault).out
    links = ok("links", "home", workspace=vault).out
    assert "My Great Note" in links
    assert "The Plan" in links
    hits = ok("search", "kestrel motorway", "--json", workspace=vault).json["hits"]
    assert hits[0]["path"] == "My Great Note.md"
    assert "created" in ok("log", "My Great Note", workspace=vault).out
    assert ok("check", workspace=vault).status == 0
    assert tree_of(vault) == before


def test_an_edit_a_rename_and_a_deletion_are_recorded_and_undone(vault: Path) -> None:
    before = tree_of(vault)
    ok("init", vault)
    ok("edit", "My Great Note", workspace=vault, EDITOR="sed -i s/hovers/glides/")
    assert "glides" in (vault / "My Great Note.md").read_text()
    undo(vault)
    ok("rename", "My Great Note", "My Better Note", workspace=vault)
    assert "[[My Better Note]]" in (vault / "Home.md").read_text()
    assert "renamed" in ok("log", workspace=vault).out.splitlines()[0]
    undo(vault)
    ok("delete", "The Plan", workspace=vault)
    undo(vault)
    assert tree_of(vault) == before


def test_a_folder_that_nobody_named_a_workspace_is_one_when_it_is_opened(vault: Path) -> None:
    assert "Home" in ok("list", workspace=vault).out
    assert kbtui("list", workspace=vault.parent).status != 0
