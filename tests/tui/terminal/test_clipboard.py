"""Copying takes the first way that works, and names it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from kbtui.tui.terminal.process import copy, programs
from kbtui.tui.terminal.state import state_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make programs that store what they are given, and its arguments, in files."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def make(name: str, status: int = 0) -> Path:
        taken = tmp_path / f"{name}.txt"
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "$@" > {taken}.args\ncat > {taken}\nexit {status}\n')
        program.chmod(0o755)
        return taken

    return make


def test_tmux_is_asked_first_because_it_drops_the_terminals_own_way(tools) -> None:
    taken = tools("tmux")
    copied = copy("héllo", {"TMUX": "/tmp/x", "TERM": "tmux-256color"})
    assert copied is not None
    assert copied.way == "with tmux"
    assert not copied.osc52
    assert taken.read_text("utf-8") == "héllo"
    assert taken.with_name("tmux.txt.args").read_text().split() == ["load-buffer", "-w", "-"]


def test_a_program_that_fails_is_passed_over(tools) -> None:
    tools("tmux", status=1)
    tools("wl-copy", status=1)
    taken = tools("xclip")
    environment = {"TMUX": "1", "WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0", "TERM": "xterm"}
    copied = copy("text", environment)
    assert copied is not None
    assert copied.way == "with xclip"
    assert taken.read_text() == "text"


def test_without_a_program_the_terminal_is_asked(tools) -> None:
    copied = copy("text", {"TERM": "xterm-256color"})
    assert copied is not None
    assert copied.osc52


@pytest.mark.parametrize(("term", "text"), [("linux", "small"), ("xterm", "large" * 20_000)])
def test_what_the_terminal_can_not_take_goes_into_a_file(tools, term: str, text: str) -> None:
    copied = copy(text, {"TERM": term})
    assert copied is not None
    assert not copied.osc52
    file = state_folder() / "clipboard.txt"
    assert str(file) in copied.way
    assert file.read_text() == text


def test_the_order_of_programs() -> None:
    environment = {"TMUX": "1", "WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}
    names = [command[0] for command in programs(environment, "darwin")]
    assert names == ["tmux", "wl-copy", "xclip", "xsel", "pbcopy"]
    assert list(programs({}, "linux")) == []
