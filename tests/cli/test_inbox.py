"""``kbtui inbox``: what waits is shown against the files as they are, and decided place by place."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.knowledge_base import KnowledgeBase
from tests.scripted_server import Reply, ScriptedServer, call

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

MEMORY = "memory/MEMORY.md"
OLD = "# Facts\n\n- Lives in Bonn\n- Likes tea\n- Works at Initech\n"
NEW = "# Facts\n\n- Lives in Graz\n- Likes tea\n- Works at Initech\n- Has a cat\n"


@pytest.fixture
def proposal(kbtui: Command) -> str:
    kbtui.ok("list")
    with KnowledgeBase.open(kbtui.root) as kb:
        with kb.history.change(Actor.YOU, "begin") as change:
            change.write(MEMORY, OLD)
        return kb.memory.inbox.add(Actor.DREAM, "You moved.", {MEMORY: NEW}).id


def write(kbtui: Command, text: str) -> None:
    kbtui.file(MEMORY).write_text(text)


def test_places_are_shown_and_decided_by_their_numbers(kbtui: Command, proposal: str) -> None:
    shown = kbtui.ok("inbox", "show", proposal)
    assert "@@ -1,4 +1,4 @@ 1 of 2\n" in shown.out
    assert "2 of 2\n" in shown.out
    places = kbtui.ok("inbox", "show", proposal, "--json").json["hunks"]
    assert [(each["n"], each["state"], each["line"]) for each in places] == [
        (1, "clean", 3),
        (2, "clean", 6),
    ]
    assert (places[0]["now"], places[0]["proposed"]) == ("- Lives in Bonn\n", "- Lives in Graz\n")
    kbtui.ok("inbox", "accept", proposal, "--hunk", "2")
    assert kbtui.file(MEMORY).read_text() == OLD + "- Has a cat\n"
    assert kbtui.ok("inbox", "--json").json[0]["places"] == 1
    assert "1 of" in kbtui.ok("inbox", "reject", proposal, "--hunk", places[0]["key"]).out
    assert "Nothing waits." in kbtui.ok("inbox").err
    assert kbtui.file(MEMORY).read_text() == OLD + "- Has a cat\n"


def test_a_conflict_exits_with_5_and_changes_nothing(kbtui: Command, proposal: str) -> None:
    now = OLD.replace("Bonn", "Rome")
    write(kbtui, now)
    assert "1 conflict" in kbtui.ok("inbox").out
    shown = kbtui.ok("inbox", "show", proposal)
    assert "CONFLICT" in shown.out
    assert "--theirs" in shown.err
    done = kbtui("inbox", "accept", proposal)
    assert done.status == 5
    assert "Lives in Rome" in done.err
    assert kbtui.file(MEMORY).read_text() == now
    kbtui.ok("inbox", "accept", proposal, "--hunk", "2")
    kbtui.ok("inbox", "accept", proposal, "--hunk", "1", "--theirs")
    assert kbtui.file(MEMORY).read_text() == NEW
    assert kbtui.ok("log", MEMORY, "--json").json[0]["actor"] == "you"


def test_a_place_that_is_not_there_is_said(kbtui: Command, proposal: str) -> None:
    done = kbtui("inbox", "accept", proposal, "--hunk", "3")
    assert done.status == 1
    assert "no place 3" in done.err
    assert "It has 2" in done.err


def test_edit_lets_a_person_settle_a_conflict(
    kbtui: Command, proposal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(kbtui, OLD.replace("Bonn", "Rome"))
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "text = file.read_text()\n"
        "assert '- Lives in Rome' in text and '- Lives in Graz' in text\n"
        "file.write_text('- Lived in Rome, now in Graz\\n')\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    assert kbtui("inbox", "edit", proposal).status == 2, "there are two"
    assert "proposed now" in kbtui.ok("inbox", "edit", proposal, "--hunk", "1").out
    assert "Rome" in kbtui.file(MEMORY).read_text()
    kbtui.ok("inbox", "accept", proposal)
    assert "- Lived in Rome, now in Graz\n" in kbtui.file(MEMORY).read_text()


def test_marks_that_are_left_are_refused_and_the_text_is_kept(
    kbtui: Command, proposal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(kbtui, OLD.replace("Bonn", "Rome"))
    editor = tmp_path / "editor.py"
    editor.write_text("import sys\nopen(sys.argv[1], 'a').write('- more\\n')\n")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    done = kbtui("inbox", "edit", proposal, "--hunk", "1")
    assert done.status == 2
    assert "still marked" in done.err
    assert "What you wrote is in" in done.err


def test_what_stands_there_by_now_no_longer_waits(kbtui: Command, proposal: str) -> None:
    write(kbtui, NEW)
    assert "Nothing waits." in kbtui.ok("inbox").err
    assert kbtui("inbox", "show", proposal).status == 1


def test_a_turn_under_review_says_where_its_proposal_is(kbtui: Command) -> None:
    kbtui.ok("config", "set", "memory.review", "ask")
    new = call("write_entry", kind="topic", title="LoRa", body="It needs no SIM.")
    with ScriptedServer([Reply(tool_calls=[new]), Reply("Proposed.")]) as server:
        kbtui.ok("config", "set", "models.chat.api_base", server.url)
        kbtui.ok("config", "set", "models.chat.api_key", "none")
        done = kbtui.ok("ask", "-m", "openai/scripted", "note that LoRa needs no SIM")
    (listed,) = kbtui.ok("inbox", "--json").json
    assert listed["actor"] == "agent"
    assert f"kbtui inbox show {listed['id']}" in done.err
    kbtui.ok("inbox", "accept", listed["id"])
    assert [entry["type"] for entry in kbtui.ok("list", "--json").json] == ["topic"]


def test_show_says_which_message_says_so_or_that_none_was_found(
    kbtui: Command, proposal: str
) -> None:
    assert "No message that was found says so." in kbtui.ok("inbox", "show", proposal).err
    with KnowledgeBase.open(kbtui.root) as kb:
        session = kb.sessions.create("test")
        session.append("user", "I moved to Graz last week")
        origin = Origin(session=session.id, messages=(1, 1))
        text = OLD.replace("Bonn", "Graz")
        told = kb.memory.inbox.add(Actor.CONSOLIDATOR, "Moved.", {MEMORY: text}, origin=origin).id
    shown = kbtui.ok("inbox", "show", told)
    assert f"{session.id}:1): I moved to Graz last week" in shown.err
    (place,) = kbtui.ok("inbox", "show", told, "--json").json["hunks"]
    assert place["evidence"]["content"] == "I moved to Graz last week"
    assert [each["id"] for each in kbtui.ok("inbox", "--json").json] == [told, proposal]
