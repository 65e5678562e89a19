"""Secrets out of many messages at once, on several cores where there is much to look at."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from typing import Any, Self

from kbtui.redaction.redact import redact

log = logging.getLogger(__name__)
_WORTH_IT = 1_000_000  # characters: a second of one core, more than it takes to start another
_AT_ONCE = 50_000
_MOST_WORKERS = 4


class Redactor:
    """Takes secrets out of the lines of logs; `close` ends the processes that help."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._alone = (os.cpu_count() or 1) < 2  # of one core there is no more

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the helpers."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def redact(self, logs: Iterable[Sequence[dict[str, Any]]]) -> None:
        """Take the secrets out of the content of all messages, in place."""
        records = [each for lines in logs for each in lines if each.get("content")]
        texts = [each["content"] for each in records]
        if self._alone or sum(map(len, texts)) < _WORTH_IT:
            clean = redacted(texts)
        else:
            clean = self._together(texts)
        for record, text in zip(records, clean, strict=True):
            record["content"] = text

    def _together(self, texts: Sequence[str]) -> list[str]:
        if self._pool is None:
            workers = min(_MOST_WORKERS, os.cpu_count() or 1)
            context = get_context("spawn")
            self._pool = ProcessPoolExecutor(workers, context, _begin)
        try:
            parts = self._pool.map(redacted, _parts(texts))
            return [text for part in parts for text in part]
        except (BrokenProcessPool, OSError) as error:
            log.info("redacting alone: %s", error)
            self.close()
            self._alone = True
            return redacted(texts)


def redacted(texts: Sequence[str]) -> list[str]:
    """The texts without their secrets."""
    return [redact(text).text for text in texts]


def _parts(texts: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    size = 0
    for text in texts:
        if size >= _AT_ONCE:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += len(text)
    return parts


def _begin() -> None:
    """Step back behind what a person sees, and end with whoever has begun it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(0)
