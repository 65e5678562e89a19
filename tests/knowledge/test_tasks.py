"""Tasks as they stand in notes: their fields, ticking them, moving them, and those that recur."""

from __future__ import annotations

from datetime import date

import pytest

from kbtui.errors import UsageError
from kbtui.knowledge.format.recurrence import next_day
from kbtui.knowledge.format.tasks import fields_in, fields_of, moved, task_at, tasks_in, ticked

TODAY = date(2026, 11, 28)
PLUS = "\N{HEAVY PLUS SIGN}"

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
        after = ticked(TEXT, task, TODAY)
        differing = [
            at for at, (old, new) in enumerate(zip(TEXT, after, strict=True)) if old != new
        ]
        assert differing == [task.box]
        now = task_at(after, task.line)
        assert now is not None
        assert now.mark == ("x" if task.mark == " " else " ")
    open_task = next(tasks_in(TEXT))
    done = task_at(ticked(TEXT, open_task, TODAY), 6)
    assert done is not None
    assert ticked(ticked(TEXT, open_task, TODAY), done, TODAY) == TEXT


def test_many_tasks_are_found_at_once():
    text = "- [ ] x\n" * 20_000
    assert sum(1 for _ in tasks_in(text)) == 20_000


# Fields


def test_obsidian_tasks_signs_are_peeled_off_the_end() -> None:
    found = fields_of(
        f"call Ada #home ⏫ 🔁 every week {PLUS} 2026-11-01 🛫 2026-11-20 ⏳ 2026-12-01 📅 2026-12-04"
    )
    assert found.said == "call Ada #home"
    assert found.priority == 1
    assert found.recurrence == "every week"
    assert {name: str(day) for name, day in found.dates.items()} == {
        "created": "2026-11-01",
        "start": "2026-11-20",
        "scheduled": "2026-12-01",
        "due": "2026-12-04",
    }
    assert found.day == date(2026, 12, 4)


def test_dataview_fields_are_peeled_off_the_end_in_either_bracket() -> None:
    found = fields_of("call Ada [priority:: high] (scheduled:: 2026-12-01) [due:: 2026-12-04] ^a1")
    assert (found.said, found.priority, found.style) == ("call Ada", 1, "fields")
    assert found.day == date(2026, 12, 4)


@pytest.mark.parametrize(
    "text",
    [
        "call Ada 📅 2026-12-04 or so",
        "call Ada 📅 2026-12-04 ⏰ 2026-12-04 09:00",
        "call Ada 📅 tomorrow",
        "call Ada [due:: 2026-12-04] or so",
        "call Ada [Due:: 2026-12-04]",
    ],
)
def test_a_date_with_other_text_behind_it_is_text(text: str) -> None:
    assert fields_of(text).day is None
    assert fields_of(text).said == text


def test_tags_and_a_block_id_hide_no_date() -> None:
    found = fields_of("call Ada 📅 2026-12-04 #home #soon ^abc")
    assert (found.said, found.day) == ("call Ada #home #soon", date(2026, 12, 4))


def test_an_impossible_date_is_invalid_and_no_date() -> None:
    found = fields_of("call Ada 📅 2026-02-30")
    assert (found.day, found.invalid, found.said) == (None, {"due": "2026-02-30"}, "call Ada")


@pytest.mark.parametrize(
    "text", ["", "#", "[due:: ]", "📅", "📅 " * 50, "a" * 10_000, "(due:: " * 2_000]
)
def test_odd_tasks_are_only_text(text: str) -> None:
    assert fields_of(text).day is None


def test_right_to_left_wide_and_joined_text_keeps_its_fields() -> None:
    for said in ("לקנות חלב", "牛乳を買う", "👩‍👩‍👧 call"):
        assert fields_of(f"{said} 📅 2026-12-04").said == said


# Ticking


def tick(line: str) -> str:
    (task,) = tasks_in(line)
    return ticked(line, task, TODAY)


def test_a_task_with_fields_gets_the_day_on_which_it_was_done_in_its_notation() -> None:
    assert tick("- [ ] a 📅 2026-12-04") == "- [x] a 📅 2026-12-04 ✅ 2026-11-28"
    assert tick("- [ ] a [due:: 2026-12-04] ^b") == (
        "- [x] a [due:: 2026-12-04] [completion:: 2026-11-28] ^b"
    )
    assert tick("- [ ] plain") == "- [x] plain"


def test_opening_a_task_again_takes_the_day_away() -> None:
    assert tick("- [x] a 📅 2026-12-04 ✅ 2026-11-28") == "- [ ] a 📅 2026-12-04"


def test_a_recurring_task_leaves_its_next_occurrence_above() -> None:
    line = (
        f"  - [ ] water 🔁 every week {PLUS} 2026-11-01 ⏳ 2026-11-26 📅 2026-11-28 ^id\r\n- other"
    )
    assert tick(line) == (
        "  - [ ] water 🔁 every week ⏳ 2026-12-03 📅 2026-12-05\r\n"
        f"  - [x] water 🔁 every week {PLUS} 2026-11-01 ⏳ 2026-11-26 📅 2026-11-28 ✅ 2026-11-28 ^id\r\n"
        "- other"
    )


def test_a_task_that_deletes_itself_is_gone_once_it_is_done() -> None:
    assert tick("a\n\n- [ ] b 🏁 delete 📅 2026-12-04\n- c\n") == "a\n\n- c\n"


def test_a_rule_that_is_not_clear_is_said_and_nothing_written() -> None:
    with pytest.raises(UsageError, match="every blue moon"):
        tick("- [ ] b 🔁 every blue moon 📅 2026-12-04")
    with pytest.raises(UsageError, match="2026-02-30"):
        tick("- [ ] b 🔁 every week 📅 2026-02-30")


@pytest.mark.parametrize(
    ("rule", "origin", "after"),
    [
        ("every day", "2026-11-20", "2026-11-21"),
        ("every 3 days", "2026-11-20", "2026-11-23"),
        ("every day when done", "2026-11-20", "2026-11-29"),
        ("every week", "2026-11-20", "2026-11-27"),
        ("every 2 weeks on Monday, Friday", "2026-11-20", "2026-11-30"),
        ("every week on Monday, Friday", "2026-11-20", "2026-11-23"),
        ("every Tuesday", "2026-11-20", "2026-11-24"),
        ("every weekday", "2026-11-20", "2026-11-23"),
        ("every month", "2026-01-31", "2026-02-28"),
        ("every month", "2026-11-20", "2026-12-20"),
        ("every 3 months", "2026-11-30", "2027-02-28"),
        ("every year", "2024-02-29", "2025-02-28"),
        ("every month on the 31st", "2026-01-31", "2026-03-31"),
        ("every month on the last", "2026-01-31", "2026-02-28"),
        ("every month on the 2nd Tuesday", "2026-11-20", "2026-12-08"),
        ("every month on the last Friday", "2026-11-27", "2026-12-25"),
        ("every month on the 2nd last Friday", "2026-11-20", "2026-12-18"),
    ],
)
def test_the_next_occurrence_is_that_of_obsidian_tasks(rule: str, origin: str, after: str) -> None:
    assert str(next_day(rule, date.fromisoformat(origin), TODAY)) == after


@pytest.mark.parametrize(
    "rule",
    ["every", "weekly", "every 0 days", "every month on the 32nd", "every week on Blursday"],
)
def test_other_rules_are_refused(rule: str) -> None:
    with pytest.raises(UsageError):
        next_day(rule, TODAY, TODAY)


# Moving


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("- [ ] a", "- [ ] a 📅 2026-11-28"),
        ("- [ ] a 📅 2026-12-04 #b", "- [ ] a 📅 2026-11-28 #b"),
        ("- [ ] a ⏳ 2026-12-04", "- [ ] a ⏳ 2026-11-28"),
        ("- [ ] a 📅 2026-02-30 ^x", "- [ ] a 📅 2026-11-28 ^x"),
        ("- [ ] a [priority:: low] ^x", "- [ ] a [priority:: low] [due:: 2026-11-28] ^x"),
    ],
)
def test_moving_a_task_changes_its_date_and_no_other_byte(line: str, after: str) -> None:
    (task,) = tasks_in(line)
    assert moved(line, task, TODAY) == after


GRAPH = """\
type:: thing

- TODO [#A] Bring the car in
  DEADLINE: <2026-12-03 Thu 10:00>
\t- LATER Wash it #car
\t  SCHEDULED: <2026-11-27 Fri .+1w>
\t  a line of its own
- DONE Call Ada
- CANCELED Dig
- NOW and then it rains
- TODOS are many
- Now it is
```
- TODO code
```
"""


def test_blocks_of_outliners_are_tasks():
    assert [(task.line, task.mark, task.marker, task.text) for task in tasks_in(GRAPH)] == [
        (3, " ", "TODO", "[#A] Bring the car in"),
        (5, " ", "LATER", "Wash it #car"),
        (8, "x", "DONE", "Call Ada"),
        (9, "-", "CANCELED", "Dig"),
        (10, " ", "NOW", "and then it rains"),
    ]
    assert [task_at(GRAPH, line) is not None for line in (3, 4, 7, 11)] == [True] * 3 + [False]
    car, wash, *_ = (fields_in(GRAPH, each) for each in tasks_in(GRAPH))
    assert (car.said, car.day, car.time, car.priority) == (
        "Bring the car in",
        date(2026, 12, 3),
        "10:00",
        1,
    )
    assert (wash.dates, wash.priority) == ({"scheduled": date(2026, 11, 27)}, 3)


def test_a_block_that_is_ticked_changes_its_marker_and_back():
    task = next(tasks_in(GRAPH))
    done = ticked(GRAPH, task, TODAY)
    assert done == GRAPH.replace("- TODO [#A]", "- DONE [#A]", 1)
    assert ticked(done, next(tasks_in(done)), TODAY) == GRAPH


@pytest.mark.parametrize(
    ("date_in", "date_out"),
    [
        ("<2026-11-27 Fri .+1w>", "<2026-12-05 Sat .+1w>"),
        ("<2026-11-06 Fri ++1w>", "<2026-12-04 Fri ++1w>"),
        ("<2026-11-06 Fri +1w>", "<2026-11-13 Fri +1w>"),
        ("<2026-10-31 Sat 10:00 +1m>", "<2026-11-30 Mon 10:00 +1m>"),
        ("<2024-02-29 +1y>", "<2025-02-28 Fri +1y>"),
        ("<2026-11-27 Fr. .+2d>", "<2026-11-30 Mon .+2d>"),
    ],
)
def test_a_block_that_repeats_stays_to_be_done_on_its_next_day(date_in, date_out):
    text = f"- DOING water\n  SCHEDULED: {date_in}\n- other\n"
    after = ticked(text, next(tasks_in(text)), TODAY)
    assert after == f"- TODO water\n  SCHEDULED: {date_out}\n- other\n"


@pytest.mark.parametrize(
    ("marker", "after"),
    [
        ("TODO", "TODO"),
        ("DOING", "TODO"),
        ("LATER", "LATER"),
        ("NOW", "LATER"),
        ("WAITING", "TODO"),
    ],
)
def test_a_block_that_repeats_keeps_the_words_of_its_person(marker, after):
    text = f"- {marker} water\n  SCHEDULED: <2026-11-27 Fri .+1w>\n"
    assert ticked(text, next(tasks_in(text)), TODAY).startswith(f"- {after} water\n")


@pytest.mark.parametrize("date_in", ["<2026-11-27 Fri +3h>", "<2026-02-30 Mon +1w>"])
def test_a_block_whose_next_day_is_not_known_is_left(date_in):
    text = f"- TODO water\n  SCHEDULED: {date_in}\n"
    with pytest.raises(UsageError):
        ticked(text, next(tasks_in(text)), TODAY)


def test_line_ends_of_windows_stay():
    text = "- TODO a\r\n  more\r\n- TODO b\r\n  DEADLINE: <2026-12-03 Thu>\r\n"
    day = date(2026, 12, 7)
    for number, task in enumerate(tasks_in(text)):
        assert fields_in(text, task).day == (date(2026, 12, 3) if number else None)
        for after in (moved(text, task, day), ticked(text, task, TODAY)):
            assert after.count("\n") == after.count("\r\n")
            assert after != text


def test_a_block_gets_another_day():
    car, wash, _, _, rain = tasks_in(GRAPH)
    day = date(2026, 12, 7)
    assert moved(GRAPH, car, day) == GRAPH.replace(
        "<2026-12-03 Thu 10:00>", "<2026-12-07 Mon 10:00>"
    )
    assert moved(GRAPH, wash, day) == GRAPH.replace(
        "<2026-11-27 Fri .+1w>", "<2026-12-07 Mon .+1w>"
    )
    assert moved(GRAPH, rain, day) == GRAPH.replace(
        "it rains\n", "it rains\n  DEADLINE: <2026-12-07 Mon>\n"
    )
    nested = "- a\n\t- TODO b"
    assert moved(nested, next(tasks_in(nested)), day) == (
        "- a\n\t- TODO b\n\t  DEADLINE: <2026-12-07 Mon>"
    )
