"""Where the measuring data is, and what is said where it isn't."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("KBTUI_DATA", ROOT.parent / "shared" / "data"))


def needed(path: Path) -> Path:
    """The same path.

    Raises:
        SystemExit: There is nothing.
    """
    if not path.exists():
        raise SystemExit(f"There is no {path}. Set KBTUI_DATA to the folder of the measuring data.")
    return path


def make_vault(folder: Path, entries: int) -> None:
    """Fill a folder with that many entries."""
    tool = needed(DATA.parent / "tools" / "make_vault.py")
    command = [sys.executable, str(tool), str(folder), "--entries", str(entries)]
    subprocess.run([*command, "--data", str(DATA)], check=True, capture_output=True)
