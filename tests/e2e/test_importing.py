"""Years of conversations come in: a bar, a kill, a resume, an answer, a way back."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import ROOT, ok
from tests.importers.exports import claude, written
from tests.patience import PATIENCE
from tests.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.pty
COUNT = 3000


@pytest.fixture
def export(tmp_path: Path) -> Path:
    talks = [claude(f"c{n}", f"What about number {n}?", "It is fine.") for n in range(COUNT)]
    talks[300] = claude("anna", "My sister Anna keeps llamas in Bergen.", "How nice.")
    return written(tmp_path / "conversations.json", talks)


def _import(workspace: Path, export: Path) -> Terminal:
    argv = [sys.executable, "-m", "kbtui", "-w", str(workspace), "import", str(export)]
    return Terminal(argv, {**os.environ, "PYTHONPATH": str(ROOT)})


def test_an_import_that_is_killed_goes_on_is_asked_about_and_is_taken_back(
    tmp_path: Path, export: Path
) -> None:
    workspace = tmp_path / "notes"
    ok("init", workspace)
    with _import(workspace, export) as terminal:
        deadline = time.monotonic() + PATIENCE
        while not any((workspace / "sessions").glob("claude_*")):
            assert time.monotonic() < deadline, terminal.text
            time.sleep(0.01)
        os.kill(terminal.pid, signal.SIGKILL)
    came = len(ok("sessions", "--json", workspace=workspace).json)
    assert 0 < came < COUNT
    with _import(workspace, export) as terminal:
        terminal.wait_for("Take it back with")
        terminal.wait_for("can be searched and quoted now")
        assert re.search(rb"\d%", terminal.output), "how far it was is shown"
    listed = ok("sessions", "--json", workspace=workspace).json
    assert len(listed) == COUNT
    assert len({each["url"] for each in listed}) == COUNT
    events = ok("ask", "--json", "What does Anna keep in Bergen?", workspace=workspace).events
    (answer,) = [each for each in events if each["event"] == "turn_finished"]
    assert "llamas" in answer["text"]
    assert answer["citations"]
    assert not list((workspace / "knowledge").rglob("*anna*")), "nothing is made of it"
    batches = {each.stem for each in (workspace / ".kbtui/imports").glob("*.json")}
    assert len(batches) == 1
    undone = ok("undo", "--json", "--batch", *batches, workspace=workspace).json
    assert len(undone["sessions"]) == COUNT
    left = ok("sessions", "--json", workspace=workspace).json
    assert [each["channel"] for each in left] == ["cli"]
    assert not list((workspace / "knowledge").rglob("*anna*"))


def test_an_imported_conversation_is_gone_on_with(tmp_path: Path) -> None:
    workspace = tmp_path / "notes"
    ok("init", workspace)
    export = written(tmp_path / "a.json", [claude("c1", "My boat is called Vilde.", "Nice.")])
    report = ok("import", "--json", export, workspace=workspace).json
    (session,) = [each["id"] for each in report["imports"][0]["sessions"]]
    ok("ask", "-s", session, "It lies in Oslo.", workspace=workspace)
    lines = (workspace / "sessions" / f"{session}.jsonl").read_text().splitlines()
    said = [json.loads(line).get("content") for line in lines]
    assert [each for each in said if each][:3] == [
        "My boat is called Vilde.",
        "Nice.",
        "It lies in Oslo.",
    ]
