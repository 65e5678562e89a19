"""Serving other agents: mcp."""

from __future__ import annotations

import sys

import click

from kbtui.cli.context import Place, pass_place
from kbtui.cli.output import note


@click.command()
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@pass_place
def mcp(place: Place, read_only: bool) -> int:
    """Let another agent use the workspace over MCP.

    The agent starts this itself and speaks the Model Context Protocol with it on standard input
    and output. Its changes are commits by `mcp`; private entries stay hidden from it.
    """
    from kbtui.mcp_server.serving import serve

    place.check()
    if sys.stdin.isatty():
        note("kbtui: This waits for a program that speaks MCP; Ctrl+C ends it.")
    return serve(place.open, read_only=read_only)
