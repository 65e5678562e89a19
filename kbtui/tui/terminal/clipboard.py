"""Putting text where other programs can paste it from, by the first way that works.

tmux drops the terminal's own clipboard sequence (OSC 52) in its default configuration, and many
terminals never answer it, so a program that reports success is asked first. What is left when
nothing can be asked is a file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.tui.terminal.state import state_folder, write_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TIMEOUT_SECONDS = 2.0
_OSC52_LIMIT_BYTES = 74_000  # bytes before encoding; terminals cut the sequence at about 100,000
_DUMB = frozenset({"dumb", "linux", "unknown", ""})


@dataclass(frozen=True, slots=True)
class Copied:
    """Which way was taken; `osc52` asks the caller to write the terminal's sequence itself."""

    way: str
    osc52: bool = False


def programs(environment: Mapping[str, str], platform: str = sys.platform) -> Iterator[list[str]]:
    """The commands that may reach a clipboard here, the surest first."""
    if environment.get("TMUX"):
        yield ["tmux", "load-buffer", "-w", "-"]
    if environment.get("WAYLAND_DISPLAY"):
        yield ["wl-copy"]
    if environment.get("DISPLAY"):
        yield ["xclip", "-selection", "clipboard", "-in"]
        yield ["xsel", "--clipboard", "--input"]
    if platform == "darwin":
        yield ["pbcopy"]


def copy(text: str, environment: Mapping[str, str] | None = None) -> Copied | None:
    """Copy `text`; blocks for as long as a program takes (at most 2 s each).

    Returns:
        The way that was taken, or None where even the file couldn't be written.
    """
    environment = os.environ if environment is None else environment
    data = text.encode("utf-8", "replace")
    for command in programs(environment):
        if shutil.which(command[0]) and _feed(command, data):
            return Copied(f"with {command[0]}")
    if environment.get("TERM", "") not in _DUMB and len(data) <= _OSC52_LIMIT_BYTES:
        return Copied("through the terminal", osc52=True)
    file = state_folder() / "clipboard.txt"
    return Copied(f"into {file}") if write_state(file, text) else None


def _feed(command: list[str], data: bytes) -> bool:
    try:
        done = subprocess.run(
            command,
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
