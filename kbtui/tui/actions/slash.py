"""Slash commands as they are typed: which one is meant, and what could still become one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kbtui.errors import UsageError
from kbtui.text import clean_line
from kbtui.tui.actions.registry import slash_commands

if TYPE_CHECKING:
    from kbtui.tui.actions.registry import Action

# One line only: a longer text that begins so is Markdown with a heading.
_NOTE = re.compile(r"#\s*(?P<text>[^#\s].*)")
_COMMAND = re.compile(r"/(?P<name>\S*)(?:\s+(?P<argument>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command with what followed it."""

    action: Action
    argument: str


def parse(text: str) -> Command | None:
    """Read what was typed as a command; None when it is a message.

    Everything that begins with a slash is meant as a command, and never goes to a model; a blank
    before the slash makes it a message. ``#text`` is short for ``/remember text``.

    Raises:
        UsageError: there is no such command; the hint names the nearest.
    """
    note = _NOTE.fullmatch(text.strip())
    if note is not None:
        return Command(slash_commands()["/remember"], note["text"])
    match = _COMMAND.fullmatch(text.rstrip())
    if match is None:
        return None
    known = slash_commands()
    name = "/" + match["name"].lower()
    if name in known:
        return Command(known[name], (match["argument"] or "").strip())
    near = get_close_matches(name, known, n=1, cutoff=0.6) or [
        command for command in known if command.startswith(name)
    ]
    hint = f"Did you mean {near[0]}?" if near else "/help lists all commands."
    raise UsageError(
        f"There is no command {clean_line(name)}.",
        f"{hint} Put a blank before the slash to send it as a message.",
    )


def completions(typed: str) -> list[Action]:
    """The commands that `typed` (with its slash) can become: by beginning, then by any part."""
    wanted = typed.lower()
    known = slash_commands()
    beginning = [action for name, action in known.items() if name.startswith(wanted)]
    part = wanted.removeprefix("/")
    rest = [
        action
        for name, action in known.items()
        if action not in beginning and part and (part in name or part in action.title.lower())
    ]
    return [*beginning, *rest]
