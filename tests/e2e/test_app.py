"""The app in a real terminal: type, read, open, edit, compare, undo; resize, kill, come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import ROOT
from tests.importers.exports import claude, written
from tests.terminal import CTRL_S, ENTER, ESC, SHIFT_TAB, F, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.pty
SAID = "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it"
DECISION = "knowledge/decisions"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


PATIENT = """
import sys
from kbtui.__main__ import main
from kbtui.tui.terminal import process
process._PATIENCE_SECONDS = 120.0  # to leave in, however slow the machine is
sys.exit(main())
"""


def _app(workspace: Path, *program: str) -> Terminal:
    argv = [sys.executable, *(program or ("-m", "kbtui")), "-w", str(workspace)]
    return Terminal(argv, {**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.fixture
def app(workspace: Path) -> Iterator[Terminal]:
    with _app(workspace) as terminal:
        terminal.wait_for("─ Notes", "Ask, tell")
        yield terminal


def test_the_main_job_from_question_to_undo(app: Terminal, workspace: Path) -> None:
    app.send(SAID + ENTER)
    app.wait_for("◆ Use PostgreSQL for analytics ─", "Kept as a decision")
    (decision,) = (workspace / DECISION).glob("*.md")
    written = decision.read_text()

    app.send("why PostgreSQL for analytics?" + ENTER)
    app.wait_for("▌ we decided to use PostgreSQL", "[1]")

    app.send(F[3])
    app.wait_for("▾ Decisions", "H history of it")
    app.send("j" + ENTER)
    app.wait_for("of its JSON operators", "decisions/")

    app.send("e")
    app.wait_for("type: decision")
    app.send("\x1b[1;5F" + ENTER + "Added by hand." + CTRL_S)
    app.wait_for("Added by hand.", "─ saved ─")
    app.wait(lambda _: "Added by hand." in decision.read_text())

    app.send(ESC)
    app.wait_gone("type: decision")
    app.send("H")
    app.wait_for("─ History", "+ Added by hand.", "You")
    app.send("u")
    app.wait(lambda _: decision.read_text() == written)


def test_what_is_typed_before_the_workspace_is_open_is_not_lost(workspace: Path) -> None:
    with _app(workspace) as terminal:
        terminal.wait(lambda screen: "Ask, tell" in screen)
        terminal.send("the cake is in the oven" + ENTER)
        terminal.wait_for("> the cake is in the oven", "✓ today")
        terminal.send("the cake is burnt" + ENTER)
        terminal.wait(lambda screen: screen.count("✓ today") == 2)
        terminal.send(SHIFT_TAB + "u")
        terminal.wait_for("undone · today")
    (day,) = (workspace / "memory").glob("????-??-??.md")
    assert day.read_text().endswith(" the cake is in the oven\n")


def test_it_is_usable_at_80x24_and_survives_any_size(app: Terminal) -> None:
    for size in ((80, 24), (20, 5), (3, 2), (200, 60), (80, 24)):
        app.resize(*size)
    app.wait_for("Ask, tell")
    app.send("still here")
    app.wait_for("still here")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal_and_keeps_the_draft(
    workspace: Path, number: signal.Signals
) -> None:
    with _app(workspace, "-c", PATIENT) as terminal:
        terminal.wait_for("─ Notes", "Ask, tell")
        terminal.send("half a thought")
        terminal.wait_for("half a thought")
        terminal.kill(number)
        assert terminal.wait_exit() == 128 + number
        assert b"\x1b[?1049l" in terminal.output
        assert b"\x1b[?25h" in terminal.output
    with _app(workspace) as terminal:
        terminal.wait_for("half a thought")


def test_after_a_kill_it_starts_again_with_everything(workspace: Path) -> None:
    with _app(workspace) as terminal:
        terminal.wait_for("─ Notes", "Ask, tell")
        terminal.send(SAID + ENTER)
        terminal.wait_for("◆ Use PostgreSQL for analytics ─")
        terminal.send("the cake is in the oven" + ENTER)
        terminal.wait_for("> the cake is in the oven", "✓ today")
        terminal.kill()
        terminal.wait_exit()
    with _app(workspace) as terminal:
        terminal.wait_for("Today", "Decisions", "Use PostgreSQL for analytics")
    (decision,) = (workspace / DECISION).glob("*.md")
    assert SAID in decision.read_text()
    (day,) = (workspace / "memory").glob("????-??-??.md")
    assert day.read_text().endswith(" the cake is in the oven\n")
    checked = subprocess.run(
        ["git", "-C", workspace / ".kbtui/history.git", "fsck", "--full", "--strict"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_an_edit_from_outside_shows_up_as_the_users(app: Terminal, workspace: Path) -> None:
    app.send("remember that the cake is in the oven" + ENTER)
    app.wait_for("✓ remembered · u")
    (workspace / "knowledge/topics/from-vim.md").write_text("# From vim\n\nWritten elsewhere.\n")
    app.send(F[4])
    app.wait_for("─ History", "From vim", "You")


def test_a_workspace_that_cant_be_opened_ends_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with _app(tmp_path / "file") as terminal:
        assert terminal.wait_exit() == 3
        text = terminal.output.decode()
    assert "is a file" in text
    assert "Traceback" not in text


def test_an_export_is_dropped_looked_at_imported_asked_about_and_cited(
    app: Terminal, tmp_path: Path
) -> None:
    talk = claude("a", "How do I descale my kettle?", "Citric acid descales a kettle in an hour.")
    export = written(tmp_path / "conversations.json", [talk])
    app.send(f"\x1b[200~'{export}'\x1b[201~")
    app.wait_for("/import")
    app.send(ENTER)
    app.wait_for("Import from Claude.ai?", "1 conversation, 2 messages", "of 2024-03-05")
    app.send("y")
    app.wait_for("Claude.ai: 1 conversation; 2 messages")

    app.send("which acid descales a kettle?" + ENTER)
    app.wait_for("▌ Citric acid descales", "[1]", "were told", "5 March 2024")
    app.send("\x1b[Z")
    app.send("o")
    app.wait_for("Talk a", "How do I descale my kettle?")
