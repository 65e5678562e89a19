from __future__ import annotations

import pytest

from kbtui.knowledge.format.body import task_at, tasks_in, ticked

TEXT = (
    "---\r\ntags: [a]\n---\n# T\n\n- [ ] one\n  goes on\n  - [X] nested *x*\n> 1. [x] quoted \r\n\n"
    "- [/] other state\n- [ ]\n- [](link)\n```\n- [ ] code\n```\n* [ ]\t漢字 [red]\nplain\n\nfar\n"
)


def test_tasks_are_found_with_their_lines_and_states_and_code_is_none():
    assert [(task.line, task.mark, task.text) for task in tasks_in(TEXT)] == [
        (6, " ", "one"),
        (8, "X", "nested *x*"),
        (9, "x", "quoted"),
        (11, "/", "other state"),
        (17, " ", "漢字 [red]"),
    ]
    assert [task.line for task in tasks_in(TEXT) if task.is_open] == [6, 11, 17]


@pytest.mark.parametrize(
    ("line", "task"),
    [(6, 6), (7, 6), (8, 8), (9, 9), (10, None), (11, 11), (12, None), (4, None), (15, None), (18, 17),
     (20, None), (0, None), (99, None)],
)  # fmt: skip
def test_a_line_belongs_to_the_task_that_it_goes_on(line, task):
    found = task_at(TEXT, line)
    assert (found.line if found else None) == task


def test_ticking_changes_the_box_and_nothing_else_and_back_again():
    for task in tasks_in(TEXT):
        after = ticked(TEXT, task)
        differing = [
            at for at, (old, new) in enumerate(zip(TEXT, after, strict=True)) if old != new
        ]
        assert differing == [task.box]
        now = task_at(after, task.line)
        assert now is not None
        assert now.mark == ("x" if task.mark == " " else " ")
    open_task = next(tasks_in(TEXT))
    done = task_at(ticked(TEXT, open_task), 6)
    assert done is not None
    assert ticked(ticked(TEXT, open_task), done) == TEXT


def test_many_tasks_are_found_at_once():
    text = "- [ ] x\n" * 20_000
    assert sum(1 for _ in tasks_in(text)) == 20_000
