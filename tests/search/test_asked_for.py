from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kbtui.search.index.chunker import mostly_asks
from kbtui.search.index.time_words import asks_when, says_when
from kbtui.search.query.parser import parse
from kbtui.search.query.ranking import rank

if TYPE_CHECKING:
    from tests.search.helpers import Desk


def talk(*said: tuple[str, str]) -> str:
    records = (
        {"id": n, "role": "user", "name": who, "content": text, "time": "2026-03-25T14:00:00+00:00"}
        for n, (who, text) in enumerate(said, 1)
    )
    return "".join(json.dumps(record) + "\n" for record in records)


def test_what_the_named_speaker_said_comes_before_what_was_said_to_them(desk: Desk) -> None:
    long = "It is the one evening of the week when nobody calls, and there is tea and a cat."
    desk.write("sessions/a.jsonl", talk(("Robin", f"Good that I found the pottery class. {long}")))
    desk.write("sessions/b.jsonl", talk(("Mara", "Robin, pottery! Dear Robin, pottery!")))
    desk.write("sessions/c.jsonl", talk(("Mara", "Robin, come."), ("Robin", "I do, Mara.")))
    found = desk.index().search("What pottery does Robin do?", "sessions").hits
    assert [hit.session for hit in found][:2] == ["a", "b"]


def test_a_note_about_a_speaker_stays_above_their_messages(desk: Desk) -> None:
    desk.write("sessions/s.jsonl", talk(*[("Robin", f"Nothing new, day {n}.") for n in range(9)]))
    desk.write("knowledge/robin.md", "# Robin\n\nRobin's allergy is nuts.\n")
    assert (
        desk.index().search("What is Robin's allergy?", "all").hits[0].path == "knowledge/robin.md"
    )


def test_a_word_that_is_no_name_in_the_question_raises_no_speaker(desk: Desk) -> None:
    desk.write("sessions/s.jsonl", talk(("Mark", "The dishes are on the shelf."), ("Ann", "Good.")))
    desk.write("docs/a.md", "# Tasks\n\nEach is marked as done by its box.\n")
    assert desk.index().search("how to mark tasks as done", "all").hits[0].path == "docs/a.md"


def test_no_role_is_a_speaker_whose_messages_are_raised(desk: Desk) -> None:
    lines = [{"id": n, "role": "user", "content": f"I fed the cat {n} times."} for n in range(1, 9)]
    desk.write("sessions/s.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    desk.write("docs/a.md", "# Settings\n\nA setting of each account is kept in a file.\n")
    found = desk.index().search("Which settings does User have?", "all").hits
    assert found[0].path == "docs/a.md"


def test_a_question_for_a_time_raises_what_says_one(desk: Desk) -> None:
    desk.write("docs/a.md", "# Ann\n\nThe sunrise that Ann painted first is lovely.\n")
    desk.write("docs/b.md", "# Ann\n\nThe sunrise that Ann painted yesterday is lovely.\n")
    index = desk.index()
    assert index.search("Ann painted the sunrise", "all").hits[0].path == "docs/a.md"
    assert index.search("When did Ann paint the sunrise?", "all").hits[0].path == "docs/b.md"


@pytest.mark.parametrize(
    "text",
    [
        "We met yesterday.",
        "It was in 2019.",
        "Wir waren letzte Woche dort.",
        "On y va demain.",
        "Llegó el lunes.",
        "Ci vediamo domani.",
    ],
)
def test_words_for_times_are_told_in_five_languages(text: str) -> None:
    assert says_when(text)


@pytest.mark.parametrize("text", ["The pot is blue.", "It costs 2019.50.", "Room 12", ""])
def test_what_says_no_time_is_told(text: str) -> None:
    assert not says_when(text)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("When did she move?", True),
        ("since when is he here", True),
        ("How long was the trip?", True),
        ("In which year was that?", True),
        ("Wann war das?", True),
        ("Quand est-il parti ?", True),
        ("¿Cuándo llegó?", True),
        ("Quando parte?", True),
        ("When I search, nothing is found", False),
        ("What does she do when it rains?", False),
        ("Où est-il quand il pleut ?", False),
    ],
)
def test_questions_for_a_time_are_told(text: str, asks: bool) -> None:
    assert asks_when(text) == asks


def test_raising_leaves_nothing_out(desk: Desk) -> None:
    said = [("Mara", f"Robin, number {n} of the pots is yours.") for n in range(5)]
    desk.write("sessions/s.jsonl", talk(*said, ("Robin", "Pots are fun.")))
    index = desk.index()
    index.sync()
    corpus = index._generations().serving.corpus()
    for asked in ("When did Robin make pots?", "Robin made pots"):
        ranking = rank(corpus, parse(asked), ["sessions"])
        assert ranking.fused.candidates.all()
        assert (ranking.lexical > 0).all()


ASKS = "How is the pottery class on Thursdays? Do you like the pottery class? I wonder."
SAYS = "There are nine of us and a kiln, a long table, and tea that somebody brings to the class."


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        (ASKS, True),
        ("Really?", True),
        ("陶艺课怎么样\N{FULLWIDTH QUESTION MARK}我想知道。", True),
        (SAYS, False),
        (f"{SAYS} And you?", False),
        ("", False),
    ],
)
def test_messages_that_say_little_besides_what_they_ask_are_told(text: str, *, asks: bool) -> None:
    assert mostly_asks(text) == asks


OTHERS = [("Ann", f"The pottery stands on shelf {n}, behind the door.") for n in range(30)]


def test_in_a_talk_of_people_who_answers_comes_before_who_asks(desk: Desk) -> None:
    desk.write("sessions/a.jsonl", talk(("Mara", ASKS)))
    desk.write("sessions/b.jsonl", talk(("Robin", f"I love the pottery class. {SAYS}")))
    desk.write("sessions/c.jsonl", talk(*OTHERS))
    found = desk.index().search("How is the pottery class?", "sessions").hits
    assert [hit.session for hit in found][:2] == ["b", "a"]


def test_what_somebody_asked_an_assistant_is_what_the_conversation_is_about(desk: Desk) -> None:
    for name, text in (("a", ASKS), ("b", f"I love the pottery class. {SAYS}")):
        line = {"id": 1, "role": "user", "content": text, "time": "2026-03-25T14:00:00+00:00"}
        desk.write(f"sessions/{name}.jsonl", json.dumps(line) + "\n")
    desk.write("sessions/c.jsonl", talk(*OTHERS))
    found = desk.index().search("How is the pottery class?", "sessions").hits
    assert [hit.session for hit in found][:2] == ["a", "b"]
