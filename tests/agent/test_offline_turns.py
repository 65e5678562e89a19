"""Turns without a model: what is stated is kept as it was typed, what is asked is quoted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.events import NoticeGiven, TextDelta
from kbtui.agent.keeping import DAILY_NOTES
from kbtui.errors import StorageError
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.importers.engine import find_source, run
from kbtui.importers.export_files import OpenedExport
from kbtui.knowledge_base import KnowledgeBase
from tests.agent.conftest import ask
from tests.documents import make
from tests.importers.exports import claude, written

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.sessions.store import Session

SAID = "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it"


def journal(kb: KnowledgeBase) -> str:
    return "\n".join(kb.workspace.place(path).read_text() for path in kb.journal.days())


def memory(kb: KnowledgeBase) -> str:
    file = kb.workspace.place("memory/MEMORY.md")
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize(
    "said",
    [
        "No alcohol for dad with the new tablets",
        "No puedo tomar ibuprofeno",
        "I no longer work Wednesdays",
        "Keine Milch mehr für Oma",
        "父は納豆が食べられません",
        "honestly im so tired. some days i sit in the car park",
        "the value is 42\n- and 43\n- and 44",
    ],
)
async def test_a_statement_is_kept_as_it_was_typed_and_nowhere_else(
    kb: KnowledgeBase, session: Session, said: str
) -> None:
    before = memory(kb)
    told = await ask(kb, session, said)
    assert told.used == [("keep", True)]
    (change,) = told.finished.changes
    assert change.paths == (kb.journal.days()[0],)
    assert " ".join(said.split()) in " ".join(journal(kb).split())
    assert memory(kb) == before
    assert kb.library.infos() == []
    (commit, *_) = kb.history.log(change.paths[0])
    assert commit.actor is Actor.YOU
    assert commit.origin.messages == (told.events[0].message,) * 2


@pytest.mark.parametrize(
    ("question", "who"),
    [
        ("who comes today?", "plumber"),
        ("Who comes tomorrow?", "gardener"),
        ("Wer kommt übermorgen?", "Elektriker"),
        ("who comes next week?", "sweep"),
    ],
)
async def test_a_question_about_today_is_answered_for_that_day(
    kb: KnowledgeBase,
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    question: str,
    who: str,
) -> None:
    thursday = datetime(2026, 11, 26, 9).astimezone()
    said = (
        (1, "The plumber comes tomorrow at 8"),
        (2, "The gardener comes in three days"),
        (3, "Der Elektriker kommt in fünf Tagen"),
        (4, "The chimney sweep comes in ten days"),
    )
    for days, text in said:
        kb.journal.keep(text, thursday - timedelta(days=days), Origin())
    monkeypatch.setattr("kbtui.agent.agent.local_now", lambda: thursday)
    told = await ask(kb, session, question)
    quoted = [line for line in told.finished.text.splitlines() if line.startswith(">")]
    assert len(quoted) == 1
    assert who in quoted[0]


async def test_an_answer_says_when_a_line_with_an_age_was_said(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "remember that I quit smoking three months ago")
    await ask(kb, session, "remember that I like green tea")
    day = datetime.now().astimezone()
    told = await ask(kb, session, "when did I quit smoking?")
    assert f"[1] · *said {day.day} {day:%B}*" in told.finished.text
    assert "said" not in (await ask(kb, session, "which tea do I like?")).finished.text


async def test_nothing_is_replaced_unasked_and_the_newest_answers_first(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "the release meeting is on Thursday at 10")
    told = await ask(kb, session, "no, the release meeting is on Friday")
    assert "Thursday at 10" in journal(kb)
    assert "~~" not in journal(kb)
    earlier = told.finished.earlier
    assert earlier is not None
    assert earlier.text == "the release meeting is on Thursday at 10"
    assert earlier.text not in str(session.messages[-1].meta), "it may be forgotten later"
    found = await ask(kb, session, "when is the release meeting?")
    first, second = [line for line in found.finished.text.splitlines() if line.startswith("> ")]
    assert first.startswith("> no, the release meeting is on Friday [1]")
    assert "Thursday" in second


async def test_what_stands_in_a_private_entry_is_not_shown_beside_a_statement(
    kb: KnowledgeBase, session: Session
) -> None:
    made = kb.library.create("person", "Zora", body="The salary of Zora Quill is 90000 euros.")
    file = kb.workspace.place(made.path)
    file.write_text(file.read_text().replace("type: person\n", "type: person\nprivate: true\n"))
    kb.library.refresh()
    assert kb.library.is_private(made.path)
    told = await ask(kb, session, "The salary of Zora Quill is 95000 euros now")
    assert told.finished.earlier is None
    await ask(kb, session, "The salary of Zora Quill is 96000 euros now")
    assert "90000" not in "".join(str((each.content, each.meta)) for each in session.messages)


async def test_a_long_statement_is_quoted_by_its_sentences(
    kb: KnowledgeBase, session: Session
) -> None:
    walk = " ".join(f"We walked through the valley number {n} and saw birds." for n in range(20))
    await ask(kb, session, f"The zeppelin landed in Friedrichshafen in March. {walk}")
    found = await ask(kb, session, "Where did the zeppelin land?")
    assert "> The zeppelin landed in Friedrichshafen in March. [1]" in found.finished.text


async def test_marking_the_earlier_line_as_past_takes_it_out_of_every_answer(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "the release meeting is on Thursday at 10")
    told = await ask(kb, session, "no, the release meeting is on Friday")
    assert told.finished.earlier is not None
    commit = kb.agent.mark_past(session, told.finished.earlier, told.events[0].message)
    assert commit.actor is Actor.YOU
    assert "- ~~" in journal(kb)
    assert "Thursday at 10~~ → " in journal(kb)
    found = await ask(kb, session, "when is the release meeting?")
    assert "Thursday" not in found.finished.text
    kb.history.undo(commit.id)
    assert "~~" not in journal(kb)


async def test_undoing_the_turn_takes_the_line_back(kb: KnowledgeBase, session: Session) -> None:
    await ask(kb, session, "the rent is 1,100")
    told = await ask(kb, session, "the door code is on the fridge")
    kb.history.undo_turn(told.finished.turn)
    assert "fridge" not in journal(kb)
    assert "1,100" in journal(kb)


async def test_remember_writes_into_memory_and_nothing_else_does(
    kb: KnowledgeBase, session: Session
) -> None:
    told = await ask(kb, session, "Please remember that my dentist is Dr. Fang.")
    assert told.finished.changes[0].paths == ("memory/MEMORY.md",)
    assert "- my dentist is Dr. Fang." in memory(kb)
    assert journal(kb) == ""
    told = await ask(kb, session, "who is my dentist?")
    assert "> my dentist is Dr. Fang. [1]" in told.finished.text
    assert told.finished.citations[0].path == "memory/MEMORY.md"


async def test_a_decision_is_an_entry_titled_by_what_was_decided(
    kb: KnowledgeBase, session: Session
) -> None:
    told = await ask(kb, session, SAID)
    (info,) = kb.library.infos()
    assert (info.type, info.title) == ("decision", "Use PostgreSQL for analytics")
    assert SAID in kb.library.get(info.path).body
    assert f"|{info.title}]]" in told.finished.text
    again = await ask(kb, session, "we decided to use PostgreSQL for analytics")
    assert len(kb.library.infos()) == 1
    assert "we decided to use PostgreSQL for analytics" in journal(kb)
    assert again.finished.changes


async def test_a_task_is_a_box_in_the_journal(kb: KnowledgeBase, session: Session) -> None:
    await ask(kb, session, "todo: send the invoice to ACME before the 30th")
    line = journal(kb).splitlines()[-1]
    assert line.startswith("- [ ] ")
    assert line.endswith(" send the invoice to ACME before the 30th")


async def test_a_question_is_answered_with_citations_that_open(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, SAID)
    told = await ask(kb, kb.sessions.create("test"), "why PostgreSQL for analytics?")
    assert told.used == [("search", True)]
    assert told.finished.text.startswith("From your notes:")
    assert "because of its JSON operators; Alice owns it [1] · *today*" in told.finished.text
    cited = told.finished.citations[0]
    lines = kb.workspace.place(cited.path).read_text().splitlines()[cited.first - 1 : cited.last]
    assert "JSON operators" in "\n".join(lines)
    assert not told.finished.changes


async def test_documents_are_quoted_with_their_place(kb: KnowledgeBase, session: Session) -> None:
    (kb.workspace.docs / "api").mkdir()
    text = "# Auth\n\nTokens expire after\none hour. Keys never do.\n"
    (kb.workspace.docs / "api/auth.md").write_text(text)
    kb.search.sync()
    told = await ask(kb, session, "When do tokens expire?")
    assert "> Tokens expire after one hour. Keys never do. [1]" in told.finished.text
    (cited, *_) = told.finished.citations
    assert (cited.path, cited.first) == ("docs/api/auth.md", 3)


async def test_a_slide_and_a_row_of_a_sheet_answer(kb: KnowledgeBase, session: Session) -> None:
    folder = kb.workspace.docs / "station"
    folder.mkdir()
    (folder / "talk.pptx").write_bytes(make.pptx("Kestrel", "Budget for 2027 is 84,000 euros"))
    rows: list[list[object]] = [["Name", "Phone"], ["Dr Fang, dentist", "030 5512"]]
    (folder / "phones.xlsx").write_bytes(make.xlsx(Contacts=rows))
    kb.search.sync()
    told = await ask(kb, session, "What is the budget for 2027?")
    assert "> Budget for 2027 is 84,000 euros [1]" in told.finished.text
    assert told.finished.citations[0].place == "slide 2 > Budget for 2027 is 84,000 euros"
    told = await ask(kb, session, "What is the phone number of the dentist?")
    assert "> Dr Fang, dentist | 030 5512 [1]" in told.finished.text
    assert told.finished.citations[0].place == "sheet Contacts"


async def test_in_a_vault_with_daily_notes_it_is_asked_once_where_the_journal_goes(
    tmp_path: Path,
) -> None:
    (tmp_path / "vault/.obsidian").mkdir(parents=True)
    (tmp_path / "vault/.obsidian/daily-notes.json").write_text('{"folder": "Daily"}')
    (tmp_path / "vault/Garden.md").write_text("# Garden\n")
    with KnowledgeBase.open(tmp_path / "vault") as kb:
        session = kb.sessions.create("test")
        notices = [
            [event.text for event in told.events if isinstance(event, NoticeGiven)]
            for told in [await ask(kb, session, text) for text in ("rain today", "and wind")]
        ]
        session.close()
    assert notices == [[DAILY_NOTES], []]


async def test_what_is_not_known_is_not_made_up(kb: KnowledgeBase, session: Session) -> None:
    told = await ask(kb, session, "Who invented the zeppelin?")
    assert told.used == [("search", True)]
    assert told.finished.text.startswith("I don't know: nothing near that in your notes.")
    assert told.finished.citations == ()
    assert journal(kb) == ""


async def test_a_short_answer_to_ones_own_question_is_kept_with_it(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "What's my favorite color?")
    await ask(kb, session, "It's blue.")
    assert journal(kb).endswith(" What's my favorite color? It's blue.\n")
    await ask(kb, session, "What do I call my cat?")
    await ask(kb, session, "ok tea")
    assert journal(kb).endswith(" ok tea\n")


@pytest.mark.parametrize(
    ("asked", "said", "kept"),
    [
        ("delete everything about peanuts", "I live in Oslo.", "I live in Oslo."),
        ("vergiss alles über Erdnüsse", "mit Anna", "mit Anna"),
        ("What's my favorite color?", "My dentist is Lenz.", "My dentist is Lenz."),
        ("Wann ist der Zahnarzt?", "Das Auto steht in Mainz.", "Das Auto steht in Mainz."),
        ("Who has my drill?", "Marc came back late.", "Marc came back late."),
        ("¿Dónde está el coche?", "Mi jefe vive en Lugo.", "Mi jefe vive en Lugo."),
        (
            "How much lisinopril do I take?",
            "I take 40 mg.",
            "How much lisinopril do I take? I take 40 mg.",
        ),
        (
            "Who painted the shed?",
            "somebody from Mainz",
            "Who painted the shed? somebody from Mainz",
        ),
    ],
)
async def test_an_open_question_is_kept_only_with_what_answers_it(
    kb: KnowledgeBase, session: Session, asked: str, said: str, kept: str
) -> None:
    await ask(kb, session, asked)
    await ask(kb, session, said)
    assert journal(kb).split(" ", 2)[2].strip().endswith(kept)
    assert kept.startswith(asked) == (asked in journal(kb))


async def test_what_may_be_a_statement_and_was_read_as_a_question_can_be_kept(
    kb: KnowledgeBase, session: Session
) -> None:
    told = await ask(kb, session, "when I'm in Berlin I stay at Dana's")
    assert told.finished.not_kept == "when I'm in Berlin I stay at Dana's"
    kept = kb.agent.keep(session, told.events[0].message)
    assert kept.changes
    assert "when I'm in Berlin I stay at Dana's" in journal(kb)


async def test_what_is_stated_beside_a_question_is_kept_and_the_question_answered(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "the landlord is Mr Bauer")
    said = "The heating is off since Monday. Who is the landlord?"
    told = await ask(kb, session, said)
    assert said in journal(kb)
    assert "the landlord is Mr Bauer" in told.finished.text


@pytest.mark.parametrize("said", ["thanks!", "hello", "no", "No.", "nein danke", "🦓 " * 50, "lol"])
async def test_small_talk_is_neither_kept_nor_looked_up(
    kb: KnowledgeBase, session: Session, said: str
) -> None:
    told = await ask(kb, session, said)
    assert told.finished.text
    assert told.used == []
    assert told.finished.not_kept == ""
    assert journal(kb) == ""


async def test_a_paste_is_refused_in_a_sentence_and_kept_by_a_key(
    kb: KnowledgeBase, session: Session
) -> None:
    paste = "\n".join(f"2026-11-23 10:00:{n:02} INFO worker {n} started" for n in range(50))
    told = await ask(kb, session, paste)
    assert "looks pasted" in told.finished.text
    assert told.finished.not_kept == paste
    assert journal(kb) == ""
    kb.agent.keep(session, told.events[0].message)
    assert " ".join(paste.split()) in " ".join(journal(kb).split())


async def test_a_secret_is_refused_and_stands_nowhere(kb: KnowledgeBase, session: Session) -> None:
    secret = "tkn-9f83KqLm2ZxPw77Vb1RtYc04"
    told = await ask(kb, session, f"for the bill: BILLING_API_TOKEN={secret} and the rent is 900")
    assert "holds a secret" in told.finished.text
    assert told.finished.changes == ()
    everything = [path.read_bytes() for path in kb.workspace.root.rglob("*") if path.is_file()]
    assert not any(secret.encode() in data for data in everything)


async def test_forgetting_is_left_to_the_user_with_the_place_shown(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "the cake is in the oven")
    told = await ask(kb, session, "forget the cake in the oven")
    assert "> the cake is in the oven [1]" in told.finished.text
    assert "/forget" in told.finished.text
    assert "the cake is in the oven" in journal(kb)


async def test_what_an_imported_assistant_told_is_quoted_as_told_and_its_source_opens(
    kb: KnowledgeBase, session: Session, tmp_path: Path
) -> None:
    talk = claude("c1", "how hot is the kiln", "The kiln fires at 1,240 degrees.")
    with OpenedExport(written(tmp_path / "conversations.json", [talk])) as opened:
        source = find_source(opened)
        assert source is not None
        (came,) = run(kb.services, opened, source, lambda *_: None).sessions
    told = await ask(kb, session, "how many degrees does the kiln fire at?")
    assert "> The kiln fires at 1,240 degrees. [1] · *you were told" in told.finished.text
    (cited, *_) = told.finished.citations
    assert cited.path == f"sessions/{came.session}.jsonl"
    assert cited.first == 2


async def test_what_was_kept_with_its_date_is_quoted_once(
    kb: KnowledgeBase, session: Session
) -> None:
    for said in (
        "New job title as of today: Lead, not Head",
        "blood pressure 128/84 this morning, 131/86 in the evening",
        "who was there?",
        "my blood pressure is fine",
    ):
        await ask(kb, session, said)
    session.close()
    kb.search.sync()
    later = kb.sessions.create("test")
    told = await ask(kb, later, "what was my blood pressure?")
    assert told.finished.text.count("128/84") == 1, told.finished.text
    assert "you said" not in told.finished.text


async def test_a_sentence_is_quoted_with_the_short_paragraph_that_says_why(
    kb: KnowledgeBase, session: Session
) -> None:
    said = (
        "All readings go into one SQLite file. It needs no server.\n\n| file | size |\n| a | 2 |\n"
    )
    kb.library.create("topic", "Storage", body=said)
    told = await ask(kb, session, "why do all readings go into SQLite?")
    assert "> All readings go into one SQLite file. It needs no server. [1]" in told.finished.text
    assert told.finished.text.count("SQLite file") == 1


async def test_a_link_that_says_only_a_path_is_quoted_with_its_title(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.library.create("topic", "Storage of readings", body="A file.")
    said = "The receiver writes as told in [[topics/storage-of-readings]] and [[topics/gone]]."
    kb.library.create("topic", "Receiver", body=said)
    told = await ask(kb, session, "where does the receiver write?")
    titled = "[[topics/storage-of-readings|Storage of readings]] and [[topics/gone]]."
    assert f"> The receiver writes as told in {titled} [1]" in told.finished.text


async def test_the_answer_comes_in_pieces(kb: KnowledgeBase, session: Session) -> None:
    first = await ask(kb, session, "hello")
    assert sum(isinstance(event, TextDelta) for event in first.events) > 5
    assert first.text == first.finished.text


async def test_a_read_only_disk_is_said_and_nothing_is_claimed(
    kb: KnowledgeBase, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StorageError("The disk is full.", "Free some space.")

    monkeypatch.setattr(History, "change", refuse)
    told = await ask(kb, session, "the cake is in the oven")
    assert "I couldn't keep that. The disk is full." in told.finished.text
    assert "Noted" not in told.finished.text


async def test_an_order_to_delete_keeps_and_deletes_nothing_and_names_the_command(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "I'm allergic to peanuts")
    before = journal(kb)
    told = await ask(kb, session, "delete everything about peanuts")
    assert "I'm allergic to peanuts [1]" in told.finished.text
    assert "`/forget peanuts`" in told.finished.text
    assert told.finished.order is not None
    assert (told.finished.order.kind, told.finished.order.about) == ("forget", "peanuts")
    assert journal(kb) == before


async def test_an_order_to_rename_names_the_note_and_one_of_an_unknown_name_is_offered_to_keep(
    kb: KnowledgeBase, session: Session
) -> None:
    path = kb.library.create("topic", "Road to Rome", body="Long.").path
    told = await ask(kb, session, "rename Road to Rome to Via Appia")
    order = told.finished.order
    assert order is not None
    assert (order.about, order.names) == (path, ((path, "Via Appia"),))
    assert "`kbtui rename`" in told.finished.text
    told = await ask(kb, session, "rename the wifi to Casa Azul")
    assert told.finished.order is None
    assert told.finished.not_kept == "rename the wifi to Casa Azul"
    assert "No note is called “the wifi”" in told.finished.text
    assert journal(kb) == ""


async def test_delete_with_nothing_else_is_an_order_if_the_notes_know_what_it_names(
    kb: KnowledgeBase, session: Session
) -> None:
    path = kb.library.create("topic", "Kestrel", body="A bird.").path
    told = await ask(kb, session, "delete Kestrel")
    assert told.finished.order is not None
    assert (told.finished.order.kind, told.finished.order.about) == ("delete", path)
    await ask(kb, session, "I have a peanut allergy since 2019")
    told = await ask(kb, session, "Delete my peanut allergy.")
    assert told.finished.order is not None
    assert (told.finished.order.kind, told.finished.order.about) == ("forget", "my peanut allergy")
    told = await ask(kb, session, "Delete the beta branch")
    assert told.finished.order is None
    assert "Delete the beta branch" in journal(kb)


async def test_undo_that_is_left_to_the_question_of_the_app(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "I'm allergic to peanuts")
    before = journal(kb)
    told = await ask(kb, session, "undo that")
    assert told.finished.order is not None
    assert told.finished.order.kind == "undo"
    assert "`kbtui undo`" in told.finished.text
    assert journal(kb) == before


async def test_an_answer_that_is_to_be_remembered_is_remembered_with_its_question(
    kb: KnowledgeBase, session: Session
) -> None:
    await ask(kb, session, "What's my favorite color?")
    await ask(kb, session, "It's blue. Remember that.")
    assert "- What's my favorite color? It's blue.\n" in memory(kb)
    await ask(kb, session, "I live in the old mill at Ghent. Remember that.")
    assert "- I live in the old mill at Ghent.\n" in memory(kb)
