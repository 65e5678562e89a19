"""Tells whether a server ended its stream, or the stream just stopped.

Some servers give no finish reason, but end with ``[DONE]``, which OpenAI's library reads and keeps
to itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

_DONE = b"data: [DONE]"
_TAIL = 64


class StreamEnding:
    """How a stream ended.

    Attributes:
        is_told: Whether the server said that it is complete.
    """

    def __init__(self) -> None:
        self.is_told = False
        self._tail = b""

    def see(self, data: bytes) -> None:
        """Take in the next bytes of the stream."""
        self._tail += data
        self.is_told = self.is_told or _DONE in self._tail.replace(b"data:[", b"data: [")
        self._tail = self._tail[-_TAIL:]


def watch_ending(stream: Any) -> StreamEnding:
    """Watch the bytes of a stream of litellm that nothing was read from yet.

    Of streams that aren't OpenAI's, nothing is told.
    """
    import httpx

    ending = StreamEnding()
    response = getattr(getattr(stream, "completion_stream", None), "response", None)
    if not isinstance(response, httpx.Response):
        return ending
    if not isinstance(response.stream, httpx.AsyncByteStream):
        return ending
    source: httpx.AsyncByteStream = response.stream

    class Watched(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for data in source:
                ending.see(data)
                yield data

        async def aclose(self) -> None:
            await source.aclose()

    response.stream = Watched()
    return ending
