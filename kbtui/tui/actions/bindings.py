"""The one list of what can be done, and by which key, command and name.

Bindings, the command palette, the help screen, the slash commands and the README's key table are
all made from `ACTIONS`, so they can't disagree. An action ``notes.edit`` is bound by whoever shows
the context ``notes`` (``BINDINGS = bindings("notes")``) and carried out by its ``action_edit``.
A person remaps it by its id: ``ui.keys = {"notes.edit" = "e,f12"}``.
"""

from __future__ import annotations

from textual.binding import Binding

from kbtui.tui.actions.action import CONTEXT_TITLES, CONTEXTS, Action, Context
from kbtui.tui.actions.registry import ACTIONS

__all__ = [
    "ACTIONS",
    "CONTEXTS",
    "CONTEXT_TITLES",
    "Action",
    "Context",
    "actions",
    "bindings",
    "commands",
]


def actions(context: Context) -> tuple[Action, ...]:
    """The actions of one context, in the order in which they are explained."""
    return tuple(action for action in ACTIONS if action.context == context)


def bindings(context: Context) -> list[Binding]:
    """The ``BINDINGS`` of whoever shows `context`; actions without a key are left out."""
    return [
        Binding(
            key=action.keys,
            action=action.method,
            description=action.label,
            tooltip=action.help,
            show=action.show,
            priority=action.priority,
            id=action.id,
        )
        for action in actions(context)
        if action.keys
    ]


def commands() -> dict[str, Action]:
    """Every slash command with its action, in the order of the registry."""
    return {action.slash: action for action in ACTIONS if action.slash}
