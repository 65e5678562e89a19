"""What a message is, by its shape and by the lists of its language."""

from __future__ import annotations

import pytest

from kbtui.offline.message import Kind, read_message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("No alcohol for dad with the new tablets", "statement"),
        ("No puedo tomar ibuprofeno", "statement"),
        ("I no longer work Wednesdays", "statement"),
        ("Alice", "statement"),
        ("お父さんは納豆が食べられません", "statement"),
        ("أبي لا يأكل السمك", "statement"),
        ("Keine Milch mehr für Oma", "statement"),
        ("no", "talk"),
        ("No.", "talk"),
        ("nein danke", "talk"),
        ("lol", "talk"),
        ("Todo el equipo viaja a Madrid el lunes", "statement"),
        ("Milk, eggs, bread, butter\nApples, pears, plums, figs", "statement"),
        ("I bought milk;\nshe bought eggs;", "statement"),
        ("🦓🥂", "talk"),
        ("...", "talk"),
        ("perfect 🥂", "talk"),
        ("good morning, how are you?", "greeting"),
        ("hola", "greeting"),
        ("good night", "talk"),
        ("bis morgen!", "talk"),
        ("thanks, that helps!", "thanks"),
        ("vielen Dank", "thanks"),
        ("who is Maria", "question"),
        ("Who cares about the budget, I spent 300 on shoes", "statement"),
        ("ok, when is the release", "question"),
        ("wann kommt der Ofen", "question"),
        ("cuándo llega el horno", "question"),
        ("Alice's birthday?", "question"),
        ("父の薬は何ですか\N{FULLWIDTH QUESTION MARK}", "question"),
        ("todo: send the invoice", "task"),
        ("remind me to call the bank", "task"),
        ("don't forget the blue folder", "task"),
        ("remind me on Friday to call Ada", "task"),
        ("remind me tomorrow at 9 to water the plants", "task"),
        ("Remind me at 5 to leave", "task"),
        ("remind me about the concert on 12 December", "task"),
        ("remind me of the time we met", "statement"),
        ("remind me what I said to Ada on Friday", "question"),
        ("erinner mich am Freitag an die Steuererklärung", "task"),
        ("Erinnere mich nächsten Dienstag daran, Brot zu kaufen", "task"),
        ("erinner mich, wann Ada kommt", "question"),
        ("recuérdame el viernes que llame a Ana", "task"),
        ("rappelle-moi lundi d'appeler Paul", "task"),
        ("rappelle-moi comment s'appelle le dentiste", "question"),
        ("ricordami venerdì di chiamare Ugo", "task"),
        ("todo: who to invite", "task"),
        ("don't forget who helped you", "task"),
        ("remember that the server is 10.0.3.7", "remember"),
        ("merk dir, dass Oma keine Milch trinkt", "remember"),
        ("recuerda que Ana es vegana", "remember"),
        ("remember when people just got old", "statement"),
        ("Remember the summer of 1976? No rain for weeks.", "statement"),
        ("forget the printer", "forget"),
        ("we decided to use NATS", "decision"),
        ("wir haben beschlossen, dass wir umziehen", "decision"),
        ("please rewrite your last answer as a table", "work"),
        ("my password is Tr0ub4dor&3!kk", "secret"),
    ],
)
def test_a_message_is_told_by_its_shape_and_the_lists(text: str, kind: Kind) -> None:
    assert read_message(text).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        'Traceback (most recent call last):\n  File "a.py", line 3, in run\nValueError: no',
        "From: Ann <ann@example.com>\nTo: Bob <bob@example.com>\nSubject: Rent\n\nHi Bob",
        "\n".join(f"line {n} of something that was copied" for n in range(150)),
        "name,phone,room,day\nAlice,5512,12,Mon\nBob,5513,14,Tue",
        "look:\n```\nx = 1\n```",
        "look:\n- ~~~\n  x = 1",
        "x" * 5_000,
    ],
    ids=["trace", "mail", "150 lines", "csv", "code", "code in an item", "5,000 characters"],
)
def test_what_was_not_typed_here_is_a_paste(text: str) -> None:
    assert read_message(text).kind == "paste"


@pytest.mark.parametrize(
    "text",
    [
        "Vendors for them so far:\n- flowers: Petal & Stem (Nora)\n- cake: not booked",
        "Monday: dentist\nTuesday: choir\nFriday: train to York",
        "First thing I noticed was the smell.\n\nThen the dog came, and nobody had told me.",
    ],
)
def test_what_people_type_in_several_lines_is_none(text: str) -> None:
    assert read_message(text).kind == "statement"


def test_an_order_leaves_what_is_ordered_as_it_was_typed() -> None:
    assert read_message("remember that I'm  allergic to nuts.").text == "I'm  allergic to nuts."
    assert read_message("todo: NOT before the 30th").text == "NOT before the 30th"
    assert read_message("remind me to call mum").text == "remind me to call mum"
    decided = "we decided to use NATS, not Kafka, because of the ops team"
    assert read_message(decided).text == decided


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("we decided to use NATS, not Kafka, because of ops", "Use NATS, not Kafka"),
        ("decision: no meetings on Mondays. reason: focus", "No meetings on Mondays"),
        ("we decided not to renew the lease", "Not to renew the lease"),
        ("we decided against Kafka", "Against Kafka"),
        ("wir haben uns gegen Kafka entschieden", "Wir haben uns gegen Kafka entschieden"),
        ("hemos decidido no vender la casa porque Ana vuelve", "No vender la casa"),
    ],
)
def test_a_decision_is_titled_by_what_was_decided_and_keeps_what_denies_it(
    text: str, title: str
) -> None:
    assert read_message(text).title == title


def test_a_long_decision_is_cut_between_words_and_shows_it() -> None:
    title = read_message("we decided to " + "move everything to the other building " * 3).title
    assert len(title) <= 60
    assert title.endswith("…")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (
            "I moved to Berlin last week, who do I tell?",
            "I moved to Berlin last week, who do I tell?",
        ),
        ("The rent is 1,100 now. What was it before?", "What was it before?"),
        ("The rent is 1,150 now, or was it 1,100? What was it before?", "What was it before?"),
    ],
)
def test_what_is_stated_beside_a_question_counts_as_well(text: str, question: str) -> None:
    found = read_message(text)
    assert (found.kind, found.text, found.question) == ("statement", text, question)


def test_an_answer_to_ones_own_question_in_one_message_is_a_statement() -> None:
    for text in ("What's my favorite color? It's blue.", "¿Cuándo viene? Creo que el jueves"):
        found = read_message(text)
        assert (found.kind, found.question) == ("statement", "")
    assert read_message("how do I bleed it? which key fits").kind == "question"


def test_a_question_told_by_its_first_words_alone_is_not_sure() -> None:
    assert not read_message("when I'm in Berlin I stay at Dana's").is_certain
    assert read_message("when is it?").is_certain
