"""The frame around the panes: opening, layout, keys, screens, sessions, leaving."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

import pytest
from textual._styles_cache import StylesCache
from textual.css.query import NoMatches
from textual.geometry import Size
from textual.widget import MountError
from textual.widgets import Input
from textual.worker import WorkerFailed

from kbtui.errors import WorkspaceError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.app.app import KbtuiApp
from kbtui.tui.app.help import HelpScreen
from kbtui.tui.app.settings_screen import SettingsScreen
from kbtui.tui.app.theme_screen import ThemeScreen
from kbtui.tui.chat.commands.pickers import ModelForm, ModelScreen
from kbtui.tui.chat.conversation.items import UserItem
from kbtui.tui.history.history import HistoryScreen
from kbtui.tui.messages import OpenEntry, OpenHistory, OpenSearch
from kbtui.tui.terminal.process import release_closed_widgets
from kbtui.tui.terminal.state import Drafts
from kbtui.tui.terminal.type_ahead import AppSnapshot
from kbtui.tui.widgets import dialogs
from kbtui.tui.widgets.dialogs import KeyDialog, PageScreen, PickDialog
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.kinds import locale_has_signs
from kbtui.workspace.opening import set_first_note
from tests.memory.memory_room import call_slice
from tests.models.local_servers import llama_cpp, serving
from tests.scripted_server import Reply, ScriptedServer
from tests.tui.at_rest import Door, picture
from tests.tui.notes_support import text_of
from tests.tui.shell import ScriptedAgent, Shell, running, said, settle, until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
async def shell(tmp_path: Path):
    async with running(tmp_path / "kb", entries=2) as shell:
        yield shell


def _displayed(shell) -> tuple[bool, bool]:
    return shell.chat.display, shell.app.main.notes.display


async def test_typing_and_sending_work_before_the_workspace_is_open(tmp_path: Path) -> None:
    door = Door()
    agent = ScriptedAgent(said("answered"))

    def opener(_workspace):
        door.wait()
        kb = KnowledgeBase.open(
            tmp_path / "kb", create=True, overrides={"search": {"semantic": False}}
        )
        kb.agent = agent
        return kb

    app = KbtuiApp(opener=opener)
    async with app.run_test() as pilot:
        shell = Shell(app, pilot, agent)
        assert shell.prompt.has_focus
        await shell.press("h", "i", "enter")
        assert "queued" in shell.text
        await shell.press("m", "o", "r", "e")
        assert agent.asked == []
        door.open()
        await shell.until(lambda: "answered" in shell.text and shell.idle)
        assert agent.asked == ["hi"]
        assert shell.prompt.text == "more"
        app.close_knowledge()


async def test_a_workspace_that_can_not_be_opened_ends_the_app_with_the_reason() -> None:
    def opener(_workspace):
        raise WorkspaceError("There is no workspace at /nowhere.", "Make one with kbtui init.")

    app = KbtuiApp(opener=opener)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app._exit)
        assert app.return_code == 3
        assert "There is no workspace at /nowhere." in str(app._exit_renderables[0])


async def test_a_draft_is_kept_on_leaving_and_comes_back(tmp_path: Path) -> None:
    async with running(tmp_path / "kb") as shell:
        await shell.type("half a thought")
        await shell.press("ctrl+j")
        shell.app.exit()
    async with running(tmp_path / "kb") as shell:
        assert shell.prompt.text == "half a thought\n"
        await shell.press("ctrl+c")
        shell.app.exit()
    async with running(tmp_path / "kb") as shell:
        assert shell.prompt.text == ""


async def test_what_is_being_typed_wins_over_the_draft(tmp_path: Path) -> None:
    Drafts((tmp_path / "kb").resolve()).save("old draft")
    door = Door()

    def opener(_workspace):
        door.wait()
        return KnowledgeBase.open(
            tmp_path / "kb", create=True, overrides={"search": {"semantic": False}}
        )

    app = KbtuiApp(opener=opener)
    async with app.run_test() as pilot:
        shell = Shell(app, pilot, ScriptedAgent())
        await shell.type("new text")
        door.open()
        await shell.until(lambda: app.kb is not None and shell.chat.kb is not None)
        assert shell.prompt.text == "new text"
        assert shell.prompt.history_of_input.entries == ["old draft"]
        app.close_knowledge()


async def test_panes_stand_side_by_side_where_there_is_room(shell) -> None:
    assert _displayed(shell) == (True, True)
    await shell.press("f9")
    assert _displayed(shell) == (True, False)
    await shell.press("f3")
    assert _displayed(shell) == (False, True)
    await shell.press("f9", "f2")
    assert _displayed(shell) == (True, True)
    assert shell.prompt.has_focus


async def test_a_narrow_terminal_shows_one_pane_at_a_time(shell) -> None:
    await shell.pilot.resize_terminal(80, 24)
    await shell.until(lambda: _displayed(shell) == (True, False))
    await shell.press("f3")
    assert _displayed(shell) == (False, True)
    await shell.press("f2")
    assert _displayed(shell) == (True, False)
    assert shell.prompt.has_focus


async def test_opening_an_entry_brings_the_notes_to_the_front(shell) -> None:
    await shell.pilot.resize_terminal(80, 24)
    await shell.press("f2")
    path = shell.app.kb.library.infos()[0].path
    shell.transcript.post_message(OpenEntry(path))
    await shell.until(lambda: shell.app.main.notes.current_path == path)
    assert _displayed(shell) == (False, True)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (5, 3), (20, 5), (40, 10), (300, 100)])
async def test_no_size_breaks_it(shell, size) -> None:
    await shell.say("what did we decide on auth?")
    await shell.pilot.resize_terminal(*size)
    await shell.press("f3", "f2", "tab", "shift+tab", "f9")
    await shell.say("and then?")
    await shell.pilot.resize_terminal(120, 40)
    await settle(shell.pilot)
    assert "and then?" in shell.text


async def test_the_function_keys_lead_everywhere_and_esc_back(shell) -> None:
    for key, screen in (
        ("f1", "HelpScreen"),
        ("f4", "HistoryScreen"),
        ("f5", "SwitcherScreen"),
        ("f7", "SearchScreen"),
        ("f8", "Palette"),
        ("ctrl+p", "Palette"),
    ):
        await shell.press(key)
        await shell.until(lambda name=screen: type(shell.app.screen).__name__ == name)
        await shell.press("escape")
        await shell.until(lambda: shell.app.screen is shell.app.main)
        assert shell.prompt.has_focus


async def test_nothing_of_a_closed_screen_is_kept(shell) -> None:
    release_closed_widgets()
    counts = []
    for _ in range(rounds := 6):
        await shell.press("f4")
        await shell.press("escape")
        gc.collect()
        counts.append(sum(isinstance(thing, StylesCache) for thing in gc.get_objects()))
    # The last one may still be there; six of them would have five times as many widgets.
    assert counts[-1] < counts[0] + 2 * rounds


async def test_f1_opens_help_and_closes_it_again(shell) -> None:
    await shell.press("f1")
    await shell.until(lambda: isinstance(shell.app.screen, HelpScreen))
    await shell.press("f1")
    await shell.until(lambda: shell.app.screen is shell.app.main)


async def test_a_question_mark_shows_the_keys_of_the_pane_alone(shell) -> None:
    await shell.press("f3", "question_mark")
    await shell.until(lambda: "Fold the folder" in picture(shell.app))
    assert "Show all keys and commands." not in picture(shell.app)


async def test_slash_commands_lead_to_search_switcher_and_out(shell) -> None:
    for command, screen in (("/search topic", "SearchScreen"), ("/open topic", "SwitcherScreen")):
        await shell.say(command)
        await shell.until(lambda name=screen: type(shell.app.screen).__name__ == name)
        assert shell.app.screen.query_one(Input).value == "topic"
        await shell.press("escape")
        await shell.until(lambda: shell.app.screen is shell.app.main)
    await shell.say("/quit", wait=False)
    assert shell.app._exit


async def test_f2_comes_back_from_any_screen(shell) -> None:
    await shell.press("f4")
    await shell.until(lambda: type(shell.app.screen).__name__ == "HistoryScreen")
    await shell.press("f2")
    await shell.until(lambda: shell.app.screen is shell.app.main)
    assert shell.prompt.has_focus


async def test_the_palette_carries_out_what_is_chosen(shell) -> None:
    await shell.press("f8")
    await shell.until(lambda: type(shell.app.screen).__name__ == "Palette")
    shell.app.screen.query_one(Input).value = "sessio"
    await shell.until(lambda: shell.app.screen.query("CommandList").first().option_count > 1)
    shell.app.screen.query_one(Input).value = "doctor"
    await shell.until(
        lambda: (
            "Doctor"
            in str(shell.app.screen.query("CommandList").first().get_option_at_index(0).prompt)
        )
    )
    await shell.press("enter")
    await shell.until(lambda: isinstance(shell.app.screen, PageScreen))


async def test_the_palette_offers_every_action_of_the_main_screen(shell) -> None:
    from kbtui.tui.actions.registry import ACTIONS
    from kbtui.tui.app.help import ActionProvider

    offered = [hit.text async for hit in ActionProvider(shell.app.screen).discover()]
    assert len(offered) == len(set(offered))
    for action in ACTIONS:
        if action.context in ("global", "chat", "notes", "transcript") and action.slash:
            assert any(action.title in text for text in offered), action.id


async def test_the_palette_shows_the_keys_where_there_is_no_room_for_more(shell) -> None:
    await shell.pilot.resize_terminal(40, 14)
    await shell.press("f8")
    await shell.until(lambda: type(shell.app.screen).__name__ == "Palette")
    await shell.until(lambda: "F1  /help" in picture(shell.app))
    assert "Enter does it · Esc leaves" in picture(shell.app)
    assert "…" not in picture(shell.app)


async def test_the_chosen_command_is_seen_with_few_colours(shell) -> None:
    shell.app.add_class("-few-colors")
    await shell.press("f8")
    await shell.until(lambda: shell.app.screen.query("CommandList"))
    commands = shell.app.screen.query_one("CommandList")
    await shell.until(lambda: commands.option_count)
    chosen = commands.get_visual_style("option-list--option-highlighted").background
    assert abs(chosen.brightness - commands.styles.background.brightness) > 0.2


async def test_what_waits_is_said_before_how_is_searched(shell) -> None:
    status = shell.app.main.query_one("#status")
    status.index, status.inbox = "by words, not meaning", 2
    await shell.pilot.resize_terminal(60, 20)
    await shell.until(lambda: "F6 2 waiting" in str(status.render()))
    assert "Enter send" in str(status.render())
    assert "Ctrl+J new line" in str(status.render())
    assert "by words" not in str(status.render())
    await shell.pilot.resize_terminal(40, 12)
    await shell.until(lambda: "Ctrl+J" not in str(status.render()))
    assert str(status.render()).startswith("Enter send")
    assert "F6 2 waiting" in str(status.render())


async def test_help_filters_as_one_types(shell) -> None:
    await shell.say("/help rename")
    await shell.until(lambda: isinstance(shell.app.screen, HelpScreen))
    await shell.until(lambda: "Rename the session" in picture(shell.app))
    assert "Suspend" not in picture(shell.app)
    shell.app.screen.query_one(Input).value = "suspend"
    await shell.until(lambda: "Suspend" in picture(shell.app))
    await shell.pilot.resize_terminal(70, 24)
    await shell.until(lambda: "Suspend  Suspend kbtui" in picture(shell.app))


async def test_the_hints_follow_the_focus(shell) -> None:
    await shell.say("hello")
    status = shell.app.main.query_one("#status")
    assert "F4 history" in str(status.render())
    await shell.press("shift+tab")
    await shell.until(lambda: "y copy" in str(status.render()))


async def test_a_person_can_change_keys(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("KBTUI_UI__KEYS", '{"global.notes" = "f12", "nobody.knows" = "f11"}')
    async with running(tmp_path / "kb") as shell:
        await shell.press("f12")
        assert not shell.prompt.has_focus
        await shell.press("f2", "f3")
        assert shell.prompt.has_focus
        await shell.notified("nobody.knows")


async def test_doctor_is_a_page(shell) -> None:
    await shell.say("/doctor")
    await shell.until(lambda: isinstance(shell.app.screen, PageScreen))
    assert "entries" in shell.app.screen.text.plain
    await shell.press("j", "k", "escape")
    await shell.until(lambda: shell.app.screen is shell.app.main)


async def test_settings_never_show_a_key(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("KBTUI_API_KEY", "sk-very-secret")
    async with running(tmp_path / "kb") as shell:
        await shell.say("/config")
        await shell.until(lambda: isinstance(shell.app.screen, SettingsScreen))
        for _ in range(20):
            await shell.press("down")
            assert "sk-very-secret" not in picture(shell.app)


async def test_all_themes_can_be_chosen_while_the_workspace_is_being_opened(tmp_path: Path) -> None:
    async with running(tmp_path / "kb") as shell:
        themes = shell.app.themes
        themes.found = {}  # as before they are loaded
        remarks = dict(themes.choices())
        assert remarks["kbtui-light"] == remarks["paper"] == "light"
        assert remarks["nord"] == "of Textual"
        shell.app.theme = "paper"


async def test_a_theme_is_seen_before_it_is_taken(shell) -> None:
    await shell.say("/theme")
    await shell.until(lambda: isinstance(shell.app.screen, ThemeScreen))
    await shell.press("down")
    await shell.until(lambda: shell.app.theme != "kbtui-dark")
    await shell.press("escape")
    assert shell.app.theme == "kbtui-dark"
    await shell.say("/theme")
    await shell.until(lambda: isinstance(shell.app.screen, ThemeScreen))
    await shell.press("down", "enter")
    await shell.until(lambda: shell.app.screen is shell.app.main)
    assert shell.app.theme == "kbtui-light"
    await shell.say("/theme moss")
    assert shell.app.theme == "moss"
    from kbtui.settings import load_settings

    await shell.until(lambda: load_settings().ui.theme == "moss")


async def test_a_session_is_resumed_with_all_that_was_shown(shell) -> None:
    await shell.say("what did we decide on auth?")
    before = shell.text
    await shell.say("/rename Auth")
    await shell.say("/new")
    await shell.until(lambda: not shell.transcript.items)
    shell.agent.script = said("other")
    await shell.say("something else")
    await shell.say("/resume auth")
    await shell.until(lambda: "something else" not in shell.text and shell.text)
    shown = [line for line in shell.text.splitlines() if line.strip()]
    assert shown[0] == "> what did we decide on auth?"
    assert "PKCE, because the client can't keep a secret [1]." in shown
    assert set(shown) <= set(before.splitlines())


async def test_the_picker_finds_a_session_by_its_title(shell) -> None:
    for title in ("Auth", "Cooking"):
        await shell.say("/new")
        await shell.say("hello")
        await shell.say(f"/rename {title}")
        await shell.until(lambda t=title: t in shell.chat.label)
    await shell.say("/sessions")
    await shell.until(lambda: isinstance(shell.app.screen, PickDialog))
    shell.app.screen.query_one(Input).value = "aut"
    await settle(shell.pilot)
    await shell.press("enter")
    await shell.until(lambda: "Auth" in shell.chat.label)


async def test_a_long_session_shows_its_end_at_once_and_more_on_demand(shell) -> None:
    session = shell.app.kb.sessions.create("tui", title="Long")
    for number in range(150):
        session.append("user", f"question {number}")
        session.append("assistant", f"answer {number}")
    await shell.say("/resume long")
    await shell.until(lambda: "answer 149" in shell.text)
    assert "question 0\n" not in shell.text
    assert "240 earlier messages" in shell.text
    await shell.press("shift+tab", "g", "enter")
    await shell.until(lambda: "question 20\n" in shell.text)
    assert "40 earlier messages" in shell.text
    assert len([i for i in shell.transcript.items if isinstance(i, UserItem)]) == 130


async def test_the_first_run_leads_to_three_ways_to_a_model(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("KBTUI_MODEL")
    async with running(tmp_path / "kb") as shell:
        await shell.until(lambda: shell.chat.start is not None)
        await shell.until(lambda: "none found;" in shell.chat.start.render().plain)
        assert shell.transcript.items == []
        await shell.say("3", wait=False)
        await shell.until(lambda: isinstance(shell.app.screen, ModelScreen))
        await shell.until(lambda: shell.app.screen.query_one("ChoiceList").row_count > 3)
        shown = str(shell.app.screen.query("Static").first().content)
        offered = [each.detail for each in shell.app.screen.query_one("ChoiceList").items]
        assert "Ollama" in shown
        assert any("with a key of" in each for each in offered)
        assert any("address" in each for each in offered)


async def test_who_has_chosen_offline_is_left_alone(shell) -> None:
    assert shell.transcript.items == []


async def test_a_model_is_tested_before_it_is_kept(shell, monkeypatch) -> None:
    from kbtui.errors import ModelAccessError

    tried, used = [], []

    async def try_out(name, base=None, key=None):
        tried.append((name, base, key))
        if key != "good":
            raise ModelAccessError("The key is refused.", "Check it.")

    models = shell.app.kb.models
    monkeypatch.setattr(models, "try_out", try_out)
    monkeypatch.setattr(models, "use", lambda name, **more: used.append((name, more)))
    await shell.say("/model")
    await shell.until(lambda: isinstance(shell.app.screen, ModelScreen))
    await shell.until(lambda: shell.app.screen.query_one("ChoiceList").row_count > 3)
    await shell.press("enter")
    await shell.until(lambda: isinstance(shell.app.screen, ModelForm))
    form = shell.app.screen
    form.query_one("#key", Input).value = "bad"
    await shell.press("enter")
    await shell.until(lambda: "The key is refused." in str(form.query_one("#outcome").render()))
    assert used == []
    form.query_one("#key", Input).value = "good"
    await shell.press("enter")
    await shell.until(lambda: used)
    assert used[0][1]["api_key"] == "good"
    assert used[0][1]["remember"] is True
    await shell.until(lambda: shell.app.screen is shell.app.main)


LOCAL = ("openai/small", "http://127.0.0.1:9/v1")


async def test_another_model_at_the_same_address_is_said_with_it(shell) -> None:
    shell.app.kb.models.use(*LOCAL, remember=False)
    await shell.say("/model other")
    await shell.notified("openai/other answers from now on. Messages go to 127.0.0.1:9, on this")
    assert shell.chat.model.name == "openai/other"


async def test_messages_leave_this_machine_only_after_a_question(shell) -> None:
    models = shell.app.kb.models
    models.use(*LOCAL, remember=False)
    await shell.say("/model anthropic/x")
    await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
    await shell.press("escape")
    assert models.describe().name == "openai/small"
    await shell.say("/model anthropic/x")
    await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
    await shell.press("y")
    await shell.notified("Messages go to Anthropic")
    assert models.describe().name == "anthropic/x"


async def test_the_picker_lists_what_answers_here_above_the_rest(shell, monkeypatch) -> None:
    models = shell.app.kb.models
    with serving(llama_cpp()) as (at,):
        monkeypatch.setattr(
            models, "_settings", models._settings.model_copy(update={"servers": (at.url,)})
        )
        await shell.say("/model")
        await shell.until(lambda: isinstance(shell.app.screen, ModelScreen))
        picker = shell.app.screen
        await shell.until(lambda: picker.query_one("ChoiceList").row_count > 3)
        first = picker.query_one("ChoiceList").item
        assert first.label == "openai//models/qwen3.gguf"
        assert "llama.cpp on this machine" in first.detail
        assert "holds 8,192 tokens" in first.detail
        await shell.press("enter")
        await shell.notified(f"Messages go to {at.host}")
        await shell.until(lambda: shell.chat.context_window == 8192)


async def test_the_picker_asks_before_messages_leave_too(shell) -> None:
    models = shell.app.kb.models
    models.use(*LOCAL, remember=False)
    await shell.say("/model")
    await shell.until(lambda: isinstance(shell.app.screen, ModelScreen))
    await shell.until(lambda: shell.app.screen.query_one("ChoiceList").row_count > 3)
    await shell.press("enter")
    await shell.until(lambda: isinstance(shell.app.screen, ModelForm))
    form = shell.app.screen
    form.query_one("#key", Input).value = "key"
    await shell.press("ctrl+s")
    await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
    await shell.press("escape")
    await shell.until(lambda: shell.app.screen is form)
    assert models.describe().name == "openai/small"
    await shell.press("ctrl+s")
    await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
    await shell.press("y")
    await shell.notified("Messages go to Anthropic")


async def test_commands_wait_for_the_workspace(tmp_path: Path) -> None:
    door = Door()

    def opener(_workspace):
        door.wait()
        raise WorkspaceError("gone")

    app = KbtuiApp(opener=opener)
    async with app.run_test() as pilot:
        shell = Shell(app, pilot, ScriptedAgent())
        await shell.say("/sessions", wait=False)
        await shell.notified("still being opened")
        first_key = AppSnapshot(app)
        first_key._workers.clear()  # as if it had come even before that began
        assert not first_key._is_opening(), "the next key would wait for the workspace"
        door.open()
        await until(pilot, lambda: app._exit)


async def test_a_commit_reaches_the_panes(shell, monkeypatch) -> None:
    seen = []
    notes = shell.app.main.notes
    monkeypatch.setattr(notes, "knowledge_changed", lambda *change: seen.append(change))
    entry = shell.app.kb.library.create("person", "Alice", body="# Alice\n")
    await shell.until(lambda: seen)
    paths, _actor = seen[0]
    assert entry.path in paths


async def test_asking_about_an_entry_puts_it_into_the_prompt(shell) -> None:
    from kbtui.tui.messages import AskAbout

    shell.app.main.notes.post_message(AskAbout("knowledge/people/alice.md"))
    await shell.until(lambda: shell.prompt.text)
    assert shell.prompt.text == "@people/alice "
    assert shell.prompt.has_focus


async def test_a_defect_is_told_in_a_sentence_and_logged_without_values(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbtui.logs import log_file

    monkeypatch.setattr(logging.getLogger("kbtui"), "handlers", [])

    def opener(_workspace):
        password = "hunter2"  # noqa: F841 - a value that must not get out
        raise ZeroDivisionError

    app = KbtuiApp(opener=opener)
    with pytest.raises(ZeroDivisionError):
        async with app.run_test() as pilot:
            await until(pilot, lambda: app._exception is not None)
    said_text = capfd.readouterr().err  # past the app that still holds sys.stderr, or not
    assert "ZeroDivisionError" in said_text
    assert "Traceback" not in said_text
    for handler in logging.getLogger("kbtui").handlers:
        handler.close()
    report = log_file().read_text()
    assert "Traceback" in report
    assert "hunter2" not in report


async def test_another_workspace_is_chosen_and_gone_to(shell, tmp_path: Path) -> None:
    with KnowledgeBase.open(
        tmp_path / "other", create=True, overrides={"search": {"semantic": False}}
    ):
        pass
    await shell.press("ctrl+o")
    await shell.until(lambda: isinstance(shell.app.screen, PickDialog))
    await shell.press("enter")
    await shell.until(lambda: shell.app.next_workspace is not None)
    assert shell.app.next_workspace == tmp_path / "other"


async def test_a_folder_that_is_no_workspace_is_not_gone_to(shell, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/thesis.tex").write_text("x")
    shell.app.action_workspaces(str(tmp_path / "thesis"))
    await shell.until(lambda: shell.app._notifications)
    assert "is not a workspace" in next(iter(shell.app._notifications)).message
    assert shell.app.next_workspace is None


@pytest.mark.parametrize("mark", [".obsidian", None])
async def test_a_vault_that_is_not_opened_is_named(tmp_path: Path, monkeypatch, mark) -> None:
    vault = tmp_path / "vault"
    (vault / "deep").mkdir(parents=True)
    (vault / "note.md").write_text("# Note\n", "utf-8")
    if mark:
        (vault / mark).mkdir()
    monkeypatch.chdir(vault)

    def opener(_workspace):
        return KnowledgeBase.open(
            tmp_path / "own", create=True, overrides={"search": {"semantic": False}}
        )

    app = KbtuiApp(opener=opener)
    async with app.run_test() as pilot:
        await until(
            pilot, lambda: app.kb is not None and app.kb.search.status().state == "lexical-only"
        )
        await settle(pilot)
        named = [each.message for each in app._notifications if "/workspaces ." in each.message]
        assert len(named) == (mark is not None)
        app.close_knowledge()


async def test_what_is_wanted_while_the_workspace_is_opened_is_shown_then(tmp_path: Path) -> None:
    door = Door()

    def opener(_workspace):
        door.wait()
        return KnowledgeBase.open(tmp_path / "kb", create=True)

    app = KbtuiApp(opener=opener)
    async with app.run_test() as pilot:
        app.main.post_message(OpenSearch("boat"))
        app.main.post_message(OpenHistory())
        door.open()
        await until(pilot, lambda: isinstance(app.screen, HistoryScreen))
        app.close_knowledge()


async def test_a_workspace_is_opened_once_at_the_note_that_was_left_for_that(tmp_path) -> None:
    with KnowledgeBase.open(tmp_path, create=True, overrides={"search": {"semantic": False}}) as kb:
        path = kb.library.create("topic", "Start here", body="# Start here\n").path
        set_first_note(kb.workspace, path)
    async with running(tmp_path) as shell:
        await shell.until(lambda: shell.app.main.notes.current_path == path)
        assert shell.app.focused is shell.prompt
    async with running(tmp_path) as shell:
        assert shell.app.main.notes.current_path is None


async def test_a_first_model_is_offered_what_was_kept_without_one_by_one_question(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(dialogs, "QUIET_SECONDS", 0)
    reply = Reply(tool_calls=[call_slice("The boiler man comes on Thursday.")])
    with ScriptedServer([reply]) as server:
        async with running(tmp_path / "kb") as shell:
            memory, models = shell.app.kb.memory, shell.app.kb.models
            session = shell.app.kb.sessions.create("old")
            session.append("user", "The boiler man comes on Thursday.")
            session.append("assistant", "Noted.")
            session.close()
            await memory.consolidate(session.id)
            assert memory.archive.entries()[0].verbatim
            models.use("openai/small", server.url, api_key="none", remember=False)
            for answer in ("n", "y"):
                await shell.say("/model openai/small", wait=False)
                await shell.until(lambda: isinstance(shell.app.screen, KeyDialog))
                assert (
                    "1 conversation that no model has condensed: about "
                    in shell.app.screen.text.plain
                )
                assert server.prompts == []
                await shell.press(answer)
            await shell.until(lambda: not memory.archive.entries()[0].verbatim)
            await shell.until(lambda: "1 conversation condensed by openai/small" in shell.text)


async def test_kinds_are_letters_in_an_app_whose_person_wants_that_and_in_no_other(
    tmp_path, monkeypatch
) -> None:
    for plain, shown in (("true", "T Topic 0"), ("false", "■ Topic 0")):
        monkeypatch.setenv("KBTUI_UI__PLAIN", plain)
        async with running(tmp_path / plain, entries=1) as shell:
            tree = shell.app.main.notes.knowledge_tree
            await shell.until(lambda tree=tree, shown=shown: shown in text_of(tree))


async def test_kinds_are_letters_where_the_locale_has_no_signs(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    async with running(tmp_path, entries=1) as shell:
        tree = shell.app.main.notes.knowledge_tree
        await shell.until(lambda: "T Topic 0" in text_of(tree))


@pytest.mark.parametrize(
    ("environment", "has_signs"),
    [
        ({}, True),
        ({"LANG": "de_DE.UTF-8"}, True),
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "POSIX"}, False),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, True),
        ({"LANG": "de_DE"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "en_GB.utf8@euro"}, True),
    ],
)
def test_a_locale_has_signs_if_it_is_in_utf_8(environment, has_signs) -> None:
    assert locale_has_signs(environment) is has_signs


async def test_a_border_isnt_moved_before_anything_is_laid_out(shell, monkeypatch) -> None:
    divided = shell.app.main.query(Divided).first()
    assert divided.move("left")
    monkeypatch.setattr(Divided, "size", Size(0, 0))
    assert not divided.move("left")


@pytest.mark.parametrize(
    "error", [NoMatches("#part"), MountError("before"), WorkerFailed(NoMatches("#part"))]
)
async def test_what_a_closing_screen_lacks_is_no_error_once_the_app_is_ending(
    tmp_path: Path, error: Exception
) -> None:
    async with running(tmp_path / "kb") as shell:
        shell.app.exit()
        shell.app._handle_exception(error)
        assert shell.app._exception is None
        assert not shell.app.return_code
