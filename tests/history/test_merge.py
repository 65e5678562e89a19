"""Taking one change out of a note that went on: by line, by key, by what was really done."""

from __future__ import annotations

import random
import sys
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import pytest

from kbtui.history.merging.tree_merge import Merged, merge_three
from kbtui.history.merging.undo_merge import revert, without_detours
from kbtui.history.queries import matching
from tests.history.random_notes import Edit, Note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

PATH = "knowledge/topics/a.md"


def undo(before: str, *versions: str) -> str:
    """Undo the step from `before` to the first version, in the last one."""
    merge = revert(PATH, versions, before)
    assert merge.conflicts == []
    return merge.text


def conflicts(before: str, *versions: str) -> list[tuple[int, str, str, str]]:
    merge = revert(PATH, versions, before)
    return [(c.line, c.written, c.ours, c.theirs) for c in merge.conflicts]


def front(**keys: str) -> str:
    return "---\n" + "".join(f"{key}: {value}\n" for key, value in keys.items()) + "---\n# T\n"


def test_adjacent_bullets_of_different_changes_do_not_conflict() -> None:
    assert undo("- a\n", "- a\n- b\n", "- a\n- b\n- c\n") == "- a\n- c\n"
    assert undo("- a\n- b\n", "- a\n- b\n- c\n", "- a\n- new\n- c\n") == "- a\n- new\n"


def test_an_edit_next_to_an_edit_is_no_conflict() -> None:
    assert undo("one\ntwo\n", "ONE\ntwo\n", "ONE\nTWO\n") == "one\nTWO\n"


def test_the_same_line_changed_again_is_a_conflict_with_both_sides() -> None:
    found = conflicts("x\ncolor: red\n", "x\ncolor: blue\n", "x\ncolor: green\n")
    assert found == [(2, "color: blue", "color: green", "color: red")]
    found = conflicts("a\n", "a\n- new item\n", "a\n- new item, changed\n")
    assert found == [(2, "- new item", "- new item, changed", "")]


def test_a_line_changed_back_and_forth_is_none() -> None:
    assert undo("one\n", "two\n", "three\n", "two\nmore\n") == "one\nmore\n"


def test_what_is_undone_already_stays() -> None:
    assert undo("red\n", "blue\n", "red\nmore\n") == "red\nmore\n"
    assert undo("a\nb\n", "a\n", "a\nb\nc\n") == "a\nb\nc\n"


def test_a_line_that_is_back_somewhere_else_is_not_brought_back_twice() -> None:
    before, made = "a\n- b\nc\nd\n", "a\nc\nd\n"
    assert undo(before, made, "a\nc\nd\n- b\n") == "a\nc\nd\n- b\n"


def test_a_deleted_line_comes_back_where_it_was() -> None:
    assert undo("a\nb\nc\n", "a\nc\n", "a\nc\nd\n") == "a\nb\nc\nd\n"
    assert undo("a\nb\n", "a\n", "a\nd\n") == "a\nb\nd\n"
    assert undo("a\nb\nc\n", "b\nc\n", "0\nb\nc\n") == "0\na\nb\nc\n"


def test_lines_deleted_later_are_simply_gone() -> None:
    assert undo("a\n", "a\nb\nc\n", "a\nc\n") == "a\n"


def test_a_change_deleted_later_is_a_conflict() -> None:
    assert conflicts("a\nold\n", "a\nnew\n", "a\n") == [(0, "new", "", "old")]


def test_a_block_that_moved_is_changed_where_it_is() -> None:
    before, made = "# A\na1\na2\n# B\nb1\n", "# A\na1!\na2\n# B\nb1\n"
    assert undo(before, made, "# B\nb1\n# A\na1!\na2\n") == "# B\nb1\n# A\na1\na2\n"


def test_moving_a_block_is_undone_with_what_was_added_to_it() -> None:
    before, made = "# A\n- a\n# B\n- b\n# C\n- c\n", "# B\n- b\n# C\n- c\n# A\n- a\n"
    later = "# B\n- b\n# C\n- c\n# A\n- a\n- later\n"
    assert undo(before, made, later) == "# A\n- a\n- later\n# B\n- b\n# C\n- c\n"


def test_each_frontmatter_key_is_a_unit() -> None:
    before, made = front(type="topic", status="open"), front(type="topic", status="done")
    later = front(type="topic", status="done", extra="x")
    assert undo(before, made, later) == front(type="topic", status="open", extra="x")
    assert undo(front(a="1"), front(a="1", b="2"), front(a="9", b="2")) == front(a="9")
    assert undo(front(a="1", b="2", c="3"), front(a="1", c="3"), front(a="0", c="3")) == front(
        a="0", b="2", c="3"
    )


def test_the_same_key_changed_again_is_a_conflict() -> None:
    found = conflicts(front(s="red"), front(s="blue"), front(s="green"))
    assert found == [(2, "s: blue\n", "s: green\n", "s: red\n")]


def test_the_later_updated_wins() -> None:
    before = front(type="topic", updated="2026-01-01") + "text\n"
    made = front(type="topic", updated="2026-01-02") + "text\nadded\n"
    later = front(type="topic", updated="2026-01-03") + "text\nadded\nmore\n"
    assert undo(before, made, later) == later.replace("added\n", "")


@pytest.mark.parametrize(
    ("before", "made", "later", "expected"),
    [
        ("[a]", "[a, b]", "[a, b, c]", "[a, c]"),
        ("[a, b]", "[a]", "[a, c]", "[a, b, c]"),
        ("[]", "[x]", "[x, y]", "[y]"),
        ("[x]", "[]", "[y]", "[x, y]"),
        ("\n- a", "\n- a\n- b", "\n- a\n- b\n- c", "\n- a\n- c"),
        ("\n  - a", "\n  - a\n  - b", "\n  - b\n  - c", "\n  - c"),
    ],
)
def test_list_values_are_merged_by_item(before: str, made: str, later: str, expected: str) -> None:
    texts = [
        front(type="topic", tags=value).replace(": \n", ":\n") for value in (before, made, later)
    ]
    wanted = front(type="topic", tags=expected).replace(": \n", ":\n")
    assert undo(*texts) == wanted


def test_windows_line_ends_and_a_missing_last_one_are_kept() -> None:
    assert undo("a\r\n", "a\r\nb\r\n", "a\r\nb\r\nc") == "a\r\nc"
    assert undo("a\r\nx\r\n", "a\r\n", "a\r\nc\r\n") == "a\r\nx\r\nc\r\n"
    assert undo("a\n", "a\nb", "a\nb\nc\n") == "a\nc\n"


def test_without_later_changes_the_old_bytes_come_back() -> None:
    assert undo("a\r\nno end", "b\n") == "a\r\nno end"


def test_frontmatter_that_a_change_added_is_undone_as_lines() -> None:
    assert undo(
        "text\n", "---\ntype: topic\n---\ntext\n", "---\ntype: topic\n---\ntext\nmore\n"
    ) == ("text\nmore\n")


def judge(note: Note, texts: list[str], edits: list[Edit], index: int) -> str:
    """Undo one of the edits; what is wrong with the result, if anything is."""
    merge = revert(PATH, texts[index + 1 :], texts[index])
    edit, later = edits[index], edits[index + 1 :]
    touched_again = any(edit.touched & other.touched for other in later)
    moves_twice = edit.kind == "move section" and any(e.kind == edit.kind for e in later)
    if merge.conflicts:
        return "" if touched_again or moves_twice else f"a false conflict: {merge.conflicts}"
    now, result = texts[-1].split("\n"), merge.text.split("\n")
    before, after = (Counter(text.split("\n")) for text in texts[index : index + 2])
    if edit.kind not in {"add tag", "set key"} and not touched_again:
        expected = Counter(now)
        expected.subtract(after - before)
        expected.update(before - after)
        if +expected != Counter(result):
            return f"lost {+expected - Counter(result)}, extra {Counter(result) - +expected}"
    kept = [line for line in result if line in set(now)]
    if edit.kind != "move section" and kept != [line for line in now if line in set(kept)]:
        return "later edits were put in another order"
    return ""


@pytest.mark.parametrize("seed", range(40))
def test_any_change_of_a_random_history_is_undone_exactly(seed: int) -> None:
    """Later edits stay as they are; a conflict is only where the same line or key changed again."""
    note = Note.fresh(seed)
    texts, edits = [note.text()], []
    while len(edits) < 12:
        edit = note.change()
        if note.text() != texts[-1]:
            edits.append(edit)
            texts.append(note.text())
    wrong = {n: fault for n in range(len(edits)) if (fault := judge(note, texts, edits, n))}
    assert wrong == {}


def test_a_reworded_paragraph_is_told_from_others_though_their_number_changed() -> None:
    words = [f"word{n}" for n in range(400)]
    paragraphs = [" ".join(words[n * 40 : n * 40 + 40]) + ".\n" for n in range(8)]
    before = "# A\n" + "".join(paragraphs)
    made = before.replace("word123", "changed")
    reworded = paragraphs[5].replace("word201 ", "").replace("word220", "here and there")
    fresh = " ".join(words[340:380]) + ".\n"
    later = made.replace(paragraphs[5], reworded + fresh).replace(paragraphs[6], "")
    assert undo(before, made, later) == later.replace("changed", "word123")
    assert undo(made, later, later + "End.\n") == made + "End.\n"
    assert undo(paragraphs[5], reworded, f"{reworded}{fresh}") == f"{paragraphs[5]}{fresh}"


class _Weighed(SequenceMatcher[str]):
    """Adds up how much is compared with how much."""

    cells = 0

    def __init__(self, isjunk: None, a: Sequence[str], b: Sequence[str], *, autojunk: bool) -> None:
        super().__init__(isjunk, a, b, autojunk=autojunk)
        _Weighed.cells += len(a) * len(b)


def test_rewritten_prose_is_not_compared_letter_by_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty paragraphs that became others took a minute."""
    rng = random.Random(1)
    words = [f"word{n}" for n in range(500)]
    old, new = (
        "".join(" ".join(rng.choices(words, k=200)) + "\n" for _ in range(count))
        for count in (40, 41)
    )
    monkeypatch.setattr(matching, "SequenceMatcher", _Weighed)
    monkeypatch.setattr(_Weighed, "cells", 0)
    revert(PATH, [f"# A\nA\n{old}", f"# A\nA\n{new}"], f"# A\n{old}")
    assert _Weighed.cells < 40 * 41 * 200 * 200


def _effort(work: Callable[[], object]) -> int:
    """How many instructions of Python's are carried out, whatever else this machine does."""
    count = 0

    def heard(frame: FrameType, _: str, __: object) -> object:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += 1
        return heard

    before = sys.gettrace()
    sys.settrace(heard)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_twice_as_many_lines_are_about_twice_the_work() -> None:
    def scattered(size: int) -> Callable[[], object]:
        lines = [f"line {n}\n" for n in range(size)]
        made = "".join(lines[::2])
        return lambda: undo("".join(lines), made, f"{made}more\n")

    assert _effort(scattered(400)) < 3 * _effort(scattered(200))


def test_what_led_back_is_left_out_however_long_the_way_was() -> None:
    class Text(str):
        """Counts how often it is compared."""

        __slots__ = ()
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Text.compared += 1
            return str.__eq__(self, other)

    versions = [Text(f"version {n}") for n in range(300)]
    way = [*versions, versions[100], Text("new"), versions[50], Text("end")]
    assert without_detours(way) == [*versions[:51], "end"]
    assert Text.compared < 2000


@pytest.mark.parametrize("key", ["created", "updated"])
@pytest.mark.parametrize("words", ["2026-01-05 at sea, with Ann", "on the ferry", "2026 # Ann"])
@pytest.mark.parametrize("base", [None, "2026-01-02"])
def test_words_beside_a_date_are_merged_like_any_others(
    key: str, words: str, base: str | None
) -> None:
    plain, told = (front(**{key: value}).encode() for value in ("2026-01-03", words))
    was = front(**{key: base}).encode() if base else None
    for ours, theirs in ((plain, told), (told, plain)):
        merged = merge_three(PATH, was, ours, theirs)
        assert merged is not None
        assert (merged.data, merged.theirs) == (ours, theirs)


@pytest.mark.parametrize("moment", ["Monday 5th January 2026, 10:00 pm", "20260105", "1/5/2026"])
def test_a_date_in_anybodys_form_is_no_conflict(moment: str) -> None:
    ours, theirs = (front(updated=value).encode() for value in ("2026-01-03", moment))
    merged = merge_three(PATH, None, ours, theirs)
    assert merged == Merged(ours)


def test_of_several_lines_that_became_one_none_is_lost() -> None:
    base = "".join(f"the {number} line of them all\n" for number in ("first", "second", "third"))
    ours = "the line of them all\n"
    theirs = base.replace("all", "all, and one more")
    merged = merge_three(PATH, base.encode(), ours.encode(), theirs.encode())
    assert merged is not None
    assert merged.data == ours.encode()
    assert set((merged.theirs or b"").decode().splitlines()) >= set(theirs.splitlines())


def test_lists_that_come_together_stay_no_conflict() -> None:
    base, ours, theirs = (front(tags=tags) for tags in ("[a, b]", "[a, b, c]", "[b, d]"))
    merged = merge_three(PATH, base.encode(), ours.encode(), theirs.encode())
    assert merged == Merged(front(tags="[b, d, c]").encode())
