"""The list of actions, and everything that is made from it, agree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from kbtui.tui.actions.registry import (
    ACTIONS,
    CONTEXT_TITLES,
    CONTEXTS,
    actions,
    bindings,
    check_keymap,
    key_name,
    key_names,
    keys_of,
    matching_commands,
    slash_commands,
)
from kbtui.tui.app import app
from kbtui.tui.app.app import KbtuiApp
from kbtui.tui.app.help import help_table
from kbtui.tui.app.settings_screen import SettingsScreen
from kbtui.tui.chat.chat_pane import ChatPane
from kbtui.tui.chat.commands import chat_commands as commands, item_actions, memory_commands
from kbtui.tui.chat.commands.memory_screen import MemoryScreen
from kbtui.tui.chat.conversation.transcript import Transcript, Verb
from kbtui.tui.chat.prompt import Prompt
from kbtui.tui.diff.correct import CorrectScreen
from kbtui.tui.history.history import HistoryScreen
from kbtui.tui.history.time_travel import PastPane
from kbtui.tui.inbox.inbox import InboxScreen
from kbtui.tui.notes.entry_editor import EntryEditor
from kbtui.tui.notes.map import MapScreen
from kbtui.tui.notes.notes_pane import NotesPane
from kbtui.tui.notes.tasks import TasksScreen
from kbtui.tui.search.search import SearchScreen
from kbtui.tui.search.switcher import SwitcherScreen

HOSTS = {
    "global": KbtuiApp,
    "chat": ChatPane,
    "prompt": Prompt,
    "transcript": Transcript,
    "notes": NotesPane,
    "map": MapScreen,
    "editor": EntryEditor,
    "history": HistoryScreen,
    "past": PastPane,
    "search": SearchScreen,
    "settings": SettingsScreen,
    "switcher": SwitcherScreen,
    "memory": ChatPane,
    "facts": MemoryScreen,
    "tasks": TasksScreen,
    "inbox": InboxScreen,
    "correct": CorrectScreen,
}


TESTS = Path(__file__).resolve().parents[2]
ROOMS = {
    "chat": "chat", "prompt": "chat", "transcript": "chat", "memory": "chat",
    "facts": "chat", "notes": "notes", "tasks": "notes", "map": "notes", "editor": "notes",
    "history": "history", "past": "history", "search": "search", "switcher": "search", "inbox": "inbox",
    "correct": "diff", "settings": "app",
}  # fmt: skip
"""Whose tests press the keys of a context; those that work everywhere are pressed anywhere."""


@cache
def tried(room: str) -> frozenset[str]:
    """What the tests of a room press, type and call, and those of the whole app."""
    files = [*(TESTS / "tui" / room).rglob("*.py"), *(TESTS / "e2e").rglob("*.py")]
    return frozenset(way for file in files for way in tried_in(file.read_text("utf-8")))


def tried_in(text: str) -> Iterator[str]:
    """What tests press, type and call; a letter counts where it is pressed, and not in a word."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if len(node.value) > 1:
                yield from (node.value, node.value.partition(" ")[0])
        elif isinstance(node, ast.Tuple | ast.List):
            yield from _letters(node.elts)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"press", "send"}:
            yield from _letters(node.args)


def _letters(nodes: Iterable[ast.expr]) -> Iterator[str]:
    for node in nodes:
        each = node.value if isinstance(node, ast.Starred) else node
        if isinstance(each, ast.Constant) and len(set(str(each.value))) == 1:
            yield str(each.value)[0]


def test_a_letter_that_is_only_typed_is_no_key_that_is_tried() -> None:
    text = "pilot.press(*'quiz', 'a', *'}}')\nx = 'u'\nfor key in ('j', 'k'): press(key)"
    assert {"a", "}", "j", "k"} <= set(tried_in(text))
    assert not {"q", "u", "i", "z"} & set(tried_in(text))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_is_tried_by_a_test(action) -> None:
    keys = [key for key in action.keys.split(",") if key]
    ways = {*keys, *map(key_name, keys), f"action_{action.method}"}
    assert ways & tried(ROOMS.get(action.context, "")) or action.slash in tried("") - {""}


def test_ids_and_slash_commands_are_unique() -> None:
    assert max(Counter(action.id for action in ACTIONS).values()) == 1
    assert len(slash_commands()) == sum(1 for action in ACTIONS if action.slash)


def test_an_id_begins_with_its_context() -> None:
    assert all(action.id == f"{action.context}.{action.method}" for action in ACTIONS)
    assert set(HOSTS) == set(CONTEXTS) == set(CONTEXT_TITLES)


def test_every_action_can_be_reached_and_is_explained() -> None:
    for action in ACTIONS:
        assert action.keys or action.slash, action.id
        assert action.title, action.id
        assert action.help.endswith("."), action.id


@pytest.mark.parametrize("context", CONTEXTS)
def test_no_key_means_two_things_in_one_place(context: str) -> None:
    for partial in (False, True):
        shown = [action for action in actions(context) if action.partial is partial]
        keys = [key for action in shown for key in action.keys.split(",") if key]
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize("context", CONTEXTS)
def test_whoever_shows_a_context_binds_all_of_its_actions(context: str) -> None:
    bound = {getattr(binding, "id", None) for binding in HOSTS[context].BINDINGS}
    assert {binding.id for binding in bindings(context)} <= bound


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_key_is_carried_out_by_a_method_of_whoever_binds_it(action) -> None:
    if action.keys:
        method = action.call.partition("(")[0]
        assert callable(getattr(HOSTS[action.context], f"action_{method}"))


@pytest.mark.parametrize("context", CONTEXTS)
def test_every_slash_command_is_carried_out_by_a_function(context: str) -> None:
    tables = {
        "chat": commands.COMMANDS,
        "memory": memory_commands.COMMANDS,
        "transcript": item_actions.COMMANDS,
        "global": app.COMMANDS,
        "prompt": {"/editor"},
    }
    wanted = {action.slash for action in actions(context) if action.slash}
    assert set(tables.get(context, ())) == wanted


def test_every_action_on_an_item_is_one_of_the_transcript() -> None:
    methods = {action.method for action in actions("transcript")}
    assert set(item_actions.ACTIONS) == set(get_args(Verb)) <= methods


def test_help_names_every_key_and_command() -> None:
    table = help_table("", {}).plain
    for action in ACTIONS:
        assert action.title in table
        assert key_names(action.keys) in table
        assert (action.slash or "") in table


def test_help_shows_only_what_fits_a_word() -> None:
    table = help_table("rename", {}).plain
    assert "/rename <title>" in table
    assert "Suspend" not in table
    assert help_table("xyzzy", {}).plain == "Nothing fits that."


def test_help_says_what_a_search_may_hold() -> None:
    for table in (help_table("", {}).plain, help_table("updated", {}).plain):
        assert "updated:week" in table


def test_help_shows_the_keys_that_a_person_has_chosen() -> None:
    assert "F12" in help_table("Edit the note here", {"notes.edit": "f12"}).plain


def test_keys_are_taken_over_by_id_and_unknown_ids_are_told() -> None:
    keymap, problems = check_keymap({"notes.edit": "f12", "notes.fly": "x"})
    assert keymap == {"notes.edit": "f12"}
    assert len(problems) == 1
    assert "notes.fly" in problems[0]
    edit = next(action for action in ACTIONS if action.id == "notes.edit")
    assert keys_of(edit, keymap) == "f12"


def test_keys_are_written_as_on_a_keyboard() -> None:
    assert key_name("ctrl+p") == "Ctrl+P"
    assert key_name("f5") == "F5"
    assert key_name("slash") == "/"
    assert key_name("G") == "G"
    assert key_names("j,down") == "j ↓"


def test_every_footer_writes_keys_alike() -> None:
    running = KbtuiApp()
    for binding in bindings("history"):
        assert running.get_key_display(binding) == key_name(binding.key)


def test_the_popup_offers_every_slash_command() -> None:
    assert [action.slash for action in matching_commands("/")] == list(slash_commands())


@pytest.mark.parametrize("width", [24, 40, 66])
def test_help_fits_a_narrow_terminal_without_columns(width: int) -> None:
    lines = help_table("", {}, width=width).plain.partition("Any key can")[0].split("\n")
    assert max(len(line) for line in lines if line.startswith("  ")) <= width
    assert any(line.startswith("  j  Down  Move") for line in lines)
