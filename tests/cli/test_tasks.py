"""`kbtui tasks`: what is open, as lines, as JSON and as a calendar."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.clock import local_day

if TYPE_CHECKING:
    from tests.cli.conftest import Command

TOMORROW = local_day() + timedelta(days=1)


@pytest.fixture
def notes(kbtui: Command) -> Command:
    folder = kbtui.file("knowledge/topics")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "garden.md").write_text(
        f"# Garden\n\n- [ ] rake, dig; sow ⏫ 📅 {TOMORROW}\n- [ ] prune the 林檎 tree {'x' * 90}\n"
    )
    (folder / "hidden.md").write_text("---\nprivate: true\n---\n# H\n\n- [ ] hide it\n")
    return kbtui


def test_a_sentence_noted_as_a_task_is_listed(kbtui: Command) -> None:
    assert "Noted as a task." in kbtui.ok("ask", "Remind me to call the keeper").out
    assert "call the keeper" in kbtui.ok("tasks").out


def test_tasks_are_listed_by_when_they_are_due_with_their_place(notes: Command) -> None:
    told = notes.ok("tasks").out
    assert "In the next seven days\n  [ ] rake, dig; sow  by tomorrow" in told
    assert "garden.md:3" in told
    assert told.index("rake") < told.index("Without a date") < told.index("prune")
    assert "hide it" in told, "it is shown to the person whose it is"


def test_words_choose_among_tasks_and_none_is_said(notes: Command) -> None:
    assert "prune" not in notes.ok("tasks", "rake").out
    done = notes("tasks", "no such")
    assert (done.status, done.out) == (1, "")
    assert "No task is open" in done.err


def test_as_json_a_task_has_its_dates_and_its_line(notes: Command) -> None:
    first = notes.ok("tasks", "--json").json[0]
    assert (first["text"], first["when"], first["day"]) == ("rake, dig; sow", "week", str(TOMORROW))
    assert (first["line"], first["priority"]) == (3, 1)


def test_as_json_a_task_says_which_line_is_newer(kbtui: Command) -> None:
    day = TOMORROW + timedelta(days=2)
    kbtui.ok("ask", f"todo: the plumber comes on {TOMORROW:%d %B} at 9")
    kbtui.ok("ask", f"The plumber comes on {day:%d %B} at 11 now")
    (task,) = kbtui.ok("tasks", "--json").json
    assert task["newer"]["text"] == f"{day:%a} {day.day} {day:%b}"
    assert task["newer"]["path"] != task["path"], "in the conversation, with the message's number"
    assert task["newer"]["line"] > 0


def test_as_a_calendar_it_holds_to_the_standard_and_private_tasks_are_left_out(
    notes: Command,
) -> None:
    done = notes.ok("tasks", "--ics")
    lines = done.out.split("\n")
    assert "SUMMARY:rake\\, dig\\; sow" in done.out
    assert f"DUE;VALUE=DATE:{TOMORROW:%Y%m%d}" in done.out
    assert max(len(line.rstrip("\r").encode()) for line in lines) <= 75
    assert done.out.count("BEGIN:VTODO") == done.out.count("END:VTODO") == 2
    assert "hide it" not in done.out
    assert "1 private task left out" in done.err


def test_two_forms_at_once_are_refused(notes: Command) -> None:
    assert notes("tasks", "--ics", "--json").status == 2


def test_a_task_of_which_a_newer_line_tells_says_so(kbtui: Command) -> None:
    due, other = (local_day() + timedelta(days=n) for n in (3, 5))
    kbtui.ok("ask", f"todo: the rent is due on {due:%d %B}")
    kbtui.ok("ask", f"The rent is due on {other:%d %B} now")
    (line,) = [each for each in kbtui.ok("tasks").out.splitlines() if "the rent" in each]
    assert f"newer: {other:%a} {other.day}" in line
