"""Which branch of a tree, and which of two notations, is taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given, strategies as st

from kbtui.importers.port import ImportedMessage
from kbtui.importers.trees import branch_of, one_notation

if TYPE_CHECKING:
    from kbtui.importers.port import Role

NOW = datetime(2026, 1, 5, tzinfo=UTC)
ROOT = "00000000-0000-4000-8000-000000000000"


def test_a_missing_parent_is_replaced_by_what_stands_before() -> None:
    assert branch_of({"a": "", "b": "a", "d": "gone", "e": "d"}, {}, "e") == (list("abde"), 0)


def test_a_missing_parent_is_replaced_by_what_was_said_before_in_a_list_of_any_order() -> None:
    times = {id_: NOW + timedelta(minutes=ord(id_)) for id_ in "abde"}
    for order in ("edba", "bead"):
        parents = {id_: {"b": "a", "d": "gone", "e": "d"}.get(id_, "") for id_ in order}
        assert branch_of(parents, times) == (list("abde"), 0)


def test_a_missing_parent_closes_no_circle() -> None:
    assert branch_of({"e": "d", "d": "gone"}, {}) == (["d", "e"], 0)


def test_the_name_of_no_parent_is_no_missing_one() -> None:
    assert branch_of({"a": ROOT, "b": ROOT}, {}) == (["b"], 1)


def test_a_current_message_that_holds_nothing_gives_way_to_what_is_above_or_newest() -> None:
    tree = {"a": "", "b": "a", "c": "b", "x": ""}
    shown = {"a": True, "b": True, "c": False, "x": False}
    for current in ("c", "x", "nowhere", ""):
        assert branch_of(tree, {}, current, shown.__getitem__) == (["a", "b"], 0)


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["", *"abcdefghz"]), min_size=1),
    st.sampled_from(["", *"abcdefgh"]),
    st.sets(st.sampled_from("abcdefgh")),
)
def test_any_tree_gives_a_line_without_repeats(
    parents: dict[str, str], current: str, hidden: set[str]
) -> None:
    line, others = branch_of(parents, {}, current, lambda id_: id_ not in hidden)
    assert line
    assert len(set(line)) == len(line)
    assert others >= 0
    own = ((above, parents[below]) for above, below in pairwise(line))
    assert all(parent == above or parent not in parents for above, parent in own)


def message(role: Role, text: str, seconds: int = 0) -> ImportedMessage:
    return ImportedMessage(role, text, NOW + timedelta(seconds=seconds))


def test_messages_in_two_notations_count_once_and_those_in_one_stay() -> None:
    logged = [
        ("item", message("user", "Go on")),
        ("item", message("assistant", "Well")),
        ("event", message("user", "Go  on")),
        ("event", message("assistant", "Well")),
        ("item", message("user", "Only here", 9)),
        ("event", message("assistant", "And only here", 9)),
    ]
    texts = [each.text for each in one_notation(logged)]
    assert texts == ["Go on", "Well", "Only here", "And only here"]


def test_the_same_words_said_again_are_no_second_notation() -> None:
    logged = [
        ("event", message("user", "Go on")),
        ("event", message("user", "Go on", 5)),
        ("event", message("user", "Stop", 6)),
        ("item", message("user", "Go on", 600)),
    ]
    assert [each.text for each in one_notation(logged)] == ["Go on", "Go on", "Stop", "Go on"]
