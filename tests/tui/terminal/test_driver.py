"""The app's driver in a real terminal: what comes in, the size, and the one way in which it ends."""

from __future__ import annotations

import os
import random
import re
import signal
from typing import TYPE_CHECKING

import pytest

from kbtui.logs import log_file
from kbtui.tui.terminal.state import Drafts, workspace_state
from tests.terminal import CTRL_C, F
from tests.tui.pty_app import PROGRAM, start
from tests.tui.terminal.test_input_fuzz import _noise
from tests.tui.terminal.test_terminal import _restored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.terminal import Terminal

pytestmark = pytest.mark.pty
START, END = "\x1b[200~", "\x1b[201~"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    from kbtui.workspace.opening import create_workspace

    return create_workspace(tmp_path / "notes").root


def _draft(terminal: Terminal, workspace: Path, wanted: str) -> None:
    folder = workspace_state(workspace)
    terminal.wait(lambda _: any(f.read_text() == wanted for f in folder.glob("draft*")))


def _sent(workspace: Path) -> str:
    return "".join(log.read_text() for log in (workspace / "sessions").glob("*.jsonl"))


# Input


def test_coloured_text_pasted_into_the_prompt_is_text_and_it_is_said(workspace: Path) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.send(f"{START}log: \x1b[31merror\x1b[0m in pump.c\r\nsecond \x1b[1mline{END}")
        terminal.wait_for("log: error in pump.c", "second line", "3 escape sequences in it")
        _draft(terminal, workspace, "log: error in pump.c\nsecond line")
    assert "pump.c" not in _sent(workspace)


def test_a_paste_while_a_list_has_the_focus_presses_no_key(workspace: Path) -> None:
    note = workspace / "knowledge" / "topics" / "mill.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("# The mill\n\nOld.\n")
    with start(workspace) as terminal:
        terminal.wait_for("no model", "The mill")
        terminal.send(f"{F[3]}{START}d\r\x1b[31m\r\x11\x03{END}")  # keys that delete and quit
        terminal.wait_for("1 escape sequence in it")
        terminal.send(F[2])
        terminal.send("still there")
        terminal.wait_for("still there")
    assert note.exists()


def test_what_is_no_utf_8_and_no_known_sequence_leaves_the_app_running(workspace: Path) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        for data in (b"caf\xe9,", b"\x1b[M" + bytes([67, 128, 42]), b"\x1b[1;1:3A", b"\x1b[?62c"):
            os.write(terminal._fd, data)
        terminal.send("\x1b]11;rgb:ffff/ffff/ffff\x1b\\10\u00a0kg")
        _draft(terminal, workspace, "caf\ufffd,10\u00a0kg")


def test_no_break_spaces_and_joiners_are_typed_in_the_editor_too(workspace: Path) -> None:
    note = workspace / "knowledge" / "topics" / "mill.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("# The mill\n")
    with start(workspace) as terminal:
        terminal.wait_for("no model", "The mill")
        terminal.send(f"{F[5]}mill\r")
        terminal.wait_gone("Open")
        terminal.send("e")
        terminal.wait_for("Ctrl+S")
        terminal.send("10\u00a0kg می\u200cرود co\u00adop\x13")
        terminal.wait(lambda _: "10\u00a0kg می\u200cرود co\u00adop" in note.read_text())


_SLOW_LINE = PROGRAM.replace(
    "import sys\n", "import os, sys\nos.environ['SSH_TTY'] = '/dev/pts/0'\n", 1
)


def test_over_ssh_a_key_in_two_pieces_is_one_key(workspace: Path) -> None:
    with start(workspace, program=_SLOW_LINE) as terminal:
        terminal.wait_for("no model")
        terminal.send("abc")
        terminal.wait_for("abc")
        terminal.send("\x1b")
        with pytest.raises(TimeoutError):
            terminal.wait(lambda _: False, timeout=0.3)
        terminal.send("[")
        terminal.send("D")
        terminal.send("X")
        _draft(terminal, workspace, "abXc")


_IMPATIENT = PROGRAM.replace(
    "sys.exit",
    "from kbtui.tui.terminal import input_tokens\n"
    "input_tokens.SLOW_PASTE_SECONDS = input_tokens.QUIET_PASTE_SECONDS = 0.2\n"
    "sys.exit",
)


def test_a_paste_without_an_end_is_said_and_ctrl_c_ends_it_and_keeps_what_came(
    workspace: Path,
) -> None:
    with start(workspace, program=_IMPATIENT) as terminal:
        terminal.wait_for("no model")
        terminal.send(f"{START}as far as it came")
        terminal.wait_for("A paste hasn't ended")
        with pytest.raises(TimeoutError):
            terminal.wait(lambda _: False, timeout=0.3)
        terminal.send(CTRL_C)
        terminal.wait_for("as far as it came")
        terminal.send("!")
        _draft(terminal, workspace, "as far as it came!")


def test_a_paste_of_many_megabytes_is_refused_in_a_sentence_and_keys_go_on(workspace: Path) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.send(START)
        for _ in range(2_000):
            terminal.send("a line of text\r" * 200)
        terminal.send(f"{END}after it")
        terminal.wait_for("too large", "6.0 MB", "after it")
        _draft(terminal, workspace, "after it")


_PATIENT = PROGRAM.replace("import sys\n", "import os, sys\nos.environ['ESCDELAY'] = '5000'\n", 1)


def test_keys_and_a_paste_that_come_byte_by_byte_are_what_they_are(workspace: Path) -> None:
    with start(workspace, program=_PATIENT) as terminal:
        terminal.wait_for("no model")
        keys = f"bd\x1b[Dc\x1b[1;5H\x1b[Haé\x7f{START}[\x1b[1mé\x1b[0m]{END}\x1b[F\x1bO\x1b[C!".encode()
        for byte in keys:
            os.write(terminal._fd, bytes([byte]))
            with pytest.raises(TimeoutError):
                terminal.wait(lambda _: False, timeout=0.005)
        _draft(terminal, workspace, "a[é]bcd!")


def test_random_bytes_do_not_end_the_app(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "true")  # no keys of an editor, which they may start
    chance = random.Random(35)
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        for _ in range(100):
            noise = re.sub(rb"[\x03\x04\x11\x1a]|99;5u|100;5u|113;5u|122;5u", b"", _noise(chance))
            os.write(terminal._fd, noise)
            with pytest.raises(TimeoutError):
                terminal.wait(lambda _: False, timeout=0.01)
        terminal.kill(signal.SIGTERM)
        assert terminal.wait_exit() == 128 + signal.SIGTERM
        assert b"kbtui: Ended by SIGTERM." in terminal.output
        assert b"error of its own" not in terminal.output


# The size


def test_the_size_is_the_terminals_whatever_columns_and_lines_say(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying = PROGRAM.replace(
        "import sys\n", "import os, sys\nos.environ.update(COLUMNS='60', LINES='20')\n", 1
    )
    with start(workspace, (120, 40), lying) as terminal:
        terminal.wait_for("no model", "─ Notes")  # there is no room for both in 60 columns
        assert "F1 keys" in terminal.text.splitlines()[39]
        terminal.resize(110, 24)
        terminal.wait(lambda screen: "F1 keys" in screen.splitlines()[23])


# The end


_BROKEN = PROGRAM.replace(
    "sys.exit",
    """
from kbtui.tui.terminal import driver
def fail(*_):
    raise ZeroDivisionError("planted")
async def work():
    fail()
PLANTED
sys.exit""",
)


@pytest.mark.parametrize(
    "planted",
    [
        "app.KbtuiApp.input_arrived = fail",
        "app.KbtuiApp.input_arrived = lambda self: self.run_worker(work())",
        "app.KbtuiApp.input_arrived = lambda self: self.panic('an error that shows itself')",
        "driver.TerminalDriver._read = fail",
        "driver.InputTokenizer.feed = fail",
    ],
)
def test_an_error_anywhere_keeps_the_draft_and_is_a_sentence_and_an_exit_code(
    workspace: Path, planted: str
) -> None:
    Drafts(workspace).save("not sent yet")
    # It would read the answer to a question of the app's own before anything is typed.
    silent = {"\x1b[c": ""}
    program = _BROKEN.replace("PLANTED", planted)
    with start(workspace, program=program, answers=silent) as terminal:
        terminal.wait_for("no model", "not sent yet")
        terminal.send("x")
        assert terminal.wait_exit() == 1
        shown = bytes(terminal.output)
        assert _restored(shown)
        assert b"kbtui stopped because of an error of its own" in shown
        assert b"Traceback" not in shown
        assert log_file().read_text().count("internal error") == 1
    assert Drafts(workspace).load().startswith("not sent yet")


_MUTE = _BROKEN.replace(
    "PLANTED",
    """
import errno, os
written = os.write
def write(number, data):
    if app.KbtuiApp.broken and number == 2:
        raise OSError(errno.EINVAL, "planted")
    return written(number, data)
app.KbtuiApp.broken = False
app.KbtuiApp.input_arrived = lambda self: setattr(app.KbtuiApp, "broken", True)
driver.os = type(sys)("os")
vars(driver.os).update(vars(os), write=write)
""",
)


def test_a_terminal_that_takes_nothing_ends_the_app_and_keeps_the_draft(workspace: Path) -> None:
    Drafts(workspace).save("not sent yet")
    with start(workspace, program=_MUTE) as terminal:
        terminal.wait_for("no model", "not sent yet")
        terminal.send("x")
        assert terminal.wait_exit() == 1
        assert "planted" in log_file().read_text()
    assert Drafts(workspace).load().startswith("not sent yet")


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGUSR1, signal.SIGXCPU])
def test_a_signal_that_would_kill_it_restores_the_terminal_and_keeps_the_draft(
    workspace: Path, number: signal.Signals
) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.send("not sent yet")
        terminal.wait_for("not sent yet")
        terminal.kill(number)
        assert terminal.wait_exit() == 128 + number
        assert _restored(bytes(terminal.output))
        assert f"kbtui: Ended by {number.name}.".encode() in terminal.output
        assert f"ended by {number.name}" in log_file().read_text()
    assert Drafts(workspace).load() == "not sent yet"
