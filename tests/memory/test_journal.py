"""The journal keeps what was typed, to the character, and takes nothing away."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import ConflictError, UsageError, WorkspaceBusyError
from kbtui.history.change import Actor, Change, Origin
from kbtui.history.history import History
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.records.journal import Journal
from kbtui.offline.lines import lines_of
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WHEN = datetime(2026, 11, 23, 9, 14, tzinfo=UTC)
ORIGIN = Origin("s1", (3, 3), "t1")


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(tmp_path / "notes", create=True) as opened:
        yield opened


@pytest.fixture
def journal(kb: KnowledgeBase) -> Journal:
    return kb.journal


def read(kb: KnowledgeBase, path: str) -> str:
    return kb.workspace.place(path).read_bytes().decode()


def test_no_line_is_refused_however_many_others_write_to_the_same_day(
    kb: KnowledgeBase, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = History(kb.workspace, Scanner(kb.workspace))
    path = journal.keep("the first", WHEN, ORIGIN).path
    looked = Change.read

    def written_to_meanwhile(change: Change, asked: str) -> bytes | None:
        found = looked(change, asked)
        with suppress(WorkspaceBusyError), others.alone(0.01):
            file = kb.workspace.place(path)
            file.write_text(f"{file.read_text()}- 09:14 another\n")
            others.adopt(settle=0)
        return found

    monkeypatch.setattr(Change, "read", written_to_meanwhile)
    journal.keep("the last", WHEN, ORIGIN)
    said = [line.text for line in lines_of(read(kb, path))]
    assert (said[0], said[1], said[-1]) == ("the first", "another", "the last")
    assert [file.name for file in kb.workspace.memory.glob("*.md")] == [path.split("/")[1]]


@pytest.mark.parametrize(
    "text",
    [
        "No alcohol for dad with the new tablets",
        "  two  blanks, *stars*, [[links]] & <tags>  ",
        "a list:\n- one\n- two\n\nand an end",
        "أبي لا يأكل السمك",
        "父は魚を食べません",
        "# not a heading",
        "x",
        "word " * 700,
        "- a dash",
        "1. a number",
        "---\ntitle: x\n---\nbody",
        "said:\n```\n- 10:00 code\n```\n> and quoted",
        "a\n===\n- 10:00 b",
    ],
)
def test_every_word_stands_there_as_it_was_typed(
    kb: KnowledgeBase, journal: Journal, text: str
) -> None:
    noted = journal.keep(text, WHEN, ORIGIN)
    note = read(kb, noted.path)
    assert " ".join(text.split()) in " ".join(note.split())
    (line,) = lines_of(note)
    assert line.text == " ".join(text.split())
    assert (line.first, line.time) == (noted.line, noted.time)


def test_a_line_has_its_time_and_its_message_behind_it(kb: KnowledgeBase, journal: Journal) -> None:
    noted = journal.keep("the boiler is at 0.4", WHEN, ORIGIN)
    local = WHEN.astimezone()
    assert noted.path == f"memory/{local:%Y-%m-%d}.md"
    assert read(kb, noted.path).endswith(f"\n- {local:%H:%M} the boiler is at 0.4\n")
    why = kb.provenance.why(noted.path, noted.line)
    assert why.commit is not None
    assert why.commit.actor is Actor.YOU
    assert why.origin.origin == ORIGIN


def test_lines_follow_each_other_and_what_else_stands_there_stays(
    kb: KnowledgeBase, journal: Journal
) -> None:
    first = journal.keep("one", WHEN, ORIGIN)
    file = kb.workspace.place(first.path)
    file.write_text(file.read_text() + "\n## Flush\n\n- by a machine\n")
    kb.history.adopt(settle=0)
    journal.keep("two", WHEN, ORIGIN)
    lines = [line for line in file.read_text().splitlines() if line]
    assert [line.partition(" ")[2][6:] for line in lines[1:3]] == ["one", "two"]
    assert lines[3:] == ["## Flush", "- by a machine"]


def test_a_task_has_a_box(kb: KnowledgeBase, journal: Journal) -> None:
    noted = journal.keep("call the bank", WHEN, ORIGIN, task=True)
    assert f"- [ ] {noted.time} call the bank\n" in read(kb, noted.path)


def test_the_same_message_twenty_times_is_one_line(kb: KnowledgeBase, journal: Journal) -> None:
    kept = [journal.keep("the same", WHEN, ORIGIN) for _ in range(20)]
    assert [each.commit is not None for each in kept] == [True, *[False] * 19]
    assert read(kb, kept[0].path).count("the same") == 1


def test_a_relative_day_has_its_date_behind_it_and_loses_no_word(
    kb: KnowledgeBase, journal: Journal
) -> None:
    noted = journal.keep("dentist tomorrow at 9", WHEN, ORIGIN)
    assert noted.text == "dentist tomorrow (2026-11-24) at 9"
    assert noted.text in read(kb, noted.path)


@pytest.mark.parametrize("text", ["", " \n ", "--- \n---", "\x1b"])
def test_what_says_nothing_is_refused(journal: Journal, text: str) -> None:
    with pytest.raises(UsageError, match="nothing to keep"):
        journal.keep(text, WHEN, ORIGIN)


def test_undoing_the_turn_takes_the_line_away_and_it_may_be_said_again(
    kb: KnowledgeBase, journal: Journal
) -> None:
    journal.keep("rent is 1,100", WHEN, ORIGIN)
    kb.history.undo_turn("t1")
    assert kb.journal.days() == []
    again = journal.keep("rent is 1,100", WHEN, Origin("s1", (5, 5), "t2"))
    assert again.commit is not None


def test_what_no_longer_holds_is_struck_out_and_points_to_what_does(
    kb: KnowledgeBase, journal: Journal
) -> None:
    old = journal.keep("release meeting:\n- Thursday at 10", WHEN, ORIGIN)
    new = journal.keep("it is on Friday", WHEN, ORIGIN)
    journal.mark_past(old.path, old.line, old.text, new, ORIGIN)
    note = read(kb, old.path)
    day = f"{WHEN.astimezone():%Y-%m-%d}"
    assert f"- ~~{old.time} release meeting:~~\n  - ~~Thursday at 10~~ → {day} {new.time}\n" in note
    assert [line.text for line in lines_of(note)] == ["it is on Friday"]


def test_a_sentence_of_an_entry_is_struck_out_by_itself(
    kb: KnowledgeBase, journal: Journal
) -> None:
    made = kb.library.create("person", "Maria", body="Maria is a nurse. She lives\nin Lisbon. Yes.")
    new = journal.keep("Maria moved to Porto", WHEN, ORIGIN)
    text = read(kb, made.path)
    (old,) = [line for line in lines_of(text) if "Lisbon" in line.text]
    journal.mark_past(made.path, old.first, old.text, new, ORIGIN)
    changed = read(kb, made.path)
    assert (
        f"Maria is a nurse. ~~She lives~~\n~~in Lisbon.~~ → {WHEN.astimezone():%Y-%m-%d}" in changed
    )
    assert [each.text for each in lines_of(changed)] == ["Maria is a nurse.", "Yes."]


def test_a_line_that_was_changed_meanwhile_is_left_alone(journal: Journal) -> None:
    new = journal.keep("it is on Friday", WHEN, ORIGIN)
    with pytest.raises(ConflictError, match="changed meanwhile"):
        journal.mark_past(new.path, 3, "something else", new, ORIGIN)


def vault(tmp_path: Path, settings: str) -> KnowledgeBase:
    folder = tmp_path / "vault"
    (folder / ".obsidian").mkdir(parents=True)
    (folder / ".obsidian/daily-notes.json").write_text('{"folder": "Daily"}')
    (folder / "Daily").mkdir()
    text = "# Monday\r\n\r\nwoke early\r\n\r\n## Journal\r\n\r\n- 07:00 tea\r\n\r\n## Sleep\r\n\r\n7 h\r\n"
    (folder / f"Daily/{WHEN.astimezone():%Y-%m-%d}.md").write_bytes(text.encode())
    return KnowledgeBase.open(folder, overrides={"memory": {"journal": settings}})


def test_in_a_vault_it_is_a_section_of_the_daily_note_if_its_owner_says_so(tmp_path: Path) -> None:
    with vault(tmp_path, "daily") as kb:
        noted = kb.journal.keep("rain", WHEN, ORIGIN)
        assert noted.path == f"knowledge/Daily/{WHEN.astimezone():%Y-%m-%d}.md"
        assert read(kb, noted.path) == (
            "# Monday\r\n\r\nwoke early\r\n\r\n## Journal\r\n\r\n- 07:00 tea\r\n"
            f"- {noted.time} rain\r\n\r\n## Sleep\r\n\r\n7 h\r\n"
        )
        assert noted.path in kb.journal.days()


def test_else_it_lies_beside_the_vault(tmp_path: Path) -> None:
    with vault(tmp_path, "own") as kb:
        noted = kb.journal.keep("rain", WHEN, ORIGIN)
        assert noted.path.startswith("memory/")
        assert "rain" not in read(kb, f"knowledge/Daily/{WHEN.astimezone():%Y-%m-%d}.md")


@pytest.mark.parametrize(
    "text",
    [
        "Lunch was ~~bad~~ great with Tom",
        "> quoted by mum",
        "100%% sure and 50%% not",
        "%%a note%%",
        "<!-- hidden -->text",
        "the area is 3 ^2",
    ],
)
def test_markup_in_a_message_is_kept_once_and_hides_no_other_line(
    kb: KnowledgeBase, journal: Journal, text: str
) -> None:
    journal.keep("a line before, with ~~ and %% and <!-- in it", WHEN, ORIGIN)
    noted = journal.keep(text, WHEN, ORIGIN)
    journal.keep("a line behind, with ~~ and %% and --> in it", WHEN, ORIGIN)
    note = read(kb, noted.path)
    assert note.split("\n")[noted.line - 1] == f"- {noted.time} {text}"
    assert journal.keep(text, WHEN, ORIGIN).commit is None, "it stands there already"
    said = [line.text for line in lines_of(note)]
    assert said[0].startswith("a line before")
    assert said[-1].startswith("a line behind")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Die Feier war schon", "Die Feier war schön"),
        ("かきを買った", "かぎを買った"),
        ("der Preis ist x2", "der Preis ist x²"),
        ("ask Will", "ask will"),
    ],
)
def test_texts_that_a_mark_tells_apart_are_both_kept(
    kb: KnowledgeBase, journal: Journal, one: str, other: str
) -> None:
    path = journal.keep(one, WHEN, ORIGIN).path
    assert journal.keep(other, WHEN, ORIGIN).commit is not None
    assert [line.text for line in lines_of(read(kb, path))] == [one, other]


@pytest.mark.parametrize(
    ("note", "text"),
    [
        ("~5 km to the lake.\n\nThen a swim.\n", "~5 km to the lake."),
        ("It is ~~old~~ new.\n", "It is new."),
        ("| a | b |\n|---|---|\n| c | d |\n", "c | d"),
        ("> said by\n> mum.\n", "said by mum."),
    ],
)
def test_what_striking_out_would_spoil_is_left_alone(
    kb: KnowledgeBase, journal: Journal, note: str, text: str
) -> None:
    path = kb.workspace.place("knowledge/topics/lake.md")
    path.write_text(note)
    newer = journal.keep("It is 6 km", WHEN, ORIGIN)
    (line,) = [each for each in lines_of(note) if " ".join(each.text.split()) == text]
    with pytest.raises(ConflictError):
        journal.mark_past("knowledge/topics/lake.md", line.first, line.text, newer, ORIGIN)
    assert path.read_text() == note


def test_in_a_note_of_windows_line_ends_a_message_of_two_paragraphs_is_one_line(
    kb: KnowledgeBase, journal: Journal
) -> None:
    path = journal.keep("first", WHEN, ORIGIN).path
    file = kb.workspace.place(path)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    old = journal.keep("one\n\ntwo", WHEN, ORIGIN)
    newer = journal.keep("three", WHEN, ORIGIN)
    note = read(kb, path)
    assert [line.text for line in lines_of(note)] == ["first", "one two", "three"]
    journal.mark_past(path, old.line, "one two", newer, ORIGIN)
    struck = read(kb, path)
    assert [line.text for line in lines_of(struck)] == ["first", "three"]
    assert struck.count("\r\n") == struck.count("\n")


@pytest.mark.parametrize(
    "text",
    ["mail tomorrow@x.com", "https://x.com/today", "see today.md", "#today", "path/to/today/x"],
)
def test_an_address_gets_no_date(kb: KnowledgeBase, journal: Journal, text: str) -> None:
    noted = journal.keep(text, WHEN, ORIGIN)
    assert read(kb, noted.path).endswith(f" {text}\n")


def test_a_name_that_only_past_lines_have_keeps_its_page(
    kb: KnowledgeBase, journal: Journal
) -> None:
    old = journal.keep("the flat belongs to Silke", WHEN, ORIGIN)
    newer = journal.keep("the flat belongs to Mira", WHEN, ORIGIN)
    journal.mark_past(old.path, old.line, old.text, newer, ORIGIN)
    (line,) = kb.names.lines("Silke")
    assert line.is_past
    assert line.when == "2026-11-23 09:14"
    assert line.line.text == "~~the flat belongs to Silke~~ → 2026-11-23 09:14"
    assert not kb.names.lines("Mira")[0].is_past


def test_nothing_is_written_into_code_that_looks_like_a_heading(
    kb: KnowledgeBase, journal: Journal
) -> None:
    path = journal.keep("the first", WHEN, ORIGIN).path
    code = "\n```sh\n## build\nmake\n```\n"
    kb.workspace.place(path).write_text(f"{read(kb, path)}{code}")
    journal.keep("the second", WHEN, ORIGIN)
    assert code in read(kb, path)
    assert [line.text for line in lines_of(read(kb, path))] == ["the first", "the second"]
