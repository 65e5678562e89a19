"""The same conversation with a model behind the OpenAI protocol: it streams and uses tools."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import ROOT, ok
from tests.patience import PATIENCE
from tests.scripted_server import Reply, Request, ScriptedServer, call
from tests.terminal import ENTER, ESC, Terminal

if TYPE_CHECKING:
    from pathlib import Path

SAID = "we decided to use PostgreSQL for analytics because of its JSON operators; Alice owns it"
WRITES = Reply(
    tool_calls=[
        call(
            "write_entry",
            "w1",
            kind="decision",
            title="PostgreSQL for analytics",
            sections={"Context": "We need JSON operators.", "Decision": "Use PostgreSQL."},
        ),
        call(
            "write_entry", "w2", kind="person", title="Alice", sections={"Role": "Owns analytics."}
        ),
    ]
)
CONFIRMS = Reply("Both are **kept**: the decision, and Alice as its owner.")
SEARCHES = Reply(tool_calls=[call("search", "s1", query="PostgreSQL analytics")])


def _answers(request: Request) -> Reply:
    found = request.messages[-1]["content"]
    assert "PostgreSQL" in found
    return Reply("Because of the JSON operators [1].")


def _env(server: ScriptedServer) -> dict[str, str]:
    return {
        "KBTUI_MODEL": "openai/scripted",
        "KBTUI_API_BASE": server.url,
        "KBTUI_API_KEY": "not-a-real-key",
        "KBTUI_SEARCH__SEMANTIC": "false",
    }


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    ok("init", folder)
    return folder


def test_a_script_sees_it_stream_and_call_tools(workspace: Path) -> None:
    with ScriptedServer([WRITES, CONFIRMS, SEARCHES, _answers]) as server:
        told = ok("ask", SAID, "--json", workspace=workspace, **_env(server)).events
        asked = ok("ask", "why PostgreSQL?", "--json", workspace=workspace, **_env(server)).events
    deltas = [event["text"] for event in told if event["event"] == "text_delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == CONFIRMS.text
    tools = [event["tool"] for event in told if event["event"] == "tool_started"]
    assert tools == ["write_entry", "write_entry"]
    assert len(told[-1]["changes"]) == 2
    assert (workspace / "knowledge/people/alice.md").exists()
    (cited,) = asked[-1]["citations"]
    assert "postgresql-for-analytics" in cited["path"]
    assert "write_entry" in server.prompts[0].tools
    assert all(request.body.get("stream") for request in server.prompts)


def test_the_app_shows_the_stream_the_cards_and_stops_on_escape(workspace: Path) -> None:
    slow = Reply("word " * 40_000, piece=5, delay=0.05)
    with ScriptedServer([WRITES, CONFIRMS, slow]) as server:
        env = {**os.environ, "PYTHONPATH": str(ROOT), **_env(server)}
        argv = [sys.executable, "-m", "kbtui", "-w", str(workspace)]
        with Terminal(argv, env) as app:
            app.wait_for("scripted")
            app.send(SAID + ENTER)
            app.wait_for("● Alice ─", "Both are kept")
            app.send("tell me more" + ENTER)
            app.wait_for("word word")
            app.send(ESC)
            assert server.disconnected.wait(PATIENCE)
            app.wait_for("topped")
            app.send("still alive")
            app.wait_for("still alive")
