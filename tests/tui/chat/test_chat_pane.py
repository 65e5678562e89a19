"""The conversation: streaming, tools, queue, stopping, and what can be done with messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from kbtui.agent.agent import Agent
from kbtui.agent.events import (
    Earlier,
    NoticeGiven,
    ReasoningDelta,
    TextDelta,
    TextRevoked,
    TurnFailed,
    TurnFinished,
)
from kbtui.agent.keeping import Keeping
from kbtui.errors import StorageError
from kbtui.history.change import Actor, Origin
from kbtui.knowledge_base import KnowledgeBase
from kbtui.models.roles import ModelStatus
from kbtui.tui.app.status_line import StatusLine
from kbtui.tui.chat import chat_pane
from kbtui.tui.chat.conversation import conversation
from kbtui.tui.chat.conversation.cards import ToolItem
from kbtui.tui.chat.conversation.items import AnswerItem, BeforeItem, NotKeptItem, UserItem
from kbtui.tui.chat.conversation.transcript import Transcript
from kbtui.tui.diff.confirm import ConfirmScreen
from kbtui.tui.terminal.state import workspace_state
from kbtui.tui.widgets.title_row import TitleRow
from tests.agent.conftest import ask
from tests.scripted_server import Reply, ScriptedServer, call
from tests.tui.shell import ANSWER, running, said

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def shell(tmp_path: Path):
    async with running(tmp_path / "kb") as shell:
        yield shell


@pytest.fixture
def copied(shell, monkeypatch) -> list[str]:
    taken: list[str] = []
    monkeypatch.setattr(shell.app, "_copy", taken.append)
    return taken


def _real_agent(shell) -> Agent:
    """The agent itself, beside the one that plays a script."""
    kb: KnowledgeBase = shell.app.kb
    agent = Agent(kb.services)
    agent.find_keeping = lambda: Keeping(kb.library, kb.journal, kb.memory.remembering)
    return agent


def _items(shell, kind) -> list:
    return [item for item in shell.transcript.items if isinstance(item, kind)]


async def test_an_answer_streams_in_below_its_tools_with_its_sources(shell) -> None:
    await shell.say("what did we decide on auth?")
    text = shell.text
    assert "> what did we decide on auth?" in text
    assert 'searched for "auth" · 4 hits' in text
    assert "✓ ◆ Auth pkce created" in text
    assert "PKCE, because the client can't keep a secret [1]." in text
    assert "[1] ◆ Auth pkce" in text
    assert text.index("created") < text.index("PKCE, because") < text.index("[1] ◆")
    (answer,) = _items(shell, AnswerItem)
    assert answer.source == ANSWER


async def test_what_is_waited_for_stands_in_the_status_line_until_it_goes_on(shell) -> None:
    silent = "Nothing came from localhost for 60 seconds. It is waited for up to 15 minutes."
    shell.agent.script = [NoticeGiven(silent), *said("At last.")]
    shell.agent.gate.clear()
    await shell.say("Hi", wait=False)
    status = shell.app.main.query_one(StatusLine)
    await shell.until(lambda: status.memory == "Nothing came from localhost for 60 seconds")
    assert status.memory in status.render().plain
    shell.agent.gate.set()
    await shell.until(lambda: shell.idle)
    assert status.memory == ""


@pytest.mark.parametrize("last", ["Noted: Alice leads it.", ""])
async def test_with_a_model_and_a_write_each_answer_stands_once(shell, last: str) -> None:
    kb: KnowledgeBase = shell.app.kb
    agent = _real_agent(shell)
    agent.find_editor = lambda: kb.memory.editor
    kb.agent = agent
    write = call("write_entry", kind="person", title="Alice", body="Leads the frontend.")
    script = [Reply("I write that down.", tool_calls=[write]), Reply(last)]
    with ScriptedServer(script) as server:
        kb.models.use("openai/scripted", server.url, "none", remember=False)
        await shell.say("Alice leads the frontend. Note that.")
    assert shell.text.count("● Alice ─") == 1
    for answer in filter(None, ("I write that down.", last)):
        assert shell.text.count(answer) == 1
    assert "empty answer" not in shell.text


async def test_the_title_row_tells_workspace_model_context_and_cost(shell) -> None:
    def header() -> str:
        return shell.app.main.query_one(TitleRow).render().plain

    assert shell.app.kb.workspace.root.name in header()
    assert "no model" in header()
    status = ModelStatus("ollama_chat/qwen3:8b", is_local=True, offline=False)
    shell.chat.model = status
    await shell.say("what did we decide on auth?")
    await shell.until(lambda: "today" in header())
    assert "what did we decide on auth?" in shell.chat.label
    assert "qwen3:8b on this machine" in header()
    assert "%" in header()
    assert "$0.01" in header()


async def test_while_an_answer_comes_enter_queues_and_up_takes_back(shell) -> None:
    shell.agent.gate.clear()
    await shell.say("one", wait=False)
    await shell.until(lambda: shell.agent.asked)
    await shell.say("two", wait=False)
    await shell.say("three", wait=False)
    assert shell.chat.conversation.queued == 2
    assert "queued" in shell.text
    await shell.press("up")
    assert shell.prompt.text == "three"
    shell.prompt.clear_text()
    shell.agent.gate.set()
    await shell.until(lambda: shell.idle and shell.agent.asked == ["one", "two"])
    assert "queued" not in shell.text
    assert [item.text for item in _items(shell, UserItem)] == ["one", "two"]


async def test_a_message_that_waited_is_no_draft_once_it_is_sent(shell, monkeypatch) -> None:
    monkeypatch.setattr(chat_pane, "_DRAFT_AFTER_SECONDS", 0.0)
    folder = workspace_state(shell.app.kb.workspace.root)

    def drafts() -> list[str]:
        return [file.read_text() for file in folder.glob("draft*.md")]

    shell.agent.gate.clear()
    await shell.say("one", wait=False)
    await shell.until(lambda: shell.agent.asked)
    await shell.say("two", wait=False)
    await shell.until(lambda: drafts() == ["two"])
    shell.agent.gate.set()
    await shell.until(lambda: shell.idle and not drafts())
    assert shell.agent.asked == ["one", "two"]


async def test_esc_stops_keeps_what_was_said_and_gives_the_queue_back(shell) -> None:
    shell.agent.script = [TextDelta("half an answer"), TextDelta(" and more")]
    shell.agent.gate.clear()
    await shell.say("go on", wait=False)
    await shell.until(lambda: "half an answer" in shell.text)
    await shell.say("and then?", wait=False)
    await shell.type("typed")
    await shell.press("escape")
    await shell.until(lambda: shell.idle)
    assert shell.agent.stopped == 1
    assert "half an answer" in shell.text
    assert "stopped" in shell.text
    assert shell.prompt.text == "and then?\n\ntyped"
    shell.agent.gate.set()
    assert shell.agent.asked == ["go on"]


async def test_esc_goes_first_to_the_popup_then_to_the_answer_then_to_the_prompt(shell) -> None:
    shell.agent.gate.clear()
    await shell.say("go on", wait=False)
    await shell.until(lambda: shell.agent.asked)
    await shell.press("/")
    assert shell.chat.popup.display
    await shell.press("escape")
    assert not shell.chat.popup.display
    assert shell.chat.conversation.busy
    await shell.press("escape")
    await shell.until(lambda: shell.idle)
    assert shell.prompt.text == "/"
    await shell.press("shift+tab")
    assert shell.transcript.has_focus
    await shell.press("escape")
    assert shell.prompt.has_focus


async def test_ctrl_c_stops_then_clears_and_twice_quits(shell) -> None:
    shell.agent.gate.clear()
    await shell.say("go on", wait=False)
    await shell.until(lambda: shell.agent.asked)
    await shell.type("typed")
    await shell.press("ctrl+c")
    await shell.until(lambda: shell.idle)
    assert shell.prompt.text == "typed"
    await shell.press("ctrl+c")
    assert shell.prompt.text == ""
    assert shell.prompt.history_of_input.entries[-1] == "typed"
    assert shell.app.is_running
    await shell.press("ctrl+c")
    assert shell.app._exit


async def test_ctrl_c_copies_what_is_selected(shell, copied) -> None:
    await shell.type("some text")
    await shell.press("shift+home", "ctrl+c")
    assert copied == ["some text"]
    assert shell.prompt.text == "some text"


async def test_ctrl_d_quits_only_from_an_empty_prompt(shell) -> None:
    await shell.press("a", "left", "ctrl+d")
    assert shell.prompt.text == ""
    assert not shell.app._exit
    await shell.press("ctrl+d")
    assert shell.app._exit


async def test_a_failed_turn_is_a_card_with_the_way_out(shell) -> None:
    shell.agent.script = [
        TextDelta("so far"),
        TurnFailed("No answer in 60 s.", "Check the server."),
    ]
    await shell.say("hello")
    assert "so far" in shell.text
    assert "No answer in 60 s." in shell.text
    assert "Check the server." in shell.text


async def test_an_error_of_the_workspace_is_a_card_too(shell, monkeypatch) -> None:
    def refuse(*_args, **_more):
        raise StorageError("The disk is full.", "Free some space.")

    monkeypatch.setattr(shell.app.kb.sessions, "create", refuse)
    await shell.say("hello")
    assert "The disk is full." in shell.text


async def test_a_message_that_could_not_be_stored_is_in_the_prompt_again(
    shell, monkeypatch
) -> None:
    async def refuse(_session, _text):
        await shell.agent.gate.wait()
        yield TurnFailed("The disk is full.", "Free some space.")

    monkeypatch.setattr(shell.agent, "turn", refuse)
    shell.agent.gate.clear()
    await shell.say("hello", wait=False)
    await shell.say("and more", wait=False)
    await shell.type("typed since")
    shell.agent.gate.set()
    await shell.until(lambda: shell.idle and "hello" in shell.prompt.text)
    assert shell.prompt.text == "hello\n\nand more\n\ntyped since"
    assert shell.text.count("The disk is full.") == 1
    assert "Free some space." in shell.text


async def test_a_defect_in_a_turn_does_not_end_the_app(shell, monkeypatch) -> None:
    def broken(*_args, **_more):
        raise ZeroDivisionError("secret value")

    monkeypatch.setattr(shell.agent, "turn", broken)
    await shell.say("hello")
    assert "ZeroDivisionError" in shell.text
    assert "secret value" not in shell.text
    assert "kbtui.log" in shell.text.replace("\n", "").replace("▎ ", "")
    monkeypatch.undo()
    await shell.say("still there?")
    assert shell.agent.asked == ["still there?"]


async def test_reasoning_is_folded_until_somebody_wants_to_see_it(shell) -> None:
    shell.agent.script = [ReasoningDelta("Let me "), ReasoningDelta("see."), *said("Yes.")]
    await shell.say("well?")
    assert "thought, 3 words" in shell.text
    assert "Let me see." not in shell.text
    await shell.press("shift+tab", "k", "enter")
    await shell.until(lambda: "Let me see." in shell.text)


async def test_what_turns_out_to_be_reasoning_is_folded_too(shell) -> None:
    shell.agent.script = [TextDelta("Hm, "), TextDelta("a boiler."), TextRevoked(), *said("Below.")]
    await shell.say("where?")
    assert "thought, 3 words" in shell.text
    assert "a boiler." not in shell.text
    assert "Below." in shell.text


async def test_u_takes_back_all_that_the_turn_changed_and_nothing_else(shell) -> None:
    library = shell.app.kb.library
    await shell.say("what did we decide on auth?")
    library.create("topic", "Mine")
    for title in ("One", "Two"):
        library.create("topic", title, actor=Actor.AGENT, origin=Origin(turn="turn-1"))
    await shell.press("shift+tab", "k", "u")
    await shell.until(lambda: isinstance(shell.app.screen, ConfirmScreen))
    await shell.press("y")
    await shell.notified("Undone")
    library.refresh()
    assert [info.title for info in library.infos()] == ["Mine"]


async def test_j_and_k_select_and_enter_expands_a_tool_and_opens_what_it_wrote(shell) -> None:
    await shell.say("what did we decide on auth?")
    await shell.press("shift+tab", "k", "k")
    (_, tool) = _items(shell, ToolItem)
    assert shell.transcript.cursor is tool
    await shell.press("enter")
    assert "→ ◆ Auth pkce" in shell.text
    opened = []
    shell.app.main.notes.open_entry = lambda path, line=None, edit=False: opened.append(
        (path, line)
    )
    await shell.press("j", "enter")
    assert opened == [("knowledge/decisions/2026-11-auth-pkce.md", None)]
    await shell.press("k", "enter")
    assert "→ ○" not in shell.text


async def test_enter_on_what_is_not_kept_keeps_it_and_k_goes_up(shell, tmp_path) -> None:
    told = "my tea got cold"
    shell.agent.script = [TextDelta("Oh."), TurnFinished("Oh.", "", "", not_kept=told)]
    shell.agent.keep = _real_agent(shell).keep
    await shell.say(told)
    assert "○ not kept: my tea" in shell.text
    assert "Enter keeps it" in shell.text
    await shell.press("shift+tab")
    (mark,) = _items(shell, NotKeptItem)
    assert shell.transcript.cursor is mark
    await shell.press("k")
    assert shell.transcript.cursor is _items(shell, AnswerItem)[0]
    await shell.press("j", "enter")
    await shell.until(lambda: mark.kept)
    assert told in (tmp_path / "kb" / mark.kept).read_text()
    assert "✓ kept in" in shell.text


async def test_r_on_an_earlier_line_marks_it_as_past_and_elsewhere_asks_again(
    shell, tmp_path
) -> None:
    agent = _real_agent(shell)
    keeping = agent.find_keeping()
    old = keeping.note("the meeting is on Thursday", Origin())
    new = keeping.note("the meeting is on Friday", Origin())
    earlier = Earlier(
        old.path, old.line, "the meeting is on Thursday", "", new.path, new.line, "09:00"
    )
    shell.agent.script = [TextDelta("Noted."), TurnFinished("Noted.", "", "", earlier=earlier)]
    shell.agent.mark_past = agent.mark_past
    await shell.say("the meeting is on Friday")
    assert "↶ before: the meeting is on Thursday" in shell.text
    assert "r marks it as past" in shell.text
    await shell.press("shift+tab", "r")
    (mark,) = _items(shell, BeforeItem)
    await shell.until(lambda: mark.past)
    assert "the meeting is on Thursday~~ → " in (tmp_path / "kb" / old.path).read_text()
    await shell.until(lambda: "r marks it as past" not in shell.text)
    said = len(_items(shell, UserItem))
    await shell.press("r")
    await shell.until(
        lambda: not _items(shell, BeforeItem) or mark not in _items(shell, BeforeItem)
    )
    assert len(_items(shell, UserItem)) == said


async def test_an_earlier_line_stands_there_again_when_the_session_is_opened(tmp_path) -> None:
    def before() -> list[tuple[str, bool]]:
        items = conversation._layout(kb, session.messages, 100)
        return [(each.earlier.text, each.past) for each in items if isinstance(each, BeforeItem)]

    with KnowledgeBase.open(tmp_path / "kb", create=True) as kb:
        session = kb.sessions.create("test")
        await ask(kb, session, "the release meeting is on Thursday at 10")
        told = await ask(kb, session, "no, the release meeting is on Friday")
        assert before() == [("the release meeting is on Thursday at 10", False)]
        kb.agent.mark_past(session, told.finished.earlier, told.events[0].message)
        assert before() == [("the release meeting is on Thursday at 10", True)]
        note = kb.workspace.place(told.finished.earlier.path)
        note.write_text("# Another\n")
        assert before() == []
        session.close()


async def test_o_opens_the_line_that_an_answer_cites(shell) -> None:
    await shell.say("what did we decide on auth?")
    opened = []
    shell.app.main.notes.open_entry = lambda path, line=None, edit=False: opened.append(
        (path, line)
    )
    await shell.press("shift+tab", "k")
    assert isinstance(shell.transcript.cursor, AnswerItem)
    await shell.press("o", "j", "enter")
    assert opened == [("knowledge/decisions/2026-11-auth-pkce.md", 14)] * 2


async def test_y_copies_the_markdown_and_shift_y_the_code(shell, copied) -> None:
    await shell.say("what did we decide on auth?")
    await shell.press("shift+tab", "k", "y", "Y")
    assert copied == [ANSWER, "def verify(code: str) -> bool:\n    return True"]


async def test_slash_copy_takes_the_last_answer(shell, copied) -> None:
    await shell.say("/copy")
    await shell.notified("There is no answer yet.")
    await shell.say("what did we decide on auth?")
    await shell.say("/copy")
    assert copied == [ANSWER]


async def test_editing_a_message_goes_on_from_before_it(shell) -> None:
    for text in ("one", "two", "three"):
        shell.agent.script = said(f"answer to {text}")
        await shell.say(text)
    await shell.press("shift+tab", "k", "k", "e")
    assert "1 later message and the answers leave" in shell.app.screen.text.plain
    await shell.press("y")
    assert shell.prompt.text == "two"
    assert shell.prompt.has_focus
    assert [item.text for item in _items(shell, UserItem)] == ["one"]
    await shell.type("!")
    await shell.press("enter")
    await shell.until(lambda: shell.idle and len(shell.agent.asked) == 4)
    stored = [m.content for m in shell.chat.conversation.session.messages if m.role == "user"]
    assert stored == ["one", "two!"]


async def test_retry_asks_the_same_again(shell) -> None:
    shell.agent.script = said("first try")
    await shell.say("well?")
    shell.agent.script = said("second try")
    await shell.say("/retry")
    await shell.until(lambda: "second try" in shell.text and shell.idle)
    assert shell.agent.asked == ["well?", "well?"]
    assert "first try" not in shell.text
    assert [m.content for m in shell.chat.conversation.session.messages] == ["well?", "second try"]


async def test_what_was_said_since_leaves_only_if_that_is_wanted(shell) -> None:
    for text in ("one", "two"):
        await shell.say(text)
    await shell.press("shift+tab", "g", "r")
    assert shell.app.screen.TITLE_TEXT == "Go on from here?"
    await shell.press("escape")
    assert [item.text for item in _items(shell, UserItem)] == ["one", "two"]
    assert shell.agent.asked == ["one", "two"]


async def test_keys_mean_what_came_last_also_after_something_above_was_selected(shell) -> None:
    await shell.say("one")
    await shell.press("shift+tab", "g", "escape")
    await shell.say("two")
    await shell.press("shift+tab")
    assert shell.transcript.cursor is shell.transcript.items[-1]


async def test_a_message_can_be_kept_as_an_entry(shell) -> None:
    await shell.say("what did we decide on auth?")
    await shell.press("shift+tab", "k", "s")
    await shell.until(lambda: type(shell.app.screen).__name__ == "TextDialog")
    shell.app.screen.query_one(Input).value = "Auth decision"
    await shell.press("enter")
    await shell.until(shell.app.kb.library.infos)
    (info,) = shell.app.kb.library.infos()
    assert info.title == "Auth decision"
    assert "PKCE, because" in shell.app.kb.library.get(info.path).text


async def test_who_reads_above_is_told_what_comes_below(shell) -> None:
    shell.agent.script = said("\n\n".join(f"paragraph {n}" for n in range(40)))
    await shell.say("long, please")
    shell.agent.script = said("short")
    await shell.press("shift+tab", "g")
    shell.chat.send("and more")
    shell.transcript.action_first()
    await shell.until(lambda: shell.idle and shell.agent.asked[-1:] == ["and more"])
    assert "new below" in str(shell.transcript.border_subtitle)
    await shell.press("G")
    assert str(shell.transcript.border_subtitle) == ""
    assert shell.transcript.following


async def test_an_unknown_command_is_never_sent(shell) -> None:
    await shell.say("/modle gpt")
    assert "Did you mean /model?" in shell.text
    assert shell.agent.asked == []
    assert shell.prompt.text == "/modle gpt"


async def test_cost_is_told_in_tokens_and_money(shell) -> None:
    await shell.say("what did we decide on auth?")
    await shell.say("/cost")
    await shell.until(lambda: "800 tokens read" in shell.text)
    assert "$0.01" in shell.text


async def test_a_session_is_exported_and_nothing_is_overwritten(shell, tmp_path) -> None:
    await shell.say("what did we decide on auth?")
    file = tmp_path / "out.md"
    await shell.say(f"/export {file}")
    await shell.notified("Written to")
    text = file.read_text("utf-8")
    assert "what did we decide on auth?" in text
    assert "PKCE, because" in text
    await shell.say(f"/export {file}")
    await shell.until(lambda: "exists already" in shell.text)
    assert file.read_text("utf-8") == text


async def test_hostile_text_can_not_press_a_button_or_steer_the_terminal(shell) -> None:
    text = "\x1b[2J[@click=app.quit]press me[/] \x1b]52;c;aGk=\x07 \u202egood"
    shell.agent.script = said(text)
    await shell.say(text)
    await shell.pilot.click("#transcript", offset=(6, 1))
    await shell.press("shift+tab", "k", "enter")
    assert not shell.app._exit
    assert "[@click=app.quit]press me[/]" in shell.text
    assert "\x1b" not in shell.text
    assert "\u202e" not in shell.text


async def test_the_finish_brings_the_whole_text_even_where_pieces_were_lost(shell) -> None:
    shell.agent.script = [TextDelta("a part"), TurnFinished("the whole answer", "", "")]
    await shell.say("well?")
    assert "the whole answer" in shell.text
    assert "a part" not in shell.text


async def test_a_link_into_the_web_is_shown_before_it_is_opened(
    shell, tmp_path, monkeypatch
) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    shell.agent.script = said("[harmless](https://example.org/x)")
    await shell.say("a link, please")
    await _click_link(shell)
    await shell.until(lambda: type(shell.app.screen).__name__ == "KeyDialog")
    assert "https://example.org/x" in str(shell.app.screen.query_one("Static").render())
    assert not opened.exists()
    await shell.press("enter")
    await shell.until(opened.exists)
    assert opened.read_text() == "https://example.org/x\n"


async def test_a_link_to_an_entry_opens_it(shell) -> None:
    entry = shell.app.kb.library.create("person", "Alice", body="# Alice\n")
    shell.agent.script = said("see [[alice]]")
    await shell.say("who?")
    await _click_link(shell)
    await shell.until(lambda: shell.app.main.notes.current_path == entry.path)


async def _click_link(shell) -> None:
    (answer,) = _items(shell, AnswerItem)
    await shell.until(lambda: answer.links)
    shell.transcript.post_message(Transcript.AnswerLinkClicked(answer.link(0)))
