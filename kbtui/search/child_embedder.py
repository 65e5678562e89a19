"""A model that can't be exported: sentence-transformers runs it, in a child process that stays.

One JSON object a line each way: ``{"texts": [...], "prompt": "query"}`` is answered with
``{"vectors": ...}``, base64 of little-endian float32, or ``{"error": ...}``. The child ends with
its standard input.
"""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from kbtui.errors import ModelError
from kbtui.search.child import command, environment
from kbtui.search.embedder import PreparedEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kbtui.search.embedder import ModelIdentity, Vectors

_BATCH = 16
_END_SECONDS = 2.0


class ChildEmbedder(PreparedEmbedder):
    """Embeds through the child; one that died is started again with the next call."""

    def __init__(self, model: ModelIdentity, folder: Path) -> None:
        """`folder` is the model itself, as it was found."""
        super().__init__(model)
        self._folder = folder
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, a few at a time, so that a query comes in between."""
        import numpy as np

        parts = [self._ask(texts[i : i + _BATCH], "document") for i in range(0, len(texts), _BATCH)]
        return np.concatenate(parts)

    def query(self, text: str) -> Vectors:
        """Embed one query as a flat vector."""
        vector: Vectors = self._ask([text], "query")[0]
        return vector

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._end()

    def _ask(self, texts: Sequence[str], prompt: str) -> Vectors:
        import numpy as np

        request = json.dumps({"texts": list(texts), "prompt": prompt})
        with self._lock:
            answer = self._exchange(request.encode())
        if "vectors" not in answer:
            raise ModelError(f"{self.name} failed: {answer.get('error', 'no answer')}")
        found = np.frombuffer(base64.b64decode(answer["vectors"]), dtype="<f4")
        return found.reshape(len(texts), self.dimension).astype(np.float32)

    def _exchange(self, request: bytes) -> dict[str, Any]:
        child = self._running()
        try:
            assert child.stdin is not None  # noqa: S101 — told to mypy
            assert child.stdout is not None  # noqa: S101
            child.stdin.write(request + b"\n")
            child.stdin.flush()
            answer = json.loads(child.stdout.readline())
        except (OSError, ValueError) as error:
            self._end()
            raise ModelError(f"The process that runs {self.name} ended.") from error
        return answer if isinstance(answer, dict) else {}

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self._end()
            self._child = subprocess.Popen(
                command(str(self._folder), "--serve"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                start_new_session=True,
            )
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # what was still to be written can't be any more
                    continue
        child.terminate()
        try:
            child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
