"""What waited in the files of an older version waits on beside the branch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.maintenance.migrate import bring_up_to_date
from kbtui.memory.inbox.inbox import Inbox
from kbtui.workspace.scan import Scanner
from tests.patience import be_like_users

if TYPE_CHECKING:
    from kbtui.workspace.layout import Workspace

MEMORY, KIM = "memory/MEMORY.md", "knowledge/people/kim.md"
DOCKER, PODMAN = "knowledge/topics/docker.md", "knowledge/topics/podman.md"
OLD = "# Facts\n\n- Lives in Bonn\n- Likes tea\n- Works at Initech\n"
NEW = OLD.replace("Bonn", "Graz") + "- Has a cat\n"
# As version 0.2.0 wrote them.
FILES = {
    "61efb0.json": """{
 "id": "61efb0",
 "created": "2026-11-22T16:51:22.994418+00:00",
 "actor": "dream",
 "reason": "You moved.",
 "origin": {
  "session": "20261120-101500-ab",
  "messages": [
   3,
   9
  ],
  "model": "m"
 },
 "edits": [
  {
   "path": "knowledge/people/kim.md",
   "base": null,
   "text": "- Lives in Graz, near the river\\n",
   "base_text": null
  },
  {
   "path": "memory/MEMORY.md",
   "base": "98b82d09784551da12f7972c6fdc6bc430c21a0f",
   "text": "# Facts\\n\\n- Lives in Graz\\n- Likes tea\\n- Works at Initech\\n- Has a cat\\n",
   "base_text": "# Facts\\n\\n- Lives in Bonn\\n- Likes tea\\n- Works at Initech\\n"
  }
 ],
 "was": [
  "f2e7334f1476047ffedb9a474e91344b01346769aaa59bfd1d071c3ec1798c42"
 ]
}""",
    "711e45.json": """{
 "id": "711e45",
 "created": "2026-11-22T16:51:23.016987+00:00",
 "actor": "agent",
 "reason": "Renamed.",
 "origin": {},
 "edits": [
  {
   "path": "knowledge/topics/docker.md",
   "base": "886b1a8ec3c6e0a3abcaa23f963f4e5d3c4be9e0",
   "text": null,
   "base_text": "# Docker\\n\\nContainers.\\n"
  },
  {
   "path": "knowledge/topics/podman.md",
   "base": null,
   "text": "# Podman\\n\\nContainers.\\n",
   "base_text": null
  }
 ],
 "was": []
}""",
    "rejected.jsonl": (
        '{"time":"2026-11-22T16:51:23.166864+00:00",'
        '"places":["8c53a8f77573b30cd83445ba2be411cc10a7be2550c69b9572e26c27ffe08f7d"],'
        '"change":"9490f9a67c36a1a977fe9f73897af23bbf68e6329429b8fa0dc7ef53f496f5d0"}\n'
    ),
}


@pytest.fixture
def old(workspace: Workspace, history: History) -> History:
    """A workspace as that version left it."""
    with history.change(Actor.YOU, "begin") as change:
        change.write(MEMORY, OLD)
        change.write(DOCKER, "# Docker\n\nContainers.\n")
    folder = workspace.machine / "inbox"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return history


def opened(workspace: Workspace, history: History) -> Inbox:
    """The inbox of a workspace that is brought up to date first, as at each opening."""
    bring_up_to_date(workspace, history)
    return Inbox(workspace, history)


def left(workspace: Workspace) -> list[str]:
    return sorted(file.name for file in (workspace.machine / "inbox").iterdir())


def test_nothing_of_it_is_lost(workspace: Workspace, old: History) -> None:
    inbox = opened(workspace, old)
    dream, agent = inbox.list()
    assert (dream.id, dream.actor, dream.reason) == ("61efb0", Actor.DREAM, "You moved.")
    assert dream.created.isoformat() == "2026-11-22T16:51:22+00:00"
    assert dream.origin == Origin(session="20261120-101500-ab", messages=(3, 9), model="m")
    assert {edit.path: edit.wanted for edit in dream.edits} == {
        KIM: b"- Lives in Graz, near the river\n",
        MEMORY: NEW.encode(),
    }
    assert (agent.id, agent.origin) == ("711e45", Origin())
    assert [file.kind for file in inbox.plan("711e45").files] == ["renamed"]
    assert left(workspace) == ["rejected.jsonl"]
    assert Inbox(workspace, old).list() == [dream, agent]


def test_it_is_merged_into_what_the_files_have_become(workspace: Workspace, old: History) -> None:
    with old.change(Actor.YOU, "edit") as change:
        change.write(MEMORY, OLD.replace("tea", "coffee"))
        change.write(DOCKER, "# Docker\n\nContainers.\n\nMine.\n")
    inbox = opened(workspace, old)
    inbox.accept("61efb0")
    inbox.accept("711e45")
    assert (workspace.root / MEMORY).read_text() == NEW.replace("tea", "coffee")
    assert (workspace.root / PODMAN).read_text() == "# Podman\n\nContainers.\n\nMine.\n"
    assert not (workspace.root / DOCKER).exists()


def test_what_was_rejected_or_reworded_isnt_proposed_again(
    workspace: Workspace, old: History
) -> None:
    inbox = opened(workspace, old)
    assert inbox.was_rejected(Actor.DREAM, {MEMORY: f"{OLD}- Likes jazz\n"})
    again = inbox.add(Actor.DREAM, "You moved.", {MEMORY: NEW, KIM: "# Kim\n\nPaints.\n"})
    assert again.id == "61efb0"
    assert len(inbox.list()) == 2


def test_it_waits_while_somebody_writes(
    workspace: Workspace, old: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_like_users(monkeypatch)
    with History(workspace, Scanner(workspace)).alone():
        assert opened(workspace, old).list() == []
    assert len(left(workspace)) == 3
    assert len(opened(workspace, old).list()) == 2


def test_an_empty_proposal_goes_and_a_strange_one_stays(workspace: Workspace, old: History) -> None:
    value = json.loads(FILES["61efb0.json"])
    value["edits"] = [{"path": MEMORY, "base": None, "text": OLD, "base_text": OLD}]
    (workspace.machine / "inbox/aa.json").write_text(json.dumps(value))
    value["edits"] = [{"path": "docs/x.md", "base": None, "text": "x", "base_text": None}]
    (workspace.machine / "inbox/bb.json").write_text(json.dumps(value))
    inbox = opened(workspace, old)
    assert len(inbox.list()) == 2
    assert inbox.problems() == (".kbtui/inbox/bb.json",)
