"""Plain English statements, and what is none."""

from __future__ import annotations

import pytest

from kbtui.models.offline_patterns import clauses, is_question, understand


def kept(text: str, before: str = "") -> list[tuple[str, str, str]]:
    return [(note.type, note.title, note.line) for note in understand(text, before).notes]


@pytest.mark.parametrize(
    ("text", "title", "context"),
    [
        (
            "We decided to use PostgreSQL for analytics because of its JSON operators.",
            "PostgreSQL for analytics",
            "Because of its JSON operators.",
        ),
        ("Today we've agreed on weekly releases", "Weekly releases", ""),
        (
            "The team decided to drop IE11 since nobody uses it",
            "Drop IE11",
            "Since nobody uses it.",
        ),
        ("ok, we chose Rust over Go due to its types", "Rust over Go", "Due to its types."),
        ("We decided against Kubernetes", "Against Kubernetes", ""),
        ("We decided not to hire", "Not to hire", ""),
        ("we're happy, and so we went with blue", "", ""),
        ("We are going with plan B", "Plan B", ""),
    ],
)
def test_decisions_have_a_title_the_sentence_and_the_reason(
    text: str, title: str, context: str
) -> None:
    notes = understand(text).notes
    if not title:
        assert notes == ()
        return
    (note,) = notes
    assert (note.type, note.title) == ("decision", title)
    assert note.sections.get("Context", "") == context
    assert note.sections["Decision"].rstrip(".").lower() in text.lower()


def test_what_was_passed_over_is_an_alternative() -> None:
    (note,) = understand("We chose Postgres over MySQL because it is faster").notes
    assert note.sections["Alternatives considered"] == "- MySQL"


def test_a_pronoun_refers_to_what_was_said_just_before() -> None:
    decision, person = understand("We picked Grafana; Bob Smith owns it").notes
    assert (person.title, person.line, person.about) == (
        "Bob Smith",
        "- Owns Grafana",
        decision.title,
    )
    (alone,) = understand("Bob owns it").notes
    assert (alone.line, alone.about) == ("- Owns it", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice leads the dashboard", ("person", "Alice", "- Leads the dashboard")),
        (
            "Jean-Luc O'Neill is responsible for billing",
            ("person", "Jean-Luc O'Neill", "- Is responsible for billing"),
        ),
        ("Dana is our new product manager", ("person", "Dana", "Our new product manager")),
        (
            "My favourite colour is blue",
            ("preference", "Favourite colour", "My favourite colour is blue."),
        ),
        ("my sister's name is Eve", ("fact", "Sister's name", "My sister's name is Eve.")),
        (
            "I really like long walks because they calm me",
            ("preference", "Long walks", "I really like long walks because they calm me."),
        ),
        ("I don't like cilantro", ("preference", "Cilantro", "I don't like cilantro.")),
        ("I use vim", ("preference", "Vim", "I use vim.")),
        ("I live in Berlin", ("fact", "Where I live", "I live in Berlin.")),
        ("I speak German and English", ("fact", "What I speak", "I speak German and English.")),
        ("call me Kim", ("fact", "My name", "Call me Kim.")),
        ("remember that I prefer tea", ("preference", "Tea", "I prefer tea.")),
        (
            "Don't forget: the bins go out on Monday",
            ("fact", "The bins go out on Monday", "The bins go out on Monday."),
        ),
        ("can you remember the code is 1234", ("fact", "The code is 1234", "The code is 1234.")),
    ],
)
def test_statements(text: str, expected: tuple[str, str, str]) -> None:
    assert kept(text) == [expected]


@pytest.mark.parametrize(
    ("question", "answer", "title", "line"),
    [
        ("What's my favorite color?", "It's blue.", "Favorite color", "My favorite color is blue."),
        ("what is my favorite color?", "blue", "Favorite color", "My favorite color is blue."),
        ("Who is my dentist?", "That would be Dr. Fang.", "Dentist", "My dentist is Dr. Fang."),
        (
            "What programming languages do I know?",
            "Python, JavaScript, and Go.",
            "Programming languages",
            "I know Python, JavaScript, and Go.",
        ),
        ("Which books do I own?", "Two", "Books", "I own Two."),
        (
            "What's my favorite color?",
            "It's blue. Remember that.",
            "Favorite color",
            "My favorite color is blue.",
        ),
    ],
)
def test_an_answer_to_the_question_just_asked(
    question: str, answer: str, title: str, line: str
) -> None:
    ((_, found_title, found_line),) = kept(answer, question)
    assert (found_title, found_line) == (title, line)
    assert kept(answer) == [] or "emember" in answer


@pytest.mark.parametrize(
    "answer", ["Thanks!", "ok", "never mind", "I don't know", "what?", "no", "word " * 20]
)
def test_not_everything_is_an_answer(answer: str) -> None:
    assert kept(answer, "What's my favorite color?") == []


def test_remember_that_means_what_was_said_before() -> None:
    assert kept("Remember that.", "The boiler is from 2019") == [
        ("fact", "The boiler is from 2019", "The boiler is from 2019.")
    ]
    assert kept("The boiler is from 2019. Please remember that.") == [
        ("fact", "The boiler is from 2019", "The boiler is from 2019.")
    ]
    assert kept("Remember that.", "How old is the boiler?") == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "hello",
        "I like that",
        "I love it",
        "I know what you mean",
        "My question is why",
        "My point is clear",
        "He said we decided to leave",
        "if we decided to use it",
        "did we decide to use it?",
        "I would like tea",
        "The weather is nice",
        "Redis is a database",
        "We have not decided yet",
        "alice owns it",
        "decided to use X",
    ],
)
def test_what_is_no_statement(text: str) -> None:
    assert understand(text).notes == ()


def test_a_message_may_state_and_ask() -> None:
    understood = understand("We chose Grafana. What else did we choose? I prefer tea.")
    assert [note.title for note in understood.notes] == ["Grafana", "Tea"]
    assert understood.question == "What else did we choose?"


def test_two_statements_about_one_thing_become_one_note() -> None:
    (note,) = understand("Alice owns billing. Alice leads the dashboard.").notes
    assert note.sections["Works on"] == "- Owns billing\n- Leads the dashboard"


def test_sentences_end_at_their_end() -> None:
    assert clauses("Ask Dr. Fang e.g. at 3.30 p.m. today. Or not!  v1.2 is out; good\nBye") == [
        "Ask Dr. Fang e.g. at 3.30 p.m. today.",
        "Or not!",
        "v1.2 is out",
        "good",
        "Bye",
    ]
    assert is_question("so, why is that")
    assert not is_question("we know why that is.")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "Alice owns " * 5000,
        "I like " + "and " * 20_000,
        "; " * 50_000,
        "My " + "x " * 30_000 + "is y",
    ],
    ids=["letters", "owns", "and", "semicolons", "my"],
)
def test_no_text_takes_long(text: str) -> None:
    import time

    began = time.process_time()
    understand(text, text)
    assert time.process_time() - began < 5
