"""The app in a real terminal: first frame, keys as terminals send them, and every way to end it."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
import time
from itertools import pairwise
from pathlib import Path

import pytest

from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.terminal.state import Drafts, workspace_state
from tests.terminal import CTRL_C, DEADLINE, ENTER, F
from tests.tui.pty_app import PROGRAM, start

pytestmark = pytest.mark.pty
ALT_SCREEN_ON, MOUSE_ON, MOUSE_OFF = b"\x1b[?1049h", b"\x1b[?1000h", b"\x1b[?1000l"
ALT_SCREEN_OFF, CURSOR_ON, KITTY_OFF = b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[<u"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    from kbtui.workspace.opening import create_workspace

    return create_workspace(tmp_path / "notes").root


def _is_stopped(pid: int) -> bool:
    waited, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
    return waited == pid and os.WIFSTOPPED(status)


def _restored(output: bytes) -> bool:
    return all(sequence in output for sequence in (ALT_SCREEN_OFF, CURSOR_ON, KITTY_OFF))


def test_the_first_frame_takes_typing_and_alt_enter_is_a_new_line(workspace: Path) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("New conversation", "─ Notes", "F1 keys")
        terminal.send("first\x1b\rsecond")
        terminal.wait_for("first", "second")
        assert not any("first" in line and "second" in line for line in terminal.text.splitlines())
        terminal.send(ENTER)
        terminal.wait_for("> first", "  second")
        terminal.send("\x11")
        assert terminal.wait_exit() == 0
        assert _restored(bytes(terminal.output))
        assert b"Traceback" not in terminal.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_restores_the_terminal_and_keeps_the_draft(
    workspace: Path, number: signal.Signals
) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.send("not sent yet")
        terminal.wait_for("not sent yet")
        terminal.kill(number)
        assert terminal.wait_exit() == 128 + number
        assert _restored(bytes(terminal.output))
    assert Drafts(workspace).load() == "not sent yet"


def test_a_process_that_is_killed_leaves_its_draft(workspace: Path) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.send("not sent yet")
        terminal.wait_for("not sent yet")
        folder = workspace_state(workspace)
        terminal.wait(lambda _: any("not sent" in f.read_text() for f in folder.glob("draft*")))
        terminal.kill(signal.SIGKILL)
        terminal.wait_exit()
    with start(workspace) as terminal:
        terminal.wait_for("not sent yet")


@pytest.mark.parametrize("place", ["prompt", "editor"])
def test_a_draft_is_stored_while_typing_never_pauses(workspace: Path, place: str) -> None:
    note = workspace / "knowledge" / "topics" / "mill.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("# The mill\n\nOld.\n")
    stored = workspace_state(workspace)
    with start(workspace) as terminal:
        terminal.wait_for("no model", "The mill")
        if place == "editor":
            terminal.send(f"{F[5]}mill{ENTER}")
            terminal.wait_for("Old.")
            terminal.send("e")
            terminal.wait_for("saved")
        typed = [0.0]

        def types_on(_: str) -> bool:
            if time.perf_counter() > typed[-1] + 0.1:  # far below the pause that is waited for
                typed.append(terminal.send("ostrich "))
            drafts = [*stored.glob("draft-*.md"), *stored.glob("edits/*.json")]
            return any("ostrich" in each.read_text() for each in drafts)

        terminal.wait(types_on)
        terminal.kill()
        assert max(after - before for before, after in pairwise(typed[1:])) < 0.8, "it paused"


def test_a_terminal_that_goes_away_ends_the_app_and_keeps_the_draft(workspace: Path) -> None:
    terminal = start(workspace)
    terminal.wait_for("no model")
    terminal.send("not sent yet")
    terminal.wait_for("not sent yet")
    os.close(terminal._fd)
    _, status = os.waitpid(terminal.pid, 0)
    assert os.waitstatus_to_exitcode(status) in (128 + signal.SIGHUP, -signal.SIGHUP)
    assert Drafts(workspace).load() == "not sent yet"


_DEAF = """
import signal
from kbtui.__main__ import main
signal.signal(signal.SIGHUP, signal.SIG_IGN)
raise SystemExit(main())
"""


@pytest.mark.parametrize("wanted", [(), ("no model",)], ids=["before it paints", "later"])
def test_a_terminal_that_goes_away_without_a_signal_ends_the_app(
    workspace: Path, wanted: tuple[str, ...]
) -> None:
    terminal = start(workspace, program=_DEAF)
    terminal.wait_for(*wanted)
    os.close(terminal._fd)
    _, status = os.waitpid(terminal.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (1, 128 + signal.SIGHUP, -signal.SIGHUP)  # the last before it is deaf


_STUCK = """
import ctypes, os
from kbtui.__main__ import main
from kbtui.tui.terminal.process import SignalWatch
def stick():  # in a lock of C's, as in a disk that doesn't answer: no handler of Python's is called
    os.write(1, b"stuck now")
    libc, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_lock(lock)
made = SignalWatch.__init__
def init(self, *others):
    made(self, *others)
    self._loop.call_later(0.5, stick)
SignalWatch.__init__ = init
raise SystemExit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, None], ids=["told to end", "no terminal"])
def test_an_app_whose_main_thread_is_stuck_ends_all_the_same(
    workspace: Path, number: signal.Signals | None
) -> None:
    terminal = start(workspace, program=_STUCK)
    terminal.wait(lambda _: b"stuck now" in terminal.output)
    if number is None:
        os.close(terminal._fd)
    else:
        terminal.kill(number)
    _, status = os.waitpid(terminal.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + (number or signal.SIGHUP)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_an_app_that_waits_for_an_editor_ends_with_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("EDITOR", "sh -c 'echo edits now; exec sleep 1000' --")
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.send("not sent yet")
        terminal.wait_for("not sent yet")
        terminal.send("\x18\x05")
        terminal.wait(lambda _: b"edits now" in terminal.output)
        terminal.kill(number)
        assert terminal.wait_exit() == 128 + number
        assert _restored(bytes(terminal.output))
    assert Drafts(workspace).load() == "not sent yet"


_TOLD_BEFORE_THE_EDITOR = """
import os, signal
from kbtui import programs
found = programs.editor_command
def told():
    os.kill(os.getpid(), signal.SIGTERM)
    return found()
programs.editor_command = told
"""


def test_an_app_that_is_told_to_end_starts_no_editor(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", f"sh -c 'touch {tmp_path}/started; exec sleep 1000' --")
    with start(workspace, program=_TOLD_BEFORE_THE_EDITOR + PROGRAM) as terminal:
        terminal.wait_for("no model")
        terminal.send("\x18\x05")
        assert terminal.wait_exit(DEADLINE / 2) == 128 + signal.SIGTERM
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("key", ["\x1a", "\x13"], ids=["ctrl+z", "ctrl+s"])
@pytest.mark.parametrize("number", [signal.SIGTERM, None], ids=["told to end", "quit"])
def test_keys_of_the_terminal_do_not_hold_up_an_app_that_is_ending(
    workspace: Path, number: signal.Signals | None, key: str
) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        if number is None:
            terminal.send("\x11")
        else:
            terminal.kill(number)
        while terminal.status is None:
            with contextlib.suppress(OSError):  # it has ended
                terminal.send(key)
            terminal._pump()
            waited, status = os.waitpid(terminal.pid, os.WUNTRACED | os.WNOHANG)
            assert not (waited and os.WIFSTOPPED(status))
            terminal.status = os.waitstatus_to_exitcode(status) if waited else None
            assert time.perf_counter() < terminal.started + DEADLINE / 2
        assert terminal.status == (128 + number if number else 0)


def test_ctrl_z_goes_into_the_background_and_comes_back(workspace: Path) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("New conversation", "no model")
        terminal.send("draft")
        terminal.wait_for("draft")
        terminal.send("\x1a")
        terminal.wait(lambda _screen: _is_stopped(terminal.pid))
        terminal.output.clear()
        terminal.kill(signal.SIGCONT)
        terminal.wait(lambda _screen: b"\x1b[?1049h" in terminal.output)
        terminal.wait(lambda _screen: b"New conversation" in terminal.output)
        terminal.wait(lambda _screen: b"Notes" in terminal.output)  # all is drawn again
        terminal.send(" goes on")
        terminal.wait_for("draft goes on")


def test_ctrl_c_twice_quits(workspace: Path) -> None:
    with start(workspace, (80, 24)) as terminal:
        terminal.wait_for("New conversation")
        terminal.send(CTRL_C)
        terminal.wait_for("Ctrl+C again quits")
        terminal.send(CTRL_C)
        assert terminal.wait_exit() == 0


def test_a_missing_workspace_is_a_sentence_and_an_exit_code(tmp_path: Path) -> None:
    with start(tmp_path / "none") as terminal:
        assert terminal.wait_exit() == 3
        assert b"kbtui: " in terminal.output
        assert b"Traceback" not in terminal.output


def test_a_resize_is_followed(workspace: Path) -> None:
    with start(workspace) as terminal:
        terminal.wait_for("New conversation", "─ Notes")
        terminal.resize(80, 24)
        terminal.wait_gone("─ Notes")
        terminal.send(F[3])
        terminal.wait_for("─ Notes")
        terminal.wait_gone("New conversation")


def test_another_workspace_is_shown_in_the_same_terminal_and_the_draft_waits(
    workspace: Path, tmp_path: Path
) -> None:
    with KnowledgeBase.open(
        tmp_path / "other", create=True, overrides={"search": {"semantic": False}}
    ) as kb:
        kb.library.create("topic", "Kingfisher", body="Blue.")
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.send("not sent yet")
        terminal.wait_for("not sent yet")
        terminal.send("\x0f")
        terminal.wait_for("Go to which workspace?")
        terminal.send(ENTER)
        terminal.wait_for("─ Notes", "Topics")
        terminal.wait_gone("not sent yet")
        terminal.wait_gone("Go to which workspace?")
        terminal.send("\x11")
        assert terminal.wait_exit() == 0
        assert _restored(bytes(terminal.output))
        assert b"Traceback" not in terminal.output
    assert Drafts(workspace).load() == "not sent yet"


def test_what_was_typed_in_a_note_is_there_after_a_kill(workspace: Path) -> None:
    note = workspace / "knowledge" / "topics" / "mill.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("# The mill\n\nOld.\n")
    with start(workspace) as terminal:
        terminal.wait_for("no model", "The mill")
        terminal.send(f"{F[5]}mill{ENTER}")
        terminal.wait_for("Old.")
        terminal.send("eTYPED")
        terminal.wait_for("TYPED", "not saved")
        drafts = workspace_state(workspace) / "edits"
        terminal.wait(lambda _: any("TYPED" in each.read_text() for each in drafts.glob("*.json")))
        terminal.kill()
    assert note.read_text() == "# The mill\n\nOld.\n"
    with start(workspace) as terminal:
        terminal.wait_for("no model", "The mill")
        terminal.send(f"{F[5]}mill{ENTER}")
        terminal.wait_for("Old.")
        terminal.send("e")
        terminal.wait_for("TYPED", "Unsaved text of an earlier time is back.")


def test_without_a_blinking_cursor_an_idle_screen_sends_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_UI__BLINK", "false")
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.wait_silent(3)
        for keys in ("still here", F[7], "\x1b"):  # a field that gets the focus later, too
            terminal.send(keys)
            terminal.wait_silent(3)
        assert "still here" in terminal.text
    monkeypatch.setenv("KBTUI_UI__BLINK", "true")
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.send("typed")  # then it blinks for some seconds
        with pytest.raises(TimeoutError, match="goes on sending"):
            terminal.wait_silent(3, timeout=4)


def test_the_mouse_is_left_to_the_terminal_if_the_settings_say_so(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBTUI_UI__MOUSE", "false")
    with start(workspace) as terminal:
        terminal.wait_for("no model")
        terminal.wait(lambda _: MOUSE_OFF in terminal.output)
        suspended_at = len(terminal.output)
        terminal.send("\x1a")  # Ctrl+Z
        terminal.wait(lambda _: _is_stopped(terminal.pid))
        terminal.kill(signal.SIGCONT)
        terminal.wait(lambda _: ALT_SCREEN_ON in terminal.output[suspended_at:])
        terminal.send("typed")
        terminal.wait_for("typed")
        assert MOUSE_ON not in terminal.output[suspended_at:]


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_dumb_terminal_gets_a_sentence(name: str) -> None:
    program = f"import os, sys; os.environ['TERM'] = {name!r}; sys.argv[1:] = []\n"
    program += "from kbtui.__main__ import main; sys.exit(main())"
    with start(Path(), program=program) as terminal:
        assert terminal.wait_exit() == 2
        assert f"TERM is {name}" in terminal.text
        assert "kbtui chat --plain" in terminal.text
        assert "TERM=xterm-256color kbtui" in terminal.text
        assert b"\x1b" not in terminal.output


def test_an_editor_that_dies_in_a_raw_terminal_leaves_the_app_and_the_shell_as_they_were(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "dies"
    editor.write_text('#!/bin/sh\nstty raw -echo\nprintf half > "$1"\nkill -9 $$\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    with start(workspace) as terminal:
        before = termios.tcgetattr(terminal._fd)
        terminal.wait_for("no model")
        terminal.send("my draft")
        terminal.wait_for("my draft")
        terminal.send("\x18\x05")
        terminal.wait_for("exit code 137", "my draft")
        terminal.send(" goes on")
        terminal.wait_for("my draft goes on")
        terminal.send("\x11")
        terminal.wait(lambda _: termios.tcgetattr(terminal._fd) == before)
        assert terminal.wait_exit() == 0
