"""Whether an answer differs from the lines that the model was shown, sentence by sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbtui.memory.recall import differing
from kbtui.memory.recall.differing import AnswerCheck, Difference, Shown

ANSWERS = Path(__file__).with_name("answers.jsonl")
FLATS = (
    "- The rent of the flat in Mainz is 870 euros.\n- The rent of the flat in Trier is 640 euros.\n"
)


def check_of(question: str, *lines: str, said: tuple[str, ...] = ()) -> AnswerCheck:
    """Return the check of an answer that was given lines, each from a note of its own."""
    shown = [
        Shown(number, f"knowledge/n{number}.md", 3, line if line.startswith("- ") else f"- {line}")
        for number, line in enumerate(lines, 1)
    ]
    return AnswerCheck(shown, question, said)


def differences(question: str, answer: str, *lines: str) -> list[Difference]:
    check = check_of(question, *lines)
    return [*check.feed(answer), *check.finish()]


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ANSWERS.read_text().splitlines()]


def test_planted_values_are_marked_and_right_sentences_are_not() -> None:
    """The first 27 wrong and 27 right ones were tuned on, then the others were read, too."""
    marked, planted, false, right = 0, 0, [], 0
    for row in rows():
        found = differences(row["question"], row["answer"], *row["lines"])
        if row["differs"] is None:
            right += 1
            false += [row["id"]] if found else []
        else:
            planted += 1
            marked += any(each.n - 1 == row["differs"]["line"] for each in found)
    assert (planted, right) == (214, 409)
    assert marked >= 200
    assert len(false) <= 9, false


def test_a_difference_names_the_line_and_what_is_another_one() -> None:
    found = AnswerCheck([Shown(2, "knowledge/flats.md", 8, FLATS)], "What is the rent in Mainz?")
    assert found.feed("The rent in **Mainz** is 890 euros [2].") == []
    assert found.finish() == [
        Difference(
            "number",
            "890",
            2,
            "knowledge/flats.md",
            8,
            "The rent of the flat in Mainz is 870 euros.",
        )
    ]


def test_a_sentence_is_compared_as_soon_as_the_next_one_begins() -> None:
    check = check_of("Who is my dentist?", "My dentist is Dr. Amari.")
    pieces = ["Your dent", "ist is Dr. ", "Lehmann. ", "Shall I ", "add a reminder?"]
    found = [check.feed(piece) for piece in pieces]
    assert [len(each) for each in found] == [0, 0, 0, 1, 0]
    assert check.finish() == []


def test_a_date_with_a_point_ends_no_sentence() -> None:
    line = "Augenarzt Dr. Santner: 21.04.2026, 11:20 Uhr"
    answer = "Beim Augenarzt Dr. Santner bist du am **14. April 2026** um 11:20 Uhr."
    found = differences("Wann ist der Termin?", answer, line)
    assert [each.kind for each in found] == ["date"]


@pytest.mark.parametrize(
    "answer",
    [
        "```\nrent = 890 euros\n```",
        "> The rent in Mainz is 890 euros.",
        "# The rent in Mainz is 890 euros",
        "Is the rent in Mainz 890 euros?",
        "If the rent in Mainz were 890 euros, you could move.",
    ],
)
def test_code_quotes_headings_questions_and_conditions_are_no_statements(answer: str) -> None:
    assert differences("What is the rent?", answer, "The rent in Mainz is 870 euros.") == []


@pytest.mark.parametrize("mark", ["> ", "# "])
def test_the_second_sentence_of_a_quote_or_heading_is_none_either(mark: str) -> None:
    check = check_of("What is the rent?", "The rent in Mainz is 870 euros.")
    found = check.feed(f"{mark}So it was. ") + check.feed("The rent in Mainz is 890 euros. And")
    assert found + check.finish() == []


def test_a_long_answer_with_code_is_read_once_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = differing.Document

    def counted(text: str, **options: Any) -> Any:
        read.append(text)
        return real(text, **options)

    monkeypatch.setattr(differing, "Document", counted)
    check = check_of("What is the rent?", "The rent in Mainz is 870 euros.")
    for letter in "```\nprint(1)\n```\nIt is 870 euros. So " * 3:
        check.feed(letter)
    check.finish()
    assert len(read) <= 16


def test_what_the_user_said_needs_no_source() -> None:
    line, answer = "The rent in Mainz is 870 euros.", "The rent in Mainz is 910 euros."
    assert differences("What is the rent in Mainz?", answer, line)
    check = check_of("And the rent?", line, said=("From May on the rent in Mainz is 910 euros.",))
    assert [*check.feed(answer), *check.finish()] == []


def test_without_lines_nothing_differs_and_a_statement_is_unfounded() -> None:
    check = check_of("Where does Mira live?")
    assert [*check.feed("Mira lives in Ghent, near the station."), *check.finish()] == []
    assert check.is_unfounded
    told = check_of("Remember that Mira moved.")
    told.feed("I noted that Mira moved to another town. ")
    told.finish()
    assert not told.is_unfounded, "only an answer to a question can be"
    founded = check_of("Where does Mira live?", "Mira lives in Ghent.")
    founded.feed("Mira lives in Ghent. ")
    founded.finish()
    assert not founded.is_unfounded


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "\n\n",
        "*" * 5_000,
        "a" * 20_000,
        "1 " * 3_000,
        "\u202e\u200d😀" * 300,
        "[1][2]" * 400,
        "- ",
    ],
)
def test_any_answer_is_read(answer: str) -> None:
    assert differences("What is the rent?", answer, FLATS.strip(), "", "\u202eabc 12") == []
