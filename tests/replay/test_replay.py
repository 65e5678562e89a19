"""The replay itself: it finds what differs, holds still what would by itself, and says what it skips."""

from __future__ import annotations

import copy
import inspect
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from kbtui.agent.tools.toolbox import own_tools
from kbtui.agent.tools.writing import WritingTool
from kbtui.mcp_server.backend import Backend
from kbtui.memory.dream.tools import CURATE
from tests.replay import __main__ as command, asked, lives
from tests.replay.accepted import FILE, Accepted, AcceptedError, Entry
from tests.replay.builds import ROOT, Build, is_met, working_tree
from tests.replay.compare import Difference, compare
from tests.replay.lives import LIVES
from tests.replay.recording import Recording
from tests.replay.stage import BEGIN, MissingDataError, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

NOTE = "knowledge/topics/kites.md"


def small_life(folder: str) -> None:
    """Play a few steps; in a process of its own, as `test_replay.small_life` of this module."""
    asked.load(ROOT, models=False)
    stage = Stage(Path(folder, "stage"), [str(ROOT)], None, Path(folder))
    stage.play(_small_life)
    stage.recording.save(Path(folder, "life.json"))


def _small_life(stage: Stage) -> None:
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    desk.write(NOTE, "# Kites\n\nThey fly.\n\nThey fall.\n")
    desk.ask("Kites need wind")
    with desk.mcp() as client:
        client.call("read_entry", entry="kites")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """What was recorded of a small life."""
    folder = tmp_path_factory.mktemp("replay")
    (folder / "home/tmp").mkdir(parents=True)
    code = f"from tests.replay.test_replay import small_life; small_life({str(folder)!r})"
    env = working_tree().environment(folder / "home")
    subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, check=True, timeout=600)
    return Recording.load(folder / "life.json")


def _byte(life: Recording) -> None:
    step = next(each for each in life.steps if NOTE in each.files)
    step.files[NOTE] = "other"
    life.contents["other"] = "# Kites\n\nThey fly!\n\nThey fall.\n"


def _end_of_file(life: Recording) -> None:
    step = next(each for each in life.steps if NOTE in each.files)
    step.files[NOTE] = "other"
    life.contents["other"] = "# Kites\n\nThey fly.\n\nThey fall."


def _past(life: Recording) -> None:
    commit = next(each for each in life.log["desk"] if NOTE in each.files)
    commit.files[NOTE] = "other"
    life.contents["other"] = "# Kites\n\nThey flew.\n\nThey fall.\n"


def _author(life: Recording) -> None:
    commit = next(each for each in life.log["desk"] if NOTE in each.files)
    commit.text = commit.text.replace(
        "You <you@kbtui.invalid>", "kbtui agent <agent@kbtui.invalid>"
    )


def _why(life: Recording) -> None:
    lines = life.why["desk"][NOTE]
    lines[2] = lines[2].replace("by you", "by dream")


def _order(life: Recording) -> None:
    hits = next(each for each in life.hits["desk"].values() if len(each) > 1)
    hits.reverse()


def _tool(life: Recording) -> None:
    step = next(each for each in life.steps if each.tools)
    step.tools[0] = step.tools[0].replace("They fall.", "They rise.")


def _answer(life: Recording) -> None:
    step = next(each for each in life.steps if each.title.startswith("kbtui ask"))
    step.answer = step.answer.replace("Noted", "Kept")


def _end(life: Recording) -> None:
    life.failed = "LifeError: kbtui list ended with 1"


@pytest.mark.parametrize(
    ("plant", "kind", "place"),
    [
        (_byte, "file", f"desk: {NOTE}"),
        (_end_of_file, "file", f"desk: {NOTE}"),
        (_past, "file", f"desk: {NOTE}"),
        (_author, "log", "desk"),
        (_why, "why", f"desk: {NOTE}"),
        (_order, "hits", "desk: "),
        (_tool, "tool", "desk: kbtui mcp"),
        (_answer, "answer", "desk: kbtui ask"),
        (_end, "life", "ends early"),
    ],
)
def test_a_planted_difference_is_found_and_said_where(
    life: Recording, plant: Callable[[Recording], None], kind: str, place: str
) -> None:
    assert compare("small", life, copy.deepcopy(life), ordered=True) == []
    planted = copy.deepcopy(life)
    plant(planted)
    (found,) = compare("small", life, planted, ordered=True)
    assert (found.life, found.kind) == ("small", kind)
    assert found.place.startswith(place)
    assert {line[0] for line in found.lines} == {"-", "+"}


def test_hits_can_be_compared_as_sets(life: Recording) -> None:
    planted = copy.deepcopy(life)
    _order(planted)
    assert compare("small", life, planted, ordered=False) == []


def test_a_line_that_differs_is_told_of_once_and_another_one_later_as_well(life: Recording) -> None:
    planted = copy.deepcopy(life)
    _byte(planted)
    later = planted.steps[-1]
    later.files[NOTE] = "more"
    planted.contents["more"] = "# Kites\n\nThey fly!\n\nThey sink.\n"
    first, second = compare("small", life, planted, ordered=True)
    assert first.lines == ("-They fly.", "+They fly!")
    assert second.lines == ("-They fall.", "+They sink.")
    assert second.when.startswith(f"step {later.number} ")


def test_a_step_more_is_told_of_and_those_that_follow_are_still_compared_with_theirs(
    life: Recording,
) -> None:
    planted = copy.deepcopy(life)
    at = next(n for n, each in enumerate(life.steps) if NOTE in each.files)
    more = copy.deepcopy(planted.steps[at])
    more.title, more.files = "kbtui list", {NOTE: "other"}
    planted.contents["other"] = "# Kites\n\nThey fly!\n\nThey fall.\n"
    planted.steps.insert(at + 1, more)
    step, file = sorted(compare("small", life, planted, ordered=True), key=lambda each: each.kind)
    assert (step.kind, step.place) == ("answer", "desk: kbtui list")
    assert (file.kind, file.lines) == ("file", ("-They fly.", "+They fly!"))


def test_clock_ids_and_machine_are_fixed(life: Recording) -> None:
    told = next(step for step in life.steps if step.title.startswith("kbtui ask"))
    assert told.time.date() == BEGIN.date()
    (session,) = [path for path in told.files if path.startswith("sessions/")]
    assert f"cli_{told.time.astimezone():%Y%m%d}" in session
    logged = [each.text for each in life.log["desk"]]
    assert all(f"<{BEGIN:%m-%d} " in text.partition("\n")[0] for text in logged)
    today = f"{datetime.now().astimezone():%Y-%m-%d}"
    assert today not in json.dumps([*life.contents.values(), logged])


def _difference(**other: str) -> Difference:
    found = {"life": "first-day", "kind": "file", "place": "desk: a.md", **other}
    return Difference(lines=("-old", "+new"), **found)


REASON = "The new text says who wrote it."


@pytest.mark.parametrize(
    ("entry", "accepts"),
    [
        (Entry("first-*", "file", "desk: *.md", REASON), True),
        (Entry("first-day", "*", "*", REASON, ("-old", "+n*")), True),
        (Entry("first-day", "file", "desk: a.md", REASON, ("+new",)), False),
        (Entry("other", "file", "*", REASON), False),
        (Entry("*", "log", "*", REASON), False),
        (Entry("*", "*", "sofa: *", REASON), False),
    ],
)
def test_what_is_accepted_is_no_failure_and_an_entry_without_use_is_one(
    entry: Entry, accepts: bool
) -> None:
    found = _difference()
    refused, unused = Accepted((entry,)).judge([found], ["first-day", "other"])
    assert refused == ([] if accepts else [found])
    assert unused == ([] if accepts else [entry])


def test_an_entry_for_lives_that_are_not_played_may_wait() -> None:
    entry = Entry("other", "file", "*", REASON)
    assert Accepted((entry,)).judge([], ["first-day"]) == ([], [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[accepted]]\nlife = "*"\nkind = "file"\nplace = "*"\n', "why is missing"),
        (f'[[accepted]]\nlife = "*"\nkind = "fyle"\nplace = "*"\nwhy = "{REASON}"\n', "kind"),
        ('[[accepted]]\nlife = "*"\nkind = "file"\nplace = "*"\nwhy = "better"\n', "sentence"),
        (f'[[accepted]]\nlive = "*"\nwhy = "{REASON}"\n', "nothing is called live"),
        ('hits = "any"\n', "ordered"),
    ],
)
def test_what_accepts_without_saying_why_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "accepted.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(AcceptedError, match=said):
        Accepted.read(file)


def test_the_projects_own_list_can_be_read() -> None:
    assert Accepted.read(FILE).entries is not None


def test_without_the_commit_it_says_so_and_skips(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--against", "0" * 40]) == 0
    assert capsys.readouterr().out.startswith("skipped: ")


def test_a_life_without_its_data_is_skipped(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "stage", [str(ROOT)], None, tmp_path)
    with pytest.raises(MissingDataError, match="vaults/foam"):
        LIVES["renames-in-foam"].play(stage)


def test_a_difference_fails_and_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command.Outcome("first-day", differences=[_difference()])
    assert command.report([outcome], Accepted(), None) == 1
    shown = capsys.readouterr().out
    assert "first-day · file · desk: a.md" in shown
    assert "    -old\n    +new\n" in shown
    accepted = Accepted((Entry("*", "file", "*", REASON),))
    assert command.report([outcome], accepted, None) == 0
    assert command.report([command.Outcome("first-day")], accepted, None) == 1


def test_requirements_that_are_not_met_are_noticed() -> None:
    assert is_met(Requirement("packaging>=1"))
    assert not is_met(Requirement("packaging<1"))
    assert not is_met(Requirement("kbtui-has-no-such-friend"))


def test_there_are_thirty_lives_and_each_writing_tool_is_called_in_one() -> None:
    assert len(LIVES) >= 30
    assert all(each.about.endswith(".") for each in LIVES.values())
    played = "".join(inspect.getsource(getattr(lives, name)) for name in lives.MODULES)
    backend = Backend(lambda: pytest.fail("no workspace is needed"), "batch", read_only=False)
    tools = {offer.spec.name for offer in backend.offers() if offer.writes}
    tools |= {tool.spec.name for tool in own_tools() if isinstance(tool, WritingTool)}
    tools |= set(CURATE.parameters["properties"]["edits"]["items"]["properties"]["do"]["enum"])
    assert {name for name in tools if f'"{name}"' not in played} == set()


def test_a_build_is_asked_for_its_own_code(tmp_path: Path) -> None:
    build = Build("old", tmp_path, Path(sys.executable))
    assert build.environment(tmp_path)["PYTHONPATH"].startswith(f"{tmp_path}:")
