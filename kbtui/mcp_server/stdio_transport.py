"""The stdio transport: one JSON-RPC message per line on standard input and output.

The SDK's own transport silently drops malformed messages, abandons requests in progress when the
input ends, and can't be cancelled while it waits for a line. This one answers a malformed message
with an error, finishes requests in progress, and reads and writes in daemon threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from kbtui.workspace.durable import write_all

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    Streams = tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception],
        MemoryObjectSendStream[SessionMessage],
    ]

log = logging.getLogger(__name__)
MAX_MESSAGE_BYTES = 16 * 2**20
_DRAIN_SECONDS = 30.0
_POLL_SECONDS = 0.02


class StdioTransport:
    """The connection to the client, over two file descriptors."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._in_progress: Counter[tuple[type, Any]] = Counter()
        self._is_broken = False
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Serve both directions within the block; the incoming stream ends with the input."""
        loop = asyncio.get_running_loop()
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_send, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        lines: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        for name, work in (("mcp-in", self._read), ("mcp-out", self._write)):
            threading.Thread(target=work, args=(loop, lines), name=name, daemon=True).start()
        receiving = asyncio.create_task(self._receive(lines, incoming))
        sending = asyncio.create_task(self._send(outgoing))
        try:
            yield received, to_send
        finally:
            receiving.cancel()
            await to_send.aclose()
            await asyncio.wait([receiving])
            # Wait for the last answers, unless the client has stopped reading.
            await asyncio.wait([sending], timeout=1.0)
            sending.cancel()
            await asyncio.wait([sending])

    # From the client

    def _read(self, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
        """Pass on incoming lines, in a separate thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for line in self._read_lines():
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()

    def _read_lines(self) -> Iterator[bytes]:
        """Yield lines; an overlong one is truncated, but stays above the limit."""
        rest = b""
        while True:
            try:
                piece = os.read(self._source, 1 << 16)
            except OSError as error:
                log.info("The input can't be read: %s", error)
                piece = b""
            if not piece:
                break
            *whole, last = piece.split(b"\n")
            for each in whole:
                yield rest + each
                rest = b""
            if len(rest) <= MAX_MESSAGE_BYTES:
                rest += last
        if rest.strip():
            yield rest

    async def _receive(
        self,
        lines: asyncio.Queue[bytes | None],
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        async with incoming:
            with contextlib.suppress(anyio.BrokenResourceError):
                while (line := await lines.get()) is not None and not self._is_broken:
                    message = self._message(line) if line.strip() else None
                    if message is not None:
                        await incoming.send(message)
                await self._drain()

    def _message(self, line: bytes) -> SessionMessage | None:
        """Parse a message; a malformed one is answered with an error."""
        if len(line) > MAX_MESSAGE_BYTES:
            most = MAX_MESSAGE_BYTES // 2**20
            self._send_error(None, INVALID_REQUEST, f"The message is longer than {most} MB.")
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            self._send_error(*_diagnose(line))
            return None
        if (
            isinstance(message, JSONRPCNotification)
            and b'"id"' in line
            and "id" in json.loads(line)
        ):
            # The SDK would treat a request with a null id as a notification.
            self._send_error(*_diagnose(line))
            return None
        if not isinstance(message, JSONRPCRequest):
            return SessionMessage(message)
        key = (type(message.id), message.id)
        self._in_progress[key] += 1

        async def forget() -> None:
            self._in_progress -= Counter([key])

        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=forget))

    async def _drain(self) -> None:
        """Wait for the requests in progress after the input has ended."""
        deadline = asyncio.get_running_loop().time() + _DRAIN_SECONDS
        while self._in_progress and not self._is_broken:
            if asyncio.get_running_loop().time() > deadline:
                log.warning("The client is gone, and %d calls go on.", self._in_progress.total())
                return
            await asyncio.sleep(_POLL_SECONDS)

    # To the client

    def _send_error(self, of: int | str | None, code: int, text: str) -> None:
        error = JSONRPCError(jsonrpc="2.0", id=of, error=ErrorData(code=code, message=text))
        self._enqueue(error)

    async def _send(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with outgoing:
            async for item in outgoing:
                message = item.message
                await self._enqueue(message)
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    self._in_progress -= Counter([(type(message.id), message.id)])

    def _enqueue(self, message: JSONRPCMessage) -> asyncio.Future[None]:
        """Queue a message; the future is done when it has been written."""
        done = asyncio.get_running_loop().create_future()
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        self._lines.put((text.encode("utf-8", "replace") + b"\n", done))
        return done

    def _write(self, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
        """Write queued messages, in a separate thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while True:
                line, done = self._lines.get()
                if not self._is_broken:
                    try:
                        write_all(self._sink, line)
                    except OSError as error:
                        log.info("The client doesn't listen any more: %s", error)
                        self._is_broken = True
                        asyncio.run_coroutine_threadsafe(lines.put(None), loop)
                loop.call_soon_threadsafe(_finish, done)


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _diagnose(line: bytes) -> tuple[int | str | None, int, str]:
    """Return the request id (if any), the error code and a message for a malformed line."""
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        return None, PARSE_ERROR, f"That is no JSON: {str(error)[:200]}"
    if isinstance(value, list):
        return None, INVALID_REQUEST, "Batches are not part of this protocol: one message a line."
    if not isinstance(value, dict):
        return None, INVALID_REQUEST, "A message is a JSON object."
    known = value.get("id")
    of = known if isinstance(known, str | int) and not isinstance(known, bool) else None
    return of, INVALID_REQUEST, 'That is no JSON-RPC 2.0 message: "jsonrpc", "method", "id".'
