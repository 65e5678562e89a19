"""One rule for names: what one machine records every other one takes, and nothing else is recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor
from kbtui.history.history import History
from kbtui.workspace import files
from kbtui.workspace.layout import conflict_copy_of
from kbtui.workspace.scan import Scanner
from tests.history.sync_room import Machine, fsck
from tests.history.test_sync_beside import Clone

if TYPE_CHECKING:
    from pathlib import Path

ZOO, PLAIN = "knowledge/topics/zoo.md", "knowledge/topics/plain.md"
RECORDED = {
    "colon": "knowledge/topics/12:30.md",
    "CON": "knowledge/CON",
    "NUL": "knowledge/topics/NUL.md",
    "aux.md": "knowledge/topics/aux.md",
    "case of other letters": "knowledge/topics/Straße.md",
    "NFD": "knowledge/topics/cafe\u0301.md",
    "255 bytes": "knowledge/topics/" + "x" * 252 + ".md",
    "nearly too deep": "knowledge/" + "d/" * (files.MAX_DEPTH - 2) + "a.md",
    "leading dash": "knowledge/topics/-rf.md",
    "like our own, not hidden": "knowledge/kbtui/history.git/HEAD",
    "invisible first": "knowledge/topics/\u200ba.md",
}
ODD = {
    "blank at the end": "knowledge/topics/odd ",
    "dot at the end": "knowledge/topics/odd.",
    "folder with a dot at the end": "knowledge/odd./a.md",
    "blank folder": "knowledge/ /a.md",
    "stream": "knowledge/topics/a.md::$DATA",
    "too deep": "knowledge/" + "d/" * 60 + "a.md",
}
TWINS = {
    "a file": "knowledge/topics/ZOO.md",
    "a folder": "knowledge/Topics/other.md",
}
NEVER = {
    "backslash": "knowledge/topics/a\\b.md",
    "control": "knowledge/topics/a\x07b.md",
    "line break": "knowledge/topics/a\nb.md",
    "bidi": "knowledge/topics/a\u202egpj.md",
    "tag letters": "knowledge/topics/a\U000e0041.md",
    "no text": "knowledge/topics/bad\udcff.md",
    "much too deep": "knowledge/" + "d/" * 500 + "a.md",
    "git with a joiner": "knowledge/.g\u200cit/config",
    "short git": "knowledge/git~1/config",
    "hidden": "knowledge/.hidden.md",
    "like our own": "knowledge/.kbtui/history.git/HEAD",
}
PASSED_OVER = {
    "editor's": "knowledge/topics/#a.md#",
    "backup": "knowledge/topics/a.md~",
    "our copy": "knowledge/topics/a.conflict-20260101T000000.md",
}


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "here", tmp_path / "remote.git")
    machine.write(ZOO, "# Zoo\n")
    machine.sync()
    return machine


@pytest.fixture
def there(here: Machine, tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "there", here.remote)
    machine.sync()
    return machine


@pytest.fixture
def old(here: Machine, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """`here` runs an older version, which took any name that it could read."""
    monkeypatch.setattr(files, "name_trouble", lambda _: "")
    return monkeypatch


@pytest.mark.parametrize("path", (RECORDED | ODD | NEVER | PASSED_OVER).values(), ids=str.__repr__)
def test_what_is_recorded_here_is_taken_there(here: Machine, there: Machine, path: str) -> None:
    try:
        here.put(path, "odd\n")
    except OSError:
        pytest.skip("this disk has no such names")
    here.put(PLAIN, "plain\n")
    here.sync()
    assert there.sync().received == 1
    assert there.text(PLAIN) == "plain\n"
    assert there.files() == here.files()
    assert len(here.files()) == (3 if path in RECORDED.values() else 2)


@pytest.mark.parametrize("path", [*(ODD | NEVER).values(), TWINS["a file"]], ids=str.__repr__)
def test_no_such_name_goes_through_the_door(here: Machine, path: str) -> None:
    with pytest.raises(KbtuiError) as caught, here.history.change(Actor.AGENT, "odd") as change:
        change.write(path, "x")
    assert caught.value.message.isprintable()
    assert here.files() == {ZOO: "# Zoo\n"}


@pytest.mark.parametrize("path", (ODD | TWINS).values(), ids=str.__repr__)
def test_an_old_history_with_an_odd_name_syncs_again(
    here: Machine, there: Machine, old: pytest.MonkeyPatch, path: str
) -> None:
    here.put(path, "odd\n")
    here.put(PLAIN, "plain\n")
    assert here.history.adopt(settle=0) is not None
    here.sync()
    old.undo()
    here.history = here.reopened()
    assert len(here.files()) == 3, "what is recorded stays so"
    there.write("knowledge/topics/theirs.md", "theirs\n")
    report = there.sync()
    assert any("can't be used on every machine" in note for note in report.notes)
    assert sorted(there.files().values()) == ["# Zoo\n", "odd\n", "plain\n", "theirs\n"]
    assert all(map(files.is_portable, there.files()))
    assert len({name.casefold() for name in there.files()}) == 4
    here.put(path, "odd, and edited\n")
    here.sync()
    there.sync()
    assert here.files() == there.files()
    assert "odd, and edited\n" in here.files().values()
    assert here.sync().notes == there.sync().notes == ()
    fsck(there.workspace.repository)


def test_folders_that_differ_only_in_case_become_one(here: Machine, there: Machine) -> None:
    here.put("knowledge/Topics/zoo.md", "another zoo\n")
    here.put("knowledge/Topics/a.md", "a\n")
    here.sync()
    there.sync()
    assert set(there.files()) == {ZOO, "knowledge/topics/a.md", "knowledge/topics/zoo-2.md"}


def test_notes_made_on_two_machines_that_differ_only_in_case_stay_both(
    here: Machine, there: Machine
) -> None:
    here.write("knowledge/topics/Plan.md", "of here\n")
    there.write("knowledge/topics/plan.md", "of there\n")
    here.sync()
    there.sync()
    here.sync()
    assert here.files() == there.files()
    assert sorted(here.files().values()) == ["# Zoo\n", "of here\n", "of there\n"]
    assert "knowledge/topics/plan.md" in there.files()


@pytest.mark.parametrize("edited", [False, True])
def test_a_rename_that_changes_only_the_case_is_one(
    here: Machine, there: Machine, *, edited: bool
) -> None:
    with here.history.change(Actor.YOU, "rename") as change:
        change.rename(ZOO, "knowledge/topics/Zoo.md")
    if edited:
        there.write(ZOO, "# Zoo\n\nMore.\n")
    here.sync()
    there.sync()
    here.sync()
    assert list(here.files()) == list(there.files()) == ["knowledge/topics/Zoo.md"]
    assert ("More." in here.text("knowledge/topics/Zoo.md")) is edited


@pytest.mark.parametrize(
    "path", [*RECORDED.values(), *PASSED_OVER.values(), *(ODD | TWINS).values()], ids=str.__repr__
)
def test_what_a_git_program_pushes_is_taken_and_edited(
    here: Machine, tmp_path: Path, path: str
) -> None:
    clone = Clone(tmp_path / "clone", tmp_path / "remote.git")
    clone.push({path: "theirs\n", PLAIN: "plain\n"})
    here.sync()
    [made] = here.files().keys() - {ZOO, PLAIN}
    here.put(made, "theirs, edited here\n")
    here.sync()
    clone.pull()
    assert (clone.folder / made).read_text() == "theirs, edited here\n"
    clone.push({made: "theirs, edited there\n"})
    here.sync()
    assert here.text(made) == "theirs, edited there\n"
    here.put(made, None)
    here.sync()
    assert set(here.files()) == {ZOO, PLAIN}


def test_a_file_to_be_ignored_neither_stops_a_sync_nor_goes_along(
    here: Machine, there: Machine
) -> None:
    here.put(".kbtuiignore", "zoo.md\n")
    here.put(ZOO, "private by now\n")
    for number in range(2):
        there.write(ZOO, f"# Zoo {number}\n")
        there.sync()
        here.sync()
        here.write(PLAIN, f"plain {number}\n")
        here.sync()
        there.sync()
        assert here.text(ZOO) == "private by now\n"
        assert there.files() == {ZOO: f"# Zoo {number}\n", PLAIN: f"plain {number}\n"}
    assert here.history.diff("HEAD") == ()
    there.write("knowledge/people/zoo.md", "another zoo\n")
    there.sync()
    here.sync()
    assert here.history.adopt(settle=0) is None, "what came is not taken for deleted"
    here.sync()
    there.sync()
    assert there.text("knowledge/people/zoo.md") == "another zoo\n"


def test_the_wrong_kind_of_thing_at_the_top_stops_nothing(here: Machine, there: Machine) -> None:
    here.put("SOUL.md/a.md", "x\n")
    (here.workspace.root / "skills").rmdir()
    here.put("skills", "x\n")
    here.put(PLAIN, "plain\n")
    here.sync()
    there.sync()
    assert there.files() == here.files() == {ZOO: "# Zoo\n", PLAIN: "plain\n"}


def test_both_versions_of_a_file_with_a_very_long_name_are_kept(here: Machine) -> None:
    path = RECORDED["255 bytes"]
    here.write(path, "one\n")
    with (
        pytest.raises(KbtuiError, match="kept in"),
        here.history.change(Actor.AGENT, "x") as change,
    ):
        change.write(path, "two\n", expecting="0" * 40)
    copy = conflict_copy_of("ä" * 125 + ".md", "20260101T000000")
    assert len(copy.encode()) <= 255
    assert copy.endswith(".conflict-20260101T000000.md")


@pytest.mark.parametrize("year", [1, 1969, 2500, 9999])
def test_a_clock_that_is_wrong_by_centuries_stops_no_sync(
    here: Machine, there: Machine, year: int
) -> None:
    clock = lambda: datetime(year, 6, 1, tzinfo=UTC)  # noqa: E731
    here.history = History(here.workspace, Scanner(here.workspace), clock)
    here.write(PLAIN, "plain\n")
    here.sync()
    assert there.sync().received == 1
    assert next(commit.subject for commit in there.history.log()) == "topics/plain created"
    fsck(there.workspace.repository)


def test_nothing_too_large_for_others_goes_through_the_door(
    here: Machine, there: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "READ_LIMIT", 1000)
    with pytest.raises(KbtuiError, match="larger than"), here.history.change(Actor.YOU, "x") as big:
        big.write(PLAIN, "x" * 1001)
    assert here.files() == {ZOO: "# Zoo\n"}
