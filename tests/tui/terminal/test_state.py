"""Drafts and earlier input, from one run to the next."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

from kbtui.tui.terminal.state import (
    Drafts,
    InputHistory,
    state_folder,
    workspace_state,
    write_state,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_draft_comes_back_and_an_empty_one_goes(tmp_path: Path) -> None:
    Drafts(tmp_path).save("half a\nthought")
    assert Drafts(tmp_path).load() == "half a\nthought"
    Drafts(tmp_path).save("  ")
    assert Drafts(tmp_path).load() == ""


def test_the_draft_of_a_process_that_runs_is_left_to_it(tmp_path: Path) -> None:
    file = workspace_state(tmp_path) / f"draft-{os.getppid()}.md"
    write_state(file, "being written")
    Drafts(tmp_path).save("mine")
    assert Drafts(tmp_path).load() == "mine"
    assert file.read_text() == "being written"


def test_what_another_process_left_meanwhile_stays(tmp_path: Path) -> None:
    mine = Drafts(tmp_path)
    assert mine.load() == ""
    left_by_another_process(tmp_path, "of the other")
    mine.keep("mine")
    mine.keep("")
    mine.save("")
    assert Drafts(tmp_path).load() == "of the other"


def test_a_killed_process_of_the_same_number_leaves_its_draft(tmp_path: Path) -> None:
    Drafts(tmp_path).keep("of the killed one")
    assert Drafts(tmp_path).load() == "of the killed one"


def test_what_is_kept_while_the_app_ends_comes_after_nothing(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path)
    drafts.keep("half")
    drafts.save("half a thought")
    drafts.keep("half")  # in a thread that was overtaken
    assert Drafts(tmp_path).load() == "half a thought"


def left_by_another_process(root: Path, text: str) -> None:
    code = "import sys; from pathlib import Path; from kbtui.tui.terminal.state import Drafts;"
    code += "Drafts(Path(sys.argv[1])).save(sys.argv[2])"
    subprocess.run([sys.executable, "-c", code, root, text], check=True)


def test_what_is_kept_is_private(tmp_path: Path) -> None:
    Drafts(tmp_path).save("secret thought")
    folder = workspace_state(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]


def test_each_workspace_has_a_state_of_its_own(tmp_path: Path) -> None:
    Drafts(tmp_path / "a").save("of a")
    assert Drafts(tmp_path / "b").load() == ""


def test_a_state_folder_that_can_not_be_written_costs_nothing_else(tmp_path: Path) -> None:
    state_folder().parent.mkdir(parents=True, exist_ok=True)
    state_folder().write_text("a file where the folder should be")
    assert not write_state(state_folder() / "x" / "draft.md", "text")
    Drafts(tmp_path).save("lost, but no crash")
    history = InputHistory()
    history.attach(tmp_path)
    history.add("said")
    assert history.entries == ["said"]


def test_history_is_walked_back_and_forth_and_the_unsent_text_comes_back() -> None:
    history = InputHistory(["one", "two"])
    assert history.earlier("half") == "two"
    assert history.earlier("two") == "one"
    assert history.earlier("one") is None
    assert history.later() == "two"
    assert history.later() == "half"
    assert history.later() is None


def test_history_outlives_the_run_with_secrets_taken_out(tmp_path: Path) -> None:
    first = InputHistory()
    first.attach(tmp_path)
    first.add("what about\nauth?")
    first.add("what about\nauth?")
    first.add("my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ")
    second = InputHistory()
    second.attach(tmp_path)
    assert second.entries[0] == "what about\nauth?"
    assert len(second.entries) == 2
    assert "abcdefghijklmnopqrstuvwxyz" not in second.entries[1]


def test_what_was_said_before_the_workspace_was_open_comes_last(tmp_path: Path) -> None:
    first = InputHistory()
    first.attach(tmp_path)
    first.add("old")
    second = InputHistory()
    second.add("new")
    second.attach(tmp_path)
    assert second.entries == ["old", "new"]


def test_a_damaged_history_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    first = InputHistory()
    first.attach(tmp_path)
    first.add("kept")
    file = workspace_state(tmp_path) / "input.jsonl"
    file.write_text(file.read_text() + "{torn", encoding="utf-8")
    second = InputHistory()
    second.attach(tmp_path)
    assert second.entries == ["kept"]


def test_history_is_searched_by_words_newest_first() -> None:
    history = InputHistory(["ask about auth", "tell a story", "auth again", "auth again"])
    assert history.search("auth") == ["auth again", "ask about auth"]
    assert history.search("AUTH ask") == ["ask about auth"]
