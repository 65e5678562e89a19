"""The archive: cursors that nothing can lose, lines that nothing can drop."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kbtui.errors import ConflictError, NotFoundError
from kbtui.history.change import Actor, Origin
from kbtui.history.history import History
from kbtui.memory.records.archive import ARCHIVE, PROJECTION, Archive, is_record
from kbtui.memory.records.archive_lines import parse_old_history, read_snapshot
from kbtui.memory.records.cursors import CURSORS, Cursors
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from kbtui.workspace.layout import Workspace

WHEN = "2026-03-06 10:00"


def put(
    history: History,
    archive: Archive,
    content: str = "Something was said.",
    session: str | None = "s",
    messages: tuple[int, int] | None = None,
    **more: Any,
) -> int:
    with history.change(Actor.CONSOLIDATOR, "condensed") as change:
        return archive.stage(
            change, content, session=session, messages=messages, timestamp=WHEN, **more
        )


def lines(workspace: Workspace) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (workspace.root / ARCHIVE).read_text("utf-8").splitlines()]


def test_a_line_is_the_seeds_with_what_it_accounts_for(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    put(history, archive, "- User prefers dark mode\n- Decided to use PostgreSQL", messages=(1, 8))
    (line,) = lines(workspace)
    assert line == {
        "cursor": 1,
        "timestamp": WHEN,
        "content": "- User prefers dark mode\n- Decided to use PostgreSQL",
        "session": "s",
        "messages": [1, 8],
        "origin": "here",
    }


def test_history_md_shows_the_same_entries_dated(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    put(history, archive, f"[{WHEN}] User shared personal preferences.")
    put(history, archive, "USER: hello", raw=True)
    text = (workspace.root / PROJECTION).read_text("utf-8")
    assert text == (f"[{WHEN}] User shared personal preferences.\n\n[{WHEN}] [RAW] USER: hello\n\n")
    assert archive.entries()[0].content == "User shared personal preferences."


def test_archive_facts_and_entries_are_one_commit_that_names_the_cursor(
    history: History, archive: Archive
) -> None:
    with history.change(Actor.CONSOLIDATOR, "condensed", Origin(model="m")) as change:
        archive.stage(change, "x", session="s", messages=(1, 4), timestamp=WHEN)
        change.write("memory/MEMORY.md", "# Facts\n")
    commit = change.result
    assert commit is not None
    assert commit.origin == Origin(session="s", messages=(1, 4), model="m", cursor=1)
    assert {path.path for path in commit.paths} == {ARCHIVE, PROJECTION, "memory/MEMORY.md"}


def test_cursors_count_up_and_entries_are_read_behind_one(
    history: History, archive: Archive
) -> None:
    assert [put(history, archive, f"n{n}") for n in range(3)] == [1, 2, 3]
    assert [entry.cursor for entry in archive.entries(1)] == [2, 3]
    assert [entry.cursor for entry in archive.entries({"here": 2})] == [3]
    assert len(archive.entries({"elsewhere": 9})) == 3
    assert archive.find(2).content == "n1"
    with pytest.raises(NotFoundError):
        archive.find(7)


def test_two_entries_in_one_change_get_two_cursors(
    history: History, archive: Archive, workspace: Workspace
) -> None:
    with history.change(Actor.CONSOLIDATOR, "condensed") as change:
        for n in (1, 2):
            archive.stage(change, f"n{n}", session="s", messages=(n, n), timestamp=WHEN)
    assert [line["cursor"] for line in lines(workspace)] == [1, 2]


def test_bad_and_torn_lines_stay_and_are_reported(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    put(history, archive, "one", messages=(1, 2))
    odd = b'not json\n{"cursor": true, "content": "x"}\n{"cursor": 2}\n[1]\n\xff\xfe\n{"cursor": 9, "con'
    with (workspace.root / ARCHIVE).open("ab") as file:
        file.write(odd)
    assert put(history, archive, "two", messages=(3, 4)) == 2
    assert odd in (workspace.root / ARCHIVE).read_bytes()
    assert [entry.content for entry in archive.entries()] == ["one", "two"]
    assert [line.number for line in archive.problems()] == [2, 3, 4, 5, 6, 7]
    assert "history.jsonl:2" in str(archive.problems()[0])


def test_numbers_no_cursor_can_be_do_no_harm(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    (workspace.root / ARCHIVE).write_text(
        '{"cursor": 99999999999999999999999, "content": "x"}\n'
        '{"cursor": "99999999999999999999999", "content": "x"}\n'
        '{"cursor": ' + "9" * 5000 + ', "content": "x"}\n'
        '{"cursor": "7", "content": "as text"}\n{"cursor": -1, "content": "x"}\n'
    )
    assert put(history, archive) == 8
    assert len(archive.problems()) == 4


def test_a_lost_archive_is_not_consolidated_again_and_its_cursors_are_not_reused(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    put(history, archive, messages=(1, 4))
    put(history, archive, messages=(5, 6))
    (workspace.root / ARCHIVE).unlink()
    history.adopt(settle=0)
    again = Archive(workspace, History(workspace, Scanner(workspace)), "here")
    assert again.covered("s") == [(1, 6)]
    assert put(history, again, messages=(7, 7)) == 3
    assert again.migrate() == 0, "HISTORY.md is its shadow, not an old workspace's"


def test_a_single_lost_line_still_counts_as_covered(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    put(history, archive, messages=(1, 4))
    put(history, archive, messages=(5, 6))
    file = workspace.root / ARCHIVE
    file.write_bytes(file.read_bytes().split(b"\n", 1)[1])
    assert archive.covered("s") == [(1, 6)]
    assert {(each.cursor, each.messages) for each in archive.holdings("s")} == {
        (1, (1, 4)),
        (2, (5, 6)),
    }


def test_what_undo_took_out_of_other_files_stays_archived(
    workspace: Workspace, history: History, archive: Archive, tombstones: object
) -> None:
    with history.change(Actor.CONSOLIDATOR, "condensed") as change:
        archive.stage(change, "x", session="s", messages=(1, 4), timestamp=WHEN)
        change.write("memory/MEMORY.md", "- Likes tea\n")
    assert change.result is not None
    history.undo(change.result.id)
    assert not (workspace.root / "memory/MEMORY.md").exists()
    assert [entry.messages for entry in archive.entries()] == [(1, 4)]
    assert "x" in (workspace.root / PROJECTION).read_text()


def test_two_machines_merge_by_union(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    there = Archive(workspace, history, "there")
    put(history, archive, "a")
    put(history, there, "b")
    put(history, archive, "c")
    mine, theirs, last = (workspace.root / ARCHIVE).read_bytes().splitlines(keepends=True)
    doubled = theirs + mine + last + mine + theirs
    (workspace.root / ARCHIVE).write_bytes(doubled)
    assert [(e.origin, e.cursor, e.content) for e in archive.entries()] == [
        ("here", 1, "a"),
        ("there", 2, "b"),
        ("here", 3, "c"),
    ]
    assert [e.content for e in archive.entries({"here": 3})] == ["b"], "not passed over"


def test_two_entries_under_one_id_are_both_seen(workspace: Workspace, archive: Archive) -> None:
    (workspace.root / ARCHIVE).write_text(
        '{"cursor": 1, "timestamp": "t", "content": "old"}\n'
        '{"cursor": 2, "timestamp": "t", "content": "older"}\n'
        '{"cursor": 1, "timestamp": "t", "content": "after the cursor file was lost"}\n'
    )
    assert len(archive.entries()) == 3
    assert [entry.content for entry in archive.entries({"": 2})] == [
        "after the cursor file was lost"
    ]


def test_another_writer_between_staging_and_applying_loses_nothing(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    put(history, archive, "first", messages=(1, 1))
    other_history = History(workspace, Scanner(workspace))
    other = Archive(workspace, other_history, "here")
    with history.change(Actor.CONSOLIDATOR, "condensed") as change:
        archive.stage(change, "mine", session="s", messages=(2, 2), timestamp=WHEN)
        put(other_history, other, "theirs", session="t", messages=(1, 1))
    assert [(e.cursor, e.content) for e in archive.entries()] == [
        (1, "first"),
        (2, "theirs"),
        (3, "mine"),
    ]
    assert change.result is not None
    assert change.result.origin.cursor == 3
    text = (workspace.root / PROJECTION).read_text()
    assert text.index("first") < text.index("theirs") < text.index("mine")
    assert not list(workspace.memory.glob("*conflict*"))


def test_another_writer_between_a_first_look_and_staging_loses_nothing(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    put(history, archive, "first", messages=(1, 1))
    other_history = History(workspace, Scanner(workspace))
    other = Archive(workspace, other_history, "here")
    with history.change(Actor.CONSOLIDATOR, "condensed") as change:
        assert archive.reword(change, lambda said: said) == 0
        put(other_history, other, "theirs", session="t", messages=(1, 1))
        archive.stage(change, "mine", session="s", messages=(2, 2), timestamp=WHEN)
    assert [entry.content for entry in archive.entries()] == ["first", "theirs", "mine"]
    with suppress(ConflictError), history.change(Actor.YOU, "forgotten") as change:
        assert archive.reword(change, lambda said: said) == 0
        put(other_history, other, "later", session="t", messages=(2, 2))
        archive.reword(change, lambda said: said.upper())
    assert "later" in [entry.content for entry in archive.entries()]


OLD = """# Kept by hand

[2026-03-06 10:00] User shared personal preferences.
Confirmed favorite color is blue.

[2026-03-07 09:30] [RAW] 2 messages
[2026-03-07 09:29] USER: hello
[2026-03-07 09:30] ASSISTANT [tools: grep]: hi

[2026-03-08] Only a day.
"""


def test_an_old_history_md_is_migrated_once_with_a_backup(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    (workspace.root / PROJECTION).write_text(OLD)
    assert archive.migrate() == 4
    assert archive.migrate() == 0
    assert (workspace.root / f"{PROJECTION}.bak").read_text() == OLD
    assert (workspace.root / PROJECTION).read_text() == OLD
    entries = archive.entries()
    assert [entry.timestamp for entry in entries[1:]] == [
        "2026-03-06 10:00",
        "2026-03-07 09:30",
        "2026-03-08 00:00",
    ]
    assert [entry.raw for entry in entries] == [False, False, True, False]
    assert "ASSISTANT [tools: grep]: hi" in entries[2].content
    assert put(history, archive, "new") == 5
    assert (workspace.root / PROJECTION).read_text() == f"{OLD}\n[{WHEN}] new\n\n"


def test_the_first_entry_migrates_what_nobody_had_migrated(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    (workspace.root / PROJECTION).write_text(OLD)
    assert put(history, archive, "new", messages=(1, 2)) == 5
    assert [entry.content for entry in archive.entries()][-1] == "new"
    assert (workspace.root / f"{PROJECTION}.bak").read_text() == OLD


def test_nanobots_own_history_jsonl_goes_on_as_it_is(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    old = '{"cursor": 42, "timestamp": "2026-04-03 00:02", "content": "- User prefers dark mode"}\n'
    (workspace.root / ARCHIVE).write_text(old)
    (workspace.root / "memory/.dream_cursor").write_text("42")
    assert Cursors(workspace, history).seen() == {"": 42}
    assert archive.entries({"": 42}) == []
    assert put(history, archive, "new") == 43
    assert (workspace.root / ARCHIVE).read_text().startswith(old)


@given(st.text(alphabet=st.sampled_from("ab[]0-9 :\nRAWUSE2026-03"), max_size=300))
def test_no_word_of_an_old_history_is_lost(text: str) -> None:
    blocks = parse_old_history(text, "2026-01-01 00:00")
    kept = "".join(f"[{block.timestamp}]{block.content}" for block in blocks)
    for word in text.split():
        assert word.strip("[]") in kept or word[1:11] in kept


def test_it_is_read_once_however_many_sessions_ask_and_again_when_it_has_changed(
    workspace: Workspace, history: History, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(history, archive, messages=(1, 8))
    read: list[str] = []
    kept = archive._read
    monkeypatch.setattr(archive, "_read", lambda path: read.append(path) or kept(path))
    assert archive.covered("s") == [(1, 8)]
    assert all(archive.covered(f"s{number}") == [] for number in range(100))
    assert read.count(ARCHIVE) <= 1
    put(history, Archive(workspace, history, "there"), messages=(9, 12))
    assert archive.covered("s") == [(1, 12)]
    file = workspace.root / ARCHIVE
    file.write_text(file.read_text().replace("[9, 12]", "[9, 14]"))
    assert archive.covered("s") == [(1, 14)]
    assert [entry.messages for entry in archive.entries()] == [(1, 8), (9, 14)]


def test_compaction_moves_only_what_was_seen_and_drops_nothing(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    for n in range(1, 31):
        put(history, archive, f"entry {n}", messages=(n, n))
    before = archive.entries()
    with history.change(Actor.DREAM, "compact") as change:
        assert archive.compact(change, {"here": 20}, keep=5) == 20
    assert len(lines(workspace)) == 10
    assert archive.entries() == before
    assert archive.covered("s") == [(1, 30)]
    assert (workspace.memory / "history-2026.jsonl").read_text().count("\n") == 20
    shown = (workspace.root / PROJECTION).read_text()
    moved = (workspace.memory / "HISTORY-2026.md").read_text()
    assert [f"entry {n}\n" in shown for n in (20, 21, 30)] == [False, True, True]
    assert [f"entry {n}\n" in moved for n in (1, 20, 21)] == [True, True, False]
    assert put(history, archive, "next") == 31


def test_compaction_leaves_everything_that_dream_has_not_seen(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    for n in range(1, 31):
        put(history, archive, f"entry {n}")
    with history.change(Actor.DREAM, "compact") as change:
        assert archive.compact(change, {"elsewhere": 99}, keep=0) == 0
        assert archive.compact(change, 0, keep=0) == 0
    assert change.result is None


def test_the_next_cursor_is_above_what_dream_has_read(
    workspace: Workspace, history: History, archive: Archive
) -> None:
    (workspace.root / CURSORS).write_text('{"dream": {"here": 12}}')
    assert put(history, archive) == 13


@pytest.mark.parametrize("path", [ARCHIVE, PROJECTION, "memory/history-2026.jsonl"])
def test_records_are_known_by_name(path: str) -> None:
    assert is_record(path)
    assert not is_record(path.replace("memory/", "knowledge/"))
    assert not is_record("memory/MEMORY.md")
    assert not is_record("memory/2026-03-06-history-talk.md")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
line_values = st.fixed_dictionaries(
    {},
    optional={
        key: json_values | good
        for key, good in {
            "cursor": st.integers(1, 6),
            "timestamp": st.just(WHEN),
            "content": st.text(max_size=6),
            "session": st.sampled_from(["s", "t"]),
            "messages": st.lists(st.integers(-1, 9), max_size=3),
            "origin": st.sampled_from(["", "a", "b"]),
            "dropped": json_values,
        }.items()
    },
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(line_values | st.binary(max_size=12), max_size=12), st.randoms())
def test_any_file_reads_and_every_good_line_is_behind_some_cursor(
    values: list[Any], random: Any
) -> None:
    raw = [v if isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    raw = [line.replace(b"\n", b" ") for line in raw]
    book = read_snapshot([(ARCHIVE, b"\n".join(raw))])
    good = {
        (v["cursor"], v["content"], v.get("origin", ""))
        for v in values
        if isinstance(v, dict)
        and isinstance(v.get("cursor"), int)
        and not isinstance(v.get("cursor"), bool)
        and 1 <= v["cursor"] <= 6
        and isinstance(v.get("content"), str)
        and isinstance(v.get("origin", ""), str)
    }
    read = {(e.cursor, e.content, e.origin.partition("~")[0]) for e in book.entries}
    assert good <= read
    ids = [(e.origin, e.cursor) for e in book.entries]
    assert len(set(ids)) == len(ids)
    random.shuffle(raw)
    mixed = read_snapshot([(ARCHIVE, b"\n".join([*raw, *raw]))])
    assert {(e.cursor, e.content) for e in mixed.entries} == {
        (e.cursor, e.content) for e in book.entries
    }
