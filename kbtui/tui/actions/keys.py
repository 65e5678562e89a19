"""Keys as people read them, and which keys an action has after a person's own changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.keys import Keys

from kbtui.tui.actions.registry import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbtui.tui.actions.registry import Action

_NAMES = {
    "slash": "/",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "question_mark": "?",
    "escape": "Esc",
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


def teach_alt_enter() -> None:
    r"""Let Alt+Enter start a new line in terminals that send it as ``ESC CR``.

    Textual reads that as Escape or as Enter; either would surprise in the middle of a text.
    """
    sequences = cast("dict[str, object]", ANSI_SEQUENCES_KEYS)
    sequences["\x1b\r"] = (Keys.ControlJ,)


def key_name(key: str) -> str:
    """One key as it is written on keyboards and in help: ``Ctrl+P``, ``F1``, ``j``, ``/``."""
    *modifiers, last = key.strip().split("+")
    if last in _NAMES:
        name = _NAMES[last]
    elif len(last) == 1:
        name = last.upper() if modifiers else last
    else:
        name = last.replace("_", " ").capitalize()
    return "+".join([*(modifier.capitalize() for modifier in modifiers), name])


def key_names(keys: str) -> str:
    """All keys of an action, the first first."""
    return " ".join(key_name(key) for key in keys.split(",") if key.strip())


def keys_of(action: Action, keymap: Mapping[str, str]) -> str:
    """The keys that an action really has."""
    return keymap.get(action.id, action.keys)


def checked_keymap(wanted: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Take over a person's own keys by action id, and say which ids don't exist."""
    known = {action.id for action in ACTIONS if action.keys}
    keymap = {name: keys for name, keys in wanted.items() if name in known and keys.strip()}
    problems = [
        f"`ui.keys` names `{name}`, which is no action with a key (F1 shows all)."
        for name in wanted
        if name not in known
    ]
    return keymap, problems
