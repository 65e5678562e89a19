"""Input of the terminal: bytes in any pieces become keys, pastes and reports, and never an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser

from kbtui.tui.terminal.driver import escape_seconds
from kbtui.tui.terminal.input_events import InputEvents, Key
from kbtui.tui.terminal.input_tokens import (
    MOST_PASTED_BYTES,
    InputTokenizer,
    Pasted,
    PasteRefused,
    PasteUnfinished,
    Sequence,
    Typed,
)

if TYPE_CHECKING:
    from textual.message import Message

START, END = b"\x1b[200~", b"\x1b[201~"


class Input:
    """The door without its terminal: pieces of bytes, and the time that passes between them."""

    def __init__(self, wait: float = 0.1) -> None:
        self.now = 100.0
        self.read: list[Message | Pasted | PasteRefused | PasteUnfinished] = []
        self._tokenizer = InputTokenizer(wait)
        self._events = InputEvents()

    def send(self, *pieces: bytes | str | float) -> Input:
        """Take pieces of bytes; a number is a pause in seconds."""
        for piece in pieces:
            if isinstance(piece, float):
                end = self.now + piece
                while (due := self._tokenizer.deadline) is not None and due <= end:
                    self.now = max(self.now, due)
                    self._take(self._tokenizer.tick(self.now))
                self.now = end
            else:
                data = piece.encode() if isinstance(piece, str) else piece
                self._take(self._tokenizer.feed(data, self.now))
        return self

    def _take(self, tokens) -> None:
        for token in tokens:
            if isinstance(token, Typed | Sequence):
                self.read += self._events.read(token)
            else:
                self.read.append(token)

    @property
    def keys(self) -> list[str]:
        return [each.key for each in self.read if isinstance(each, events.Key)]

    @property
    def typed(self) -> str:
        return "".join(
            each.character or ""
            for each in self.read
            if isinstance(each, events.Key) and each.is_printable
        )

    @property
    def pastes(self) -> list[str]:
        return [each.text for each in self.read if isinstance(each, Pasted)]


def keys(*pieces: bytes | str | float) -> list[str]:
    return Input().send(*pieces, 5.0).keys


# Keys


@pytest.mark.parametrize("sequence", [s for s in ANSI_SEQUENCES_KEYS if not s.endswith("R")])
def test_a_key_that_textual_knows_is_read_as_textual_reads_it(sequence: str) -> None:
    if sequence == "\x1b\x1b":  # which its parser doesn't look up either
        assert keys(sequence) == ["escape", "escape"]
        return
    theirs = [e.key for e in XTermParser().feed(sequence) if isinstance(e, events.Key)]
    wanted = theirs or ["escape"] * (sequence == "\x1b")
    assert keys(sequence) == wanted
    assert keys(*(bytes([byte]) for byte in sequence.encode())) == wanted


def test_a_letter_with_alt_is_its_key_and_no_text() -> None:
    done = Input().send("\x1ba\x1bZ\x1b.\x1bé\x1b\r\x1b[", 1.0)
    wanted = ["alt+a", "alt+shift+z", "alt+full_stop", "alt+é", "ctrl+j", "alt+left_square_bracket"]
    assert (done.keys, done.typed) == (wanted, "")


def test_a_key_in_two_pieces_is_one_key_if_the_second_comes_in_time() -> None:
    assert keys("\x1b", 0.05, "[", 0.05, "D") == ["left"]
    over_ssh = Input(wait=0.5)
    assert over_ssh.send("\x1b", 0.4, "[", 0.4, "D", 1.0).keys == ["left"]
    assert keys("\x1b", 0.3, "a") == ["escape", "a"]


def test_the_rest_of_a_key_that_comes_late_in_one_piece_is_not_typed() -> None:
    assert keys("\x1b", 0.3, "[D", "x") == ["escape", "left", "x"]
    assert keys("\x1b[1", 1.5, ";5D") == ["ctrl+left"]
    assert keys("\x1b", 60.0, "[D") == ["escape", "left_square_bracket", "D"]


@pytest.mark.parametrize(
    ("environment", "setting", "seconds"),
    [
        ({}, 0, 0.1),
        ({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, 0, 0.5),
        ({"SSH_TTY": "/dev/pts/1"}, 0, 0.5),
        ({"SSH_TTY": "/dev/pts/1", "ESCDELAY": "50"}, 0, 0.05),
        ({"ESCDELAY": "50"}, 300, 0.3),
        ({"ESCDELAY": "x"}, 0, 0.1),
        ({"ESCDELAY": "999999999"}, 0, 5.0),
    ],
)
def test_the_wait_after_esc_is_the_setting_or_escdelay_or_what_suits_the_line(
    environment: dict[str, str], setting: int, seconds: float
) -> None:
    assert escape_seconds(environment, setting) == seconds


def test_every_character_that_is_no_control_is_typed_text() -> None:
    text = "10\u00a0kg می\u200cرود 👩\u200d💻 co\u00adop 全角\u3000空白 \ue0b0 \U0001fae8"
    assert Input().send(text).typed == text
    assert Input().send("\x07\x85\u202e\U000e0041").typed == ""


def test_what_is_not_utf_8_becomes_a_replacement_character() -> None:
    assert Input().send(b"\xe9t\xe9", 1.0).typed == "\ufffdt\ufffd"
    assert Input().send(b"\xe2", b"\x82", b"\xac").typed == "€"


# Sequences that aren't keys


@pytest.mark.parametrize(
    "sequence",
    [
        b"\x1b[M" + bytes([67, 128, 42]),  # X10's mouse, column 96
        b"\x1b[M" + bytes([32, 0xC3, 0xA9]),
        b"\x1b[1;1:3A",
        b"\x1b[97;1:3u",
        b"\x1b[97;1;1114112u",
        b"\x1b[97;1;55296u",  # half of a character
        b"\x1b[" + b"9" * 5_000 + b"u",
        b"\x1b[<0;99999999999;-1M",
        b"\x1b[48;0;0;0;0t",
        b"\x1b]11;rgb:ffff/0000/1111\x07",
        b"\x1b]11;rgb:ffff/0000/1111\x1b\\",
        b"\x1b[?62;22c",
        b"\x1b[>41;377;0c",
        b"\x1b[24;80R",
        b"\x1bP>|XTerm(377)\x1b\\",
        b"\x1b_Gi=31;OK\x1b\\",
        b"\x1b[?1;2$z",
        b"\x1b[?1u",
        END,
    ],
)
def test_a_report_or_answer_that_nobody_waits_for_is_dropped_however_it_is_cut(
    sequence: bytes,
) -> None:
    assert Input().send(sequence, b"x", 1.0).typed == "x"
    for cut in {1, 2, 3, len(sequence) // 2, len(sequence) - 1}:
        done = Input().send(sequence[:cut], 0.05, sequence[cut:], b"x", 2.0)
        assert done.typed == "x", cut


def test_a_held_key_of_the_kitty_protocol_is_pressed_again() -> None:
    assert keys("\x1b[97;1:2u", "\x1b[1;5:2D", "\x1b[97:65;2;65u") == ["a", "ctrl+left", "A"]


def test_the_mouse_goes_on_after_a_sequence_that_nobody_knows() -> None:
    done = Input().send("\x1b[<35;10;5M", "\x1b[?7777z", "\x1b[<0;11;5M")
    moved, pressed = done.read
    assert isinstance(moved, events.MouseMove)
    assert isinstance(pressed, events.MouseDown)
    assert (pressed.x, pressed.y, pressed.delta_x) == (10, 4, 1)


# Pastes


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_paste_is_text_wherever_it_is_cut(cut: int) -> None:
    data = START + b"one \x1b[31mred\x1b[0m\r\x03q" + END + b"x"
    done = Input().send(data[:cut], 0.05, data[cut:])
    assert done.read[0] == Pasted("one red\r\x03q", 2)
    assert done.keys == ["x"]


def test_a_paste_may_take_any_time_between_two_bytes() -> None:
    data = START + b"a\x1b[31mb" + END
    assert Input().send(
        data[:8], *(each for b in data[8:] for each in (60.0, bytes([b])))
    ).pastes == ["ab"]


def test_two_pastes_in_one_read_are_two() -> None:
    done = Input().send(START + b"one" + END + b"x" + START + b"two" + END)
    assert (done.pastes, done.keys) == (["one", "two"], ["x"])


def test_a_paste_that_holds_an_end_of_its_own_is_one_text() -> None:
    done = Input().send(START + b"ls" + END + b"rm -rf ~\r" + END)
    assert (done.pastes, done.keys) == (["lsrm -rf ~\r"], [])


def test_a_paste_that_ends_inside_an_escape_sequence_ends_there() -> None:
    assert Input().send(START + b"abc\x1b[3" + END + b"d").pastes == ["abc"]
    assert Input().send(START + b"abc\x1b" + END + b"d").pastes == ["abc"]
    assert Input().send(START + b"\x1b]0;title" + END).pastes == ["0;title"]


def test_links_and_titles_in_a_paste_leave_their_text() -> None:
    link = b"\x1b]8;;https://example.org\x1b\\here\x1b]8;;\x1b\\ \xc2\x9b1mbold\x1b(B"
    done = Input().send(START + link + END)
    assert done.read == [Pasted("here bold", 4)]


@pytest.mark.parametrize("before", [b"\x1b", b"\x1b[", b"\x1b[1;", b"\x1b]11;", b"\x1b[M", b"\xc3"])
def test_a_paste_begins_in_the_middle_of_any_other_sequence(before: bytes) -> None:
    done = Input().send(before + START + b"q\x03" + END, 1.0)
    assert done.pastes == ["q\x03"]
    assert not {"q", "ctrl+c"} & {*done.keys}


def test_a_paste_whose_beginning_is_cut_for_a_minute_is_a_paste() -> None:
    for cut in (1, 2, 3, 5):
        done = Input().send(START[:cut], 60.0, START[cut:] + b"q\x03", 1.0, END)
        assert done.pastes == ["q\x03"]
        assert not {"q", "ctrl+c"} & {*done.keys}


def test_an_unfinished_paste_is_announced_and_ctrl_c_ends_it_after_a_silence() -> None:
    done = Input().send(START + b"abc", 6.0)
    assert done.read == [PasteUnfinished(3)]
    done.send(b"\x03", 9.0, b"d\x03", 11.0, b"\x03")
    assert done.pastes == ["abc\x03d\x03"]
    assert done.send("x").keys == ["x"]


def test_moving_the_mouse_or_pressing_ctrl_is_no_byte_of_an_unfinished_paste() -> None:
    done = Input().send(START + b"abc", 9.0)
    done.send(b"\x1b[<35;10;5M\x1b[<35;11;5M", 2.0, b"\x1b[O", b"\x1b[57442;5u", b"\x1b[99;5u")
    assert done.pastes == ["abc"]


def test_a_paste_that_is_too_large_is_refused_as_a_whole_and_not_kept() -> None:
    done = Input().send(START, *([b"x" * 4095] * (2 * MOST_PASTED_BYTES // 4095)))
    paste = done._tokenizer._paste
    assert paste is not None
    assert len(paste.body) < 5_000
    done.send(b"y" + END + b"z")
    (refused,) = (each for each in done.read if isinstance(each, PasteRefused))
    assert refused.size > MOST_PASTED_BYTES
    assert done.keys == ["z"]


def test_a_sequence_without_an_end_is_not_kept() -> None:
    done = Input()
    for opening in (b"\x1b[", b"\x1b]", b"\x1bP", b"\x1bO"):
        done.send(opening, *([b"1" * 4095] * 50))
        assert len(done._tokenizer._rest) < 10_000
        done.send(b"\x1b\\", 5.0)
    assert done.send(b"x", 1.0).keys[-1] == "x"


def test_a_key_without_a_character_is_no_text() -> None:
    assert not Key("left", None).is_printable
