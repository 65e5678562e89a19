"""The inbox on the screen: what waits, place by place, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.agent.events import TextDelta, ToolFinished, ToolStarted, TurnFinished
from kbtui.history.change import Actor, Origin
from kbtui.tui.app.status_line import StatusLine
from kbtui.tui.diff.undo_conflict import UndoConflictScreen
from kbtui.tui.inbox.inbox import InboxScreen
from kbtui.tui.inbox.proposals import PlaceEditor
from kbtui.tui.widgets.dialogs import KeyDialog
from tests.tui.notes_support import text_of
from tests.tui.shell import key_event, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tui.shell import Shell

MEMORY = "memory/MEMORY.md"
OLD = "# Facts\n\n- Lives in Bonn\n- Likes tea\n- Works at Initech\n"
NEW = "# Facts\n\n- Lives in Graz\n- Likes tea\n- Works at Initech\n- Has a cat\n"
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)


def write(shell: Shell, text: str, path: str = MEMORY) -> None:
    with shell.app.kb.history.change(Actor.YOU, "wrote") as change:
        change.write(path, text)


def propose(shell: Shell, text: str | None = NEW, reason: str = "It says so now.") -> Any:
    origin = Origin(session="s", messages=(3, 4))
    return shell.app.kb.memory.inbox.add(Actor.DREAM, reason, {MEMORY: text}, origin=origin)


def now(tmp_path: Path) -> str:
    return (tmp_path / "notes" / MEMORY).read_text()


def send(shell: Shell, keys: str) -> None:
    """Type in one piece, as fast as a terminal hands it over."""
    for key in keys:
        event = key_event(key)
        event.set_sender(shell.app)
        shell.app._driver.send_message(event)


async def opened(shell: Shell) -> InboxScreen:
    """F6, and wait until the first proposal is on the screen."""
    await shell.press("f6")
    await shell.until(lambda: isinstance(shell.app.screen, InboxScreen))
    screen = shell.app.screen
    await shell.until(lambda: screen.has_class("-empty") or screen.diff.place is not None)
    return screen


async def test_below_a_place_stands_its_note_where_there_is_room(tmp_path) -> None:
    async with running(tmp_path / "notes", size=(140, 60)) as shell:
        write(shell, OLD)
        propose(shell)
        screen = await opened(shell)
        note = screen.query_one("#inbox-note")
        await shell.until(lambda: "Lives in Bonn" in text_of(note))
        assert "Graz" not in text_of(note)
        assert note.region.y > screen.diff.region.y
        await shell.press("e")
        await shell.until(lambda: screen.query(PlaceEditor))
        assert not note.display


async def waiting(shell: Shell, screen: InboxScreen, places: int) -> None:
    """Wait until so many places of the selected proposal wait, and are drawn."""
    await shell.until(
        lambda: (
            screen.has_class("-empty")
            if not places
            else screen.rows.item is not None
            and len(screen.rows.item.places) == len(screen.diff._hunks) == places
        )
    )


@SIZES
async def test_places_are_accepted_and_rejected_one_by_one(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with running(tmp_path / "notes", size=size) as shell:
        write(shell, OLD)
        propose(shell)
        screen = await opened(shell)
        await waiting(shell, screen, 2)
        assert "Dream would change" in text_of(screen.rows)
        assert "It says so now." in text_of(screen.rows)
        assert "+ • Lives in Graz" in text_of(screen.diff)
        await shell.press("p")
        await shell.until(lambda: "+ - Lives in Graz" in text_of(screen.diff))
        was = screen.diff.side_by_side
        await shell.press("p", "s")
        assert screen.diff.side_by_side is not was
        await shell.press("s", "n", "N", "n", "a")
        await waiting(shell, screen, 1)
        assert now(tmp_path) == OLD + "- Has a cat\n"
        title = str(screen.query_one(".split-detail").border_subtitle)
        assert "Accepted, u takes it back; 1 still waits." in title
        await shell.press("x")
        await waiting(shell, screen, 0)
        assert now(tmp_path) == OLD + "- Has a cat\n"
        assert shell.app.kb.memory.tombstones.buried("Lives in Graz")
        assert "Nothing waits for you." in str(screen.query_one("#inbox-empty > Static").render())
        newest = next(shell.app.kb.history.log(MEMORY))
        assert (newest.actor, newest.origin.messages) == (Actor.YOU, (3, 4))
        await shell.press("u")
        await shell.until(lambda: now(tmp_path) == OLD)
        await shell.press("q")
        assert shell.app.screen is shell.app.main


@SIZES
async def test_a_conflict_shows_both_sides_and_is_settled_in_place(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with running(tmp_path / "notes", size=size) as shell:
        write(shell, OLD)
        propose(shell)
        write(shell, OLD.replace("Bonn", "Rome"))
        screen = await opened(shell)
        await waiting(shell, screen, 2)
        assert "CONFLICT" in text_of(screen.diff)
        assert "- • Lives in Rome" in text_of(screen.diff)
        await shell.press("a")
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press("e")
        await shell.until(lambda: screen.query("#place-text"))
        editor = screen.query_one(PlaceEditor)
        await shell.until(lambda: editor.area.has_focus)
        await shell.press("ctrl+s")
        await shell.notified("Both sides are still marked")
        editor.area.text = "- Lived in Rome, now in Graz"
        await shell.press("ctrl+s")
        await shell.until(lambda: not screen.query("#place-editor"))
        await shell.until(lambda: screen.diff.place and screen.diff.place.state == "clean")
        assert now(tmp_path) == OLD.replace("Bonn", "Rome"), "nothing is written yet"
        await shell.press("A")
        await waiting(shell, screen, 0)
        assert now(tmp_path) == NEW.replace("Lives in Graz", "Lived in Rome, now in Graz")


async def test_the_proposed_side_of_a_conflict_can_be_taken(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        propose(shell)
        write(shell, OLD.replace("Bonn", "Rome"))
        screen = await opened(shell)
        await shell.press("A")
        await waiting(shell, screen, 1)
        assert now(tmp_path) == OLD.replace("Bonn", "Rome") + "- Has a cat\n"
        await shell.press("a")
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press("t")
        await waiting(shell, screen, 0)
        assert now(tmp_path) == NEW


async def test_what_comes_is_told_once_and_counted_in_the_status_line(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        status = shell.app.main.query_one(StatusLine)
        propose(shell, reason="You moved.")
        await shell.notified("F6: dream proposes a change of your notes: You moved.")
        await shell.until(lambda: status.inbox == 1)
        assert "F6 1 waiting" in str(status.render())
        screen = await opened(shell)
        write(shell, NEW)
        await waiting(shell, screen, 0)
        await shell.until(lambda: status.inbox == 0)
        told = [n for n in shell.app._notifications if "You moved." in n.message]
        assert len(told) == 1


async def test_the_cursor_stays_on_its_proposal_when_another_comes(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        write(shell, "# Me\n", "USER.md")
        first = propose(shell)
        screen = await opened(shell)
        await waiting(shell, screen, 2)
        shell.app.kb.memory.inbox.add(Actor.SYNC, "from elsewhere", {"USER.md": "# You\n"})
        await shell.until(lambda: len(screen.rows.items) == 2)
        assert screen.rows.item.proposal.id == first.id
        await shell.press("j")
        await shell.until(lambda: "+ You" in text_of(screen.diff))
        await shell.press("X")
        await shell.until(lambda: len(screen.rows.items) == 1)
        assert screen.rows.item.proposal.id == first.id


async def test_keys_typed_ahead_decide_on_what_is_left_but_never_of_the_next_proposal(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        write(shell, "# Me\n", "USER.md")
        propose(shell, OLD + "- one\n- two\n- three\n")
        shell.app.kb.memory.inbox.add(Actor.DREAM, "next", {"USER.md": "# You\n"})
        screen = await opened(shell)
        send(shell, "axaaa")
        await shell.until(lambda: len(screen.rows.items) == 1)
        assert now(tmp_path) == OLD + "- one\n- three\n"
        await shell.until(lambda: screen.diff.place and screen.diff.path == "USER.md")
        assert (tmp_path / "notes" / "USER.md").read_text() == "# Me\n"


async def test_many_places_are_asked_about_before_all_are_accepted(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        propose(shell, OLD + "".join(f"- fact {n}\n" for n in range(7)))
        screen = await opened(shell)
        await shell.press("A")
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press("escape")
        assert now(tmp_path) == OLD
        await shell.press("A")
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press("y")
        await waiting(shell, screen, 0)
        assert now(tmp_path).count("- fact") == 7


async def test_what_was_typed_is_given_up_only_after_a_question(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        propose(shell)
        screen = await opened(shell)
        await shell.press("e")
        await shell.until(lambda: screen.query("#place-text"))
        await shell.press("x", "escape")
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press("escape")
        assert screen.query_one(PlaceEditor).area.text == "x- Lives in Graz\n"
        await shell.press("escape")
        await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
        await shell.press("d")
        await shell.until(lambda: not screen.query("#place-editor"))
        await waiting(shell, screen, 2)


async def test_the_slash_command_and_the_palette_lead_there(tmp_path: Path) -> None:
    async with running(tmp_path / "notes", size=(80, 24)) as shell:
        await shell.say("/inbox", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, InboxScreen))
        await shell.until(lambda: shell.app.screen.has_class("-empty"))
        await shell.press("a", "x", "e", "A", "n", "enter", "escape")
        assert shell.app.screen is shell.app.main


async def test_a_card_of_what_was_proposed_leads_to_it(tmp_path: Path) -> None:
    done = ToolFinished("1", "write_entry", True, "waits for you: people/alice new", "", ())
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        propose(shell, reason="another")
        proposal = shell.app.kb.memory.inbox.add(
            Actor.AGENT, "new person", {"knowledge/people/alice.md": "# Alice\n"}
        )
        shell.agent.script = [
            ToolStarted("1", "write_entry", {"title": "Alice"}),
            replace(done, proposal=proposal.id),
            TextDelta("It waits."),
            TurnFinished("It waits.", "", ""),
        ]
        await shell.say("Note Alice")
        assert "◇ waits for you: people/alice new · F6" in shell.text
        await shell.press("escape")
        shell.transcript.focus()
        await shell.press("k", "k", "o")
        await shell.until(lambda: isinstance(shell.app.screen, InboxScreen))
        screen = shell.app.screen
        await shell.until(lambda: screen.rows.item is not None)
        assert screen.rows.item.proposal.id == proposal.id


async def test_letters_typed_right_after_the_key_that_writes_are_written(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        propose(shell)
        screen = await opened(shell)
        send(shell, "eeaxX")
        await shell.until(
            lambda: (
                screen.query("#place-text")
                and screen.query_one(PlaceEditor).area.text.startswith("eaxX")
            )
        )
        assert len(screen.query(PlaceEditor)) == 1
        assert now(tmp_path) == OLD
        assert len(screen.rows.item.places) == 2


async def test_taking_back_what_was_changed_again_shows_both_sides_until_it_is_done(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        propose(shell, OLD.replace("Bonn", "Graz"))
        screen = await opened(shell)
        await shell.press("a")
        await waiting(shell, screen, 0)
        again = OLD.replace("Bonn", "Graz, in the old town")
        write(shell, again)
        for key, text in (("escape", again), ("t", OLD)):
            await shell.press("u")
            await shell.until(lambda: isinstance(shell.app.screen, UndoConflictScreen))
            await shell.press(key)
            if key == "t":
                await shell.press("enter")
            await shell.until(lambda: shell.app.screen is screen)
            await shell.until(lambda text=text: now(tmp_path) == text)
        await shell.until(
            lambda: "Taken back" in str(screen.query_one(".split-detail").border_subtitle)
        )
        await shell.press("u")
        await shell.until(
            lambda: "Nothing was accepted" in str(screen.query_one(".split-detail").border_subtitle)
        )


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
async def test_what_an_empty_inbox_says_is_as_wide_as_there_is_room(tmp_path, size) -> None:
    async with running(tmp_path / "kb", size=size) as shell:
        screen = await opened(shell)
        told = screen.query_one("#inbox-empty > Static")
        await shell.until(lambda: "Nothing waits" in str(told.render()))
        assert told.region.right < size[0]


@SIZES
async def test_a_place_shows_the_message_that_says_so_and_o_opens_it(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with running(tmp_path / "notes", size=size) as shell:
        kb = shell.app.kb
        write(shell, OLD)
        session = kb.sessions.create("test")
        session.append("user", "I moved to Graz last week")
        session.close()
        bare = propose(shell, OLD.replace("tea", "coffee"))
        origin = Origin(session=session.id, messages=(1, 1))
        told = kb.memory.inbox.add(Actor.CONSOLIDATOR, "Moved.", {MEMORY: NEW}, origin=origin)
        screen = await opened(shell)
        await shell.until(lambda: screen.rows.row_count == 2)
        assert [plan.proposal.id for plan in screen.rows.items] == [told.id, bare.id]
        what = screen.query_one("#inbox-what")
        await shell.until(lambda: "“I moved to Graz last week”" in text_of(what))
        assert "You said" in text_of(what)
        await shell.press("n")
        await shell.until(lambda: "No message that was found says so" in text_of(what))
        await shell.press("N", "o")
        await shell.until(lambda: shell.app.screen is shell.app.main)
        await shell.until(lambda: "I moved to Graz last week" in shell.text)


async def test_o_opens_the_note_of_a_place_that_no_message_says(tmp_path: Path) -> None:
    async with running(tmp_path / "notes") as shell:
        write(shell, OLD)
        propose(shell)
        for key in ("o", "O"):
            await opened(shell)
            await shell.press(key)
            await shell.until(lambda: shell.app.screen is shell.app.main)
            await shell.until(lambda: shell.app.main.notes.current_path == MEMORY)
