"""Said again is known: the same words, numbers and sides say nothing new."""

from __future__ import annotations

import pytest

from kbtui.memory.comparing.known import is_known

WELL = "The well at the cottage is 43 metres deep"


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("The cottage has a well which is 43 metres deep", [WELL]),
        ("At the cottage there is a 43 metres deep well", [WELL]),
        ("Thanks, so 43 metres deep, the well at the cottage.", [WELL]),
        ("Please answer me in Dutch", ["I want your answers in Dutch"]),
        ("From now on, reply in Dutch", ["I want your answers in Dutch"]),
        ("Always write to me in Dutch", ["Please answer in Dutch"]),
        ("Use Dutch when you answer", ["Please answer in Dutch"]),
        ("Antworte mir bitte auf Deutsch", ["Ich möchte Antworten auf Deutsch"]),
    ],
)
def test_five_wordings_of_one_fact_or_wish_are_known(line: str, known: list[str]) -> None:
    assert is_known(line, known)


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("The well at the cottage is 45 metres deep", [WELL]),
        ("The well at the cottage isn't 43 metres deep", [WELL]),
        ("The well at the cottage is 43 metres deep and dry", [WELL]),
        ("Bo owes Ada 40 euros", ["Ada owes Bo 40 euros"]),
        ("I prefer coffee to tea", ["I prefer tea to coffee"]),
        ("If I moved I'd sell the van", ["I sell the van"]),
        ("Please answer in German", ["Please answer in Dutch"]),
        ("I speak Dutch", ["Please answer in Dutch"]),
        ("Host 2 has port 2", ["Host 2 has port 40"]),
    ],
)
def test_another_number_denial_frame_side_or_word_is_news(line: str, known: list[str]) -> None:
    assert not is_known(line, known)


def test_what_was_so_before_and_is_so_again_is_news() -> None:
    monday, friday = "The review meeting is on Monday", "The review meeting is on Friday"
    assert not is_known(monday, [monday, friday])
    assert is_known(friday, [monday, friday])
