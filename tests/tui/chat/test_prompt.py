"""Writing: a shell's keys, several lines, completion, earlier input, large pastes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual import events

from tests.tui.shell import running

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def shell(tmp_path: Path):
    async with running(tmp_path / "kb", entries=3) as shell:
        yield shell


async def test_several_lines_are_written_and_sent_as_one_message(shell) -> None:
    await shell.press("a", "ctrl+j", "b", "shift+enter", "c", "alt+enter", "d", "\\", "enter", "e")
    assert shell.prompt.text == "a\nb\nc\nd\ne"
    await shell.press("enter")
    await shell.until(lambda: shell.agent.asked)
    assert shell.agent.asked == ["a\nb\nc\nd\ne"]
    assert shell.prompt.text == ""


async def test_the_prompt_grows_with_its_text_up_to_eight_lines(shell) -> None:
    assert shell.prompt.outer_size.height == 3
    shell.prompt.replace_text("one\ntwo\nthree\nfour")
    await shell.until(lambda: shell.prompt.outer_size.height == 6)
    shell.prompt.replace_text("line\n" * 40)
    await shell.until(lambda: shell.prompt.outer_size.height == 10)


async def test_a_shells_keys_work(shell) -> None:
    await shell.type("one two")
    await shell.press("ctrl+a", "X", "ctrl+e", "Y", "ctrl+b", "ctrl+d")
    assert shell.prompt.text == "Xone two"
    await shell.press("ctrl+w", "ctrl+u", "ctrl+y")
    assert shell.prompt.text == "Xone "
    await shell.press("ctrl+a", "ctrl+k")
    assert shell.prompt.text == ""
    await shell.press("ctrl+y", "alt+b", "ctrl+f", "ctrl+k", "ctrl+underscore")
    assert shell.prompt.text == "Xone "


async def test_earlier_input_comes_back_at_the_edges(shell) -> None:
    for text in ("first", "second\nwith a second line"):
        await shell.say(text)
    await shell.type("half")
    await shell.press("up")
    assert shell.prompt.text == "second\nwith a second line"
    await shell.press("up")  # moves inside the text first
    assert shell.prompt.text.startswith("second")
    await shell.press("up")
    assert shell.prompt.text == "first"
    await shell.press("down", "down", "down")
    assert shell.prompt.text == "half"


async def test_ctrl_r_searches_earlier_input(shell) -> None:
    for text in ("ask about auth", "tell a story", "more on auth"):
        await shell.say(text)
    await shell.type("keep me")
    await shell.press("ctrl+a", "ctrl+k")
    await shell.type("auth")
    await shell.press("ctrl+r")
    assert [choice.value for choice in shell.chat.popup.choices] == [
        "more on auth",
        "ask about auth",
    ]
    await shell.press("down", "enter")
    assert shell.prompt.text == "ask about auth"
    assert not shell.chat.popup.display


async def test_leaving_the_search_brings_back_what_stood_there(shell) -> None:
    await shell.say("ask about auth")
    await shell.type("au")
    await shell.press("ctrl+r")
    await shell.type("th")
    await shell.press("escape")
    assert shell.prompt.text == "au"


async def test_tab_completes_a_command(shell) -> None:
    await shell.type("/ren")
    assert shell.chat.popup.display
    await shell.press("tab")
    await shell.type("Weekly planning")
    await shell.press("enter")
    await shell.until(lambda: "Weekly planning" in shell.chat.label)
    assert shell.agent.asked == []


async def test_enter_carries_out_the_marked_command(shell) -> None:
    await shell.type("/hel")
    await shell.press("enter")
    await shell.until(lambda: type(shell.app.screen).__name__ == "HelpScreen")
    await shell.press("escape")
    assert shell.prompt.text == ""


async def test_enter_means_what_is_typed_by_then_not_what_the_popup_still_offers(shell) -> None:
    await shell.type("/")
    await shell.until(lambda: shell.chat.popup.display)
    shell.prompt.insert("theme")
    shell.prompt.action_send()
    await shell.until(lambda: type(shell.app.screen).__name__ != "MainScreen")
    assert type(shell.app.screen).__name__ == "ThemeScreen"


async def test_an_entry_is_completed_by_what_its_text_says_too(shell) -> None:
    body = "# Alice\n\nShe lives in Graz.\n\nShe keeps a wombat.\n"
    entry = shell.app.kb.library.create("person", "Alice", body=body)
    text = shell.app.kb.library.get(entry.path).text
    line = text.splitlines().index("She keeps a wombat.") + 1
    shell.app.kb.search.refresh([entry.path])
    await shell.type("who has the @wombat")
    await shell.until(lambda: shell.chat.popup.display)
    (choice,) = shell.chat.popup.choices
    assert choice.detail == f"Alice · in its text, line {line}"
    await shell.press("tab")
    assert shell.prompt.text == "who has the @people/alice "


async def test_entries_are_completed_and_tab_elsewhere_moves_on(shell) -> None:
    await shell.type("see @topic")
    await shell.press("space", "escape", "ctrl+u")
    await shell.type("see @top")
    await shell.until(lambda: len(shell.chat.popup.choices) == 3)
    await shell.press("down", "tab")
    assert shell.prompt.text.startswith("see @topics/topic-")
    assert shell.prompt.text.endswith(" ")
    await shell.press("tab")
    assert not shell.prompt.has_focus


async def test_a_large_paste_is_folded_and_sent_whole(shell) -> None:
    text = "\n".join(f"line {number}" for number in range(5_000))
    shell.prompt.post_message(events.Paste(text))
    await shell.until(lambda: shell.prompt.text)
    assert shell.prompt.text == f"[text 1: 5,000 lines, {len(text):,} characters]"
    await shell.press("enter")
    await shell.until(lambda: shell.agent.asked)
    assert shell.agent.asked == [text]


async def test_a_paste_brings_no_control_characters(shell) -> None:
    shell.prompt.post_message(events.Paste("a\x1b[31mb\x07\r\nc\u202e"))
    await shell.until(lambda: shell.prompt.text)
    assert shell.prompt.text == "a[31mb\nc"


@pytest.fixture
def editor(shell, tmp_path, monkeypatch):
    """Make the person's editor of a shell script; the app can be suspended for it."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(type(shell.app._driver), "can_suspend", True)
    for name in ("suspend_application_mode", "resume_application_mode"):
        monkeypatch.setattr(shell.app._driver, name, lambda: None)

    def make(script: str) -> None:
        program = tmp_path / "my-editor"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(program))

    return make


async def test_the_text_can_be_written_in_an_editor_and_undo_brings_it_back(shell, editor) -> None:
    editor('printf "%s, edited\\n" "$(cat "$1")" > "$1"')
    await shell.type("draft")
    await shell.press("ctrl+x", "ctrl+e")
    await shell.until(lambda: shell.prompt.text != "draft")
    assert shell.prompt.text == "draft, edited"
    await shell.press("ctrl+underscore")
    assert shell.prompt.text == "draft"


async def test_undo_brings_back_a_folded_paste_whole(shell, editor) -> None:
    pasted = "line\n" * 3_000
    shell.prompt.post_message(events.Paste(pasted))
    await shell.until(lambda: shell.prompt.text)
    editor('printf short > "$1"')
    await shell.press("ctrl+x", "ctrl+e")
    await shell.until(lambda: shell.prompt.text == "short")
    await shell.press("ctrl+underscore")
    assert shell.prompt.full_text == pasted


async def test_an_editor_that_is_not_there_is_told(shell, editor, monkeypatch) -> None:
    editor("")
    monkeypatch.setenv("EDITOR", "no-such-editor-at-all")
    shell.prompt.replace_text("draft")
    await shell.press("ctrl+x", "ctrl+e")
    await shell.until(lambda: "no-such-editor-at-all" in shell.text)
    assert shell.prompt.text == "draft"


async def test_an_editor_that_fails_replaces_nothing_and_what_it_left_is_an_input(
    shell, editor
) -> None:
    editor('printf half > "$1"; exit 3')
    shell.prompt.replace_text("draft")
    await shell.press("ctrl+x", "ctrl+e")
    await shell.until(lambda: "exit code 3" in shell.text)
    assert shell.prompt.text == "draft"
    shell.prompt.action_undo()
    assert shell.prompt.text == "draft"
    await shell.press("up")
    assert shell.prompt.text == "half"
    await shell.press("down")
    assert shell.prompt.text == "draft"


@pytest.mark.parametrize("typed_on", [False, True])
async def test_what_an_editor_with_a_window_saves_after_it_returned_comes_to_the_prompt(
    shell, editor, tmp_path, typed_on
) -> None:
    editor(f'ln "$1" {tmp_path}/window')  # the same file, which it has open
    shell.prompt.replace_text("draft")
    await shell.press("ctrl+x", "ctrl+e")
    await shell.until(lambda: any("--wait" in n.message for n in shell.app._notifications))
    assert shell.prompt.text == "draft"
    if typed_on:
        await shell.type(", and more")
    (tmp_path / "window").write_text("from the window\n")
    if typed_on:
        await shell.until(lambda: shell.prompt.history_of_input.entries == ["from the window"])
        assert shell.prompt.text == "draft, and more"
    else:
        await shell.until(lambda: shell.prompt.text == "from the window")
