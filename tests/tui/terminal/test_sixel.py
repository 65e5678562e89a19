"""Pictures as sixels: what is sent for cells, read back as a terminal would draw it."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from kbtui.tui.terminal.frame import Frame
from kbtui.tui.terminal.graphics import Graphics
from kbtui.tui.terminal.picture_cells import Run, without_cells
from kbtui.tui.terminal.sixel import Sixels, can_draw, colours_of
from tests.tui.pty_app import open_picture, start, with_picture

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from textual.content import Content

CELL = (6, 13)
"""Its rows are no multiple of six, as with most fonts."""
_SIXEL = re.compile(r"\x1bP0;1q\"1;1;(\d+);(\d+)([^\x1b]*)\x1b\\")
_PART = re.compile(r"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)(.)|([$-])|([?-~])")


def decoded(sequence: str) -> Any:
    """Return the pixels of a sixel sequence as an array of rows, columns and red, green, blue."""
    wide, high, data = re.fullmatch(_SIXEL, sequence).groups()  # type: ignore[union-attr]
    pixels = np.full((-(-int(high) // 6) * 6, int(wide), 3), -1)
    colours: dict[str, list[int]] = {}
    x = y = 0
    colour: list[int] = []
    for number, red, green, blue, chosen, times, repeated, end, one in _PART.findall(data):
        if number:
            colours[number] = [int(red), int(green), int(blue)]
        elif chosen:
            colour = colours[chosen]
        elif end:
            x, y = 0, y + 6 * (end == "-")
        else:
            bits = ord(repeated or one) - 63
            drawn = [y + bit for bit in range(6) if bits >> bit & 1]
            pixels[drawn, x : x + int(times or 1)] = colour
            x += int(times or 1)
    assert (pixels[: int(high)] >= 0).all(), "each pixel is drawn"
    assert (pixels[int(high) :] == -1).all(), "none below the cells, where other text stands"
    return pixels[: int(high)]


def stripes(columns: int, rows: int) -> tuple[bytes, Any]:
    """Return a picture of as many pixels as its cells have, and its pixels in per cent."""
    shape = (rows * CELL[1], columns * CELL[0])
    numbers = (np.arange(shape[1])[None, :] // 5 + np.arange(shape[0])[:, None] // 7) % 9
    palette = np.random.default_rng(1).integers(0, 256, (9, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(palette[numbers]).save(file, "PNG")
    return file.getvalue(), np.round(palette[numbers] / 2.55).astype(int)


def strip_of(line: Content, before: str = "") -> Strip:
    colour = line.spans[0].style.foreground
    style = Style.parse(f"rgb({colour.r},{colour.g},{colour.b})")
    return Strip([Segment(before), Segment(line.plain, style), Segment(" │")])


def test_rows_and_parts_of_rows_are_those_of_the_picture() -> None:
    sixels = Sixels(lambda: CELL)
    png, pixels = stripes(20, 4)
    lines = list(sixels.lines(png, 20, 4))
    assert lines == list(Graphics(lambda _: None).lines(png, 20, 4)), "the cells are kitty's"
    for row, line in enumerate(lines):
        top = row * CELL[1]
        (run,) = without_cells(strip_of(line))[1]
        whole = decoded(sixels.drawn(run))
        assert (whole == pixels[top : top + CELL[1]]).all()
        part = decoded(sixels.drawn(run._replace(first=3, cells=9)))
        assert (part == whole[:, 3 * CELL[0] : 12 * CELL[0]]).all()


def test_a_picture_may_have_few_colours_or_be_of_another_font() -> None:
    cell = CELL
    sixels = Sixels(lambda: cell, 4)
    png, _ = stripes(5, 2)
    (first, *_) = sixels.lines(png, 5, 2)
    run = without_cells(strip_of(first))[1][0]
    few = decoded(sixels.drawn(run))
    assert few.shape == (13, 30, 3)
    assert len({tuple(pixel) for row in few.tolist() for pixel in row}) <= 4
    cell = (12, 24)
    list(sixels.lines(png, 5, 2))
    assert decoded(sixels.drawn(run)).shape == (24, 60, 3)


def test_cells_are_sent_as_blanks_with_their_part_over_them_wherever_they_are_cut() -> None:
    sixels = Sixels(lambda: CELL)
    png, pixels = stripes(20, 3)
    strip = strip_of(list(sixels.lines(png, 20, 3))[1], "│ ")
    frame, console = Frame(), Console(force_terminal=True, color_system="truecolor")
    frame.sixels = sixels
    covered = [strip.crop(0, 7), Strip([Segment("a box")]), strip.crop(12)]
    sent = frame.render(LayoutUpdate([covered], Region(4, 9, 24, 1)), console)
    assert "\U0010eeee" not in sent
    found = [*re.finditer(rf"\x1b\[(\d+);(\d+)H({_SIXEL.pattern})", sent)]
    # Lines and columns of the terminal begin with 1.
    assert [(int(each[1]), int(each[2])) for each in found] == [(10, 7), (10, 17)]
    row = pixels[CELL[1] : 2 * CELL[1]]
    left, right = (decoded(each[3]) for each in found)
    assert (left == row[:, : 5 * CELL[0]]).all()
    assert (right == row[:, 10 * CELL[0] :]).all()
    words = re.sub(r"\x1b\[[\d;]*[mH]", "", re.sub(_SIXEL, "", sent))
    assert words == f"│ {' ' * 5}a box{' ' * 10} │"


def test_a_picture_that_isnt_known_is_blank() -> None:
    assert Sixels().drawn(Run(0, 77, 0, 0, 5)) == ""


def test_what_is_kept_is_limited() -> None:
    sixels = Sixels(lambda: (1, 6))
    for number in range(40):
        png = io.BytesIO()
        Image.new("RGB", (4, 4), (number, 1, 1)).save(png, "PNG")
        list(sixels.lines(png.getvalue(), 2, 20))
    assert len(sixels._pictures) == 16
    assert len(sixels._runs) == 600


@pytest.mark.parametrize(
    ("answer", "draws"),
    [
        ("\x1b[?62;4;6c", True),
        ("\x1b[?64;1;2;4c", True),
        ("\x1b[?4c", False),
        ("\x1b[?62;14;44c", False),
        ("\x1b[?1;2c", False),
        ("\x1b[>41;4;0c", False),
        ("\x1b[?62;4", False),
    ],
)
def test_the_terminal_says_whether_it_draws_sixels(answer: str, draws: bool) -> None:
    assert can_draw(answer) is draws


@pytest.mark.parametrize(
    ("answer", "colours"),
    [("16", 16), ("1024", 256), ("0", 2), ("9999999", None), ("", None)],
)
def test_the_terminal_says_how_many_colours_there_are(answer: str, colours: int | None) -> None:
    assert colours_of(f"\x1b[?1;0;{answer}S") == colours
    assert colours_of("\x1b[?1;3;0S") is None, "it doesn't know the question"


@pytest.mark.pty
@pytest.mark.parametrize("draws", [True, False])
def test_a_terminal_is_asked_and_sent_what_it_draws(tmp_path: Path, draws: bool) -> None:
    root = with_picture(tmp_path / "notes", stripes(20, 4)[0])
    answer = "\x1b[?62;4;22c" if draws else "\x1b[?62;22c"
    with start(root, answers={"\x1b[c": answer}) as terminal:
        open_picture(terminal)
        rows = _SIXEL.findall(terminal.output.decode())
        assert bool(rows) is draws
        assert ("▀▀" in terminal.output.decode()) is not draws
        assert "\U0010eeee" not in terminal.output.decode()
        terminal.send("\x11")
        assert terminal.wait_exit() == 0
