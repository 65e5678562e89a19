"""Tombstones: what was forgotten stays forgotten, and the file tells nobody what it was."""

from __future__ import annotations

import json
import stat
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.memory.records.tombstones import TOMBSTONES, FactSource, Tombstones
from kbtui.workspace.scan import Scanner
from tests.memory.memory_room import as_older_versions_drop
from tests.memory.plants import BLOCKS, INVENTION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbtui.workspace.layout import Workspace

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MEMORY = "memory/MEMORY.md"


@pytest.fixture
def tombstones(workspace: Workspace, history: History) -> Tombstones:
    stones = Tombstones(workspace, history, lambda: NOW)
    history.add_companion(stones.companion)
    return stones


def bury(history: History, stones: Tombstones, facts: Iterable[str], *sources: FactSource) -> int:
    with history.change(Actor.YOU, "forget") as change:
        return stones.bury(change, facts, sources)


def test_a_buried_fact_is_known_in_other_words_and_for_good(
    workspace: Workspace, history: History, tombstones: Tombstones
) -> None:
    assert not tombstones.buried("Favorite color: blue")
    assert bury(history, tombstones, ["Favorite color: blue"]) == 1
    again = Tombstones(workspace, history)
    assert again.buried("The user's favourite colour is blue.")
    assert not again.buried("Favorite color: green")
    assert again.buried("favorite color: BLUE")
    assert not again.buried("Likes tea")


@pytest.mark.parametrize("line", ["> Ada owes Bo 40 euros.", "%% Ada owes Bo 40 euros. %%"])
def test_what_older_versions_buried_with_the_signs_of_a_quote_or_comment_stays_buried(
    history: History, tombstones: Tombstones, line: str
) -> None:
    bury(history, tombstones, [line])  # today a fact is what stands between them
    assert tombstones.buried("Ada owes Bo 40 euros.")
    with history.change(Actor.YOU, "state it again") as change:
        tombstones.lift(change, ["Ada owes Bo 40 euros."])
    assert not tombstones.buried("Ada owes Bo 40 euros.")


def test_the_file_holds_keyed_hashes_and_sources_and_no_text(
    workspace: Workspace, history: History, tombstones: Tombstones
) -> None:
    bury(history, tombstones, ["Favorite color: blue"], FactSource("tui_1", (3, 5)))
    text = (workspace.root / TOMBSTONES).read_text()
    assert "blue" not in text.lower()
    (record,) = [json.loads(line) for line in text.splitlines()]
    assert record["sources"] == [{"session": "tui_1", "messages": [3, 5]}]
    key = workspace.machine / "key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(bytes.fromhex(key.read_text())) == 32
    assert tombstones.forgotten("tui_1") == [(3, 5)]
    assert tombstones.forgotten("tui_2") == []


@pytest.mark.parametrize("kind", BLOCKS)
def test_what_an_undo_takes_out_of_any_kind_of_markdown_is_buried(
    history: History, tombstones: Tombstones, kind: str
) -> None:
    with history.change(Actor.CONSOLIDATOR, "made up") as change:
        change.write("knowledge/topics/a.md", f"# A\n\n{BLOCKS[kind].replace('{}', INVENTION)}\n")
    (commit,) = history.log(limit=1)
    history.undo(commit.id)
    rows = ("| {} | Alice |", "| owns | {} |", "owns | {}", "note: {}")
    lines = (INVENTION, *(row.replace("{}", INVENTION) for row in rows))
    assert any(map(tombstones.buried, lines))
    assert not tombstones.buried("Notes")


def test_the_same_fact_hashes_differently_elsewhere(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    from kbtui.history.history import History
    from kbtui.workspace.opening import create_workspace
    from kbtui.workspace.scan import Scanner

    hashes = set()
    for name in ("a", "b"):
        workspace = create_workspace(tmp_path_factory.mktemp(name) / "notes")
        history = History(workspace, Scanner(workspace))
        history.open()
        bury(history, Tombstones(workspace, history), ["Likes tea"])
        hashes.add(json.loads((workspace.root / TOMBSTONES).read_text())["hash"])
    assert len(hashes) == 2


def test_burying_twice_writes_once(
    workspace: Workspace, history: History, tombstones: Tombstones
) -> None:
    assert bury(history, tombstones, ["Likes tea", "likes tea.", "", "?"]) == 2
    head = history.head()
    assert bury(history, tombstones, ["Likes tea"]) == 0
    assert history.head() == head
    assert (workspace.root / TOMBSTONES).read_text().count("\n") == 2


def test_what_the_user_states_again_may_be_written_again(
    history: History, tombstones: Tombstones
) -> None:
    bury(history, tombstones, ["Likes tea"])
    before, after = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)
    said = [(before, "I like tea a lot"), (after, "The weather is nice.")]
    assert tombstones.buried("Likes tea", said=said)
    assert not tombstones.buried("Likes tea", said=[*said, (after, "In fact I do like my tea.")])


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("I don't like tea any more.", False),
        ("Forget that I like tea.", False),
        ("I like coffee; tea I never liked.", False),
        ("I'm not sure. I do like tea!", True),
        ("No.\nI like tea", True),
        ("No, I like tea", True),
        ("No tea, I like it not", False),
    ],
)
def test_what_is_denied_is_not_stated_again(
    history: History, tombstones: Tombstones, text: str, *, again: bool
) -> None:
    bury(history, tombstones, ["Likes tea"])
    said = [(NOW + timedelta(minutes=1), text)]
    assert tombstones.buried("Likes tea", said=said) is not again


def test_a_day_that_is_named_by_its_distance_states_its_date(
    history: History, tombstones: Tombstones
) -> None:
    bury(history, tombstones, ["The release is on 2026-11-23", "The party (2026-11-23) is big"])
    said = [(datetime(2026, 11, 22, 12).astimezone(), "The release is tomorrow. The party is big")]
    assert not tombstones.buried("The release is on 2026-11-23", said=said)
    assert not tombstones.buried("The party (2026-11-23) is big", said=said)
    later = [(said[0][0] + timedelta(days=1), said[0][1])]
    assert tombstones.buried("The release is on 2026-11-23", said=later)


def test_what_was_undone_may_be_done_again_by_whoever_is_asked_to_since(
    history: History, tombstones: Tombstones
) -> None:
    with history.change(Actor.YOU, "undo") as change:
        tombstones.bury(change, ["Likes tea"], undone=True)
    before, after = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)
    assert not tombstones.buried("Likes tea", said=[(after, "Do it again")], asked=True)
    assert tombstones.buried("Likes tea", said=[(before, "Note that I like tea")], asked=True)
    assert tombstones.buried("Likes tea", asked=True)
    assert tombstones.buried("Likes tea", said=[(after, "Do it again")])


def test_what_was_forgotten_has_to_be_said_though_it_was_undone_too(
    history: History, tombstones: Tombstones
) -> None:
    said = [(NOW + timedelta(minutes=1), "Do it again")]
    for undone in (True, False, True):
        with history.change(Actor.YOU, "take it out") as change:
            tombstones.bury(change, ["Likes tea"], undone=undone)
    assert tombstones.buried("Likes tea", said=said, asked=True)


def test_burying_again_counts_from_then_on_and_for_what_was_said_since(
    workspace: Workspace, history: History
) -> None:
    now = [NOW]
    stones = Tombstones(workspace, history, lambda: now[0])
    bury(history, stones, ["Likes tea"], FactSource("s", (1, 2)))
    said = [(NOW + timedelta(minutes=1), "I like tea")]
    assert not stones.buried("Likes tea", said=said)
    now[0] += timedelta(minutes=2)
    with history.change(Actor.YOU, "forget") as change:
        assert stones.bury(change, ["Likes tea"], [FactSource("s", (7, 7))]) == 0
    as_older_versions_drop(workspace)
    assert stones.buried("Likes tea", said=said)
    assert stones.forgotten("s") == [(1, 2), (7, 7)]
    assert stones.dropped("s") == [(7, 7)]
    now[0] += timedelta(minutes=1)
    with history.change(Actor.YOU, "remember") as change:
        stones.lift(change, ["Likes tea"])
    assert stones.dropped("s") == stones.forgotten("s") == []


def test_a_tombstone_can_be_lifted_and_set_again(history: History, tombstones: Tombstones) -> None:
    bury(history, tombstones, ["Likes tea"])
    with history.change(Actor.YOU, "remember") as change:
        assert tombstones.lift(change, ["The user likes tea"]) == 1
    assert not tombstones.buried("Likes tea")
    assert tombstones.forgotten("s") == []
    assert bury(history, tombstones, ["Likes tea"]) == 1
    assert tombstones.buried("Likes tea")


def test_what_another_process_buries_between_a_first_look_and_a_write_stays_buried(
    workspace: Workspace, history: History, tombstones: Tombstones
) -> None:
    bury(history, tombstones, ["Likes tea"])
    other_history = History(workspace, Scanner(workspace))
    other = Tombstones(workspace, other_history, lambda: NOW)
    with suppress(ConflictError), history.change(Actor.YOU, "remember") as change:
        assert tombstones.lift(change, ["Favorite color: blue"]) == 0
        bury(other_history, other, ["Favorite color: green"])
        tombstones.bury(change, ["Favorite color: blue"])
    assert tombstones.buried("Favorite color: green")


def test_undoing_a_memory_change_buries_its_facts_and_undoing_that_lifts_them(
    history: History, tombstones: Tombstones
) -> None:
    with history.change(Actor.YOU, "begin") as change:
        change.write(MEMORY, "# Facts\n\n- Lives in Bonn\n")
    origin = Origin(session="tui_1", messages=(3, 5))
    with history.change(Actor.CONSOLIDATOR, "condensed", origin) as change:
        change.write(MEMORY, "# Facts\n\n- Lives in Bonn\n- Likes tea\n")
        change.write("knowledge/preferences/tea.md", "# Tea\n\nThe user drinks it black.\n")
    assert change.result is not None
    undone = history.undo(change.result.id)
    assert tombstones.buried("likes tea")
    assert tombstones.buried("User drinks it black")
    assert not tombstones.buried("Lives in Bonn")
    assert tombstones.forgotten("tui_1") == [(3, 5), (3, 5)]
    assert TOMBSTONES in {path.path for path in undone.paths}, "in the same commit"
    history.undo(undone.id)
    assert not tombstones.buried("likes tea")
    assert not tombstones.buried("User drinks it black")


def test_what_is_undone_in_the_journal_is_buried_whenever_it_was_said(
    history: History, tombstones: Tombstones
) -> None:
    with history.change(Actor.YOU, "begin") as change:
        change.write("memory/2026-11-21.md", "# Today\n\n- 09:10 Hello\n")
    with history.change(Actor.YOU, "said") as change:
        change.write("memory/2026-11-21.md", "# Today\n\n- 09:10 Hello\n- 09:14 I like tea\n")
    assert change.result is not None
    undone = history.undo(change.result.id)
    assert tombstones.buried("The user likes tea")
    assert not tombstones.buried("Hello")
    history.undo(undone.id)
    assert not tombstones.buried("The user likes tea")


def test_what_an_undo_only_moves_is_not_buried(history: History, tombstones: Tombstones) -> None:
    with history.change(Actor.DREAM, "begin") as change:
        change.write(MEMORY, "- Likes tea\n")
    with history.change(Actor.DREAM, "move") as change:
        change.delete(MEMORY)
        change.write("USER.md", "- Likes tea\n")
    assert change.result is not None
    history.undo(change.result.id)
    assert not tombstones.buried("Likes tea")


def test_what_an_undo_leaves_said_in_another_form_is_neither_buried_nor_lifted(
    workspace: Workspace, history: History, tombstones: Tombstones
) -> None:
    with history.change(Actor.YOU, "begin") as change:
        change.write("knowledge/topics/a.md", "# A\n\nSee [[hub]] for more.\n")
    with history.change(Actor.YOU, "links become text") as change:
        change.write("knowledge/topics/a.md", "# A\n\nSee hub for more.\n")
    assert change.result is not None
    undone = history.undo(change.result.id)
    assert [path.path for path in undone.paths] == ["knowledge/topics/a.md"]
    assert not (workspace.root / TOMBSTONES).exists()


def test_the_users_own_edits_bury_nothing(history: History, tombstones: Tombstones) -> None:
    with history.change(Actor.YOU, "begin") as change:
        change.write(MEMORY, "- Likes tea\n")
    with history.change(Actor.YOU, "tidy up") as change:
        change.delete(MEMORY)
    assert not tombstones.buried("Likes tea")


def test_bad_lines_stay_and_are_reported(
    workspace: Workspace, history: History, tombstones: Tombstones
) -> None:
    bury(history, tombstones, ["Likes tea"])
    odd = b'garbage\n{"hash": 1, "time": "x"}\n{"hash": "a", "time": "never"}\n{"hash": "tor'
    with (workspace.root / TOMBSTONES).open("ab") as file:
        file.write(odd)
    bury(history, tombstones, ["Likes coffee"])
    assert odd in (workspace.root / TOMBSTONES).read_bytes()
    assert [line.number for line in tombstones.problems()] == [2, 3, 4, 5]
    assert tombstones.buried("Likes tea")
    assert tombstones.buried("Likes coffee")


@pytest.mark.parametrize("damage", [None, "", "nothing hexadecimal", "abcd"])
def test_a_lost_key_is_made_again_and_reported(
    workspace: Workspace, history: History, tombstones: Tombstones, damage: str | None
) -> None:
    bury(history, tombstones, ["Likes tea"])
    key = workspace.machine / "key"
    key.unlink() if damage is None else key.write_text(damage)
    again = Tombstones(workspace, history)
    assert not again.buried("Likes tea")
    bury(history, again, ["Likes coffee"])
    assert Tombstones(workspace, history).buried("Likes coffee")
    assert [line.reason for line in again.problems()] == ["its key is lost"]
    assert not list(workspace.machine.glob("key-*"))
