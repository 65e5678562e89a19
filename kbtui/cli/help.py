"""The long tables: keys, commands, settings; and `kbtui help COMMAND`.

The pages are Markdown, written by ``python -m tests.pages`` from what the program itself goes by,
so that this needs neither the app nor pydantic to show them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from kbtui.cli.output import say, to_terminal
from kbtui.errors import UsageError

PAGES = ("keys", "commands", "settings")
_GAP = "  "


@click.command("help")
@click.argument("topic", nargs=-1, metavar="[keys|commands|settings|COMMAND]")
@click.pass_context
def help_command(ctx: click.Context, topic: tuple[str, ...]) -> None:
    """Show all keys, commands, settings; or one command."""
    import shutil
    from importlib import resources

    if len(topic) == 1 and topic[0] in PAGES:
        page = resources.files("kbtui.cli").joinpath("pages", f"{topic[0]}.md").read_text("utf-8")
        width = shutil.get_terminal_size().columns
        say(for_terminal(page, width) if to_terminal() else page, newline=False)
        return
    root = ctx.find_root()
    command: click.Command = root.command
    context = root
    for name in topic:
        below = command.get_command(context, name) if isinstance(command, click.Group) else None
        if below is None:
            raise UsageError(
                f"There is no help on {' '.join(topic)!r}.",
                "There is some on keys, commands and settings, and on every command.",
            )
        context = click.Context(below, context, name)
        command = below
    say(command.get_help(context))


def for_terminal(page: str, width: int) -> str:
    """Set a page's tables in columns of their own width; the last one takes what is left."""
    lines: list[str] = []
    table: list[list[str]] = []
    for line in [*page.splitlines(), ""]:
        if line.startswith("|"):
            table.append([cell.strip() for cell in _unmarked(line)[1:-1].split("\0")])
            continue
        if table:
            lines += _columns([table[0], *table[2:]], width)
            table = []
        if not line.startswith("```"):
            lines.append(line.lstrip("# "))
    return "\n".join(lines)


def _unmarked(line: str) -> str:
    r"""Take the marks off a table's row, with NUL between cells; ``\|`` is a bar."""
    return line.replace("\\|", "\1").replace("|", "\0").replace("\1", "|").replace("`", "")


def _columns(rows: list[list[str]], width: int) -> list[str]:
    *widths, _last = (max(map(len, column)) for column in zip(*rows, strict=True))
    most = max(20, (width - 30) // max(1, len(widths)))
    widths = [min(each, most) for each in widths]
    room = max(20, width - sum(widths) - len(_GAP) * len(widths))
    lines: list[str] = []
    for row in rows:
        cells = [
            textwrap.wrap(cell, size) or [""]
            for cell, size in zip(row, (*widths, room), strict=True)
        ]
        for n in range(max(map(len, cells))):
            parts = [cell[n] if n < len(cell) else "" for cell in cells]
            padded = [part.ljust(size) for part, size in zip(parts, widths, strict=False)]
            lines.append(_GAP.join([*padded, parts[-1]]).rstrip())
    return lines


def command_rows(cli: click.Group) -> Iterator[tuple[str, str]]:
    """Give each command's usage, such as ``kbtui log [PATH] [-n N]``, and what it does."""
    yield "kbtui [-w DIR]", "Start the app."
    yield from _rows(cli, "kbtui")


def _rows(group: click.Group, path: str) -> Iterator[tuple[str, str]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _rows(command, f"{path} {name}")
        else:
            parts = [f"{path} {name}", *map(_usage_of, command.params)]
            yield " ".join(filter(None, parts)), _first_line(command)


def _usage_of(param: click.Parameter) -> str:
    word = param.metavar or (param.name or "").upper()
    if isinstance(param, click.Argument):
        return word if param.required or word.startswith("[") else f"[{word}]"
    if not isinstance(param, click.Option):
        return ""
    flag = param.opts[0]
    if param.is_flag:
        return f"[{'|'.join((flag, *param.secondary_opts))}]"
    return f"{flag} {word}" if param.required else f"[{flag} {word}]"


def _first_line(command: click.Command) -> str:
    return (command.help or "").strip().partition("\n\n")[0].replace("\n", " ")
