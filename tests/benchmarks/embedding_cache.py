"""The embedding model with a memory: a text that was embedded in an earlier run costs nothing.

Kept in one file for each model under `KBTUI_BENCH_CACHE` (default: a folder of the system's
temporary folder), so that ranking can be tuned without embedding each set again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.embedding.prepared import ConfiguredModel
from kbtui.settings import RoleSettings

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from kbtui.search.embedding.embedder import Embedder, Vectors
    from kbtui.search.results import Preparation

_KEY_BYTES = 16


def cache_folder() -> Path:
    """Where vectors are kept between runs."""
    named = os.environ.get("KBTUI_BENCH_CACHE")
    return Path(named) if named else Path(tempfile.gettempdir()) / "kbtui-bench-vectors"


class RememberingModel:
    """A model, the bundled one if none is named, loaded once for all sets."""

    def __init__(self, name: str | None = None) -> None:
        self._model = ConfiguredModel(RoleSettings(model=name))
        self._embedder: RememberingEmbedder | None = None

    def preparation(self) -> Preparation:
        return self._model.preparation()

    def load(self, stop: threading.Event) -> RememberingEmbedder:
        if self._embedder is None:
            self._embedder = RememberingEmbedder(self._model.load(stop))
        return self._embedder

    def earlier(self, _identity: str) -> None:
        """There is none."""


class RememberingEmbedder:
    """Embeds what isn't remembered, and remembers it on disk at once."""

    is_local = True

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.identity, self.name = embedder.identity, embedder.name
        self.dimension = embedder.dimension
        self._file = cache_folder() / f"{embedder.identity}.vectors"
        self._known = self._read()

    def documents(self, texts: Sequence[str]) -> Vectors:
        keys = [_key("d", text) for text in texts]
        missing = [i for i, key in enumerate(keys) if key not in self._known]
        if missing:
            made = self._embedder.documents([texts[i] for i in missing])
            self._remember([keys[i] for i in missing], made)
        return np.stack([self._known[key] for key in keys])

    def query(self, text: str) -> Vectors:
        key = _key("q", text)
        if key not in self._known:
            self._remember([key], self._embedder.query(text)[None, :])
        return self._known[key]

    def rough(self, stop: threading.Event) -> Embedder | None:
        return self._embedder.rough(stop)

    def close(self) -> None:
        """The model stays for the next set."""

    def _remember(self, keys: list[bytes], vectors: Vectors) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as stream:
            for key, vector in zip(keys, vectors, strict=True):
                self._known[key] = vector
                stream.write(key + vector.astype("<f4").tobytes())

    def _read(self) -> dict[bytes, Vectors]:
        if not self._file.exists():
            return {}
        record = np.dtype([("key", f"V{_KEY_BYTES}"), ("vector", "<f4", self.dimension)])
        whole = self._file.stat().st_size // record.itemsize
        stored = np.fromfile(self._file, dtype=record, count=whole)
        with self._file.open("r+b") as stream:
            stream.truncate(whole * record.itemsize)  # a torn last record
        return {
            key.tobytes(): vector
            for key, vector in zip(stored["key"], stored["vector"], strict=True)
        }


def _key(kind: str, text: str) -> bytes:
    return hashlib.blake2b(
        f"{kind} {text}".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()
