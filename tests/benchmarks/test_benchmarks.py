"""Every benchmark that the lab book names runs, at its smallest size."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.benchmarks.__main__ import main, names
from tests.benchmarks.material import DATA, ROOT
from tests.benchmarks.paired import environment_of, python_of
from tests.memory.memory_room import call_slice
from tests.scripted_server import Reply, Request, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

BOOK = Path(__file__).with_name("README.md")
_ROW = re.compile(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", re.MULTILINE)
_COMMAND = re.compile(r"`([^`]*)`")
_RULE = re.compile(r"-+(?:  -+)*")
SOUND: dict[str, dict[str, Any]] = {
    "failing": {"message lost or next turn failed": []},
    "ground": {"written": [], "not in the audit": []},
    "history": {"fsck": "clean"},
    "import": {"too much growth": [], "too much memory": []},
    "memory": {"unaccounted": 0, "recounts_that_differ": 0},
    "soak": {"problems": []},
    "week": {"nowhere": []},
}
"""What has to come out at any size."""


def rows() -> list[tuple[str, str]]:
    """The first and the last cell of each row of the first table."""
    return _ROW.findall(BOOK.read_text("utf-8").partition("\n## ")[0])


def smallest() -> Iterator[tuple[str, str]]:
    """The benchmarks of the table with the options of their smallest sizes."""
    for name, cell in rows():
        if "no options" in cell:
            yield name, ""
        yield from ((name, options) for options in _COMMAND.findall(cell))


def test_the_table_names_every_benchmark_once_and_no_other() -> None:
    assert [name for name, _ in rows()] == names()


def test_what_is_no_benchmark_is_answered_with_their_names() -> None:
    command = [sys.executable, "-m", "tests.benchmarks", "report"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert ",".join(names()) in done.stderr


def figures_of(name: str, options: str, capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run a benchmark; the test is skipped if the measuring data isn't there."""
    try:
        status = main([name, *shlex.split(options)])
    except SystemExit as ended:
        if DATA.is_dir() or "KBTUI_DATA" not in str(ended.code):
            raise
        pytest.skip(str(ended.code))
    lines = capfd.readouterr().out.splitlines()
    assert status == 0
    for number, line in enumerate(lines[:-1]):
        if _RULE.fullmatch(line):
            assert lines[number + 1].strip(), f"nothing stands in the table {lines[number - 2]}"
    start = len(lines) - lines[::-1].index("{") - 1
    figures: dict[str, Any] = json.loads("\n".join(lines[start:]))
    assert figures.keys() - {"versions"}
    return figures


def _condenses(request: Request) -> Reply:
    fact = {"text": "Yusuf is the head baker.", "type": "topic", "subject": "Krume", "message": 1}
    saves = request.tools == ["save_memory"]
    return Reply(tool_calls=[call_slice(facts=[fact])]) if saves else Reply("I see.")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as outside of the tests
@pytest.mark.parametrize(("name", "options"), smallest())
def test_a_benchmark_runs_at_its_smallest_size_and_prints_its_figures(
    name: str,
    options: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("KBTUI_BENCH_CACHE", str(tmp_path))
    with ScriptedServer([_condenses]) as server:
        told = options.replace("DATA", str(DATA)).replace("URL", server.url)
        figures = figures_of(name, told, capfd)
    assert {key: figures[key] for key in SOUND.get(name, {})} == SOUND.get(name, {})


def test_an_earlier_build_is_run_with_its_own_code_wherever_the_command_stands(
    tmp_path: Path,
) -> None:
    package = tmp_path / "kbtui"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("print('the earlier one')")
    command = [python_of(tmp_path), "-m", "kbtui"]

    done = subprocess.run(
        command, env=environment_of(tmp_path), cwd=ROOT, capture_output=True, check=True, text=True
    )

    assert done.stdout == "the earlier one\n"
