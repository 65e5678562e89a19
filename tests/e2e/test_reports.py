"""Public reports about other memories, played on this program: what they want is what comes out.

The folders of the measuring data (``reports/memory``, ``reports/time``) have a script that talks to
the program with a scripted model, and a text that says what is right.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.benchmarks.material import DATA

if TYPE_CHECKING:
    from collections.abc import Callable

REPORTS = DATA / "reports"
PROGRAM = Path(sys.executable).with_name("kbtui")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not REPORTS.is_dir(), reason=f"there is no {REPORTS}"),
]


@pytest.fixture
def play(tmp_path: Path, unused_tcp_port_factory: Callable[[], int]) -> Callable[[str], str]:
    """Run a folder's script, and return what it prints."""

    def run(folder: str) -> str:
        environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment |= {
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "K": str(PROGRAM),
            "PORT": str(unused_tcp_port_factory()),
        }
        done = subprocess.run(
            ["bash", str(REPORTS / folder / "run.sh")],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.stdout + done.stderr

    return run


def _today() -> date:
    return datetime.now().astimezone().date()


def _plan(folder: str) -> dict[str, Any]:
    return json.loads((REPORTS / folder / "plan.json").read_text("utf-8"))


def _lines(printed: str) -> list[str]:
    return [re.sub(r"^- (?:\d\d:\d\d )?", "", line).rstrip(". ") for line in printed.splitlines()]


@pytest.mark.parametrize("folder", ["memory/01-framed-statements", "memory/02-whose-fact-it-is"])
def test_a_framed_or_turned_line_is_never_written(play: Callable[[str], str], folder: str) -> None:
    printed = play(folder)
    plan = _plan(folder)
    turned = [each["text"] for each in plan["facts"]]
    assert not set(turned) & set(_lines(printed))
    assert "moving to Lisbon" not in printed.partition("next prompt's Memory:")[2]


def test_a_date_that_was_worked_out_rightly_is_kept_or_its_sentence(
    play: Callable[[str], str],
) -> None:
    held = play("memory/03-right-dates-refused").partition("audit:")[0]
    said = "Linden, smoking, Ulm, statistics, Kachelofen, Klempner, fontanero, couvreur"
    assert [word for word in said.split(", ") if word not in held] == []
    assert held.count(str(_today() + timedelta(days=1))) >= 3, "in three languages"


def test_a_model_that_writes_english_keeps_what_was_said_in_other_languages(
    play: Callable[[str], str],
) -> None:
    folder = "memory/04-model-writes-another-language"
    held = play(folder).partition("audit:")[0]
    for said in (
        "heißt Ottokar Brandl",
        "Nachbarin Frau Lindner",
        "tercera maceta",
        "sube el 1 de",
    ):
        assert said in held
    assert not {each["text"] for each in _plan(folder)["facts"]} & set(_lines(held))


def test_what_a_relative_word_means_stands_behind_it_unless_that_is_ambiguous(
    play: Callable[[str], str],
) -> None:
    printed = play("memory/06-relative-dates-rot")
    today = _today()
    lines = printed.splitlines()
    for said, wrong in (("sweep", today + timedelta(1)), ("flooded", today - timedelta(1))):
        (line,) = [each for each in lines if said in each]
        assert str(wrong) not in line
    for said in ("quit smoking three", "moved in last", "form is due", "Der Klempner"):
        line = next(each for each in lines if said in each)
        assert re.search(r"\([^)]*\d{4}[^)]*\)", line), line
    assert "three months ago" in printed.rpartition("MEMORY.md")[0]


def test_what_was_remembered_last_is_in_the_prompt_of_a_full_memory(
    play: Callable[[str], str],
) -> None:
    printed = play("memory/07-memory-longer-than-the-prompt")
    assert "rc 0" in printed
    assert "MEMORY.md is full: 191 lines" in printed
    assert printed.count("the newest: True") == 1


def test_what_is_said_again_is_known(play: Callable[[str], str]) -> None:
    held = play("memory/08-said-again").partition("audit:")[0]
    assert held.count("43 metres") == 1


def test_a_relative_word_counts_from_the_day_of_its_own_message(play: Callable[[str], str]) -> None:
    printed = play("time/08-conversation-over-midnight")
    for name, first, second in (
        ("2026-12-31T22:58", "2027-01-01", "2027-01-02"),
        ("2026-12-28T10:00", "2026-12-29", "2027-01-01"),
    ):
        parts = re.split(r"(?m)^said ", printed)
        for part in (each for each in parts if each.startswith(name)):
            sweep, plumber = (
                next(line for line in part.splitlines() if word in line)
                for word in ("sweep", "plumber")
            )
            assert first in sweep
            assert second in plumber
