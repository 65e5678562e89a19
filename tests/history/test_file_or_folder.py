"""A file that becomes a folder, or the reverse: recorded, undone, synced, and nothing is lost."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import StorageError, UsageError
from kbtui.history.change import Actor
from kbtui.history.intent import IntentLog
from kbtui.history.objects.branch import Branch
from kbtui.workspace.durable import FileBatch
from tests.history.sync_room import Machine, fsck
from tests.history.test_recovery import Crash, crash_at

if TYPE_CHECKING:
    from pathlib import Path

N, IN_N = "knowledge/n", "knowledge/n/a.md"
OTHER = "knowledge/other.md"
FILE, FOLDER = {N: "a file\nof lines\n"}, {IN_N: "in a folder\nother words\n"}
EDITED_FILE, EDITED_FOLDER = {N: "a file\nof lines\nand more\n"}, {IN_N: "in a folder\nand more\n"}
MORE = {**FOLDER, "knowledge/n/deep/b.md": "deep\n"}


def put(machine: Machine, state: dict[str, str]) -> None:
    """Have just these files under n, as other programs would."""
    place = machine.workspace.root / N
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    for path, text in state.items():
        machine.put(path, text)


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "here", tmp_path / "remote.git")
    machine.write(OTHER, "other\n")
    return machine


@pytest.fixture
def there(here: Machine, tmp_path: Path) -> Machine:
    return Machine(tmp_path / "there", here.remote)


def of_n(machine: Machine) -> dict[str, str]:
    files = machine.files()
    assert files.pop(OTHER) == "other\n"
    return files


WAYS = {"file to folder": (FILE, MORE), "folder to file": (MORE, FILE)}


@pytest.mark.parametrize(("was", "now"), WAYS.values(), ids=WAYS)
def test_it_is_recorded_and_undone_and_done_again(
    here: Machine, was: dict[str, str], now: dict[str, str]
) -> None:
    put(here, was)
    here.history.adopt(settle=0)
    put(here, now)
    made = here.history.adopt(settle=0)
    assert made is not None
    assert {change.path for change in made.paths} | {c.old_path for c in made.paths} >= {*was, *now}
    assert of_n(here) == now
    undone = here.history.undo(made.id)
    assert undone is not None
    assert of_n(here) == was
    here.history.undo(undone.id)
    assert of_n(here) == now
    here.check()


@pytest.mark.parametrize(("was", "now"), WAYS.values(), ids=WAYS)
def test_another_machine_follows(
    here: Machine, there: Machine, was: dict[str, str], now: dict[str, str]
) -> None:
    put(here, was)
    here.sync()
    there.sync()
    put(here, now)
    here.sync()
    there.sync()
    assert of_n(there) == of_n(here) == now
    there.check()


BOTH = {
    "edited there": (FILE, MORE, EDITED_FILE),
    "edited in the folder": (FOLDER, FILE, EDITED_FOLDER),
    "more in the folder": (FOLDER, FILE, MORE),
    "both at once": ({}, FILE, MORE),
    "the same": (FILE, MORE, MORE),
    "removed there": (FILE, MORE, {}),
}


@pytest.mark.parametrize("swapped", [False, True], ids=["here first", "there first"])
@pytest.mark.parametrize(("was", "one", "other"), BOTH.values(), ids=BOTH)
def test_what_both_sides_made_of_it_stays(
    here: Machine,
    there: Machine,
    was: dict[str, str],
    one: dict[str, str],
    other: dict[str, str],
    swapped: bool,
) -> None:
    put(here, was)
    here.sync()
    there.sync()
    put(here, one)
    put(there, other)
    first, second = (there, here) if swapped else (here, there)
    for machine in (first, second, first):
        machine.sync()
    assert of_n(here) == of_n(there)
    changed = {text for state in (one, other) for text in state.values()} - set(was.values())
    kept = "".join(of_n(here).values())
    for line in {line for text in changed for line in text.splitlines()}:
        assert line in kept
    for machine in (here, there):
        assert machine.sync().notes == ()
        machine.check()
        fsck(machine.workspace.repository)


def test_an_undo_keeps_what_came_into_the_folder_since(here: Machine) -> None:
    put(here, FILE)
    here.history.adopt(settle=0)
    put(here, FOLDER)
    made = here.history.adopt(settle=0)
    assert made is not None
    here.write("knowledge/n/later.md", "later\n")
    here.history.undo(made.id)
    assert of_n(here) == {"knowledge/n-2": FILE[N], "knowledge/n/later.md": "later\n"}
    here.check()


def test_an_undo_brings_a_folder_back_beside_what_took_its_name(here: Machine) -> None:
    put(here, FOLDER)
    here.history.adopt(settle=0)
    gone = here.write(IN_N, None)
    put(here, FILE)
    here.history.adopt(settle=0)
    here.history.undo(gone.id)
    assert of_n(here) == {"knowledge/n-2": FILE[N], **FOLDER}
    here.check()


@pytest.mark.parametrize(
    ("standing", "wanted"), [(FILE, IN_N), (FOLDER, N)], ids=["in a file", "over a folder"]
)
def test_nobody_writes_one_over_the_other(
    here: Machine, standing: dict[str, str], wanted: str
) -> None:
    put(here, standing)
    here.history.adopt(settle=0)
    with (
        pytest.raises(UsageError, match="There can be no"),
        here.history.change(Actor.AGENT, "x") as change,
    ):
        change.write(wanted, "x")
    assert of_n(here) == standing


@pytest.mark.parametrize("kind", ["hidden file", "ignored file", "link", "linked folder"])
def test_what_is_not_recorded_and_stands_in_the_way_stays_and_stops_nothing(
    here: Machine, there: Machine, tmp_path: Path, kind: str
) -> None:
    here.sync()
    there.sync()
    root, coming = there.workspace.root, dict(FILE)
    if kind == "hidden file":
        there.put("knowledge/n/.hidden", "mine\n")
        mine = root / N / ".hidden"
    elif kind == "ignored file":
        there.put(".kbtuiignore", "n\n")
        there.put(N, "mine\n")
        mine, coming = root / N, dict(FOLDER)
    else:
        target = tmp_path / "elsewhere"
        target.mkdir()
        mine = target / "a.md"
        mine.write_text("mine\n")
        coming = dict(FILE if kind == "link" else FOLDER)
        (root / N).symlink_to(mine if kind == "link" else target)
    for text in ("one\n", "two\n"):
        put(here, dict.fromkeys(coming, text))
        here.sync()
        there.write(OTHER, f"other {text}")
        there.sync()
        here.sync()
        assert here.text(next(iter(coming))) == text, "it isn't taken for deleted"
        assert here.text(OTHER) == f"other {text}"
    assert mine.read_text() == "mine\n"
    there.check()


@pytest.mark.parametrize(("was", "now"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("place", "name"),
    [(FileBatch, "write_together"), (FileBatch, "sync"), (Branch, "move"), (IntentLog, "clear")],
    ids=["removed", "written", "synced", "moved"],
)
def test_a_crash_on_the_way_leaves_one_or_the_other(
    here: Machine,
    was: dict[str, str],
    now: dict[str, str],
    place: object,
    name: str,
) -> None:
    put(here, was)
    here.history.adopt(settle=0)
    put(here, now)
    made = here.history.adopt(settle=0)
    assert made is not None
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, place, name)
        with pytest.raises(Crash):
            here.history.undo(made.id)
    here.history = here.reopened()
    with here.history.alone():
        pass
    assert of_n(here) in (was, now)
    here.check()


@pytest.mark.parametrize(("was", "now"), WAYS.values(), ids=WAYS)
def test_a_failure_on_the_way_takes_all_back(
    here: Machine, was: dict[str, str], now: dict[str, str]
) -> None:
    put(here, was)
    here.history.adopt(settle=0)
    put(here, now)
    made = here.history.adopt(settle=0)
    assert made is not None
    with pytest.MonkeyPatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "no space left on device")

        patch.setattr(Branch, "move", full)
        with pytest.raises(StorageError):
            here.history.undo(made.id)
    assert of_n(here) == now
    here.check()
