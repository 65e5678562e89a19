"""Bulk redaction of secrets in messages, on several cores if there is much text.

Run as a program, the module is a helper: it reads lists of texts in JSON, a line each, and answers
each with the redacted texts, null for one without any secret.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from kbtui.freed import give_back
from kbtui.redaction.redact import redact
from kbtui.text import Packed, pack, unpack

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from kbtui.child_process import ChildProcess

log = logging.getLogger(__name__)
_PARALLEL_FROM = 4_000_000  # characters: more of a core's time than starting a helper takes
_PART_SIZE = 50_000
_MAX_HELPERS = 2  # as fast as one process reads and writes; each takes some 20 MB


class Redactor:
    """Redacts secrets in the texts of logs; `close` ends its helpers."""

    def __init__(self) -> None:
        self._children: list[ChildProcess] = []
        self._free: SimpleQueue[ChildProcess] = SimpleQueue()
        self._threads: ThreadPoolExecutor | None = None  # one waits for each helper
        self._is_serial = (os.cpu_count() or 1) < 2
        self._is_closing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the helpers."""
        self._is_closing = True
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        for child in self._children:
            child.end()
        self._children.clear()
        self._free = SimpleQueue()
        self._is_closing = False

    def redact(self, lists: Iterable[list[Packed]]) -> None:
        """Redact lists of texts, in place."""
        lists = list(lists)
        texts = [text for each in lists for text in each]
        if self._is_serial or sum(map(len, texts)) < _PARALLEL_FROM:
            clean = redacted(texts)
        else:
            clean = self._redact_parallel(texts)
        done = iter(clean)
        for each in lists:
            both = zip(each, islice(done, len(each)), strict=True)
            each[:] = [text if found is None else pack(found) for text, found in both]

    def _redact_parallel(self, texts: Sequence[Packed]) -> list[str | None]:
        give_back()  # what reading freed: helpers take some as well
        try:
            threads = self._threads or self._start()
            parts = threads.map(self._ask, _split(texts))
            return [text for part in parts for text in part]
        except OSError as error:
            log.info("redacting alone: %s", error)
            self.close()
            self._is_serial = True
            return redacted(texts)

    def _start(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        from kbtui.child_process import ChildProcess, own_paths, own_program

        for _ in range(min(_MAX_HELPERS, os.cpu_count() or 1)):
            child = ChildProcess(own_program(__name__), {**os.environ, **own_paths()})
            self._children.append(child)
            self._free.put(child)
        self._threads = ThreadPoolExecutor(len(self._children))
        return self._threads

    def _ask(self, texts: Sequence[Packed]) -> list[str | None]:
        child = self._free.get()
        try:
            line = _line([unpack(each) for each in texts])
            answer = child.ask(line, None, lambda: self._is_closing)
        finally:
            self._free.put(child)
        found: list[str | None] = _value(answer)
        return found


def redacted(texts: Sequence[Packed]) -> list[str | None]:
    """Return the texts with their secrets redacted, None for one without any: most have none."""
    return [_redacted(unpack(text)) for text in texts]


def _redacted(text: str) -> str | None:
    clean = redact(text).text
    return None if clean == text else clean


def _split(texts: Sequence[Packed]) -> list[list[Packed]]:
    parts: list[list[Packed]] = [[]]
    size = 0
    for text in texts:
        if size >= _PART_SIZE:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += len(text)
    return parts


def _line(texts: Sequence[str | None]) -> bytes:
    return json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _value(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))


def _help() -> None:
    """Answer until nobody asks any more, at a lower priority than who does."""
    os.nice(5)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(_line(redacted(_value(line))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _help()
