"""A turn of conversation from a script, with the offline model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.patience import PATIENCE

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Command

ROOT = Path(__file__).resolve().parents[2]
SAID = "remember that the spare key is under the green pot"


def test_an_answer_is_text_with_its_sources(kbtui: Command) -> None:
    kbtui.ok("ask", SAID)
    done = kbtui.ok("ask", "where is the spare key?")
    assert "green pot" in done.out
    assert "[1] " in done.out.splitlines()[-1]
    assert "Traceback" not in done.err


def test_json_events_end_with_the_turn(kbtui: Command) -> None:
    kbtui.ok("ask", SAID)
    events = kbtui.ok("ask", "where is the spare key?", "--json").lines
    kinds = [event["event"] for event in events]
    assert set(kinds) <= {"text_delta", "tool_started", "tool_finished", "usage", "turn_finished"}
    assert kinds[-1] == "turn_finished"
    last = events[-1]
    assert set(last) >= {"text", "citations", "changes", "session"}
    text = "".join(event["text"] for event in events if event["event"] == "text_delta")
    assert text.strip().endswith(last["text"].strip())
    cited = last["citations"][0]
    assert set(cited) == {"n", "path", "lines"}
    started = next(event for event in events if event["event"] == "tool_started")
    assert set(started) == {"event", "tool", "arguments"}


def test_what_was_written_is_told(kbtui: Command) -> None:
    events = kbtui.ok("ask", SAID, "--json").lines
    (change,) = events[-1]["changes"]
    assert change["commit"] == kbtui.ok("log", "--json").json[0]["commit"]
    assert change["paths"]
    assert "+ changed Memory" in kbtui.ok("ask", "remember that the gate squeaks").err


def test_that_there_is_no_model_is_said_once(kbtui: Command) -> None:
    said = [kbtui.ok("ask", f"The gate squeaks {times} times").err for times in (1, 2)]
    assert ["kbtui setup" in each for each in said] == [True, False]


def test_a_pipe_gets_no_control_characters_unless_it_asks_for_them(kbtui: Command) -> None:
    entry = kbtui.file("knowledge/topics/boiler.md")
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_text("# Boiler\n\nThe boiler is \x1b]0;owned\x07 \u202eserviced in May.\n")
    question = ("ask", "when is the boiler serviced?")
    answer = kbtui.ok(*question).out
    assert "May" in answer
    assert not {"\x1b", "\x07", "\u202e"} & set(answer)
    assert "May" in kbtui.ok(*question, "--raw").out


def test_standard_input_is_appended(kbtui: Command) -> None:
    kbtui.ok("ask", "remember", "that", stdin="the boiler is serviced in May\n")
    (info,) = kbtui.ok("sessions", "--json").json
    log = kbtui.file(f"sessions/{info['id']}.jsonl").read_text()
    assert "remember that\\n\\nthe boiler is serviced in May" in log
    assert kbtui("ask").status == 2


def test_a_session_is_gone_on_with_by_its_name(kbtui: Command) -> None:
    for text in ("hello", "again"):
        kbtui.ok("ask", text, "-s", "kitchen plans")
    kbtui.ok("ask", "alone")
    infos = kbtui.ok("sessions", "--json").json
    assert len(infos) == 2
    kitchen = next(info for info in infos if info["title"] == "kitchen plans")
    assert set(kitchen) >= {"id", "title", "created", "updated", "messages"}
    assert kitchen["messages"] >= 4
    again = kbtui.ok("ask", "third", "-s", kitchen["id"], "--json").lines
    assert again[-1]["session"] == kitchen["id"]
    assert "kitchen plans" in kbtui.ok("sessions").out


def test_the_beginning_of_an_id_or_title_names_a_new_session(kbtui: Command) -> None:
    kbtui.ok("ask", "hello", "-s", "kitchen plans")
    kbtui.ok("ask", "alone")
    strangers = {info["id"] for info in kbtui.ok("sessions", "--json").json}
    assert all(id_.startswith("c") for id_ in strangers)
    for beginning in ("c", "cli", "kitchen", next(iter(strangers))[:-1]):
        spoken = kbtui.ok("ask", "new here", "-s", beginning, "--json").lines[-1]["session"]
        assert spoken not in strangers
    assert (
        kbtui.ok("ask", "go on", "-s", "KITCHEN plans", "--json").lines[-1]["session"] in strangers
    )
    assert len(kbtui.ok("sessions", "--json").json) == 6
    assert kbtui.ok("ask", "again", "-s", "cli", "--json").lines[-1]["session"] not in strangers
    assert len(kbtui.ok("sessions", "--json").json) == 6


def test_a_model_without_a_key_is_a_sentence_and_an_event(kbtui: Command) -> None:
    done = kbtui("ask", "hi", "-m", "openai/gpt-4o-mini")
    assert done.status == 4
    assert done.err.startswith("kbtui: ")
    assert "OPENAI_API_KEY" in done.err


def test_an_interrupt_stops_the_turn_and_keeps_what_was_said(kbtui: Command) -> None:
    from tests.scripted_server import Reply, ScriptedServer

    with ScriptedServer([Reply("Half an answer and then nothing more.", stall_at=400)]) as server:
        child = subprocess.Popen(
            [sys.executable, "-m", "kbtui", "-w", kbtui.root, "ask", "tell me", "-s", "long"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "KBTUI_MODEL": "openai/scripted",
                "KBTUI_API_BASE": server.url,
                "KBTUI_API_KEY": "x",
            },
        )
        deadline = time.monotonic() + PATIENCE
        while not server.prompts and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.prompts, child.communicate()
        child.send_signal(signal.SIGINT)
        _out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert "Traceback" not in err
    (info,) = kbtui.ok("sessions", "--json").json
    assert "tell me" in kbtui.file(f"sessions/{info['id']}.jsonl").read_text()


def test_a_model_behind_an_endpoint_streams_and_calls_tools(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.scripted_server import Reply, ScriptedServer, call

    made = call(
        "write_entry", kind="fact", title="Bin day", sections={"": "Bins go out on Monday."}
    )
    with ScriptedServer([Reply(tool_calls=[made]), Reply("Noted: Monday.")]) as server:
        monkeypatch.setenv("KBTUI_API_BASE", server.url)
        monkeypatch.setenv("KBTUI_API_KEY", "x")
        events = kbtui.ok("ask", "bins go out on monday", "-m", "openai/scripted", "--json").lines
    assert events[-1]["event"] == "turn_finished"
    assert events[-1]["text"] == "Noted: Monday."
    assert "Bins go out on Monday." in kbtui.ok("show", "bin-day").out
