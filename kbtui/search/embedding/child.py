"""How the child process is started that runs sentence-transformers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NICENESS = 10


def command(*arguments: str) -> list[str]:
    """The command line of ``prepare_model``, at a low priority."""
    return [
        sys.executable,
        "-m",
        "kbtui.search.embedding.prepare_model",
        *arguments,
        "--nice",
        str(_NICENESS),
    ]


def environment() -> dict[str, str]:
    """The child's environment: it finds this very package, and leaves a core to the screen."""
    package = str(Path(__file__).resolve().parents[3])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    threads = str(max(1, (os.cpu_count() or 2) - 1))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": threads}
