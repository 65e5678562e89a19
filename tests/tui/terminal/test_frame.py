"""Only what has changed is sent to the terminal, and what stands on it is what Textual would draw."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyte
import pytest
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate

from kbtui.tui.terminal.frame import Frame
from tests.tui import painting
from tests.tui.shell import Shell, running, settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

_WORDS = (
    "plain words",
    "10\u00a0kg",
    "全角 text",
    "👩\u200d💻 at work",
    "e\u0301",
    "▇ ─ … ·",
    "tab",
)
_KEYS = ("f2", "f3", "f4", "f5", "f6", "f7", "escape", "enter", "up", "down", "left", "pagedown")
_KEYS += ("tab", "f1", "ctrl+p", "backspace", "ctrl+u", "ctrl+j", "?", "/", "j", "home", "f8")


@pytest.fixture
async def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shell]:
    monkeypatch.setattr(Compositor, "render_update", painting._plain_render)  # put nothing off
    async with running(tmp_path / "kb") as shell:
        yield shell


class Both:
    """Two terminals: one is sent all, the other what has changed."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.frame = Frame()
        self.sent = [0, 0]
        self.updates: list[CompositorUpdate] = []
        self.resize(size)

    def resize(self, size: tuple[int, int]) -> None:
        self.screens = [pyte.Screen(*size), pyte.Screen(*size)]
        self._streams = [pyte.Stream(screen) for screen in self.screens]
        self.frame.forget()

    def show(self, update: CompositorUpdate, console: Any) -> None:
        self.updates.append(update)
        everything = update.render_segments(console)
        changed = self.frame.changes(update).render_segments(console)
        for number, sequence in enumerate((everything, changed)):
            if isinstance(update, ChopsUpdate):  # of a whole screen nothing can be left out
                self.sent[number] += len(sequence.encode())
            self._streams[number].feed(sequence)

    def compare(self, what: object) -> None:
        theirs, ours = (screen.buffer for screen in self.screens)
        rows, columns = self.screens[0].lines, self.screens[0].columns
        for y in range(rows):
            for x in range(columns):
                assert ours[y][x] == theirs[y][x], (what, x, y, self.screens[1].display[y])


def _draws(update: CompositorUpdate, text: str, console: Any) -> bool:
    """Return whether an update of parts of the screen has a text; others may come after it."""
    return isinstance(update, ChopsUpdate) and text in update.render_segments(console)


@contextmanager
def _watched(shell: Shell) -> Iterator[Both]:
    app: Any = shell.app
    both, display = Both(app.size), app._display

    def show(screen: object, renderable: object) -> None:
        if isinstance(renderable, CompositorUpdate):
            both.show(renderable, app.console)
        display(screen, renderable)

    app._display = show
    try:
        yield both
    finally:
        del app._display


@pytest.mark.parametrize("seed", range(4))
async def test_what_is_sent_in_parts_looks_like_what_would_be_sent_whole(
    shell: Shell, seed: int
) -> None:
    chance = random.Random(seed)
    with _watched(shell) as both:
        shell.app.screen.refresh(layout=True)
        await settle(shell.pilot)
        done: list[str] = []
        for _ in range(40):
            if chance.random() < 0.4:
                done.append(chance.choice(_WORDS))
                shell.chat.prompt.insert(done[-1])
            elif chance.random() < 0.1:
                size = chance.randint(50, 150), chance.randint(15, 45)
                both.resize(size)
                await shell.pilot.resize_terminal(*size)
                done.append(str(size))
            else:
                done.append(chance.choice(_KEYS))
                await shell.pilot.press(done[-1])
            await settle(shell.pilot)
            both.compare(done)
        assert both.sent[1] < both.sent[0] / 2


async def test_a_key_in_the_prompt_sends_a_few_cells(shell: Shell) -> None:
    with _watched(shell) as both:
        await shell.press(*"some words")
        await settle(shell.pilot)
        both.sent = [0, 0]
        await shell.press(*"and a few more of them")
        await settle(shell.pilot)
        keys = len("and a few more of them")
        assert 0 < both.sent[1] / keys < 250
        both.compare("typing")


async def test_what_stands_there_is_not_sent_again_until_it_is_forgotten(shell: Shell) -> None:
    with _watched(shell) as both:
        await shell.press("x")
        await settle(shell.pilot)
        console = shell.app.console
        update = next(each for each in reversed(both.updates) if _draws(each, "x", console))
        assert both.frame.render(update, console) == ""
        both.frame.forget()
        assert "x" in both.frame.render(update, console)
