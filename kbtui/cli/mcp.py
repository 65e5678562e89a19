"""`kbtui mcp`: the MCP server for other agents."""

from __future__ import annotations

import sys

import click

from kbtui.cli.context import WorkspaceOption, pass_place
from kbtui.cli.output import note


@click.command()
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@click.option(
    "--http", "port", type=click.IntRange(0, 65535), help="Listen on this port of 127.0.0.1."
)
@pass_place
def mcp(place: WorkspaceOption, read_only: bool, port: int | None) -> int:
    """Serve the workspace to another agent over MCP.

    The agent starts this command and speaks the Model Context Protocol with it on standard input
    and output; or several connect over HTTP, with a token that only you can read. Their changes are
    commits by `mcp`; private entries are hidden from them.
    """
    from kbtui.mcp_server.serving import serve

    place.check()
    if port is not None:
        from kbtui.mcp_server.http_transport import (
            HOST,
            PATH,
            HttpTransport,
            listen,
            read_token,
            token_file,
        )

        token, listener = read_token(), listen(port)
        note(f"kbtui: Listening on http://{HOST}:{listener.getsockname()[1]}{PATH}")
        note(f"kbtui: Clients show the token in {token_file()}: Authorization: Bearer TOKEN")
        return serve(place.open, read_only=read_only, http=HttpTransport(listener, token))
    if sys.stdin.isatty():
        note("kbtui: This waits for a program that speaks MCP; Ctrl+C ends it.")
    return serve(place.open, read_only=read_only)
