"""The inbox: proposals wait, and are taken or put away as a whole."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.errors import (
    ConflictError,
    NotFoundError,
    UnsafePathError,
    UsageError,
    WorkspaceBusyError,
)
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.memory.inbox.inbox import Inbox
from kbtui.redaction.secret import Secret
from kbtui.workspace import files
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.workspace.layout import Workspace

MEMORY = "memory/MEMORY.md"
OLD = "# Facts\n\n- Lives in Bonn\n- Likes tea\n- Works at Initech\n"
NEW = "# Facts\n\n- Lives in Graz\n- Likes tea\n- Works at Initech\n"
KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"


@pytest.fixture
def inbox(workspace: Workspace, history: History, tombstones: Tombstones) -> Inbox:
    with history.change(Actor.YOU, "begin") as change:
        change.write(MEMORY, OLD)
    return Inbox(workspace, history, tombstones)


def now(workspace: Workspace, path: str = MEMORY) -> str:
    return (workspace.root / path).read_text()


def test_a_proposal_waits_whole(workspace: Workspace, history: History, inbox: Inbox) -> None:
    head = history.head()
    origin = Origin(session="s", messages=(3, 9), model="m")
    proposal = inbox.add(Actor.DREAM, "it would change your line", {MEMORY: NEW}, origin=origin)
    assert now(workspace) == OLD
    assert history.head() == head
    (again,) = Inbox(workspace, history).list()
    assert again == proposal
    assert again.origin == origin
    assert (again.edits[0].base, again.edits[0].wanted) == (OLD.encode(), NEW.encode())


def test_accepting_makes_it_the_users_change_with_its_origin(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    origin = Origin(session="s", messages=(3, 9))
    proposal = inbox.add(
        Actor.DREAM, "why", {MEMORY: NEW, "knowledge/facts/new.md": "# New\n"}, origin=origin
    )
    commit = inbox.accept(proposal.id)
    assert commit is not None
    assert commit.actor is Actor.YOU
    assert commit.origin == replace(origin, proposal=proposal.id)
    assert commit.body == "Accepted a proposal of dream: why"
    assert now(workspace) == NEW
    assert now(workspace, "knowledge/facts/new.md") == "# New\n"
    assert inbox.list() == []


def test_a_stale_proposal_is_merged_into_what_the_file_says_now(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    with history.change(Actor.YOU, "edit") as change:
        change.write(MEMORY, OLD.replace("tea", "coffee") + "- Plays chess\n")
    inbox.accept(proposal.id)
    assert now(workspace) == NEW.replace("tea", "coffee") + "- Plays chess\n"


def test_a_conflict_changes_nothing_and_keeps_the_proposal(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    edits = {MEMORY: NEW, "knowledge/facts/new.md": "# New\n"}
    proposal = inbox.add(Actor.DREAM, "why", edits)
    with history.change(Actor.YOU, "edit") as change:
        change.write(MEMORY, OLD.replace("Bonn", "Rome"))
    head = history.head()
    with pytest.raises(ConflictError, match="Rome") as conflict:
        inbox.accept(proposal.id)
    assert conflict.value.paths == (MEMORY,)
    assert history.head() == head
    assert not (workspace.root / "knowledge/facts/new.md").exists()
    assert inbox.list() == [proposal]


@pytest.mark.parametrize("text", [None, "# Other\n"])
def test_a_file_that_came_or_went_meanwhile_is_a_conflict(
    workspace: Workspace, history: History, inbox: Inbox, text: str | None
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: text})
    with history.change(Actor.YOU, "edit") as change:
        change.write(MEMORY, "- All new\n") if text is None else change.delete(MEMORY)
    with pytest.raises(ConflictError):
        inbox.accept(proposal.id)


def test_a_deletion_can_be_proposed(workspace: Workspace, inbox: Inbox) -> None:
    inbox.accept(inbox.add(Actor.DREAM, "why", {MEMORY: None}).id)
    assert not (workspace.root / MEMORY).exists()


def test_what_stands_there_already_needs_no_commit(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    with history.change(Actor.YOU, "the same by hand") as change:
        change.write(MEMORY, NEW)
    assert inbox.accept(proposal.id) is None
    assert inbox.list() == []


def test_rejecting_buries_the_facts_that_it_would_have_added(
    workspace: Workspace, inbox: Inbox, tombstones: Tombstones
) -> None:
    origin = Origin(session="s", messages=(3, 9))
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW}, origin=origin)
    inbox.reject(proposal.id)
    assert now(workspace) == OLD
    assert inbox.list() == []
    assert tombstones.buried("Lives in Graz")
    assert not tombstones.buried("Likes tea")
    assert not tombstones.buried("Lives in Bonn")
    assert tombstones.forgotten("s") == [(3, 9)]


def test_the_same_proposal_again_is_the_same_proposal(inbox: Inbox) -> None:
    first = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    assert inbox.add(Actor.DREAM, "why again", {MEMORY: NEW}) == first
    assert inbox.add(Actor.CONSOLIDATOR, "why", {MEMORY: NEW}) != first
    assert len(inbox.list()) == 2


def test_the_same_change_of_a_file_that_grew_is_the_same_proposal(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    first = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    with history.change(Actor.YOU, "edit") as change:
        change.write(MEMORY, f"{OLD}- Plays chess\n")
    again = inbox.add(Actor.DREAM, "why", {MEMORY: f"{NEW}- Plays chess\n"})
    assert inbox.list() == [first]
    inbox.accept(again.id)
    assert now(workspace) == f"{NEW}- Plays chess\n"


def test_a_change_that_was_rejected_is_known_even_when_it_only_removes(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    shorter = OLD.replace("- Likes tea\n", "")
    assert not inbox.was_rejected(Actor.DREAM, {MEMORY: shorter})
    inbox.reject(inbox.add(Actor.DREAM, "why", {MEMORY: shorter}).id)
    assert Inbox(workspace, history).was_rejected(Actor.DREAM, {MEMORY: shorter})
    assert not inbox.was_rejected(Actor.DREAM, {MEMORY: None})
    assert not inbox.was_rejected(Actor.CONSOLIDATOR, {MEMORY: shorter})
    with history.change(Actor.YOU, "edit") as change:
        change.write(MEMORY, f"{OLD}- Plays chess\n")
    assert inbox.was_rejected(Actor.DREAM, {MEMORY: f"{shorter}- Plays chess\n"})
    assert inbox.problems() == ()


def test_secrets_are_kept_out_unless_the_user_wrote_them(history: History, inbox: Inbox) -> None:
    inbox.add(Actor.DREAM, f"found {KEY}", {MEMORY: f"{NEW}- key {KEY}\n"})
    assert history.find_secret(Secret(KEY)) == []
    with history.change(Actor.YOU, "mine") as change:
        change.write("knowledge/facts/keys.md", f"- {KEY}\n")
    kept = inbox.add(Actor.DREAM, "why", {"knowledge/facts/keys.md": f"- {KEY}\n- more\n"})
    assert KEY.encode() in (kept.edits[0].wanted or b"")


def test_proposals_are_found_by_the_beginning_of_their_id(inbox: Inbox) -> None:
    proposal = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    assert inbox.get(proposal.id[:3].upper()) == proposal
    for missing in ("", "zz", "../x"):
        with pytest.raises(NotFoundError):
            inbox.get(missing)
    others = [inbox.add(Actor.DREAM, "why", {MEMORY: f"{NEW}- {n}\n"}) for n in range(20)]
    letters = [other.id[0] for other in others]
    double = max(set(letters), key=letters.count)
    with pytest.raises(UsageError):
        inbox.get(double)


def test_what_cannot_be_proposed(inbox: Inbox) -> None:
    with pytest.raises(UsageError):
        inbox.add(Actor.DREAM, "why", {})
    with pytest.raises(UsageError):
        inbox.add(Actor.DREAM, "why", {"docs/x.md": "x"})
    with pytest.raises(UnsafePathError):
        inbox.add(Actor.DREAM, "why", {"knowledge/../../x": "x"})


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"created": "2026-01-01T00:00:00+00:00", "actor": "nobody"}',
        json.dumps(
            {
                "created": "2026-01-01T00:00:00+00:00",
                "actor": "dream",
                "reason": "x",
                "origin": {},
                "edits": [{"path": "../../x", "base": None, "text": "x"}],
            }
        ).encode(),
    ],
)
def test_a_file_that_is_no_proposal_stays_and_is_reported(
    workspace: Workspace, history: History, inbox: Inbox, damage: bytes
) -> None:
    good = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    bad = workspace.machine / "inbox/abc.json"
    bad.parent.mkdir(exist_ok=True)
    bad.write_bytes(damage)
    inbox = Inbox(workspace, history)
    inbox.import_older()
    assert inbox.list() == [good]
    assert inbox.problems() == (".kbtui/inbox/abc.json",)
    assert bad.read_bytes() == damage


def test_who_watches_is_told(inbox: Inbox) -> None:
    heard: list[int] = []
    stop = inbox.subscribe(lambda: heard.append(len(inbox.list())))
    first = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    inbox.add(Actor.DREAM, "why", {MEMORY: "x"})
    inbox.reject(first.id)
    inbox.accept(inbox.list()[0].id)
    stop()
    inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    assert heard == [1, 2, 1, 0]


def test_nobody_decides_while_it_is_proposed_again(
    workspace: Workspace, history: History, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = inbox.add(Actor.DREAM, "why", {MEMORY: NEW})
    elsewhere = History(workspace, Scanner(workspace))
    was_rejected = inbox.was_rejected
    heard: list[str] = []

    def rejected_meanwhile(*args: Any, **more: Any) -> bool:
        found = was_rejected(*args, **more)
        with pytest.raises(WorkspaceBusyError), elsewhere.alone(0.01):
            pass
        heard.append("waits")
        return found

    monkeypatch.setattr(inbox, "was_rejected", rejected_meanwhile)
    assert inbox.add_unless_rejected(Actor.DREAM, "why", {MEMORY: NEW}) == first
    assert heard == ["waits"]
    Inbox(workspace, elsewhere).reject(first.id)
    assert inbox.add_unless_rejected(Actor.DREAM, "why", {MEMORY: NEW}) is None
    assert inbox.list() == []


def test_of_several_in_one_second_the_oldest_comes_first(inbox: Inbox) -> None:
    added = [inbox.add(Actor.DREAM, "why", {MEMORY: f"{NEW}- {n}\n"}) for n in range(8)]
    assert inbox.list() == added


def test_an_edit_goes_on_with_what_it_was_made_from_and_nothing_else(
    workspace: Workspace, history: History, inbox: Inbox
) -> None:
    origin = Origin(session="s", turn="t")
    old, new = (files.blob_id(text.encode()) for text in (OLD, NEW))
    first = inbox.add_to_turn("one", {MEMORY: NEW}, origin, expected={MEMORY: old})
    newer = f"{NEW}- Plays chess\n"
    with pytest.raises(ConflictError, match="changed meanwhile"):
        inbox.add_to_turn("two", {MEMORY: newer}, origin, expected={MEMORY: old})
    second = inbox.add_to_turn("two", {MEMORY: newer}, origin, expected={MEMORY: new})
    assert second.id == first.id
    inbox.reject(first.id)
    with pytest.raises(ConflictError, match="changed meanwhile"):
        inbox.add_to_turn("three", {MEMORY: newer}, origin, expected={MEMORY: new})
    assert inbox.list() == []


def test_one_edit_goes_on_with_one_proposal_and_says_which_file_waits_in_another(
    inbox: Inbox,
) -> None:
    first = inbox.add_to_turn("one", {MEMORY: NEW}, Origin(session="s", turn="t"))
    other = "knowledge/topics/tea.md"
    second = inbox.add_to_turn("two", {other: NEW}, Origin(session="s", turn="u"))
    with pytest.raises(ConflictError, match=r"MEMORY\.md wait in the inbox already"):
        inbox.add_to_turn("three", {MEMORY: OLD, other: OLD}, Origin(session="s", turn="v"))
    assert inbox.list() == [first, second]


def test_a_text_never_takes_the_place_of_a_deletion(inbox: Inbox) -> None:
    origin = Origin(session="s", turn="t")
    moved = {MEMORY: None, "memory/notes.md": OLD}
    first = inbox.add_to_turn("rename", moved, origin)
    with pytest.raises(ConflictError, match="is to go"):
        inbox.add_to_turn("edit", {MEMORY: NEW}, origin)
    assert inbox.list() == [first]


def test_what_was_rejected_is_no_change_to_take_back(inbox: Inbox, history: History) -> None:
    begun = next(iter(history.log()))
    inbox.reject(inbox.add(Actor.AGENT, "why", {MEMORY: NEW}).id)
    assert next(iter(history.log())).id != begun.id, "its facts are buried"
    assert history.last_change().id == begun.id
