"""What Textual's driver and parser do with a terminal's bytes: why kbtui has a door of its own.

Once a test fails, what its message names can go.
"""

from __future__ import annotations

import os
import queue
import threading
from time import monotonic

import pytest
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers._writer_thread import MAX_QUEUED_WRITES, WriterThread
from textual.drivers.linux_driver import LinuxDriver

TOKENS = "kbtui/tui/terminal/input_tokens.py"
EVENTS = "kbtui/tui/terminal/input_events.py"
DRIVER = "kbtui/tui/terminal/driver.py"


def _keys(*pieces: str) -> list[str]:
    parser = XTermParser()
    return [e.key for piece in pieces for e in parser.feed(piece) if isinstance(e, events.Key)]


def _bare_driver(fileno: int) -> LinuxDriver:
    """A driver without a terminal, a loop or signal handlers."""
    driver = object.__new__(LinuxDriver)
    driver.fileno, driver.exit_event, driver._debug = fileno, threading.Event(), False
    return driver


def test_what_is_not_utf_8_ends_the_thread_that_reads() -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"\xe9t")
        with pytest.raises(UnicodeDecodeError):
            _bare_driver(reader).run_input_thread()
    finally:
        os.close(reader)
        os.close(writer)


def test_an_escape_sequence_in_a_paste_lets_the_rest_of_it_press_keys() -> None:
    assert "enter" in _keys("\x1b[200~red \x1b[31mhere\x1b[0m\rmore\x1b[201~"), f"{TOKENS}: pastes"


@pytest.mark.parametrize("sequence", ["\x1b[1;1:3A", "\x1b[97;1;1114112u", "\x1b[97:65;2;65u"])
def test_a_number_that_the_parser_does_not_expect_is_an_error(sequence: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|not in range"):
        _keys(sequence)  # when nothing is raised, `_KITTY` and the `except` of EVENTS can go


def test_an_answer_to_another_programs_question_is_typed() -> None:
    assert "r" in _keys("\x1b]11;rgb:ffff/ffff/ffff\x1b\\", "\x1b[A"), f"{TOKENS}: strings"


def test_a_key_in_two_pieces_is_three_keys_after_a_tenth_of_a_second() -> None:
    parser = XTermParser()
    assert [*parser.feed("\x1b")] == []
    end = monotonic() + 5
    while not (found := [*parser.tick()]):
        assert monotonic() < end, f"`escape_seconds` of {DRIVER}"
    assert [each.key for each in (*found, *parser.feed("[D"))] == [  # type: ignore[attr-defined]
        "escape",
        "left_square_bracket",
        "D",
    ], f"`_take_up` of {TOKENS}"


@pytest.mark.parametrize("character", ["\u00a0", "\u200c", "\u200d", "\u00ad", "\u3000", "\ue0b0"])
def test_a_character_that_python_does_not_print_is_no_text(character: str) -> None:
    assert not events.Key("x", character).is_printable, f"`Key` of {EVENTS}"


def test_a_letter_with_alt_is_typed() -> None:
    parser = XTermParser()
    assert [*parser.feed("\x1bq")] == [], f"`_with_alt` of {EVENTS}"


def test_no_key_is_known_for_alt_enter() -> None:
    assert ANSI_SEQUENCES_KEYS["\x1b[15~"][0].value == "f5"  # type: ignore[index, union-attr]
    assert "\x1b\r" not in ANSI_SEQUENCES_KEYS, f"`_ALT_ENTER` of {EVENTS}"


def test_columns_and_lines_are_believed_before_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "20")
    size = _bare_driver(0)._get_terminal_size()
    assert size == (60, 20), f"`_get_terminal_size` of {DRIVER}"


async def test_an_app_that_panics_returns_no_code() -> None:
    app: App[None] = App()
    async with app.run_test():
        app.panic("an error that shows itself")
    assert not app.return_code, "`panic` of kbtui/tui/app/app.py"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_terminal_that_fails_ends_the_thread_that_writes_and_its_queue_stays_full() -> None:
    class Failing:
        def write(self, _text: str) -> None:
            raise BlockingIOError

        def flush(self) -> None:
            pass

    thread = WriterThread(Failing())  # type: ignore[arg-type]
    thread.start()
    thread.write("x")
    thread.join(60)
    assert not thread.is_alive(), f"`_Output` of {DRIVER}"
    for _ in range(MAX_QUEUED_WRITES):
        thread.write("x")
    with pytest.raises(queue.Full):
        thread._queue.put("x", block=False)


def test_the_driver_keeps_the_attributes_that_it_restores() -> None:
    assert "attrs_before" in LinuxDriver.stop_application_mode.__code__.co_names, (
        f"`start_application_mode` of {DRIVER} sets it in vain"
    )


@pytest.mark.parametrize("name", ["_get_terminal_size", "_run_input_thread", "run_input_thread"])
def test_what_the_driver_of_kbtui_overrides_is_called(name: str) -> None:
    called = {
        *LinuxDriver.start_application_mode.__code__.co_names,
        *LinuxDriver._run_input_thread.__code__.co_names,
    }
    codes = LinuxDriver.start_application_mode.__code__.co_consts
    called |= {each for code in codes for each in getattr(code, "co_names", ())}
    assert name in called, f"{DRIVER} overrides it in vain"
