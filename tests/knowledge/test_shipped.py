"""What comes along: the how-to, ours until it is edited; the example, whole and linked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.agent import tools
from kbtui.history.change import Actor
from kbtui.knowledge.entries.templates import ENTRY_TYPES
from kbtui.knowledge.format import frontmatter
from kbtui.models.port import estimate_tokens
from kbtui.shipped import install
from kbtui.shipped.install import example_entries, install_skills, shipped_skill

if TYPE_CHECKING:
    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace
    from tests.knowledge.conftest import Room

PATH = "skills/knowledge-base/SKILL.md"


@pytest.fixture
def newer() -> str:
    """The text that a later version ships."""
    return shipped_skill("knowledge-base") + "\nOne more rule.\n"


def upgrade(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(install, "shipped_skill", lambda _name: text)


def test_it_teaches_every_folder_and_stays_short() -> None:
    text = shipped_skill("knowledge-base")
    values = frontmatter.parse(text).values
    assert values["name"] == "knowledge-base"
    assert values["description"]
    for folder in ENTRY_TYPES.values():
        assert f"`knowledge/{folder}/`" in text
    assert estimate_tokens(text) < 600


def test_it_names_only_tools_that_there_are() -> None:
    folder = Path(tools.__file__).parent
    source = "".join(file.read_text("utf-8") for file in folder.glob("*.py"))
    for tool in re.findall(r"`([a-z]+_[a-z]+)`", shipped_skill("knowledge-base")):
        assert f'"{tool}"' in source


def test_a_new_workspace_gets_it_through_the_door_once(
    workspace: Workspace, history: History
) -> None:
    commit = install_skills(workspace, history)
    assert commit is not None
    assert [path.path for path in commit.paths] == [PATH]
    assert (workspace.root / PATH).read_text() == shipped_skill("knowledge-base")
    assert install_skills(workspace, history) is None


def test_an_untouched_one_is_updated(
    workspace: Workspace, history: History, newer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_skills(workspace, history)
    upgrade(monkeypatch, newer)
    assert install_skills(workspace, history) is not None
    assert (workspace.root / PATH).read_text() == newer


@pytest.mark.parametrize("adopted", [False, True])
def test_an_edited_one_is_the_users(
    workspace: Workspace,
    history: History,
    newer: str,
    monkeypatch: pytest.MonkeyPatch,
    adopted: bool,
) -> None:
    install_skills(workspace, history)
    (workspace.root / PATH).write_text("my own rules")
    if adopted:
        history.adopt(settle=0)
    upgrade(monkeypatch, newer)
    assert install_skills(workspace, history) is None
    assert (workspace.root / PATH).read_text() == "my own rules"


def test_a_deleted_one_and_an_undone_one_stay_away(workspace: Workspace, history: History) -> None:
    commit = install_skills(workspace, history)
    assert commit is not None
    history.undo(commit.id)
    assert install_skills(workspace, history) is None
    assert not (workspace.root / PATH).exists()


def test_one_removed_outside_stays_away(workspace: Workspace, history: History) -> None:
    install_skills(workspace, history)
    (workspace.root / PATH).unlink()
    assert install_skills(workspace, history) is None
    history.adopt(settle=0)
    assert install_skills(workspace, history) is None


def test_one_that_the_user_had_before_stays(workspace: Workspace, history: History) -> None:
    with history.change(Actor.YOU, "mine") as change:
        change.write(PATH, "my own rules")
    assert install_skills(workspace, history) is None


def test_the_example_is_whole_and_linked(room: Room) -> None:
    with room.history.change(Actor.YOU, "the example") as change:
        for path, text in example_entries().items():
            change.write(path, text)
    infos = room.library.infos()
    assert 8 <= len(infos) <= 12
    assert {info.type for info in infos} == set(ENTRY_TYPES)
    for info in infos:
        assert info.problem is None
        assert info.summary
        links = room.library.outgoing(info.path)
        assert links
        assert all(link.path for link in links), info.path
        assert room.library.backlinks(info.path)
    assert all(f"- {info.slug}: " in room.text("knowledge/INDEX.md") for info in infos)
