"""The conversations."""

from __future__ import annotations

import click

from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.output import say_json, say_line, say_styled


@click.command()
@json_option
@pass_place
def sessions(place: Place, as_json: bool) -> None:
    """List the conversations, the last one first."""
    with place.opened() as kb:
        infos = kb.sessions.list()
    if as_json:
        from kbtui.cli.shapes import session_shape

        say_json([session_shape(info) for info in infos])
        return
    for info in infos:
        when = info.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        count = f"{info.messages:>5}"
        say_line(say_styled(info.id, fg="cyan"), f"  {when}  {count}  ", say_styled(info.title))
