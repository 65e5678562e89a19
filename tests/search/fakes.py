"""Fake embedding models: each word has a random direction, and synonyms share one."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

import numpy as np

from kbtui.errors import ModelUnreachableError
from kbtui.search.index import analyser
from kbtui.search.results import Preparation
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbtui.search.embedding.embedder import Vectors

SYNONYMS = {"car": "automobil", "holiday": "vacat", "physician": "doctor"}


class WordEmbedder:
    """Embeds a text as the sum of its words' directions."""

    name = "words"
    dimension = 64

    def __init__(self, *, identity: str = "words-1", is_local: bool = True) -> None:
        self.identity = identity
        self.is_local = is_local
        self.seen: list[str] = []
        self.asked: list[str] = []
        self.fail = False
        self.rougher: WordEmbedder | None = None

    def rough(self, _goes_on: Callable[[], bool]) -> WordEmbedder | None:
        return self.rougher

    def documents(self, texts: Sequence[str]) -> Vectors:
        if self.fail:
            raise ModelUnreachableError("The embedding model is away.")
        self.seen += texts
        return np.stack([self._embed(text) for text in texts])

    def query(self, text: str) -> Vectors:
        if self.fail:
            raise ModelUnreachableError("The embedding model is away.")
        self.asked.append(text)
        return self._embed(text)

    def close(self) -> None:
        pass

    def _embed(self, text: str) -> Vectors:
        vector = np.full(self.dimension, 1e-3, dtype=np.float32)
        for term in analyser.terms(text):
            seed = hashlib.sha256(SYNONYMS.get(term, term).encode()).digest()[:4]
            direction = np.random.default_rng(int.from_bytes(seed, "big")).normal(
                size=self.dimension
            )
            vector += (direction / np.linalg.norm(direction)).astype(np.float32)
        return vector / np.linalg.norm(vector)


class SlowEmbedder(WordEmbedder):
    """An embedder that waits for `let` to be released before each batch."""

    def __init__(self, *, identity: str = "words-1", rougher: bool = True) -> None:
        super().__init__(identity=identity)
        if rougher:
            self.rougher = WordEmbedder(identity=f"{identity}-rough")
        self.let = threading.Semaphore(0)

    def documents(self, texts: Sequence[str]) -> Vectors:
        self.let.acquire()
        return super().documents(texts)


class ReadyModel:
    """A model that loads at once, or when `gate` is set, for tests of the time before."""

    def __init__(
        self,
        embedder: WordEmbedder,
        gate: threading.Event | None = None,
        before: Sequence[WordEmbedder] = (),
    ) -> None:
        self.embedder = embedder
        self.gate = gate
        self.before = {each.identity: each for each in before}

    def preparation(self) -> Preparation:
        return Preparation("prepared" if self.gate is None or self.gate.is_set() else "waiting")

    def load(self, stop: threading.Event) -> WordEmbedder:
        if self.gate is not None:
            assert self.gate.wait(PATIENCE)
        return self.embedder

    def earlier(self, identity: str) -> WordEmbedder | None:
        return self.before.get(identity)
