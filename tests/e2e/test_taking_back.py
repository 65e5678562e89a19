"""Dream changes three entries, the person one of them; then a way back from each of it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import ROOT, ok
from tests.scripted_server import Reply, ScriptedServer, call
from tests.terminal import ENTER, ESC, F, Terminal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.pty
PEOPLE = {"alice": "Alice", "bob": "Bob", "carol": "Carol"}


def _person(title: str) -> str:
    return (
        "---\ntype: person\ncreated: 2026-01-05\nupdated: 2026-01-05\n---\n"
        f"# {title}\n\n## Works on\n\n- Billing\n"
    )


def _dreams(workspace: Path) -> None:
    """Let a model add a line to three entries."""
    edits = [
        {"do": "add_line", "path": f"people/{name}", "new": f"{title} leads it"}
        for name, title in PEOPLE.items()
    ]
    replies = [Reply(tool_calls=[call("curate", edits=edits)])]
    with ScriptedServer(replies) as server:
        env = {
            "KBTUI_MODEL": "openai/scripted",
            "KBTUI_API_BASE": server.url,
            "KBTUI_API_KEY": "not-a-real-key",
        }
        assert ok("dream", "--json", workspace=workspace, **env).json["commit"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Three people that a machine wrote, and an archive entry that nobody has dreamt about."""
    folder = tmp_path / "notes"
    ok("init", folder)
    _machine_writes(folder)
    return folder


def _machine_writes(folder: Path) -> None:
    from kbtui.history.change import Actor
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.memory.records.archive import Archive

    with KnowledgeBase.open(folder) as kb:
        with kb.history.change(Actor.CONSOLIDATOR, "people") as change:
            for name, title in PEOPLE.items():
                change.write(f"knowledge/people/{name}.md", _person(title))
        with kb.history.change(Actor.CONSOLIDATOR, "condensed") as change:
            Archive(kb.workspace, kb.history).stage(
                change,
                "They all lead billing now.",
                session=None,
                messages=None,
                timestamp="2026-03-06 10:00",
            )


def _ask_why(app: Terminal) -> None:
    """Another line still says where it came from."""
    app.send(ESC)
    app.wait_gone("─ History")
    app.send(F[5])
    app.wait_for("Open")
    app.send("bob" + ENTER)
    app.wait_for("people/bob", "Billing")
    app.send("w")
    app.wait_for("Why Bob", "kbtui")


def test_dream_is_taken_back_by_itself_and_time_travel_brings_a_line_back(workspace: Path) -> None:
    _dreams(workspace)
    files = {name: workspace / f"knowledge/people/{name}.md" for name in PEOPLE}
    assert all("leads it" in file.read_text() for file in files.values())
    files["alice"].write_text(files["alice"].read_text() + "- Plays chess\n")

    argv = [sys.executable, "-m", "kbtui", "-w", str(workspace)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Terminal(argv, env, (120, 40)) as app:
        app.wait_for("─ Notes 3", "Carol")
        app.send(F[4])
        app.wait_for("─ History", "Dream", "● Alice")
        app.wait_for("+ • Plays chess")
        app.send("j")
        app.wait_for("+ • Alice leads it")

        # One change is taken back from under the person's own, without a conflict.
        app.send("u")
        app.wait_for("Undo this change?", "3 files would change")
        app.send("y")
        app.wait(lambda _: all("leads it" not in file.read_text() for file in files.values()))
        app.wait_for("Undone")
        assert files["alice"].read_text().count("- Plays chess") == 1
        assert files["bob"].read_text().endswith("- Billing\n")

        # Back to when Dream had just been there: one of the entries is brought back from there.
        app.wait_for("You undid a change")
        app.send("jj")
        app.wait_for("+ • Alice leads it")
        app.send("T")
        app.wait_for("AS IT WAS", "Dream changed ● Alice", "read-only")
        app.wait_for("Alice leads it")
        app.send("d")
        app.wait_for("nothing can be changed here")
        app.send("c")
        app.wait_for("since then", "+ • Plays chess", "- • Alice leads it")
        app.send(ESC)
        app.wait_gone("since then")
        app.send("R")
        app.wait_for("Restore Alice?", "+ • Alice leads it")
        app.send(ENTER)
        app.wait(lambda _: "Alice leads it" in files["alice"].read_text())
        assert "leads it" not in files["bob"].read_text()
        app.send("T")
        app.wait_gone("AS IT WAS")

        # That restore is a change like any other, and is taken back in turn.
        app.send(ESC)
        app.wait_gone("─ History")
        app.send(F[4])
        app.wait_for("─ History", "- • Plays chess")
        app.send("u")
        app.wait(lambda _: "Plays chess" in files["alice"].read_text())
        assert "leads it" not in files["alice"].read_text()

        _ask_why(app)
