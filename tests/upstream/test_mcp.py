"""What kbtui works around in the MCP SDK and in uvicorn."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import signal
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import ClientDisconnect

_STDIO = "one of the reasons for kbtui/mcp_server/stdio_transport.py is gone"
_CLIENT = {"name": "test", "version": "1"}
_ASKED = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT}
_HELLO = [
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _ASKED}),
    json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
]


async def _answers(*lines: str) -> list[dict[str, Any]]:
    """What a server of the SDK's says to some lines, after which its input ends."""

    async def call(*_: Any) -> types.CallToolResult:
        await asyncio.sleep(0.01)
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])

    server: Server[Any] = Server("test", on_call_tool=call)
    said = io.StringIO()
    heard = anyio.wrap_file(io.StringIO("".join(f"{line}\n" for line in (*_HELLO, *lines))))
    async with stdio_server(heard, anyio.wrap_file(said)) as streams:
        await server.run(*streams, server.create_initialization_options())
    return [json.loads(line) for line in said.getvalue().splitlines()][1:]


async def test_what_is_no_message_is_dropped_without_a_word() -> None:
    assert await _answers("no JSON", '{"id": 3}') == [], _STDIO


async def test_a_client_that_leaves_is_logged_as_an_error() -> None:
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign]
    logger = logging.getLogger("mcp.server.streamable_http")
    filters, logger.filters = logger.filters, []  # kbtui's own may be among them
    logger.addHandler(handler)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
        ],
    }
    parts = [{"type": "http.request", "body": b'{"', "more_body": True}]

    async def receive() -> dict[str, Any]:
        return parts.pop() if parts else {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    try:
        manager = StreamableHTTPSessionManager(Server("test"), json_response=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)
    finally:
        logger.removeHandler(handler)
        logger.filters = filters
    assert [type(each.exc_info[1]) for each in seen if each.exc_info] == [ClientDisconnect], (
        "`_is_no_disconnect` of kbtui/mcp_server/http_transport.py can go"
    )


def test_uvicorn_takes_the_signals() -> None:
    async def app(*_: Any) -> None:
        pass

    before = signal.getsignal(signal.SIGINT)
    with uvicorn.Server(uvicorn.Config(app)).capture_signals():
        assert signal.getsignal(signal.SIGINT) is not before, (
            "`_Http` of kbtui/mcp_server/http_transport.py can be `uvicorn.Server`"
        )
