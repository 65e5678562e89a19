"""The lines that answer are chosen; none is changed, and how sure it is is said."""

from __future__ import annotations

from dataclasses import replace

from kbtui.offline.answer import Candidate, choose


def line(text: str, when: str = "", score: float = 1.0, relevance: float = 1.0) -> Candidate:
    return Candidate("memory/2026-11-23.md", text, 3, when=when, score=score, relevance=relevance)


def test_a_line_that_holds_what_is_asked_answers_surely() -> None:
    found = choose(
        "who has the spare key?", [line("the spare key is with Jean"), line("rain", score=0.1)]
    )
    assert (found.tier, [each.text for each in found.lines]) == (
        "sure",
        ["the spare key is with Jean"],
    )


def test_what_is_only_near_is_said_to_be() -> None:
    near = line("the home is 1,245 a week", relevance=0.2)
    assert choose("what do we pay for parking?", [near]).tier == "near"


def test_what_is_not_even_near_is_not_shown_as_an_answer() -> None:
    assert choose("which redis version?", [line("rain", relevance=0.0)]).tier == "none"
    assert choose("which redis version?", []).tier == "none"


def test_of_lines_about_one_thing_the_newest_comes_first() -> None:
    old = line("the release meeting is on Thursday", "2026-11-20 09:00")
    new = line("no, the meeting is on Friday", "2026-11-21 09:00", score=0.8)
    shown = choose("when is the release meeting?", [old, new]).lines
    assert [each.text for each in shown] == [new.text, old.text]


def test_of_lines_of_the_journal_that_hold_all_that_is_asked_the_newest_comes_first() -> None:
    old = replace(line("dentist on Thursday at 9:30, Dr. Keller", "2026-11-20"), time="09:00")
    new = replace(line("Actually the dentist is on Friday at 8", "2026-11-21"), time="09:00")
    new = replace(new, score=0.8)
    assert choose("when is the dentist?", [old, new]).lines == (new, old)


def test_who_somebody_is_what_was_said_first_tells() -> None:
    old = line("Silke runs the archive", "2026-11-20 09:00", score=0.9)
    new = line("Silke called", "2026-11-21 09:00")
    assert choose("Who is Silke?", [new, old]).lines == (old, new)
    assert choose("When did Silke call?", [new, old]).lines == (new, old)


def test_what_is_said_twice_is_shown_once_and_the_newer_of_both() -> None:
    old, new = (line("Tash comes on the 18th", day) for day in ("2026-11-20", "2026-11-22"))
    assert choose("when does Tash come?", [old, new]).lines == (new,)


def test_a_question_is_no_answer() -> None:
    assert choose("where is the key?", [line("where is the key?")]).tier == "none"


def test_at_most_three_lines_are_shown() -> None:
    many = [line(f"the key number {n} is at house {n * 7}") for n in range(9)]
    assert len(choose("where is the key", many).lines) == 3
