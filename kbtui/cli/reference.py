"""The commands as a table, for the README."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kbtui.cli.root import cli

if TYPE_CHECKING:
    from collections.abc import Iterator


def command_rows() -> Iterator[tuple[str, str]]:
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
    if isinstance(param, click.Argument):
        word = param.metavar or (param.name or "").upper()
        if param.required or word.startswith("["):
            return word
        return f"[{word}]"
    if not isinstance(param, click.Option):
        return ""
    flag = param.opts[0]
    if param.is_flag:
        return f"[{'|'.join((flag, *param.secondary_opts))}]"
    value = f"{flag} {param.metavar or (param.name or '').upper()}"
    return value if param.required else f"[{value}]"


def _first_line(command: click.Command) -> str:
    return (command.help or "").strip().partition("\n\n")[0].replace("\n", " ")
