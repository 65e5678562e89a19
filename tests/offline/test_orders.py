"""Orders to delete, rename and undo, and statements that begin like one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbtui.offline.language import languages
from kbtui.offline.message import read_message
from kbtui.offline.orders import read_order

_ROWS = [
    line.split("\t")
    for line in Path(__file__).with_name("orders.tsv").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize(("half", "kind", "text"), _ROWS, ids=[row[2] for row in _ROWS])
def test_an_order_is_an_order_and_a_statement_that_begins_like_one_is_none(
    half: str, kind: str, text: str
) -> None:
    order = read_order(text)
    assert (order.kind if order is not None else "statement") == kind, half


def test_the_rows_hold_forty_statements_and_orders_in_every_language() -> None:
    assert sum(kind == "statement" for _, kind, _ in _ROWS) == 40
    assert {half for half, _, _ in _ROWS} == {"tuned", "held"}
    for each in languages():
        names = ("forget", "delete", "erase", "everything", "note", "rename", "into", "undo")
        more = ("polite", "request", "clause", "forget that", "remember that")
        assert all(each.lists[name] for name in (*names, *more)), each.code


@pytest.mark.data
def test_no_message_of_people_who_state_and_ask_is_taken_for_an_order(data_dir: Path) -> None:
    rows = [
        json.loads(line)
        for name in ("dev", "second")
        for line in (data_dir / "keep" / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(rows) == 280
    taken = [row["text"] for row in rows if read_message(row["text"]).order is not None]
    assert taken == []


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("Please delete everything you know about Bob Miller.", "Bob Miller"),
        ("forget “the blue boat”", "the blue boat"),
        ("alles über Erdnüsse bitte löschen", "Erdnüsse"),
        ("forget that I like tea", "I like tea"),
    ],
)
def test_an_order_says_what_it_is_about_in_the_words_that_were_typed(text: str, about: str) -> None:
    order = read_order(text)
    assert order is not None
    assert order.about == about


def test_a_rename_has_a_pair_of_names_for_each_word_that_may_part_them() -> None:
    order = read_order("rename Road to Rome to Via Appia")
    assert order is not None
    assert order.names == (("Road", "Rome to Via Appia"), ("Road to Rome", "Via Appia"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It's blue. Remember that.", "It's blue."),
        ("My locker is 4711. Please remember it!", "My locker is 4711."),
        ("Es ist blau. Merk dir das.", "Es ist blau."),
        ("Es azul. Recuérdalo.", "Es azul."),
        ("C'est bleu. Retiens ça.", "C'est bleu."),
        ("È blu. Ricordalo.", "È blu."),
    ],
)
def test_what_was_said_before_remember_that_is_to_be_remembered(text: str, said: str) -> None:
    reading = read_message(text)
    assert (reading.kind, reading.text) == ("remember", said)


@pytest.mark.parametrize("text", ["forget it", "Vergiss es!", "olvídalo", "oublie ça"])
def test_forget_it_is_only_talk(text: str) -> None:
    assert read_message(text).kind == "talk"
