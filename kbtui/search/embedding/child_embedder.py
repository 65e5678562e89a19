"""An embedder that runs sentence-transformers in a child process, for models ONNX can't express.

The protocol is JSON lines: ``{"texts": [...], "prompt": "query"}`` is answered with
``{"vectors": ...}``, base64 of little-endian float32, or ``{"error": ...}``. The child exits when
its stdin is closed.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbtui.child_process import (
    BusyError,
    ChildProcess,
    ClosedError,
    StuckError,
    own_paths,
    own_program,
)
from kbtui.errors import ModelError
from kbtui.search.embedding.embedder import PreparedEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.search.embedding.embedder import ModelIdentity, Vectors


_NICENESS = 10


def command(*arguments: str) -> list[str]:
    """Return the command line of ``prepare_model``, at a low priority."""
    nice = ("--nice", str(_NICENESS))
    return own_program("kbtui.search.embedding.prepare_model", *arguments, *nice)


def environment() -> dict[str, str]:
    """Return the child's environment, which leaves one core to the UI."""
    threads = str(max(1, (os.cpu_count() or 2) - 1))
    return {**os.environ, **own_paths(), "OMP_NUM_THREADS": threads}


class UnfitError(ModelError):
    """The child died of an illegal instruction: this processor can't run torch."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name or 'The embedding model'} can't run on this processor, which lacks"
            " instructions that torch uses (such as AVX).",
            "models.embed.model may name one behind an API, as litellm:NAME.",
        )


def is_unfit(status: int | None) -> bool:
    """Return whether an exit status means an illegal instruction."""
    return status == -signal.SIGILL


_BATCH = 16
# Includes importing torch and reading a large model from a slow disk.
_PATIENCE_SECONDS = 180.0
_QUERY_SECONDS = 10.0


class ChildEmbedder(PreparedEmbedder):
    """Embeds through a child process, restarted on the next call if it died or got stuck.

    It is not restarted if this processor can't run it.
    """

    def __init__(
        self,
        model: ModelIdentity,
        folder: Path,
        stop: threading.Event | None = None,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        """Create the embedder; the child starts with the first call.

        Args:
            model: The model's identity.
            folder: The folder of the original model.
            stop: Set when the program is closing; ends all waiting.
            patience: Seconds without an answer after which the child counts as stuck.
        """
        super().__init__(model)
        self._folder = folder
        self._stop = stop or threading.Event()
        self._closed = threading.Event()
        self._patience = patience
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._is_unfit = False

    def _embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, in small batches so that a query can be answered in between."""
        import numpy as np

        parts = [
            self._embed(texts[i : i + _BATCH], "document") for i in range(0, len(texts), _BATCH)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    def _embed_query(self, text: str) -> Vectors:
        """Embed one query as a 1-D vector; raises `ModelError` rather than wait for a backlog."""
        vector: Vectors = self._embed([text], "query", _QUERY_SECONDS)[0]
        return vector

    def close(self) -> None:
        """End the child; pending calls raise `ModelError`."""
        self._closed.set()
        with self._lock:
            self._end()

    def _embed(self, texts: Sequence[str], prompt: str, seconds: float | None = None) -> Vectors:
        """Request the embeddings of texts, waiting at most `seconds`, or without limit if None.

        Raises:
            ModelError: the child can't be started, died, got stuck, failed, or is busy.
        """
        request = json.dumps({"texts": list(texts), "prompt": prompt}).encode()
        if not self._lock.acquire(timeout=-1 if seconds is None else seconds):
            raise self._busy_error()
        try:
            answer = self._exchange(request, seconds)
        finally:
            self._lock.release()
        if "vectors" not in answer:
            raise ModelError(f"{self.name} failed: {answer.get('error', 'no answer')}")
        return self._decode(answer["vectors"], len(texts))

    def _decode(self, packed: Any, count: int) -> Vectors:
        import numpy as np

        try:
            values = np.frombuffer(base64.b64decode(packed), dtype="<f4")
            return values.reshape(count, self.dimension).astype(np.float32)
        except (binascii.Error, ValueError, TypeError) as error:
            raise ModelError(
                f"{self.name} failed: its vectors can't be read.",
                "Its files may have changed; `kbtui doctor` checks the model.",
            ) from error

    def _exchange(self, request: bytes, seconds: float | None) -> dict[str, Any]:
        child = self._running()
        try:
            answer = json.loads(child.ask(request, seconds, self._is_closing))
        except BusyError as error:
            raise self._busy_error() from error
        except StuckError as error:
            self._end()
            raise ModelError(f"The process that runs {self.name} got stuck.") from error
        except (ClosedError, OSError, ValueError) as error:
            self._end()
            if self._is_unfit:
                raise UnfitError(self.name) from error
            raise ModelError(f"The process that runs {self.name} ended.") from error
        return answer if isinstance(answer, dict) else {}

    def _running(self) -> ChildProcess:
        if self._is_closing():
            raise ModelError(f"{self.name} was closed.")
        if self._child is None or not self._child.is_alive:
            self._end()
            if self._is_unfit:
                raise UnfitError(self.name)
            try:
                self._child = ChildProcess(
                    command(str(self._folder), "--serve"), environment(), self._patience
                )
            except OSError as error:
                raise ModelError(
                    f"The process that runs {self.name} can't be started: {error.strerror}.",
                    "Close other programs if the machine is out of memory.",
                ) from error
        return self._child

    def _busy_error(self) -> ModelError:
        return ModelError(f"{self.name} is busy or still being loaded.")

    def _is_closing(self) -> bool:
        return self._stop.is_set() or self._closed.is_set()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            self._is_unfit = is_unfit(child.end())
