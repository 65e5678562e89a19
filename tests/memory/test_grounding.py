"""Grounded: what was said passes in other words, and what was made up doesn't."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

import pytest

from kbtui.memory.comparing import sentences
from kbtui.memory.edits.grounding import Ground, ground_of, nearest
from kbtui.offline.language import significant_terms

DAY = date(2026, 3, 6)


@dataclass(frozen=True)
class Said:
    role: str
    content: str
    time: datetime = datetime(2026, 3, 6, 10, tzinfo=UTC)


def _lacks(said: str, line: str, known: str = "") -> str:
    return Ground.of([(DAY, said)]).lacks(line, Ground.of([(None, known)]))


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("I moved to Berlin", "The user moved to Berlin"),
        ("I like tea", "Prefers tea"),
        ("Alice's birthday is May 4", "Alice was born on 4 May"),
        ("the review is tomorrow at 3pm", "The review is on 2026-03-07 at 15:00"),
        ("the review is tomorrow", "The review is on Saturday, 7 March"),
        ("let's meet Friday", "Meeting on 2026-03-13"),
        ("it costs 1,100 euros", "It costs 1100 €"),
        ("es kostet 1.100 €", "Es kostet 1100 €"),
        ("I have two cats", "The user has 2 cats"),
        ("we meet at 15:00", "Meeting at 3 pm"),
        ("Die Frist endet am 7. März", "Die Frist endet am 2026-03-07"),
        ("Ich muss morgen zum Zahnarzt", "Der Nutzer hat morgen einen Zahnarzttermin"),
        ("the gate code is k9x", "Gate code: k9x"),
        ("Petra's car is in the garage", "The garage has the car of Petra"),
        ("I moved to Berlin last year", "The user moved to Berlin in 2025"),
        ("Ich bin letztes Jahr nach Berlin gezogen", "Der Nutzer zog 2025 nach Berlin"),
        ("L'année prochaine, je change de banque", "Je change de banque en 2027"),
        ("The rent is 840 and the deposit 1200", "Deposit 1200, rent 840"),
    ],
)
def test_what_was_said_passes_in_other_words(said: str, line: str) -> None:
    assert not _lacks(said, line)


@pytest.mark.parametrize(
    ("said", "line", "lacking"),
    [
        ("it costs 640 euros", "It costs 460 euros", "460"),
        ("it costs 640 €", "It costs $640", "640"),
        ("I moved to Berlin", "The user moved to Berlin in 2025", "2025"),
        ("I moved to Berlin last year", "The user moved to Berlin in 2024", "2024"),
        ("I moved to Berlin last year", "The user moved to Berlin in 2027", "2027"),
        ("I moved to Berlin with my dog", "The user moved to Berlin in 2025", "2025"),
        ("the rent is 900 euros", "The rent is 2025 euros", "2025"),
        ("The rent is 840 and the deposit 1200", "Rent 1200, deposit 840", "1200"),
        ("I pay 840 for rent and 1200 as deposit", "The deposit is 840, rent 1200", "840"),
        ("Anna is 34 and Ben is 29", "Ben is 34 and Anna is 29", "34"),
        ("I have two cats", "The user has three cats", "three"),
        ("the review is tomorrow", "The review is on 2026-03-08", "2026-03-08"),
        ("the visa ends on 14 June", "The visa ends on 14 July", "July"),
        ("we meet at 9 am", "Meeting at 9 pm", "9 pm"),
        ("I cook on Sundays", "The user cooks on Saturdays", "Saturdays"),
        ("What's a good band?", "Radiohead is the user's band", "Radiohead"),
        ("my sister visits us", "The user's sister Bo visits", "Bo"),
        ("I left my old company", "The user left IBM", "IBM"),
        ("mail me", "The user's mail is a@b.example", "a@b.example"),
        ("the gate has a code", "Gate code: k9x", "k9x"),
        ("Anna arbeitet bei Siemens", "Anna arbeitet bei Bosch", "Bosch"),
        (
            "The printer is out of toner",
            "The user manages supplies, likes lasers",
            "manag suppli like laser",
        ),
    ],
)
def test_what_was_made_up_is_named(said: str, line: str, lacking: str) -> None:
    assert _lacks(said, line) == lacking


def test_a_known_name_of_the_user_may_stand_in_a_line_and_proves_nothing() -> None:
    assert not _lacks("I moved to Berlin", "Ben moved to Berlin", "Ben")
    assert _lacks("I moved to Berlin", "Ben sails", "Ben") == "sail"


def test_what_only_the_assistant_said_is_no_ground() -> None:
    said = [Said("user", "Hello"), Said("assistant", "The code is 4417."), Said("user", "Thanks")]
    assert ground_of(said).lacks("The code is 4417") == "4417"


@pytest.mark.parametrize(
    ("said", "line", "is_said"),
    [
        ("can you write me a short ad for bread?", "The user has a short ad for bread", False),
        ("Write me a short ad for bread", "The user has a short ad for bread", False),
        ("is the ferry to Oslo cheaper?", "The ferry to Oslo is cheaper", False),
        ("can you remember that I prefer tea?", "Prefers tea", True),
        ("I take the ferry to Oslo. Is it cheap?", "Takes the ferry to Oslo", True),
    ],
)
def test_what_was_only_asked_is_no_statement(said: str, line: str, is_said: bool) -> None:
    assert bool(ground_of([Said("user", said)]).lacks(line)) is not is_said
    assert not ground_of([Said("user", said)], may_ask=False).lacks(line)


_PRINTER = "Jonas told me that the printer is broken"


@pytest.mark.parametrize(
    ("said", "line", "lacking"),
    [
        ([_PRINTER, "my daughter Lena turns 7"], "Jonas told Lena the printer is broken", "Lena"),
        (["Maria starts on Monday", "I'm allergic to nuts"], "Maria is allergic to nuts", "Maria"),
        (["Jim called", "Ann lives in Graz"], "Jim lives in Graz", "Jim"),
        (["My boss is Erik", "He's meeting Sarah of Acme"], "Erik is meeting Sarah of Acme", ""),
        (["Bob lives in Graz with two cats", "He moved to Rome"], "Bob lives in Rome", ""),
        (["The dentist is Dr Weber", "no, Dr Wagner"], "The dentist is Dr Wagner", ""),
        (["Maria is ill. Her boss is Tom", "I visit Tom"], "Maria's boss is Tom", ""),
    ],
)
def test_a_name_of_another_message_takes_nobodys_place(
    said: list[str], line: str, lacking: str
) -> None:
    assert ground_of([Said("user", each) for each in said]).lacks(line) == lacking


def test_no_half_of_a_line_may_come_from_a_question() -> None:
    said = [Said("user", "where do we host and why?"), Said("user", "Maria moved to Porto")]
    line = "Maria moved to Porto, and the user is unsure about where to host"
    assert ground_of(said).lacks(line) == "host"
    assert not ground_of(said).lacks("Maria moved to Porto, it seems")


def test_what_was_asked_and_agreed_to_counts_as_said() -> None:
    said = [Said("assistant", "Do you keep a boat in Drammen?"), Said("user", "Yes, I do")]
    assert not ground_of(said).lacks("The user keeps a boat in Drammen")


def test_a_question_says_what_an_answer_is_about_but_no_name() -> None:
    said = [
        Said("assistant", "Is your favorite color teal, as with the Pantone of Ikea?"),
        Said("user", "green"),
    ]
    assert not ground_of(said).lacks("Favorite color: green")
    assert ground_of(said).lacks("Favorite color: Pantone green") == "Pantone"


def test_a_bare_number_answers_a_question() -> None:
    said = [Said("assistant", "What is the code of your locker?"), Said("user", "4417")]
    assert not ground_of(said).lacks("Locker code: 4417")
    assert ground_of(said).lacks("Locker code: 4471") == "4471"


def test_what_was_asked_and_not_answered_is_no_ground() -> None:
    said = [
        Said("user", "Is my plan any good?"),
        Said("assistant", "It is. Is your favorite flower the peony?"),
        Said("user", "no idea yet"),
    ]
    assert ground_of(said).lacks("The user's favorite flower is the peony")


def test_the_message_that_shares_most_takes_the_place_of_a_wrong_one() -> None:
    said = [(1, "good morning"), (3, "I moved to Berlin"), (5, "my cat is called Luna")]
    assert nearest("The user's cat is Luna", said, 1) == 5
    assert nearest("The user lives in Berlin", said, 3) == 3
    assert nearest("Nothing of this", said, 1) is None


@pytest.mark.parametrize(
    ("said", "line", "lacking"),
    [
        ("No alcohol for dad with the new tablets", "Dad: alcohol with the tablets", "alcohol"),
        ("No alcohol for dad", "Dad must not drink alcohol", ""),
        ("I don't like tea but I love coffee", "The user loves coffee", ""),
        ("I don't like tea but I love coffee", "The user loves tea", "tea"),
        ("I no longer work Wednesdays", "The user works Wednesdays", "work"),
        ("No puedo tomar ibuprofeno", "El usuario puede tomar ibuprofeno", "tomar"),
        ("Keine Milch mehr für Oma", "Oma trinkt Milch", "milch"),
        ("I moved to Leeds", "The user did not move to Leeds", "move"),
        ("I can't stand onions", "The user dislikes onions", ""),
        ("I use tabs, not spaces", "The user uses tabs over spaces", ""),
        ("I drink tea, not coffee", "The user drinks coffee", "coffe"),
        ("no, the meeting is on Friday", "no, the meeting is on Friday", ""),
    ],
)
def test_what_was_denied_is_not_said_and_the_reverse(said: str, line: str, lacking: str) -> None:
    assert Ground.of([(None, said)]).lacks(line) == lacking


def test_what_is_denied_is_looked_for_near_by_however_long_a_sentence_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []

    def terms(text: str) -> list[str]:
        read.append(len(text))
        return significant_terms(text)

    monkeypatch.setattr(sentences, "significant_terms", terms)
    said = sentences.Sentence.of("Tabs, not spaces, and no tea, " + "no way, " * 500)
    assert ("space", "tab") in said.denied
    assert sum(read) < 300 * len(said.text) // 2
