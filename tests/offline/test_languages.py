"""A language is a file of lists and takes no code."""

from __future__ import annotations

import pytest

from kbtui.offline.language import Language, languages
from kbtui.offline.message import Kind, read_message
from kbtui.offline.names import lines_by_name


def test_english_comes_first_and_every_language_has_every_list() -> None:
    found = languages()
    assert [each.code for each in found] == ["en", "de", "es", "fr", "it"]
    for each in found:
        lists = ("question", "greeting", "thanks", "talk", "remember", "decision", "task", "small")
        assert all(each.lists[name] for name in lists), each.code


@pytest.mark.parametrize("language", languages(), ids=lambda each: each.code)
def test_numbers_days_and_months_have_their_place(language: Language) -> None:
    ordered = [language.lists[name] for name in ("numbers", "weekdays", "months")]
    assert list(map(len, ordered)) == [11, 7, 12]
    assert language.places["months"][language.lists["months"][4]] == 4
    assert "nothing" not in language.places["weekdays"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Bonjour", "greeting"),
        ("merci beaucoup", "thanks"),
        ("quand arrive le plombier", "question"),
        ("souviens-toi que maman ne mange pas de noix", "remember"),
        ("on a décidé de vendre la voiture", "decision"),
        ("rappelle-moi de payer le loyer", "task"),
        ("Le plombier passe jeudi à 9 h", "statement"),
        ("Je ne travaille plus le mercredi", "statement"),
        ("ciao", "greeting"),
        ("grazie mille", "thanks"),
        ("quando arriva l'idraulico", "question"),
        ("ricorda che mamma non mangia noci", "remember"),
        ("abbiamo deciso di vendere la macchina", "decision"),
        ("ricordami di pagare l'affitto", "task"),
        ("L'idraulico passa giovedì alle 9", "statement"),
        ("Non lavoro più il mercoledì", "statement"),
    ],
)
def test_two_languages_work_that_no_rule_was_written_for(text: str, kind: Kind) -> None:
    assert read_message(text).kind == kind


def test_a_word_of_one_language_is_none_of_another() -> None:
    assert read_message("come to dinner on Friday, it is at the Bauers").kind == "statement"
    assert read_message("que ella no viene el jueves lo dijo Ana").kind == "question"  # reads so


def test_names_are_told_in_each_of_them() -> None:
    assert set(lines_by_name(["Hier j'ai vu Amélie Poulain à Lyon"])) == {"Amélie Poulain", "Lyon"}
    assert set(lines_by_name(["Ieri ho visto Carlo a Bologna"])) == {"Carlo", "Bologna"}
    german = ["Gestern war Jonas Weber mit dem Hund im Park", "Der Hund von Jonas Weber ist krank"]
    assert dict(lines_by_name(german)) == {"Jonas Weber": (0, 1)}
