"""Places of a proposal: each can be decided by itself, in any order, and nothing else moves."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings, strategies as st

from kbtui.errors import ConflictError, KbtuiError
from kbtui.history.objects.commit import Actor, Commit, Origin
from kbtui.history.places import (
    MAX_PLACES,
    Plan,
    Proposal,
    ProposedEdit,
    Proposing,
    in_form_of,
    places_of,
    plan_file,
    put,
)
from kbtui.history.queries.diff import split_lines
from kbtui.history.queries.matching import keys_of
from kbtui.history.undo import Revert
from kbtui.memory.inbox.drafts import draft_for
from kbtui.workspace.layout import Layout

if TYPE_CHECKING:
    from kbtui.history.objects.repository import Repository
    from kbtui.history.queries.log import CommitLog

PATH = "memory/MEMORY.md"
HEAD = "---\ntype: topic\ntags: [a]\nupdated: 2026-11-01\nsummary: Old.\n---\n"
TIME = datetime(2026, 1, 1, tzinfo=UTC)
COMMIT = Commit("c", None, TIME, Actor.DREAM, "", "why", Origin(), ())


def plan_of(base: bytes | None, wanted: bytes | None, now: bytes | None) -> Plan:
    """A proposal for a file of which the history knows nothing else."""
    proposal = Proposal("p", COMMIT, (ProposedEdit(PATH, base, wanted),))
    with TemporaryDirectory() as folder:
        file = Path(folder) / PATH
        file.parent.mkdir()
        if now is not None:
            file.write_bytes(now)
        decisions = Proposing()
        nothing = cast("Repository", None), cast("CommitLog", None)
        work = Revert(Layout(Path(folder)), *nothing, decisions)
        return Plan(proposal, (plan_file(work, decisions, None, proposal.edits[0]),))


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


class Desk:
    """A file and a proposal for it, decided on step by step."""

    def __init__(self, base: str, now: str, text: str) -> None:
        self.now = now
        self.edits = [ProposedEdit(PATH, base.encode(), in_form_of(base.encode(), text))]

    @property
    def plan(self) -> Plan:
        if not self.edits:
            return Plan(Proposal("p", COMMIT, ()), ())
        (edit,) = self.edits
        return plan_of(edit.base, edit.wanted, self.now.encode())

    def accept(self, keys: set[str] | None, *, theirs: bool = False) -> None:
        plan = self.plan
        chosen = plan.chosen(keys)
        plan.check(chosen, theirs=theirs)
        for file in plan.files:
            for data in file.accepted(chosen).values():
                assert data is not None
                self.now = data.decode()
        self.edits = plan.remaining(made=chosen)

    def reject(self, keys: set[str]) -> None:
        plan = self.plan
        self.edits = plan.remaining(dropped=plan.chosen(keys))

    def reword(self, key: str, text: str, seen: str | None = None) -> None:
        self.edits = self.plan.reworded(key, text, seen)


LINE = st.sampled_from(
    [
        "- tea", "- coffee", "- Bonn", "- Graz", "", "# Facts", "## More", "- works at Initech",
        "prose about it", "- [[people/alice]]", "1. one", "  and more",
    ]
)  # fmt: skip


@st.composite
def three_texts(draw: st.DrawFn) -> tuple[str, str, str]:
    """A text, what the user made of it, and what a machine would."""
    base = draw(st.lists(LINE, max_size=14))

    def altered() -> str:
        lines = list(base)
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(lines)))
            end = min(len(lines), at + draw(st.integers(0, 2)))
            lines[at:end] = draw(st.lists(LINE, max_size=2))
        return "".join(f"{line}\n" for line in lines)

    return "".join(f"{line}\n" for line in base), altered(), altered()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(three_texts(), st.randoms(use_true_random=False))
def test_place_by_place_in_any_order_is_the_same_as_all_at_once(texts, rng) -> None:
    """Of the places that don't conflict; those that do wait on."""
    base, now, text = texts
    whole, steps = Desk(base, now, text), Desk(base, now, text)
    clean = {place.key for place in whole.plan.places if place.state == "clean"}
    whole.accept(clean)
    for _ in range(40):
        waiting = [place.key for place in steps.plan.places if place.state == "clean"]
        if not waiting:
            break
        steps.accept({rng.choice(waiting)})
    assert steps.now == whole.now
    assert steps.plan.places == whole.plan.places
    assert all(place.state == "conflict" for place in whole.plan.places)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(three_texts())
def test_what_a_place_does_not_touch_stays_byte_for_byte(texts) -> None:
    base, now, text = texts
    for place in Desk(base, now, text).plan.places:
        if place.state != "clean":
            continue
        desk = Desk(base, now, text)
        desk.accept({place.key})
        before, after = split_lines(now), split_lines(desk.now)
        assert after[: place.first] == before[: place.first]
        tail = len(before) - place.last
        assert after[len(after) - tail :] == before[place.last :]
        assert all(line in before or line in text.splitlines(keepends=True) for line in after)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(three_texts(), st.randoms(use_true_random=False))
def test_rejecting_writes_nothing_and_leaves_the_others(texts, rng) -> None:
    base, now, text = texts
    desk = Desk(base, now, text)
    while places := list(desk.plan.places):
        gone = places.pop(rng.randrange(len(places)))
        desk.reject({gone.key})
        assert desk.now == now
        assert [each.theirs for each in desk.plan.places] == [each.theirs for each in places]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(three_texts())
def test_taking_the_proposed_side_settles_every_conflict(texts) -> None:
    base, now, text = texts
    desk = Desk(base, now, text)
    places = desk.plan.places
    desk.accept({place.key for place in places if place.why}, theirs=True)
    assert desk.plan.conflicts == ()
    desk.accept(None)
    assert desk.plan.places == ()


# What is a place


def lines_of(base: str, text: str) -> list[tuple[str, ...]]:
    return [tuple(keys_of(each.theirs)) for each in places_of(base, text)]


def test_items_added_below_each_other_are_places_of_their_own() -> None:
    base = "# Facts\n\n- Bonn\n"
    assert lines_of(base, f"{base}- tea\n  with milk\n- Graz\n") == [
        ("- tea", "  with milk"),
        ("- Graz",),
    ]


def test_lines_replaced_one_by_one_are_places_of_their_own() -> None:
    assert lines_of("- a\n- b\n", "- c\n- d\n") == [("- c",), ("- d",)]
    assert lines_of("- a\n- b\nx\n", "- c\n- d\ny\n") == [("- c", "- d", "y")]
    front = HEAD.replace("[a]", "[a, b]").replace("Old.", "New.")
    assert lines_of(HEAD, front) == [("tags: [a, b]",), ("summary: New.",)]


def test_the_date_of_the_last_change_is_no_place() -> None:
    later = HEAD.replace("11-01", "12-24")
    assert Desk(HEAD, HEAD, later).plan.places == ()
    (place,) = Desk(HEAD, HEAD, f"{later}new\n").plan.places
    assert place.theirs == ("new\n",)


def test_line_ends_are_no_difference_and_stay() -> None:
    base = "- a\r\n- b\r\n"
    assert places_of(base, "- a\n- b\n") == []
    desk = Desk(base, base, "- a\n- c\n")
    desk.accept(None)
    assert desk.now == "- a\r\n- c\r\n"


def test_an_unfinished_last_line_is_finished_only_where_something_follows() -> None:
    assert put(["- a"], places_of("- a", "- a\n- b")) == "- a\n- b"
    assert put(["- a"], places_of("- a", "- b")) == "- b"


def test_a_rewritten_file_has_no_more_places_than_anybody_can_look_at() -> None:
    base = "".join(f"line {n}\nsame {n}\n" for n in range(500))
    text = base.replace("line", "row")
    places = places_of(base, text)
    assert 0 < len(places) <= MAX_PLACES
    assert put(split_lines(base), places) == text


# Conflicts

BASE = "# Facts\n\n- Lives in Bonn\n- Likes tea\n- Works at Initech\n"


def test_both_sides_of_a_conflict_are_shown_and_the_rest_stays_clean() -> None:
    desk = Desk(BASE, BASE.replace("Bonn", "Rome"), BASE.replace("Bonn", "Graz") + "- Has a cat\n")
    conflict, clean = desk.plan.places
    assert (conflict.state, clean.state) == ("conflict", "clean")
    assert conflict.ours == ("- Lives in Rome\n",)
    assert conflict.theirs == ("- Lives in Graz\n",)
    assert clean.theirs == ("- Has a cat\n",)
    with pytest.raises(ConflictError, match="Rome"):
        desk.accept(None)
    desk.accept({clean.key})
    assert desk.now == BASE.replace("Bonn", "Rome") + "- Has a cat\n"
    assert desk.plan.conflicts == (conflict,)


def test_a_conflict_is_settled_by_a_text_of_ones_own() -> None:
    desk = Desk(BASE, BASE.replace("Bonn", "Rome") + "- mine\n", BASE.replace("Bonn", "Graz"))
    file, place = desk.plan.files[0], desk.plan.places[0]
    draft = draft_for(file, place)
    assert draft.text == (
        "<<<<<<< in the file now\n- Lives in Rome\n=======\n- Lives in Graz\n>>>>>>> proposed\n"
    )
    desk.reword(place.key, "- Lived in Rome, now in Graz\n", draft.seen)
    assert [each.state for each in desk.plan.places] == ["clean"]
    desk.accept(None)
    assert desk.now == BASE.replace("Lives in Bonn", "Lived in Rome, now in Graz") + "- mine\n"


def test_what_was_changed_while_one_wrote_is_not_written_over() -> None:
    desk = Desk(BASE, BASE.replace("Bonn", "Rome"), BASE.replace("Bonn", "Graz"))
    desk.now = BASE.replace("Bonn", "Oslo")
    (place,) = desk.plan.places
    with pytest.raises(ConflictError, match="while you wrote"):
        desk.reword(place.key, "- Lives in Graz\n", seen="- Lives in Rome\n")


def test_own_words_for_a_clean_place_leave_the_others_as_proposed() -> None:
    desk = Desk(BASE, "intro\n" + BASE, BASE.replace("tea", "mate") + "- Has a cat\n")
    first, second = desk.plan.places
    draft = draft_for(desk.plan.files[0], first)
    assert (draft.text, draft.seen) == ("- Likes mate\n", "- Likes tea\n")
    desk.reword(first.key, "- Likes mate, not tea\n")
    assert desk.plan.places[1].key == second.key
    desk.accept(None)
    assert desk.now == "intro\n" + BASE.replace("tea", "mate, not tea") + "- Has a cat\n"


def test_what_somebody_wrote_meanwhile_elsewhere_is_done() -> None:
    now = BASE.replace("- Lives", "- Has a cat\n- Lives")
    plan = Desk(BASE, now, BASE + "- Has a cat\n- Runs\n").plan
    assert [place.theirs for place in plan.places] == [("- Runs\n",)]


@pytest.mark.parametrize(
    ("base", "now", "text", "states"),
    [
        (None, None, "new\n", ["clean"]),
        (None, "new\n", "new\n", []),
        (None, "other\n", "new\n", ["conflict"]),
        ("old\n", "old\n", None, ["clean"]),
        ("old\n", None, None, []),
        ("old\n", "newer\n", None, ["conflict"]),
        ("old\n", None, "new\n", ["conflict"]),
    ],
)
def test_a_file_that_comes_or_goes_is_one_place(base, now, text, states) -> None:
    plan = plan_of(encoded(base), encoded(text), encoded(now))
    assert [place.state for place in plan.places] == states


def test_bytes_that_are_no_text_are_left_alone() -> None:
    plan = plan_of(b"old\n", b"new\n", b"\xff\xfeold\n\xff")
    assert [place.state for place in plan.places] == ["conflict"]
    with pytest.raises(KbtuiError):
        plan.check(plan.places, theirs=True)


def test_a_new_text_for_a_file_of_old_windows_loses_no_sign() -> None:
    old = "café and more\n".encode("cp1252")
    assert in_form_of(old, "cafés and more\n") == "cafés and more\n".encode("cp1252")
    assert in_form_of(old, "café → Łódź\n") == "café → Łódź\n".encode()
