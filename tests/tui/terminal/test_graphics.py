"""Pictures that the terminal draws: what it is sent, and the cells that show them."""

from __future__ import annotations

import io
import re
import unicodedata
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from rich.segment import Segment
from textual.strip import Strip

from kbtui.tui.terminal.graphics import Graphics, has_graphics
from tests.tui.pty_app import open_picture, start, with_picture

if TYPE_CHECKING:
    from pathlib import Path

_COMMAND = re.compile(r"\x1b_G([^;\x1b]*);([^\x1b]*)\x1b\\")


class Kitty:
    """The part of a terminal that keeps pictures: it takes commands as kitty's page says them."""

    def __init__(self) -> None:
        self.pictures: dict[int, bytes] = {}
        self.places: dict[int, tuple[int, int]] = {}
        self._at = 0
        self._open = False

    def write(self, text: str) -> None:
        for keys, payload in _COMMAND.findall(text):
            told = dict(pair.split("=") for pair in keys.split(","))
            assert told["q"] == "2"  # an answer would come as keys
            number = int(told.get("i", 0))
            if told.get("a") == "d":
                assert told["d"] == "I"
                del self.pictures[number], self.places[number]
            elif told.get("a") == "p":
                assert not self._open
                assert told["U"] == "1"
                self.places[number] = (int(told["c"]), int(told["r"]))
            else:
                if told.get("a") == "t":
                    assert told["f"] == "100"
                    assert not self._open
                    self._at, self.pictures[number] = number, b""
                assert len(payload) <= 4096
                self._open = told["m"] == "1"
                assert not (self._open and len(payload) % 4)
                self.pictures[self._at] += b64decode(payload, validate=True)


def png(width: int = 300, height: int = 200, colour: tuple[int, int, int] = (9, 8, 7)) -> bytes:
    file = io.BytesIO()
    noise = Image.effect_noise((width, height), 90).convert("RGB")
    noise.paste(colour, (0, 0, 20, 20))
    noise.save(file, "PNG")
    return file.getvalue()


def test_a_picture_is_sent_in_pieces_and_each_cell_names_its_row_and_column() -> None:
    kitty = Kitty()
    sent = png()
    lines = list(Graphics(kitty.write).lines(sent, 30, 10))
    (number,) = kitty.pictures
    assert kitty.pictures == {number: sent}
    assert kitty.places == {number: (30, 10)}
    assert [line.cell_length for line in lines] == [30] * 10
    marks = [lines[0].plain[3 * column + 2] for column in range(30)]
    for row, line in enumerate(lines):
        assert line.plain == "".join(f"\U0010eeee{marks[row]}{marks[at]}" for at in range(30))
        colour = line.spans[0].style.foreground
        assert colour.r << 16 | colour.g << 8 | colour.b == number


def test_the_marks_are_those_of_the_protocol() -> None:
    """Each is above its letter, and none falls together with a letter when normalized."""
    (line,) = Graphics(lambda _: None).lines(png(), 76, 1)
    marks = line.plain[2::3]
    assert len(set(marks)) == 76
    assert sorted(marks) == [*marks]
    for mark in marks:
        assert unicodedata.combining(mark) == 230
        assert not unicodedata.decomposition(mark)


def test_a_picture_that_is_covered_is_cut_between_cells() -> None:
    line = list(Graphics(lambda _: None).lines(png(), 20, 3))[1]
    strip = Strip([Segment("│ "), Segment(line.plain)])
    for left in range(2, 20):
        assert strip.crop(left, left + 2).text == line.plain[3 * left - 6 : 3 * left]


def test_a_picture_is_sent_once_in_each_size_and_again_to_a_new_screen() -> None:
    kitty = Kitty()
    graphics = Graphics(kitty.write)
    sent = png()
    for size in ((30, 10), (30, 10), (15, 5)):
        list(graphics.lines(sent, *size))
    assert sorted(kitty.places.values()) == [(15, 5), (30, 10)]
    graphics.remove()
    assert not kitty.pictures
    list(graphics.lines(sent, 20, 7))
    assert not kitty.pictures  # another program has the terminal
    graphics.send_again()
    assert sorted(kitty.places.values()) == [(15, 5), (20, 7), (30, 10)]
    assert set(kitty.pictures.values()) == {sent}


def test_a_picture_is_written_in_one_piece_however_large() -> None:
    """The driver's queue holds 30 pieces, and the app would wait for room in it."""
    written: list[str] = []
    graphics = Graphics(written.append)
    for number in range(40):
        list(graphics.lines(png(colour=(number, 1, 1)), 30, 10))
    assert len(written) == 40
    graphics.send_again()
    graphics.remove()
    assert len(written) == 42


def test_the_terminal_is_asked_to_keep_a_limited_number_and_drops_the_oldest() -> None:
    kitty = Kitty()
    graphics = Graphics(kitty.write)
    first = png(4, 4, (0, 0, 0))
    for number in range(80):
        list(graphics.lines(png(4, 4, (number, 1, 1)), 2, 1))
        list(graphics.lines(first, 2, 1))  # it stays in use
    assert len(kitty.pictures) == 64
    assert first in kitty.pictures.values()


@pytest.mark.parametrize(
    ("name", "draws"),
    [("xterm-kitty", True), ("xterm-ghostty", True), ("xterm-256color", False), ("tmux", False)],
)
def test_terminals_that_place_pictures_by_characters_are_known_by_their_names(
    name: str, draws: bool
) -> None:
    assert has_graphics({"TERM": name}) is draws
    assert not has_graphics({})


@pytest.mark.pty
def test_in_kitty_a_picture_in_a_note_is_sent_and_freed_at_the_end(tmp_path: Path) -> None:
    root = with_picture(tmp_path / "notes", png(900, 300))
    kitty = Kitty()
    with start(root, name="xterm-kitty") as terminal:
        open_picture(terminal)
        kitty.write(terminal.output.decode())
        (found,) = set(kitty.pictures.values())
        assert Image.open(io.BytesIO(found)).size == (900, 300)
        assert all(columns <= 76 for columns, _ in kitty.places.values())
        assert "\U0010eeee" in terminal.text
        sent = len(terminal.output)
        terminal.send("\x11")
        assert terminal.wait_exit() == 0
        kitty.write(terminal.output[sent:].decode())
        assert not kitty.pictures
