"""The one list of tasks and dated lines: from journal and notes, and in the ways out of it."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest

from kbtui.agent.tools.list_tasks import ListTasks
from kbtui.clock import local_day
from kbtui.history.change import Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.agenda import AgendaItem, agenda_seen, day_lines, due_text, newer_days
from kbtui.search.results import NewerLine
from kbtui.views.view import Audience, View
from tests.agent.conftest import ask
from tests.agent.test_tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FRIDAY = datetime(2026, 11, 27, 20, 33).astimezone()
TODAY = FRIDAY.date()


@pytest.fixture(autouse=True)
def _friday(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtui.memory.recall.agenda.local_day", lambda: TODAY)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "kb", create=True) as opened:
        yield opened


def note(kb: KnowledgeBase, path: str, text: str) -> None:
    file = kb.workspace.place(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    kb.history.adopt(settle=0)
    kb.library.refresh()


def texts(items: list[AgendaItem]) -> list[str]:
    return [item.text for item in items]


def test_a_task_of_the_journal_has_the_day_in_its_words(kb: KnowledgeBase) -> None:
    kb.journal.keep("send the invoice to ACME by Monday", FRIDAY, Origin(), task=True)
    kb.journal.keep("call the keeper", FRIDAY, Origin(), task=True)
    groups = kb.agenda().grouped(TODAY)
    (invoice,) = groups["week"]
    assert (invoice.text, invoice.day) == ("send the invoice to ACME by Monday", date(2026, 11, 30))
    assert due_text(invoice, TODAY) == "by Mon 30 Nov"
    assert texts(groups["undated"]) == ["call the keeper"]


def test_tasks_are_late_of_this_week_later_or_undated(kb: KnowledgeBase) -> None:
    note(
        kb,
        "knowledge/topics/garden.md",
        "# Garden\n\n- [ ] rake 📅 2026-11-20\n- [ ] dig 📅 2026-12-03\n- [/] sow ⏳ 2026-12-04\n"
        "- [ ] prune\n- [x] done 📅 2026-11-20\n- [ ] odd 📅 2026-02-30\n- [ ] ~~dropped~~\n",
    )
    groups = kb.agenda().grouped(TODAY)
    assert {name: texts(items) for name, items in groups.items()} == {
        "late": ["rake"],
        "week": ["dig"],
        "later": ["sow"],
        "undated": ["prune", "odd"],
    }
    assert groups["undated"][1].wrong == "no calendar has a 2026-02-30"


def test_the_dates_of_an_outliners_blocks_are_coming_unless_they_are_done(
    kb: KnowledgeBase,
) -> None:
    note(
        kb,
        "knowledge/topics/home.md",
        "- TODO Pay the rent\n  DEADLINE: <2026-12-02 Wed>\n"
        "- LATER Sow the beans\n  SCHEDULED: <2026-12-04 Fri 10:00 .+1w>\n"
        "  :LOGBOOK:\n  CLOCK: [2026-11-26 Thu 10:00:00]\n  :END:\n"
        "\t- DONE Call Ada\n\t  DEADLINE: <2026-12-03 Thu>\n- CANCELED Dig\n  SCHEDULED: <2026-12-03>\n"
        "- The fair\n  SCHEDULED: <2026-12-05 Sat> DEADLINE: <2026-12-06 Sun>\n"
        "- NOW no such day\n  DEADLINE: <2026-02-30 Mon>\n",
    )
    coming = kb.agenda().coming(TODAY)
    assert [(each.text, each.day, each.time) for each in coming] == [
        ("Pay the rent", date(2026, 12, 2), ""),
        ("Sow the beans", date(2026, 12, 4), "10:00"),
        ("The fair", date(2026, 12, 6), ""),
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("knowledge/topics/code.md", "# C\n\n```\n- [ ] task\n```\n"),
        ("knowledge/topics/comment.md", "# C\n\n%%\n- [ ] task\n%%\n\n<!-- - [ ] task -->\n"),
        ("knowledge/templates/daily.md", "# T\n\n- [ ] task\n"),
        ("knowledge/Archive/old.md", "# O\n\n- [ ] task\n"),
        ("knowledge/topics/99 Archiv/old.md", "# O\n\n- [ ] task\n"),
    ],
)
def test_code_comments_templates_and_archives_have_no_tasks(
    kb: KnowledgeBase, path: str, text: str
) -> None:
    note(kb, path, text)
    assert kb.agenda().tasks == ()


def test_what_is_coming_is_dated_lines_of_notes_and_journal_and_tasks(kb: KnowledgeBase) -> None:
    kb.journal.keep("The plumber comes on Tuesday at 9:00.", FRIDAY, Origin())
    kb.journal.keep("Priya starts on 7 December.", FRIDAY, Origin())
    kb.journal.keep("We met on Tuesday.", FRIDAY, Origin())
    kb.journal.keep("The rent was raised on 3 November.", FRIDAY, Origin())
    kb.journal.keep("Pay the rent by tomorrow", FRIDAY, Origin(), task=True)
    note(
        kb, "knowledge/topics/kia.md", "# Kia\n\nBrake pads on 2026-12-09.\n\nBought 2020-01-02.\n"
    )
    assert texts(kb.agenda().coming(TODAY)) == [
        "Pay the rent by tomorrow",
        "The plumber comes on Tuesday at 9:00.",
        "Priya starts on 7 December.",
        "Brake pads on 2026-12-09.",
    ]


@pytest.mark.parametrize(
    ("said", "coming"),
    [
        ("Dentist Monday 10am", True),
        ("The plumber comes on Tuesday", True),
        ("We need the van on Tuesday", True),
        ("Am Montag kommt der Klempner", True),
        ("El martes viene el fontanero a las nueve", True),
        ("Le plombier vient mardi à neuf heures", True),
        ("Il tecnico arriva martedì alle nove", True),
        ("I met Ada on Tuesday at 9", False),
        ("Tuesday was awful", False),
        ("Ran 10k on Thursday", False),
        ("Am Montag kam der Klempner", False),
        ("El martes corrí diez kilómetros", False),
        ("Mardi, j'ai couru dix kilomètres", False),
        ("Martedì ho corso dieci chilometri", False),
        ("We meet every Tuesday at 9", False),
    ],
)
def test_a_weekday_alone_is_coming_unless_something_says_that_it_was(
    kb: KnowledgeBase, said: str, coming: bool
) -> None:
    kb.journal.keep(said, FRIDAY, Origin())
    assert texts(kb.agenda().coming(TODAY)) == [said] * coming


@pytest.mark.parametrize(
    ("said", "coming"),
    [
        ("The brake pads are due in March", True),
        ("The review was postponed, it is in January", True),
        ("Der Schornsteinfeger kommt im Januar", True),
        ("The boiler was serviced in March", False),
        ("Die Heizung wurde im März gewartet", False),
        ("La chaudière a été révisée en mars", False),
        ("We visited Rome in May", False),
    ],
)
def test_a_month_alone_is_coming_unless_something_says_that_it_was(
    kb: KnowledgeBase, said: str, coming: bool
) -> None:
    kb.journal.keep(said, FRIDAY, Origin())
    assert texts(kb.agenda().coming(TODAY, 200)) == [said] * coming


@pytest.mark.parametrize(
    ("said", "time"),
    [
        ("The plumber comes on Tuesday at 9", "09:00"),
        ("Lunch with Omar on Wednesday, half past twelve", "12:30"),
        ("Am Montag um halb neun kommt der Klempner", "08:30"),
        ("Choir on Monday, 19:30 instead of seven", "19:30"),
        ("On Monday at 9, kitchen tap", "09:00"),
        ("On Monday we need about 3 lamps", ""),
        ("Meet Omar on Monday at 3 Elm Street", ""),
    ],
)
def test_a_time_of_day_in_words_is_shown_with_what_is_coming(
    kb: KnowledgeBase, said: str, time: str
) -> None:
    kb.journal.keep(said, FRIDAY, Origin())
    assert [each.time for each in kb.agenda().coming(TODAY)] == [time]


def test_a_private_task_is_for_the_person_and_for_no_model(kb: KnowledgeBase) -> None:
    note(kb, "knowledge/topics/secret.md", "---\nprivate: true\n---\n# S\n\n- [ ] hide it\n")
    assert texts(list(kb.agenda().tasks)) == ["hide it"]
    for audience in (Audience.MODEL_ELSEWHERE, Audience.OTHER_AGENT):
        assert agenda_seen(kb.seen_by(audience)).tasks == ()


def test_a_changed_note_is_read_again(kb: KnowledgeBase) -> None:
    note(kb, "knowledge/topics/a.md", "# A\n\n- [ ] one\n")
    assert texts(list(kb.agenda().tasks)) == ["one"]
    note(kb, "knowledge/topics/a.md", "# A\n\n- [ ] two\n")
    assert texts(list(kb.agenda().tasks)) == ["two"]


def test_the_lines_of_a_day_tell_their_time_and_whether_they_are_struck(kb: KnowledgeBase) -> None:
    old = kb.journal.keep("The rent is 1180.", FRIDAY, Origin())
    later = FRIDAY + timedelta(minutes=1)
    new = kb.journal.keep("The rent is 1210.", later, Origin())
    kb.journal.mark_past(old.path, old.line, old.text, new, Origin())
    lines = day_lines(kb.library, old.path)
    assert [(each.time, each.text, each.struck) for each in lines] == [
        ("20:33", "The rent is 1180.", True),
        ("20:34", "The rent is 1210.", False),
    ]


async def _answer(kb: KnowledgeBase, text: str) -> str:
    session = kb.sessions.create("test")
    try:
        return (await ask(kb, session, text)).finished.text
    finally:
        session.close()


async def test_the_chat_answers_from_the_list_what_was_noted_as_a_task(kb: KnowledgeBase) -> None:
    said = await _answer(kb, "Remind me to send the invoice to ACME by tomorrow")
    assert said == "Noted as a task."
    await _answer(kb, "The kettle is new.")
    for question in ("what are my open tasks?", "what do I have to do", "was muss ich tun?"):
        answer = await _answer(kb, question)
        assert answer.startswith("1 open task:")
        assert "invoice to ACME" in answer
        assert "by tomorrow" in answer
    assert "invoice to ACME" in await _answer(kb, "What's coming?")
    await _answer(kb, "todo: call the keeper")
    two = await _answer(kb, "what are my open tasks?")
    assert two.count("[1]") == 2, "both stand in the same note, which is named once"
    assert "[2]" not in two
    today = await _answer(kb, "What happened today")
    assert "The kettle is new." in today
    assert "invoice to ACME" in today
    assert await _answer(kb, "what happened yesterday") == "You said nothing yesterday."


async def test_what_happened_today_was_awful_is_kept_as_said(kb: KnowledgeBase) -> None:
    assert await _answer(kb, "What happened today was awful") == "Noted."
    (line,) = day_lines(kb.library, f"memory/{local_day()}.md")
    assert line.text == "What happened today was awful"


async def test_what_is_due_later_is_told_where_nothing_is_due_in_the_time_asked_for(
    kb: KnowledgeBase,
) -> None:
    due = local_day() + timedelta(days=5)
    await _answer(kb, f"todo: call the garage by {due}")
    for question in ("what do I have to do today?", "was muss ich morgen tun?"):
        answer = await _answer(kb, question)
        assert answer.startswith("Nothing is open ")
        assert "call the garage" in answer
    coming = await _answer(kb, "what's coming tomorrow?")
    assert coming.startswith("Nothing has a date on ")
    assert "call the garage" in coming
    await _answer(kb, "todo: buy milk")
    answer = await _answer(kb, "what do I have to do today?")
    assert answer.startswith("1 open task:")
    assert "buy milk" in answer
    assert "1 later." in answer


async def test_what_was_said_to_be_a_duty_stands_behind_the_tasks(kb: KnowledgeBase) -> None:
    soon, late = (local_day() + timedelta(days=days) for days in (3, 40))
    await _answer(kb, f"I have to renew the passport before {late}")
    assert (await _answer(kb, "what do I have to do?")).startswith("You said:")
    await _answer(kb, f"Tim turns 7 on {soon}")
    await _answer(kb, f"Bis {soon} muss ich einen Kuchen bestellen")
    await _answer(kb, f"I don't have to work on {soon}")
    await _answer(kb, f"Ich muss am {soon} nicht arbeiten")
    await _answer(kb, "todo: buy milk")
    answer = await _answer(kb, "what do I have to do?")
    assert answer.startswith("1 open task and 2 that you said:")
    assert [answer.find(each) >= 0 for each in ("milk", "Kuchen", "passport")] == [True] * 3
    assert not [each for each in ("Tim", "work", "arbeiten") if each in answer]
    answer = await _answer(kb, "what do I have to do in the next 7 days?")
    assert answer.startswith("1 open task and 1 that you said:")
    assert "1 later." in answer


async def test_what_a_newer_line_put_off_says_so_wherever_it_is_listed(kb: KnowledgeBase) -> None:
    today = local_day()
    old, new = today + timedelta(days=2), today + timedelta(days=4)
    await _answer(kb, f"The plumber comes on {old:%d %B} at 9")
    await _answer(kb, f"The plumber comes on {new:%d %B} at 11 now")
    coming = (await _answer(kb, "what's coming?")).splitlines()
    (first,) = [each for each in coming if "at 9" in each]
    (second,) = [each for each in coming if "at 11" in each]
    assert f"newer: {new:%a} {new.day}" in first
    assert "newer" not in second
    for audience in (Audience.OWN_MODEL, Audience.OTHER_AGENT):
        agenda, view = kb.agenda(), kb.seen_by(audience)
        told = newer_days(agenda.coming(today), agenda, view, today)
        assert [bool(each) for each in told] == [True, False]
    context = Tools(kb, kb.sessions.create("tui")).context
    found = ListTasks().run(context, {"coming": True}).data
    assert found is not None
    assert [each["newer"] and each["newer"]["text"] for each in found["tasks"]] == [
        f"The plumber comes on {new:%d %B} at 11 now",
        None,
    ]


def test_a_newer_line_that_names_no_day_is_quoted(kb: KnowledgeBase) -> None:
    item = AgendaItem("memory/2026-11-27.md", "", 3, "The plumber comes on Tuesday", FRIDAY.date())

    class Told:
        def newer(self, texts: Iterable[str]) -> dict[str, NewerLine]:
            line = NewerLine(
                "memory/2026-11-28.md", 3, "The plumber comes no more", FRIDAY.date(), 0
            )
            return dict.fromkeys(texts, line)

    told = newer_days([item], kb.agenda(), cast("View", Told()), FRIDAY.date())
    assert [str(each) for each in told] == ["newer: The plumber comes no more"]


async def test_what_began_today_is_coming_until_it_is_over(kb: KnowledgeBase) -> None:
    today = local_day()
    last = today + timedelta(days=3)
    await _answer(kb, f"The conference is from {today} to {last}")
    await _answer(kb, f"The kettle broke on {today}")
    (item,) = kb.agenda().coming(today)
    assert (item.first, item.day) == (today, last)
