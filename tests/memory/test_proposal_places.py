"""Places of a proposal: each can be decided by itself, in any order, and nothing else moves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.errors import ConflictError
from kbtui.history.change import Actor, Origin
from kbtui.history.looking.diff import split_lines
from kbtui.history.looking.matching import keys_of
from kbtui.memory.inbox.decide import accepted, edited, rejected
from kbtui.memory.inbox.hunks import MOST_CUTS, cut, put
from kbtui.memory.inbox.plan import Current, Plan, plan_file
from kbtui.memory.inbox.proposal import Proposal, ProposedEdit
from kbtui.memory.inbox.showing import region, theirs_of

PATH = "memory/MEMORY.md"
HEAD = "---\ntype: topic\ntags: [a]\nupdated: 2026-11-01\nsummary: Old.\n---\n"


def proposal_of(base: str | None, text: str | None) -> Proposal:
    edit = ProposedEdit(PATH, None if base is None else "x", text, base)
    return Proposal("p", datetime(2026, 1, 1, tzinfo=UTC), Actor.DREAM, "why", Origin(), (edit,))


def plan_of(proposal: Proposal, now: str | None) -> Plan:
    data = None if now is None else now.encode()
    return Plan(proposal, tuple(plan_file(e, Current(e.path, data)) for e in proposal.edits))


class Desk:
    """A file and a proposal for it, decided on step by step as the inbox does it."""

    def __init__(self, base: str, now: str, text: str) -> None:
        self.now = now
        self.proposal = proposal_of(base, text)

    @property
    def plan(self) -> Plan:
        return plan_of(self.proposal, self.now)

    def accept(self, keys: set[str] | None) -> None:
        decision = accepted(self.plan, keys)
        for _, after in decision.writes.values():
            assert after is not None
            self.now = after.decode()
        self._left(decision.left)

    def reject(self, keys: set[str] | None) -> None:
        self._left(rejected(self.plan, keys).left)

    def _left(self, edits: list[ProposedEdit]) -> None:
        old = self.proposal
        self.proposal = Proposal(
            old.id, old.created, old.actor, old.reason, old.origin, tuple(edits)
        )


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
    clean = {hunk.key for hunk in whole.plan.hunks if hunk.state == "clean"}
    whole.accept(clean)
    for _ in range(40):
        waiting = [hunk.key for hunk in steps.plan.hunks if hunk.state == "clean"]
        if not waiting:
            break
        steps.accept({rng.choice(waiting)})
    assert steps.now == whole.now
    assert [h.place for h in steps.plan.hunks] == [h.place for h in whole.plan.hunks]
    assert all(hunk.state == "conflict" for hunk in whole.plan.hunks)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(three_texts())
def test_what_a_place_does_not_touch_stays_byte_for_byte(texts) -> None:
    base, now, text = texts
    for hunk in Desk(base, now, text).plan.hunks:
        if hunk.state != "clean":
            continue
        desk = Desk(base, now, text)
        desk.accept({hunk.key})
        before, after = split_lines(now), split_lines(desk.now)
        place = hunk.place
        assert after[: place.first] == before[: place.first]
        tail = len(before) - place.last
        assert after[len(after) - tail :] == before[place.last :]
        assert all(line in before or line in text.splitlines(keepends=True) for line in after)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(three_texts(), st.randoms(use_true_random=False))
def test_rejecting_writes_nothing_and_leaves_the_others(texts, rng) -> None:
    base, now, text = texts
    desk = Desk(base, now, text)
    keys = [hunk.key for hunk in desk.plan.hunks]
    for key in rng.sample(keys, len(keys)):
        keys.remove(key)
        desk.reject({key})
        assert desk.now == now
        assert [hunk.key for hunk in desk.plan.hunks] == keys


@settings(max_examples=100, deadline=None, derandomize=True)
@given(three_texts())
def test_taking_the_proposed_side_settles_every_conflict(texts) -> None:
    base, now, text = texts
    desk = Desk(base, now, text)
    for _ in range(20):
        conflicts = desk.plan.conflicts
        if not conflicts:
            break
        found = desk.plan.find(conflicts[0].key)
        assert found is not None
        left = edited(desk.plan, conflicts[0].key, theirs_of(*found))
        desk._left(left)
    assert desk.plan.conflicts == ()
    assert desk.now == now
    desk.accept(None)


# What is a place


def lines_of(base: str, text: str) -> list[tuple[str, ...]]:
    return [tuple(keys_of(each.lines)) for each in cut(base, text)]


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
    assert cut(HEAD, later) == []
    assert lines_of(HEAD, later + "new\n") == [("new",)]


def test_line_ends_are_no_difference_and_stay() -> None:
    base = "- a\r\n- b\r\n"
    assert cut(base, "- a\n- b\n") == []
    assert put(base, cut(base, "- a\n- c\n")) == "- a\r\n- c\r\n"


def test_an_unfinished_last_line_is_finished_only_where_something_follows() -> None:
    assert put("- a", cut("- a", "- a\n- b")) == "- a\n- b"
    assert put("- a", cut("- a", "- b")) == "- b"


def test_a_rewritten_file_has_no_more_places_than_anybody_can_look_at() -> None:
    base = "".join(f"line {n}\nsame {n}\n" for n in range(500))
    text = base.replace("line", "row")
    cuts = cut(base, text)
    assert 0 < len(cuts) <= MOST_CUTS
    assert put(base, cuts) == text


# Conflicts

BASE = "# Facts\n\n- Lives in Bonn\n- Likes tea\n- Works at Initech\n"


def test_both_sides_of_a_conflict_are_shown_and_the_rest_stays_clean() -> None:
    text = BASE.replace("Bonn", "Graz") + "- Has a cat\n"
    plan = plan_of(proposal_of(BASE, text), BASE.replace("Bonn", "Rome"))
    conflict, clean = plan.hunks
    assert (conflict.state, clean.state) == ("conflict", "clean")
    assert conflict.place.ours == ("- Lives in Rome\n",)
    assert conflict.place.theirs == ("- Lives in Graz\n",)
    assert clean.place.theirs == ("- Has a cat\n",)
    with pytest.raises(ConflictError, match="Rome"):
        accepted(plan, None)
    assert accepted(plan, {clean.key}).count == 1


def test_a_conflict_is_settled_by_a_text_of_ones_own() -> None:
    desk = Desk(BASE, BASE.replace("Bonn", "Rome") + "- mine\n", BASE.replace("Bonn", "Graz"))
    file, hunk = desk.plan.files[0], desk.plan.hunks[0]
    draft = region(file, hunk)
    assert draft.text == (
        "<<<<<<< in the file now\n- Lives in Rome\n=======\n- Lives in Graz\n>>>>>>> proposed\n"
    )
    desk._left(edited(desk.plan, hunk.key, "- Lived in Rome, now in Graz\n", draft.seen))
    assert [h.state for h in desk.plan.hunks] == ["clean"]
    desk.accept(None)
    assert desk.now == BASE.replace("Lives in Bonn", "Lived in Rome, now in Graz") + "- mine\n"


def test_what_was_changed_while_one_wrote_is_not_written_over() -> None:
    desk = Desk(BASE, BASE.replace("Bonn", "Rome"), BASE.replace("Bonn", "Graz"))
    hunk = desk.plan.hunks[0]
    seen = region(desk.plan.files[0], hunk).seen
    desk.now = BASE.replace("Bonn", "Oslo")
    with pytest.raises(ConflictError, match="while you wrote"):
        edited(desk.plan, hunk.key, "- Lives in Graz\n", seen)


def test_own_words_for_a_clean_place_leave_the_others_as_proposed() -> None:
    desk = Desk(BASE, "intro\n" + BASE, BASE.replace("tea", "mate") + "- Has a cat\n")
    first, second = desk.plan.hunks
    draft = region(desk.plan.files[0], first)
    assert (draft.text, draft.seen) == ("- Likes mate\n", "- Likes tea\n")
    desk._left(edited(desk.plan, first.key, "- Likes mate, not tea\n"))
    assert desk.plan.hunks[1].key == second.key
    desk.accept(None)
    assert desk.now == "intro\n" + BASE.replace("tea", "mate, not tea") + "- Has a cat\n"


def test_what_somebody_wrote_meanwhile_elsewhere_is_done() -> None:
    now = BASE.replace("- Lives", "- Has a cat\n- Lives")
    plan = plan_of(proposal_of(BASE, BASE + "- Has a cat\n- Runs\n"), now)
    assert [hunk.place.theirs for hunk in plan.hunks] == [("- Runs\n",)]


@pytest.mark.parametrize(
    ("base", "now", "text", "state"),
    [
        (None, None, "new\n", "clean"),
        (None, "new\n", "new\n", "done"),
        (None, "other\n", "new\n", "conflict"),
        ("old\n", "old\n", None, "clean"),
        ("old\n", None, None, "done"),
        ("old\n", "newer\n", None, "conflict"),
        ("old\n", None, "new\n", "conflict"),
    ],
)
def test_a_file_that_comes_or_goes_is_one_place(base, now, text, state) -> None:
    (file,) = plan_of(proposal_of(base, text), now).files
    assert [hunk.state for hunk in file.hunks] == [state]


def test_bytes_that_are_no_text_are_left_alone() -> None:
    edit = ProposedEdit(PATH, "x", "new\n", "old\n")
    file = plan_file(edit, Current(PATH, b"\xff\xfeold\n\xff"))
    assert file.hunks[0].state == "conflict"
