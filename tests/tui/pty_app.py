"""The app in a real terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tests.terminal import ENTER, F, Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from pathlib import Path
from kbtui.tui.app import app
from kbtui.tui.terminal import process
from kbtui.tui.terminal import type_ahead as typed_ahead
from kbtui.tui.app.app import run_app
# However slow the machine is:
app._QUIT_SECONDS = typed_ahead._LONGEST_WAIT_SECONDS = process._PATIENCE_SECONDS = 120.0
sys.exit(run_app(Path(sys.argv[1])))
"""


def start(
    workspace: Path,
    size: tuple[int, int] = (120, 40),
    program: str = PROGRAM,
    name: str = "xterm-256color",
    answers: Mapping[str, str] = MappingProxyType({}),
) -> Terminal:
    """Start the app on a workspace, without reading for meaning."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "KBTUI_SEARCH__SEMANTIC": "false"}
    return Terminal([sys.executable, "-c", program, str(workspace)], env, size, name, answers)


def with_picture(root: Path, png: bytes) -> Path:
    """Make a workspace with a note that embeds a picture, and return its root."""
    from kbtui.workspace.opening import create_workspace

    workspace = create_workspace(root)
    (workspace.knowledge / "topics").mkdir(exist_ok=True)
    (workspace.knowledge / "topics/x.md").write_text("# X\n\nSee\n![[p.png]]\n")
    (workspace.knowledge / "topics/p.png").write_bytes(png)
    return workspace.root


def open_picture(terminal: Terminal) -> None:
    """Open that note, and wait until its picture is there."""
    terminal.wait_for("no model")
    terminal.send(F[5])
    terminal.wait_for("▣ p.png")
    terminal.send(ENTER)
    terminal.wait_gone("Enter opens")
    terminal.wait_silent(0.5)
