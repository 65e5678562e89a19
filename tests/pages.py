"""The pages that are made from the program: ``python -m tests.pages`` writes them.

``kbtui/cli/pages`` holds all keys, commands and settings, ``man`` the manual page; README.md shows the keys that matter.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = ROOT / "kbtui" / "cli" / "pages"
STREAMS = "Standard output is data, standard error is for people."
EXIT_CODES = (
    "0 done, 1 nothing found or differences, 2 usage, 3 no workspace or configuration, 4 provider"
    " or network, 5 conflict, 6 budget reached, 130 interrupted. A list of all that there is may be"
    " empty: that is done."
)
MANUAL = ROOT / "kbtui" / "cli" / "pages" / "kbtui.1"
THAT_MATTER = (
    "global.help", "global.history", "global.open", "global.inbox", "global.search",
    "global.palette", "global.zoom", "global.escape", "prompt.complete", "transcript.open",
    "transcript.undo", "notes.filter", "notes.edit", "editor.save", "notes.history", "notes.why",
    "notes.rename", "history.undo", "history.time_travel", "inbox.accept",
)  # fmt: skip


def pages() -> dict[Path, str]:
    """Each generated page by its file, as the program says it now."""
    texts = {"keys": _keys(), "commands": _commands(), "settings": _settings()}
    made = {PAGES / f"{name}.md": text for name, text in texts.items()}
    made[MANUAL] = _manual()
    made[README] = _filled(README.read_text("utf-8"), "keys", _keys_that_matter())
    return made


def _filled(text: str, name: str, content: str) -> str:
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    filled, count = pattern.subn(lambda found: f"{found[1]}{content}{found[2]}", text)
    if count != 1:
        raise ValueError(f"README.md has {count} parts named {name}")
    return filled


def _table(*rows: tuple[str, ...]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]) + "\n"


def _key_names(keys: str) -> str:
    return f"`{keys.replace('slash', '/').replace(',', '` `')}`"


def _keys() -> str:
    from kbtui.tui.actions.registry import CONTEXT_TITLES, CONTEXTS, actions

    text = (
        "# Keys\n\nTo change one, name its id in the file that `kbtui config path` shows:\n\n"
        '```toml\n[ui.keys]\n"notes.edit" = "e,f12"\n```\n'
    )
    for context in CONTEXTS:
        bound = [action for action in actions(context) if action.keys]
        if bound:
            rows = [
                (_key_names(each.keys), each.title, each.help, f"`{each.id}`") for each in bound
            ]
            table = _table(("Key", "Action", "What it does", "Id"), *rows)
            text += f"\n## {CONTEXT_TITLES[context]}\n\n{table}"
    return text


def _keys_that_matter() -> str:
    from kbtui.tui.actions.registry import ACTIONS, CONTEXT_TITLES

    by_id = {action.id: action for action in ACTIONS}
    chosen = [by_id[name] for name in THAT_MATTER]
    rows = [(CONTEXT_TITLES[each.context], _key_names(each.keys), each.help) for each in chosen]
    return _table(("Where", "Key", "What it does"), *rows)


def _commands() -> str:
    from kbtui.cli.help import command_rows
    from kbtui.cli.root import cli
    from kbtui.search.results import QUERY_LANGUAGE
    from kbtui.tui.actions.registry import slash_commands

    queries = [(f"`{form}`", meaning) for form, meaning in QUERY_LANGUAGE]
    shell = [(f"`{usage}`", text) for usage, text in command_rows(cli)]
    slash = [
        (f"`{name} {action.usage}".rstrip() + "`", action.help)
        for name, action in slash_commands().items()
    ]
    return (
        f"# Commands\n\n## In a shell\n\n{fill(f'{STREAMS} Exit codes: {EXIT_CODES}', 98)}\n\n"
        f"{_table(('Command', 'What it does'), *shell)}\n## In the app's prompt\n\n"
        f"{_table(('Command', 'What it does'), *slash)}\n## In a search\n\n"
        f"{_table(('Query', 'What it finds'), *queries)}"
    )


def _manual() -> str:
    from kbtui.cli.help import command_rows
    from kbtui.cli.root import cli

    parts = {
        "NAME": "kbtui \\- a personal knowledge base in the terminal",
        "SYNOPSIS": ".B kbtui\n[\\-w DIR] [COMMAND] [ARGUMENTS]",
        "DESCRIPTION": _roff(f"{cli.help} `kbtui help` has pages about all of it."),
        "COMMANDS": "\n".join(
            f".TP\n.B {_roff(usage)}\n{_roff(text)}" for usage, text in command_rows(cli)
        ),
        "EXIT STATUS": _roff(EXIT_CODES),
    }
    return '.TH KBTUI 1 "" kbtui\n' + "".join(
        f".SH {name}\n{text}\n" for name, text in parts.items()
    )


def _roff(text: str) -> str:
    """A line of text in which nothing is a request or an escape to roff."""
    said = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{said}" if said.startswith((".", "'")) else said


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
    return (
        "# Settings\n\nLater ones win: `config.toml` in your config directory (`kbtui config"
        " path`), `kbtui.toml` in the\nworkspace, `KBTUI_<SECTION>__<NAME>` in the environment. A"
        " workspace's own file may not set\nendpoints, keys, models or budgets, so that a shared"
        " folder can't redirect a key. ROLE is\nchat, consolidate, dream, import or embed.\n\n"
        f"{_table(('Setting', 'Default', 'What it means'), *rows.values())}"
    )


if __name__ == "__main__":
    for file, text in pages().items():
        file.write_text(text, "utf-8")
        sys.stdout.write(f"{file}\n")
