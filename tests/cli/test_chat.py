"""`kbtui chat`: a conversation by lines, from a terminal that can nothing or from a pipe."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.agent.events import TextDelta, TurnFinished
from kbtui.cli.ask import TextView
from kbtui.workspace.layout import Layout
from tests.terminal import CTRL_C, CTRL_D, Terminal

if TYPE_CHECKING:
    from tests.cli.conftest import Command

ROOT = Path(__file__).resolve().parents[2]
KEY = "remember that the spare key is under the green pot"


def chat(kbtui: Command, *lines: str, status: int = 0) -> str:
    done = kbtui("chat", "--plain", stdin="".join(f"{line}\n" for line in lines))
    assert done.status == status, done
    assert "\x1b" not in done.out + done.err
    return done.out + done.err


def test_each_line_of_a_pipe_is_a_message_of_one_conversation(kbtui: Command) -> None:
    said = chat(kbtui, KEY, "", "where is the spare key?")
    assert "green pot" in said
    (session,) = kbtui.ok("sessions", "--json").json
    assert session["messages"] >= 4


def test_a_line_goes_on_after_a_backslash(kbtui: Command) -> None:
    chat(kbtui, "remember that the gate \\", "squeaks")
    said = kbtui.ok("export", "--session", kbtui.ok("sessions", "--json").json[0]["id"]).out
    assert "the gate \nsqueaks" in said


def test_commands_list_begin_resume_and_name_conversations(kbtui: Command) -> None:
    said = chat(
        kbtui, "/help", KEY, "/rename Keys", "/new Boats", "hello", "/sessions", "/resume keys"
    )
    assert "/resume: go on with one" in said
    assert "Now in: Boats" in said
    assert "Now in: Keys" in said
    assert {each["title"] for each in kbtui.ok("sessions", "--json").json} == {"Keys", "Boats"}


def test_a_conversation_is_written_to_a_file_once(kbtui: Command, tmp_path: Path) -> None:
    assert "Written to out.md" in chat(kbtui, KEY, "/export out.md")
    before = (tmp_path / "out.md").read_text()
    assert "green pot" in before
    assert "is there already" in chat(kbtui, KEY, "/export out.md", status=2)
    assert (tmp_path / "out.md").read_text() == before


@pytest.mark.parametrize("line", ["/nothing", "/resume", "/resume nobody", "/rename", "/export"])
def test_a_wrong_command_is_said_and_the_talk_goes_on(kbtui: Command, line: str) -> None:
    done = kbtui("chat", stdin=f"{line}\n{KEY}\n/quit\nnever asked\n")
    assert done.status in (1, 2)
    assert "Traceback" not in done.err
    (session,) = kbtui.ok("sessions", "--json").json
    said = kbtui.ok("export", "--session", session["id"]).out
    assert "green pot" in said
    assert "never asked" not in said


def test_a_path_is_no_command_and_nothing_ends_well(kbtui: Command) -> None:
    assert "There is no /" not in chat(kbtui, "/home/me is my home")
    assert chat(kbtui) == ""


def test_answers_come_by_whole_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    view = TextView(Layout(tmp_path), str, by_lines=True)
    written = []
    for piece in ("One ", "line.\nAnd", " two"):
        view.take(TextDelta(piece))
        written.append(capsys.readouterr().out)
    view.take(TurnFinished("", "s", "t"))
    assert [*written, capsys.readouterr().out] == ["", "One line.\n", "", "And two\n"]


@pytest.mark.pty
def test_on_a_terminal_ctrl_c_asks_and_ctrl_d_ends_without_escape_sequences(
    kbtui: Command,
) -> None:
    argv = [sys.executable, "-m", "kbtui", "-w", str(kbtui.root), "chat", "--plain"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KBTUI_MODEL": "offline"}
    with Terminal(argv, environment) as terminal:
        terminal.wait_for("Say something", "You:")
        terminal.send(f"{KEY}\n")
        terminal.wait(lambda text: text.count("You:") == 2)
        terminal.send(CTRL_C)
        terminal.wait_for("Stopped.")
        terminal.wait(lambda text: text.count("You:") == 3)
        terminal.send(CTRL_D)
        assert terminal.wait_exit() == 0
