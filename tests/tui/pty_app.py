"""The app in a real terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tests.terminal import Terminal

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
