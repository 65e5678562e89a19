"""What a command that asks one thing runs through: the first turn of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_CALLS = 5_000
COUNT = "from tests.benchmarks.turn import run; print(run(['--first'])['figures']['calls'])"


def test_the_first_turn_of_a_process_reads_no_word_list_anew() -> None:
    """Reading, splitting and stemming them takes 30,000 calls, names 20,000, frames 65,000."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 1_000 < int(done.stdout.split()[-1]) <= MOST_CALLS
