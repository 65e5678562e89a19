"""The language of a text, by its script and its function words."""

from __future__ import annotations

import pytest

from kbtui.search.index.language import language_of, languages_of
from tests.search.helpers import ENGLISH, FRENCH, GERMAN, HUNGARIAN, SPANISH


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (GERMAN, "de"),
        (SPANISH, "es"),
        (FRENCH, "fr"),
        (ENGLISH, "en"),
        (HUNGARIAN, "hu"),
        ("Wie heißt der Hund von Kim?", "de"),
        ("¿Dónde vive Ana?", "es"),
        ("Quelle est la date", "fr"),
        ("Kto jest moim lekarzem", "pl"),
        ("黑豹队的防守只丢了308分", "zh"),
        ("犬の名前は何ですか", "ja"),
        ("Собаку зовут Рекс", "ru"),
        ("\u03c3\u03ba\u03cd\u03bb\u03bf\u03c2", "el"),
    ],
)
def test_the_language_of_a_text_is_told_by_script_and_function_words(text: str, code: str) -> None:
    assert language_of(text) == code


@pytest.mark.parametrize(
    "text",
    ["", "die hard", "tax letter", "C:\\temp\\a", "```\nla la la el los\n```", "no me", "Kim 2026"],
)
def test_a_few_words_are_of_no_other_language(text: str) -> None:
    assert language_of(text) in {"", "en"}


def test_a_note_in_four_languages_is_of_each() -> None:
    text = f"{ENGLISH}\n{GERMAN}\n{SPANISH}\n{FRENCH}"
    assert set(languages_of(text)) == {"en", "de", "es", "fr"}


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("Die Häuser und der See.", {"de"}),
        ("Wie alt war Elway?", {"de"}),
        ("Les chevaux mangent une pomme.", {"fr"}),
        ("Los árboles de una finca.", {"es"}),
        ("Van der Berg keeps bees, the mice and a list of a thousand things.", {"en"}),
        (
            "Das Haus und der See.\n\nLes rues et une place.\n\nLos libros de una amiga.",
            {"de", "fr", "es"},
        ),
        ("", set()),
    ],
)
def test_a_text_is_in_the_languages_whose_common_words_it_has(
    text: str, languages: set[str]
) -> None:
    assert set(languages_of(text)) == languages
