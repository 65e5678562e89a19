"""What is typed in one piece reaches what its first key opens."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from textual import events
from textual.widgets import Input

from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.app.app import KbtuiApp
from tests.terminal import CTRL_C, CTRL_S, ENTER, ESC, F, Terminal
from tests.tui.at_rest import Door
from tests.tui.notes_support import NotesApp, make_kb, opened, ready, until
from tests.tui.pty_app import ROOT, start
from tests.tui.shell import key_event, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from textual.pilot import Pilot


def type_at_once(app: Any, *keys: str) -> None:
    """Put keys into the queue as a terminal does that sends them in one piece."""
    for key in keys:
        app.post_message(key_event(key))


def line_typed(app: Any) -> str:
    return "".join(field.value for field in app.screen.query(Input).results(Input))


async def test_letters_after_the_filter_key_are_filtered_by(tmp_path):
    kb = make_kb(tmp_path)
    head = kb.history.head()
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        await ready(pilot)
        type_at_once(app, "j", "j", "/", *"dddd")
        await until(pilot, lambda: line_typed(app) == "dddd")
    assert kb.history.head() == head


@pytest.mark.parametrize("keys", ["/", "R"], ids=["filter", "rename"])
async def test_lines_pasted_into_a_field_are_joined_by_blanks(tmp_path, keys):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        await opened(pilot, "knowledge/people/alice.md")
        app.notes.focus_tree()
        await pilot.press(*keys)
        await until(pilot, lambda: isinstance(app.focused, Input))
        app.focused.value = ""
        app.post_message(events.Paste("  Kestrel\r\nmast\tpower\n\n  battery\x07\n"))
        await until(pilot, lambda: line_typed(app))
        assert line_typed(app) == "Kestrel mast power battery"


async def test_lines_pasted_into_the_palette_that_textual_brings_are_joined_too(tmp_path):
    async with running(tmp_path) as shell:
        shell.app.action_palette()
        await shell.until(lambda: isinstance(shell.app.focused, Input))
        shell.app.post_message(events.Paste("new\nconversation"))
        await shell.until(lambda: line_typed(shell.app) == "new conversation")


async def test_a_paste_that_a_field_can_not_hold_is_cut_and_it_is_said(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press("/")
        await until(pilot, lambda: isinstance(app.focused, Input))
        app.post_message(events.Paste("x" * 10_001))
        await until(pilot, lambda: line_typed(app))
        assert line_typed(app) == "x" * 10_000
        assert "10,000 of 10,001" in app.toasts


async def test_letters_after_a_key_that_asks_something_are_part_of_the_answer(tmp_path):
    kb = make_kb(tmp_path)
    head = kb.history.head()
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        await ready(pilot)
        for key in "nRmt":
            type_at_once(app, "j", key, *"dud")
            await until(pilot, lambda: line_typed(app).endswith("dud"), f"{key} asks")
            type_at_once(app, "escape")
    assert kb.history.head() == head


async def test_letters_after_the_edit_key_are_written_into_the_entry(tmp_path):
    kb = make_kb(tmp_path)
    head = kb.history.head()
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        type_at_once(app, "j", "e", *"dud")
        await until(pilot, lambda: notes.editor is not None)
        await until(pilot, lambda: notes.editor.text_area.text.startswith("dud"))
    assert kb.history.head() == head


async def test_letters_after_an_answer_are_written_into_what_it_opens(tmp_path):
    kb = make_kb(tmp_path)
    app = NotesApp(kb)
    async with app.run_test() as pilot:
        notes = await ready(pilot)
        type_at_once(app, "j", "n", *"Zebra", "enter", *"dud")
        await until(pilot, lambda: notes.editor is not None)
        await until(pilot, lambda: "dud" in notes.editor.text_area.text)
        assert len(kb.library.infos()) == 5


async def test_enter_and_a_letter_act_on_the_entry_that_enter_opened(tmp_path):
    app = NotesApp(make_kb(tmp_path))
    async with app.run_test() as pilot:
        notes = await opened(pilot, "knowledge/topics/docker.md")
        notes.focus_tree()
        type_at_once(app, "/", *"alice", "enter", "e", "X")
        await until(pilot, lambda: notes.editor is not None)
        await until(pilot, lambda: notes.editor.text_area.text.startswith("X"))
        assert notes.editor.path == "knowledge/people/alice.md"


async def test_words_after_a_key_that_opens_a_screen_are_typed_there(tmp_path):
    ways = (("f5",), ("f7",), ("f4", "/"), (*"/search", "enter"), (*"/open", "enter"))
    async with running(tmp_path) as shell:
        for keys in ways:
            type_at_once(shell.app, *keys, *"auth")
            await shell.until(lambda: line_typed(shell.app) == "auth")
            assert shell.app.screen is not shell.app.main
            assert shell.prompt.text == ""
            type_at_once(shell.app, "escape", "escape", "f2")
            await shell.until(lambda: shell.app.screen is shell.app.main)


async def test_a_key_waits_for_no_work_but_what_opens_something(tmp_path):
    """An answer that comes for minutes holds nothing back."""
    async with running(tmp_path) as shell:
        shell.agent.gate.clear()
        await shell.say("hello", wait=False)
        type_at_once(shell.app, *"more", "f5", *"x")
        await shell.until(lambda: line_typed(shell.app) == "x")
        assert shell.prompt.text == "more"
        shell.agent.gate.set()


# Before the workspace is open


@asynccontextmanager
async def opening(root: Path) -> AsyncIterator[tuple[KbtuiApp, Pilot[Any], Door]]:
    """The app while its workspace is being opened; the door lets that go on."""
    make_kb(root)
    door = Door()

    def opener(_workspace: Path | None) -> KnowledgeBase:
        door.wait()
        return KnowledgeBase.open(root, overrides={"search": {"semantic": False}})

    app = KbtuiApp(root, opener=opener)
    async with app.run_test(size=(120, 40)) as pilot:
        try:
            yield app, pilot, door
        finally:
            door.open()
            await until(pilot, lambda: app.kb is not None)
            app.close_knowledge()


@pytest.mark.parametrize(
    "keys",
    [("f5",), ("f7",), ("f3", "/"), (*"/search", "enter"), (*"/open", "enter"), ("f4", "/")],
)
async def test_what_follows_a_key_that_needs_the_workspace_is_typed_where_it_leads(tmp_path, keys):
    async with opening(tmp_path) as (app, pilot, door):
        type_at_once(app, *keys, *"alice")
        door.open()
        await until(pilot, lambda: line_typed(app) == "alice")
        assert app.main.chat.prompt.text == ""
        assert app.main.chat.conversation.session is None


async def test_a_name_typed_after_f5_before_the_workspace_is_open_opens_that_note(tmp_path):
    async with opening(tmp_path) as (app, pilot, door):
        type_at_once(app, "f5", *"alice", "enter")
        door.open()
        await until(pilot, lambda: app.main.notes.current_path == "knowledge/people/alice.md")
        assert not app.main.chat.conversation.waiting
        assert app.main.chat.conversation.session is None


async def test_what_is_typed_into_the_prompt_stands_there_at_once(tmp_path):
    async with opening(tmp_path) as (app, pilot, _):
        type_at_once(app, *"hello")
        await until(pilot, lambda: app.main.chat.prompt.text == "hello")


async def test_settings_asked_for_early_come_when_they_can(tmp_path):
    async with opening(tmp_path) as (app, pilot, door):
        type_at_once(app, *"/config", "enter", "/", *"theme")
        door.open()
        await until(pilot, lambda: line_typed(app) == "theme")
        assert app.screen is not app.main


async def test_esc_gives_up_what_waits_and_what_was_typed_for_it(tmp_path):
    async with opening(tmp_path) as (app, pilot, door):
        type_at_once(app, "f5", *"alice", "escape", *"hello")
        await until(pilot, lambda: app.main.chat.prompt.text == "hello")
        door.open()
        await until(pilot, lambda: app.kb is not None and app.themes.found)
        assert app.screen is app.main
        assert app.main.chat.prompt.text == "hello"


async def test_what_takes_long_to_be_there_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("kbtui.tui.app.main._SLOW_OPEN_SECONDS", 0.01)
    async with opening(tmp_path) as (app, pilot, _):
        type_at_once(app, "f5")
        await until(pilot, lambda: any("Esc gives it up" in n.message for n in app._notifications))


def program(workspace: Path) -> Terminal:
    """The program as it is started by people."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "KBTUI_SEARCH__SEMANTIC": "false"}
    return Terminal([sys.executable, "-m", "kbtui", "-w", str(workspace)], env)


def shows_keys(terminal: Terminal) -> bool:
    return bool(termios.tcgetattr(terminal._fd)[3] & termios.ICANON)


def is_stopped(terminal: Terminal) -> bool:
    return os.waitid(os.P_PID, terminal.pid, os.WSTOPPED | os.WNOHANG) is not None


@pytest.mark.pty
def test_keys_typed_before_the_first_paint_are_for_the_app(tmp_path: Path):
    make_kb(tmp_path)
    with program(tmp_path) as terminal:
        terminal.wait(lambda _: not shows_keys(terminal))
        assert not terminal.output, "it only asks for keys when it draws already"
        terminal.send(F[5] + "alice" + ENTER)
        terminal.wait_for("likes tea")
        assert "alice" not in re.findall(r"> \w+", terminal.text)
        terminal.send(CTRL_C + CTRL_C)
        terminal.wait_exit()
        assert shows_keys(terminal), "the terminal is left as it was found"


@pytest.mark.pty
def test_in_the_background_the_terminal_is_the_shells_as_before(tmp_path: Path):
    make_kb(tmp_path)
    with program(tmp_path) as terminal:
        terminal.wait_for("Ask, tell", "People")
        assert not shows_keys(terminal)
        terminal.send("\x1a")
        terminal.wait(lambda _: is_stopped(terminal))
        assert shows_keys(terminal)
        terminal.kill(signal.SIGCONT)
        terminal.wait(lambda _: not shows_keys(terminal))
        terminal.send("hello")
        terminal.wait_for("hello")


@pytest.mark.pty
def test_keys_typed_right_after_the_first_paint_go_where_they_lead(tmp_path: Path):
    make_kb(tmp_path)
    with program(tmp_path) as terminal:
        terminal.wait_for("Ask, tell")
        terminal.send(F[5] + "alice" + ENTER)
        terminal.wait_for("likes tea")
        assert "alice" not in re.findall(r"> \w+", terminal.text)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    make_kb(tmp_path / "notes")
    with start(tmp_path / "notes") as terminal:
        terminal.wait_for("no model", "People", "Topics")
        terminal.send(F[3])
        terminal.wait_for("/ filter")
        yield terminal


@pytest.mark.pty
def test_bursts_in_a_terminal_delete_nothing_and_arrive(terminal: Terminal, tmp_path: Path):
    notes = tmp_path / "notes" / "knowledge"
    before = sorted(file for file in notes.rglob("*.md"))
    terminal.send("j/dddd")
    terminal.wait_for("dddd")
    terminal.send(ESC)
    terminal.wait_gone("dddd")
    terminal.send("nabc ddd")
    terminal.wait_for("New note", "abc ddd")
    terminal.send(ESC)
    terminal.wait_gone("New note")
    terminal.send("jjeddd")
    terminal.wait_for("not saved", "ddd")
    assert sorted(file for file in notes.rglob("*.md")) == before
    terminal.send(CTRL_S)
    terminal.wait_gone("not saved")
    assert any(file.read_text().startswith("ddd") for file in before)
    terminal.send(ESC)
    terminal.wait_gone("save")
    terminal.send(F[5] + "alice" + ENTER + "e" + "QQ")
    terminal.wait_for("Alice", "QQ", "not saved")
