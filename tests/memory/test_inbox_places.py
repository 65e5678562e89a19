"""Deciding on places of a proposal: what is written, what waits on, what is never asked again."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError, KbtuiError, NotFoundError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.memory.inbox.inbox import Inbox
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from kbtui.history.history import History
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.workspace.layout import Workspace

MEMORY = "memory/MEMORY.md"
ALICE = "knowledge/people/alice.md"
OLD = "# Facts\n\n- Lives in Bonn\n- Likes tea\n- Works at Initech\n"
GRAZ = OLD.replace("Bonn", "Graz")
NEW = GRAZ + "- Has a cat\n"


@pytest.fixture
def inbox(workspace: Workspace, history: History, tombstones: Tombstones) -> Inbox:
    write(history, MEMORY, OLD)
    return Inbox(workspace, history, tombstones)


def write(history: History, path: str, text: str | bytes | None) -> None:
    with history.change(Actor.YOU, "edit") as change:
        if text is None:
            change.delete(path)
        else:
            change.write(path, text)


def now(workspace: Workspace, path: str = MEMORY) -> str:
    return (workspace.root / path).read_text()


def states(inbox: Inbox, ref: str) -> list[str]:
    return [place.state for place in inbox.plan(ref).places]


def test_one_place_is_one_commit_and_the_rest_waits(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    origin = Origin(session="s", messages=(3, 4), model="m")
    proposal = inbox.add(Actor.DREAM, "you moved", {MEMORY: NEW}, origin=origin)
    commit = inbox.accept(proposal.id, hunks=["2"])
    assert commit is not None
    assert (commit.actor, commit.origin) == (Actor.YOU, replace(origin, proposal=proposal.id))
    assert commit.body == "Accepted 1 of 2 places of a proposal of dream: you moved"
    assert now(workspace) == OLD + "- Has a cat\n"
    (left,) = inbox.plan(proposal.id).places
    assert left.theirs == ("- Lives in Graz\n",)
    history.undo(commit.id)
    assert now(workspace) == OLD
    inbox.accept(proposal.id)
    assert now(workspace) == GRAZ
    assert inbox.list() == []


def test_a_rejected_place_is_buried_and_left_out_when_it_is_proposed_again(
    workspace: Workspace, inbox: Inbox, tombstones: Tombstones
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    inbox.reject(proposal.id, hunks=["1"])
    assert tombstones.buried("Lives in Graz")
    assert not tombstones.buried("Has a cat")
    assert now(workspace) == OLD
    assert not inbox.was_rejected(Actor.DREAM, {MEMORY: NEW})
    assert inbox.was_rejected(Actor.DREAM, {MEMORY: GRAZ})
    assert inbox.add(Actor.DREAM, "why", {MEMORY: NEW}).id == proposal.id
    assert [place.theirs for place in inbox.plan(proposal.id).places] == [("- Has a cat\n",)]
    asked = inbox.add(Actor.AGENT, "told to", {MEMORY: NEW})
    assert len(inbox.plan(asked.id).places) == 2


def test_accepting_states_again_what_was_buried(
    history: History, inbox: Inbox, tombstones: Tombstones
) -> None:
    with history.change(Actor.YOU, "forget") as change:
        tombstones.bury(change, ["Has a cat"])
    proposal = inbox.add(Actor.AGENT, "why", {MEMORY: NEW})
    inbox.accept(proposal.id)
    assert not tombstones.buried("Has a cat")


def test_a_text_of_ones_own_waits_until_it_is_accepted_and_stays_the_same_proposal(
    workspace: Workspace, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    inbox.edit(proposal.id, "1", "- Lives in Graz, near the river\n")
    assert now(workspace) == OLD
    assert inbox.add(Actor.DREAM, "why", {MEMORY: NEW}).id == proposal.id
    inbox.accept(proposal.id)
    assert now(workspace) == NEW.replace("Graz", "Graz, near the river")


def test_an_edit_that_keeps_what_is_there_puts_the_place_away(
    workspace: Workspace, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: GRAZ})
    inbox.edit(proposal.id, "1", "- Lives in Bonn\n")
    assert inbox.list() == []
    assert now(workspace) == OLD


def test_marks_that_still_stand_are_refused(history: History, inbox: Inbox) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: GRAZ})
    write(history, MEMORY, OLD.replace("Bonn", "Rome"))
    draft = inbox.draft(proposal.id, "1")
    with pytest.raises(UsageError, match="still marked"):
        inbox.edit(proposal.id, "1", draft.text, seen=draft.seen)


def test_a_file_that_was_renamed_meanwhile_is_changed_under_its_new_name(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    text = "# Alice\n\nWorks on the dashboard, and on much else.\n\n- likes tea\n"
    write(history, ALICE, text)
    proposal = inbox.add(Actor.DREAM, "why", {ALICE: text + "- likes mate\n"})
    for old, new in ((ALICE, "knowledge/people/al.md"), ("knowledge/people/al.md", "USER.md")):
        with history.change(Actor.YOU, "rename") as change:
            change.rename(old, new)
    assert inbox.plan(proposal.id).files[0].path == "USER.md"
    inbox.accept(proposal.id)
    assert now(workspace, "USER.md") == text + "- likes mate\n"
    assert not (workspace.root / ALICE).exists()


def test_a_file_that_was_deleted_meanwhile_comes_back_only_by_the_persons_own_text(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: GRAZ})
    write(history, MEMORY, None)
    assert states(inbox, proposal.id) == ["conflict"]
    with pytest.raises(ConflictError, match="the file is gone"):
        inbox.accept(proposal.id)
    inbox.edit(proposal.id, "1", inbox.draft(proposal.id, "1").text)
    inbox.accept(proposal.id)
    assert now(workspace) == GRAZ


def test_a_deletion_of_what_was_changed_since_is_asked_about(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.DREAM, "merged elsewhere", {MEMORY: None})
    write(history, MEMORY, GRAZ)
    with pytest.raises(ConflictError):
        inbox.accept(proposal.id)
    assert now(workspace) == GRAZ
    inbox.accept(proposal.id, theirs=True)
    assert not (workspace.root / MEMORY).exists()


def test_two_files_of_one_name_are_merged_by_hand_or_one_is_taken(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.SYNC, "why", {ALICE: "# Alice\n\ntheirs\n"}, bases={ALICE: None})
    write(history, ALICE, "# Alice\n\nmine\n")
    draft = inbox.draft(proposal.id, "1")
    assert draft.text == (
        "# Alice\n\n<<<<<<< in the file now\nmine\n=======\ntheirs\n>>>>>>> proposed\n"
    )
    with pytest.raises(UsageError, match="no text"):
        inbox.edit(proposal.id, "1", "")
    inbox.accept(proposal.id, theirs=True)
    assert now(workspace, ALICE) == "# Alice\n\ntheirs\n"


def test_base_ours_and_theirs_of_a_sync_are_settled_like_any_other(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    write(history, MEMORY, OLD.replace("Bonn", "Rome"))
    proposal = inbox.add(
        Actor.SYNC, "also changed elsewhere", {MEMORY: NEW}, bases={MEMORY: OLD.encode()}
    )
    assert states(inbox, proposal.id) == ["conflict", "clean"]
    inbox.accept(proposal.id, theirs=True)
    assert now(workspace) == NEW


def test_the_form_of_a_file_stays(workspace: Workspace, history: History, inbox: Inbox) -> None:
    windows = "\ufeff" + OLD.replace("\n", "\r\n")
    write(history, MEMORY, windows.encode())
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    inbox.accept(proposal.id, hunks=["1"])
    inbox.accept(proposal.id)
    assert (workspace.root / MEMORY).read_bytes() == ("\ufeff" + NEW.replace("\n", "\r\n")).encode()


def test_what_stands_there_by_now_goes_out_of_the_inbox(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    seen: list[int] = []
    inbox.subscribe(lambda: seen.append(1))
    write(history, MEMORY, GRAZ)
    assert len(inbox.plan(proposal.id).places) == 1
    assert inbox.settle() == 0
    write(history, MEMORY, NEW)
    assert inbox.waiting() == ()
    assert inbox.settle() == 1
    assert inbox.list() == []
    assert len(seen) == 1


def test_a_file_that_cannot_be_read_keeps_nothing_else_from_being_decided(
    workspace: Workspace, inbox: Inbox
) -> None:
    other = inbox.add(Actor.DREAM, "why", {"USER.md": "# Me\n"})
    blocked = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    (workspace.root / MEMORY).rename(workspace.root / "elsewhere.md")
    (workspace.root / MEMORY).symlink_to(workspace.root / "elsewhere.md")
    assert len(inbox.waiting()) == 2
    assert states(inbox, blocked.id) == ["conflict"]
    with pytest.raises(KbtuiError):
        inbox.accept(blocked.id, theirs=True)
    inbox.accept(other.id)
    inbox.reject(blocked.id)
    assert inbox.list() == []


def test_a_place_that_is_not_there_is_said(inbox: Inbox) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    for name in ("0", "3", "habcdef", ""):
        with pytest.raises(NotFoundError, match="no place"):
            inbox.accept(proposal.id, hunks=[name])


ACCEPT = """
import sys
from pathlib import Path
from kbtui.errors import KbtuiError
from kbtui.history.history import History
from kbtui.memory.inbox.inbox import Inbox
from kbtui.workspace.opening import open_workspace
from kbtui.workspace.scan import Scanner

workspace = open_workspace(Path(sys.argv[1]))
history = History(workspace, Scanner(workspace))
history.open()
inbox = Inbox(workspace, history)
print("ready", flush=True)
sys.stdin.readline()
try:
    print("done" if inbox.accept(sys.argv[2]) else "nothing")
except KbtuiError as error:
    print(type(error).__name__)
"""


def test_of_two_processes_that_accept_the_same_one_does(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    command = [sys.executable, "-c", ACCEPT, str(workspace.root), proposal.id]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=PATIENCE)[0].strip() for process in both]
    assert said.count("done") == 1
    assert "nothing" not in said
    assert now(workspace) == NEW
    assert [commit.body for commit in history.log(MEMORY)] == [
        "Accepted a proposal of dream: why",
        "edit",
    ]
    assert not list(workspace.root.glob("memory/*conflict*"))
