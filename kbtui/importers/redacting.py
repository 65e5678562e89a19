"""Bulk redaction of secrets in messages, on several cores if there is much text."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from kbtui.redaction.redact import redact
from kbtui.text import Packed, pack, unpack

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

log = logging.getLogger(__name__)
_PARALLEL_FROM = 4_000_000  # characters: more of a core's time than starting a worker takes
_PART_SIZE = 50_000
_MAX_WORKERS = 2  # as fast as one process reads and writes; each takes some 40 MB


class Redactor:
    """Redacts secrets in the records of logs; `close` ends its worker processes."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._is_serial = (os.cpu_count() or 1) < 2

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def redact(self, logs: Iterable[Sequence[dict[str, Any]]]) -> None:
        """Redact the content of all messages, in place."""
        records = [each for lines in logs for each in lines if each.get("content")]
        texts = [each["content"] for each in records]
        if self._is_serial or sum(map(len, texts)) < _PARALLEL_FROM:
            clean = redacted(texts)
        else:
            clean = self._redact_parallel(texts)
        for record, text in zip(records, clean, strict=True):
            if text is not None:
                record["content"] = text

    def _redact_parallel(self, texts: Sequence[Packed]) -> list[Packed | None]:
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        if self._pool is None:
            workers = min(_MAX_WORKERS, os.cpu_count() or 1)
            context = get_context("spawn")
            self._pool = ProcessPoolExecutor(workers, context, _init_worker)
        try:
            parts = self._pool.map(redacted, _split(texts))
            return [text for part in parts for text in part]
        except (BrokenProcessPool, OSError) as error:
            log.info("redacting alone: %s", error)
            self.close()
            self._is_serial = True
            return redacted(texts)


def redacted(texts: Sequence[Packed]) -> list[Packed | None]:
    """Return the texts with their secrets redacted, None for one without any: most have none."""
    return [_redacted(unpack(text)) for text in texts]


def _redacted(text: str) -> Packed | None:
    clean = redact(text).text
    return None if clean == text else pack(clean)


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


def _init_worker() -> None:
    """Lower the priority of a worker process, and make it exit with its parent."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()


def _exit_with(sentinel: int) -> None:
    from multiprocessing import connection

    connection.wait([sentinel])
    os._exit(0)
