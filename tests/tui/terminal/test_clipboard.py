"""Copying uses all ways that there are, and names what answered."""

from __future__ import annotations

import base64
import os
import re
from typing import TYPE_CHECKING

import pytest

from kbtui import programs
from kbtui.tui.terminal import outside
from kbtui.tui.terminal.state import state_folder

if TYPE_CHECKING:
    from pathlib import Path

OSC52 = f"\x1b]52;c;{base64.b64encode(b'text').decode()}\x07"
DESKTOP = {"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make programs that store what they are given, and its arguments, in files."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    for name in ("TMUX", "STY", *DESKTOP):
        monkeypatch.delenv(name, raising=False)

    def make(name: str, ends: str = "exit 0") -> Path:
        taken = tmp_path / f"{name}.txt"
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "$@" >> {taken}.args\ncat > {taken}\n{ends}\n')
        program.chmod(0o755)
        return taken

    return make


def test_in_tmux_on_a_desktop_both_have_the_text(tools) -> None:
    clipboard, tmux = tools("xclip"), tools("tmux")
    copied = programs.copy("héllo", {"TMUX": "/tmp/x", "DISPLAY": ":0", "TERM": "tmux-256color"})
    assert copied.reached == ("the clipboard (xclip)", "tmux's buffer")
    assert clipboard.read_text("utf-8") == tmux.read_text("utf-8") == "héllo"
    assert tmux.with_name("tmux.txt.args").read_text().split() == ["load-buffer", "-w", "-"]
    assert copied.sequence == "", "tmux passes it on to the terminal"


def test_tmux_that_does_not_pass_it_on_keeps_it_and_the_terminal_is_asked_through_it(tools) -> None:
    tools("tmux", 'case "$@" in *-w*) exit 1;; esac')
    copied = programs.copy("text", {"TMUX": "1", "TERM": "tmux-256color"})
    assert copied.reached == ("tmux's buffer",)
    assert copied.sequence == f"{OSC52}\x1bPtmux;\x1b{OSC52}\x1b\\"


def test_a_program_that_fails_is_passed_over(tools) -> None:
    tools("tmux", "exit 1")
    tools("wl-copy", "exit 1")
    taken = tools("xclip")
    copied = programs.copy("text", {**DESKTOP, "TMUX": "1", "TERM": "xterm"})
    assert copied.reached == ("the clipboard (xclip)",)
    assert taken.read_text() == "text"


def test_the_terminal_is_asked_too_because_the_desktop_may_be_another_machines(tools) -> None:
    tools("wl-copy")
    copied = programs.copy("text", {**DESKTOP, "TERM": "xterm-256color"})
    assert copied == (("the clipboard (wl-copy)",), OSC52)


def test_gnu_screen_is_handed_short_pieces_that_it_passes_on(tools) -> None:
    text = "text" * 1_000
    sequence = programs.copy(text, {"STY": "1.pts", "TERM": "screen"}).sequence
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", sequence, re.DOTALL)
    assert all(len(piece) <= 500 for piece in pieces)
    encoded = base64.b64encode(text.encode()).decode()
    assert "".join(pieces) == f"\x1b]52;c;{encoded}\x07"


def test_osc_52_alone_is_sent_and_not_copied(tools, monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    said, sequence = outside.copy("text")
    assert said.startswith("Sent 4 characters to the terminal")
    assert sequence == OSC52


@pytest.mark.parametrize(("term", "text"), [("linux", "small"), ("xterm", "large" * 20_000)])
def test_what_the_terminal_can_not_take_goes_into_a_file(
    tools, monkeypatch: pytest.MonkeyPatch, term: str, text: str
) -> None:
    monkeypatch.setenv("TERM", term)
    said, sequence = outside.copy(text)
    assert sequence == ""
    file = state_folder() / "clipboard.txt"
    assert str(file) in said
    assert file.read_text() == text
