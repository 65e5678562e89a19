"""Syncing a knowledge base: all that is derived from the notes follows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.errors import RemoteError
from kbtui.knowledge.catalog.catalog import small_index
from kbtui.knowledge_base import KnowledgeBase
from kbtui.workspace.opening import create_workspace
from tests.history.test_sync_beside import Clone

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("in_place", ["", "here", "there"])
def test_after_any_sync_the_index_is_that_of_now(tmp_path: Path, in_place: str) -> None:
    place = str(tmp_path / "remote.git")
    for name in ("here", "there"):
        create_workspace(tmp_path / name, in_place=in_place == name)
    with (
        KnowledgeBase.open(tmp_path / "here") as here,
        KnowledgeBase.open(tmp_path / "there") as there,
    ):
        note = here.library.create("topic", "Kestrel", body="It hovers.").path
        _in_step(here, there, place, {"hovers": True})
        here.library.create("person", "Ada", body="She counts.")  # the other one follows
        _in_step(here, there, place, {"hovers": True, "counts": True})
        file = here.workspace.place(note)
        file.write_text(file.read_text().replace("hovers", "dives"))
        there.library.create("topic", "Heron", body="It waits.")  # both have gone on
        _in_step(here, there, place, {"hovers": False, "dives": True, "waits": True})
        here.library.rename("kestrel", "Falcon")
        here.library.delete("ada")
        _in_step(here, there, place, {"counts": False, "dives": True})
        clone = Clone(tmp_path / "clone", tmp_path / "remote.git")
        clone.push({"knowledge/topics/owl.md": "# Owl\n\nIt sees at night.\n"})
        _in_step(here, there, place, {"night": True, "dives": True})


def _in_step(here: KnowledgeBase, there: KnowledgeBase, place: str, words: dict[str, bool]) -> None:
    for each in (here, there, here):
        each.syncing.run(place)
    for each in (here, there):
        infos = {info.path: info.blob for info in each.library.infos()}
        assert infos == {
            path: blob
            for path, blob in each.history.tree("HEAD").items()
            if path.startswith("knowledge/") and not path.endswith("INDEX.md")
        }
        for word, is_there in words.items():
            assert bool(each.search.search(word).hits) is is_there, word
        if not each.workspace.in_place:
            index = (each.workspace.knowledge / "INDEX.md").read_text()
            assert small_index(each.library.infos()) in index
        assert not each.history.diff("HEAD")
    assert {i.path for i in here.library.infos()} == {i.path for i in there.library.infos()}


@pytest.mark.parametrize("leaves", [None, "empty"])
def test_nothing_is_made_where_a_stick_was(tmp_path: Path, leaves: str | None) -> None:
    stick = tmp_path / "stick"
    with KnowledgeBase.open(tmp_path / "notes", create=True) as kb:
        kb.library.create("topic", "Kestrel", body="It hovers.")
        kb.syncing.run(str(stick))
        stick.rename(tmp_path / "away")
        if leaves:
            stick.mkdir()
        with pytest.raises(RemoteError, match="is gone") as caught:
            kb.syncing.run()
        assert "connected?" in caught.value.hint
        assert not stick.exists() or not any(stick.iterdir())
        if leaves:
            stick.rmdir()
        (tmp_path / "away").rename(stick)
        assert kb.syncing.run().report.sent == 0
        stick.rename(tmp_path / "away")
        assert kb.syncing.run(str(stick)).report.sent, "who names it starts over"


def test_a_place_inside_the_workspace_is_refused(tmp_path: Path) -> None:
    with KnowledgeBase.open(tmp_path / "notes", create=True) as kb:
        kb.library.create("topic", "Kestrel", body="It hovers.")
        root = kb.workspace.root
        (tmp_path / "link").symlink_to(root / "knowledge")
        for place in (root / "backup", root / ".kbtui/history.git", tmp_path / "link" / "backup"):
            with pytest.raises(RemoteError, match="inside the workspace"):
                kb.syncing.run(str(place))
        assert not (root / "backup").exists()
        assert not (root / "knowledge/backup").exists()


@pytest.mark.parametrize("in_place", [False, True], ids=["own layout", "in place"])
def test_the_first_sync_says_what_stays_here(tmp_path: Path, in_place: bool) -> None:
    create_workspace(tmp_path / "notes", in_place=in_place)
    with KnowledgeBase.open(tmp_path / "notes") as kb:
        [note] = kb.syncing.run(str(tmp_path / "remote.git")).report.notes
        assert "conversations" in note
        assert "docs/" in note
        assert "pictures" in note
        assert kb.syncing.run().report.notes == ()
