"""Streamable HTTP on the loopback interface, authenticated by a token.

Web pages open in a browser can reach the loopback address as well, so requests with another host or
origin are rejected, and so is every request without the token.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import ClientDisconnect

from kbtui.errors import KbtuiError, UsageError
from kbtui.mcp_server.stdio_transport import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server
    from starlette.types import Receive, Scope, Send

HOST = "127.0.0.1"
PATH = "/mcp"
_HOST_NAMES = (HOST, "localhost")
_IDLE_SECONDS = 300.0
_MAX_SESSIONS = 100
_MIN_TOKEN_LENGTH = 16


def listen(port: int) -> socket.socket:
    """Listen on a port of the loopback address; 0 picks a free one.

    Raises:
        UsageError: The port can't be used.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(
            f"Port {port} of {HOST} can't be used: {error.strerror}.",
            "Give another one; 0 takes one that is free.",
        ) from error
    return listener


def token_file() -> Path:
    """Return the path of the token's file."""
    return platformdirs.user_state_path("kbtui", appauthor=False) / "mcp-token"


def read_token() -> str:
    """Return the token, creating it at first use; only the user can read its file.

    Raises:
        KbtuiError: The token can't be read or written, or is too short to be a secret.
    """
    file = token_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as made:
                made.write(secrets.token_urlsafe(32) + "\n")
        token = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KbtuiError(f"The token in {file} can't be used: {error}.") from error
    if len(token) < _MIN_TOKEN_LENGTH or not token.isascii():
        raise KbtuiError(
            f"The token in {file} is no secret: it needs {_MIN_TOKEN_LENGTH} ASCII characters.",
            "Delete the file, and a new one is made.",
        )
    return token


class HttpTransport:
    """Serves clients that present the token, until it is cancelled.

    Sessions end after `idle` seconds without a request, since most clients never close them. There
    can be a hundred at once.
    """

    def __init__(self, listener: socket.socket, token: str, *, idle: float = _IDLE_SECONDS) -> None:
        self._listener = listener
        self._idle = idle
        self._expected = f"Bearer {token}".encode()

    async def run(self, server: Server[Any]) -> None:
        """Serve requests; on cancellation, requests in progress have 5 s to finish."""
        allowed = TransportSecuritySettings(
            allowed_hosts=[each for name in _HOST_NAMES for each in (name, f"{name}:*")],
            allowed_origins=[f"http://{name}:*" for name in _HOST_NAMES],
        )
        manager = StreamableHTTPSessionManager(
            server,
            json_response=True,
            security_settings=allowed,
            max_request_body_size=MAX_MESSAGE_BYTES,
            max_sessions=_MAX_SESSIONS,
            session_idle_timeout=self._idle,
        )

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if not self._is_authorized(scope):
                await _refuse(send, 401, "Show the token: Authorization: Bearer ...")
            elif scope["path"].rstrip("/") != PATH:
                await _refuse(send, 404, f"There is only {PATH}.")
            else:
                await manager.handle_request(scope, receive, send)

        config = uvicorn.Config(
            answer,
            lifespan="off",
            interface="asgi3",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        http = _Http(config)
        logging.getLogger("mcp.server.streamable_http").addFilter(_is_no_disconnect)
        async with manager.run():
            serving = asyncio.create_task(http.serve([self._listener]))
            try:
                await asyncio.shield(serving)
            finally:
                http.should_exit = True
                await asyncio.wait([serving])

    def _is_authorized(self, scope: Scope) -> bool:
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(shown) == 1 and secrets.compare_digest(shown[0], self._expected)


class _Http(uvicorn.Server):
    """A uvicorn server that leaves signal handling to the caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _is_no_disconnect(record: logging.LogRecord) -> bool:
    """Return False for a client's disconnect in mid-message, which the SDK logs as an error."""
    return record.exc_info is None or not isinstance(record.exc_info[1], ClientDisconnect)


async def _refuse(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
