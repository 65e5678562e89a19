"""Standard input and output as the protocol's two streams: one JSON-RPC message a line.

The SDK's own stdio transport drops what it can't read without a word, forgets the requests that
are still being answered when the input ends, and can't be stopped while it waits for a line. Here
a line that is no message is answered with an error, what was asked is answered before the end, and
both directions are served by threads that nobody has to wait for.
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
MOST_BYTES = 16 * 2**20  # of one message
_LAST_ANSWERS_SECONDS = 30.0
_POLL_SECONDS = 0.02


class StdioTransport:
    """The connection to the one client of this process, over two descriptors."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._waiting: Counter[tuple[type, Any]] = Counter()
        self._is_broken = False
        self._lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Serve both directions for the block; the incoming stream ends when the client is gone."""
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
            # The last answers are on their way; one that nobody takes is given up.
            await asyncio.wait([sending], timeout=1.0)
            sending.cancel()
            await asyncio.wait([sending])

    # From the client

    def _read(self, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
        """Hand on line by line what comes in, in a thread of its own."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for line in self._lines_in():
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()

    def _lines_in(self) -> Iterator[bytes]:
        """Each line; of one that is too long only the beginning, which is too long as well."""
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
            if len(rest) <= MOST_BYTES:
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
                await self._answered()

    def _message(self, line: bytes) -> SessionMessage | None:
        """Read a message; the client is told what is wrong with what is none."""
        if len(line) > MOST_BYTES:
            most = MOST_BYTES // 2**20
            self._complain(None, INVALID_REQUEST, f"The message is longer than {most} MB.")
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            self._complain(*_diagnosis(line))
            return None
        if (
            isinstance(message, JSONRPCNotification)
            and b'"id"' in line
            and "id" in json.loads(line)
        ):
            # The SDK takes a request whose id is none for something that wants no answer.
            self._complain(*_diagnosis(line))
            return None
        if not isinstance(message, JSONRPCRequest):
            return SessionMessage(message)
        key = (type(message.id), message.id)
        self._waiting[key] += 1

        async def forget() -> None:
            self._waiting -= Counter([key])

        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=forget))

    async def _answered(self) -> None:
        """Wait until everything that was asked is answered: the input has ended, not the work."""
        deadline = asyncio.get_running_loop().time() + _LAST_ANSWERS_SECONDS
        while self._waiting and not self._is_broken:
            if asyncio.get_running_loop().time() > deadline:
                log.warning("The client is gone, and %d calls go on.", self._waiting.total())
                return
            await asyncio.sleep(_POLL_SECONDS)

    # To the client

    def _complain(self, of: int | str | None, code: int, text: str) -> None:
        error = JSONRPCError(jsonrpc="2.0", id=of, error=ErrorData(code=code, message=text))
        self._put(error)

    async def _send(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with outgoing:
            async for item in outgoing:
                message = item.message
                await self._put(message)
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    self._waiting -= Counter([(type(message.id), message.id)])

    def _put(self, message: JSONRPCMessage) -> asyncio.Future[None]:
        """Have a message written; the future is done when it is."""
        done = asyncio.get_running_loop().create_future()
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        self._lines.put((text.encode("utf-8", "replace") + b"\n", done))
        return done

    def _write(self, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
        """Write what there is to write, in a thread of its own."""
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


def _diagnosis(line: bytes) -> tuple[int | str | None, int, str]:
    """The fault of a line: the request's id if it has one, an error code, and words."""
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
