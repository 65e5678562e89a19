"""The parts of README.md that are made from the program: ``python -m tests.readme`` writes them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def sections() -> dict[str, str]:
    """Each generated part by the name of its markers."""
    return {"keys": _keys(), "slash": _slash(), "commands": _commands(), "settings": _settings()}


def filled(text: str) -> str:
    """The README with every generated part as the program says it now."""
    for name, content in sections().items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, count = pattern.subn(lambda m, c=content: f"{m[1]}{c}\n{m[2]}", text)
        if count != 1:
            raise ValueError(f"README.md has {count} parts named {name}")
    return text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(*rows: tuple[str, ...]) -> str:
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def _keys() -> str:
    from kbtui.tui.actions.registry import CONTEXT_TITLES, CONTEXTS, actions

    rows = [
        (CONTEXT_TITLES[context], f"`{action.keys.replace(',', '` `')}`", action.title, action.help)
        for context in CONTEXTS
        for action in actions(context)
        if action.keys
    ]
    return _table(("Where", "Key", "Action", "What it does"), *rows)


def _slash() -> str:
    from kbtui.tui.actions.registry import slash_commands

    rows = [
        (f"`{name} {action.usage}".rstrip() + "`", action.help)
        for name, action in slash_commands().items()
    ]
    return _table(("Command", "What it does"), *rows)


def _commands() -> str:
    from kbtui.cli.reference import command_rows

    return _table(
        ("Command", "What it does"), *((f"`{usage}`", text) for usage, text in command_rows())
    )


def _settings() -> str:
    from kbtui.settings import Settings, describe_settings

    rows: dict[str, tuple[str, ...]] = {}
    for name, description in describe_settings():
        value: object = Settings()
        for part in name.split("."):
            value = getattr(value, "extract" if part == "import" else part)
        shown = re.sub(r"^models\.(chat|consolidate|dream|import|embed)\.", "models.ROLE.", name)
        default = "" if value in (None, (), {}) else f"`{value}`"
        rows.setdefault(shown, (f"`{shown}`", default, description))
    return _table(("Setting", "Default", "What it means"), *rows.values())


if __name__ == "__main__":
    README.write_text(filled(README.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"{README} is up to date\n")
