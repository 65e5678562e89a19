"""The `Embedder` protocol, and its implementation by onnxruntime.

The only file that imports onnxruntime and tokenizers, and only when a model is loaded. torch is
needed only to prepare a model (`prepare_model`), in another process.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from kbtui.errors import ModelError, UnreadableError
from kbtui.text import shorten, storable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

IDENTITY_FILE = "model.json"
GRAPH_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
FORMAT = 1
PROBE = "The quick brown fox jumps over the lazy dog, twice."
_MIN_COSINE = 0.999
_ERROR_WIDTH = 200
# Padded tokens in one run: few enough that activations between layers stay in the CPU cache.
_BATCH_TOKENS = 128
# Markup that is many tokens and no meaning: where a link leads that has a text, a table's rules.
_MARKUP = re.compile(r"(?<=\w\]\()[^()\s]+(?=\))|^[ \t|:-]{6,}$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """The properties of a prepared model, stored beside it and checked when it is loaded.

    Attributes:
        cosine: The lowest of a few texts' vectors with those of the original model.
        former: The fingerprint of an earlier preparation of the same weights, whose vectors are
            near enough to go on with.
        in_floats: Why it multiplies floats, not bytes, in twice the time or more; else empty.
    """

    name: str
    fingerprint: str
    weights_sha256: str
    dimension: int
    max_tokens: int
    pooling: str
    inputs: tuple[str, ...]
    graph_bytes: int
    probe: tuple[float, ...]
    query_prompt: str = ""
    document_prompt: str = ""
    normalized: bool = True
    cosine: float = 1.0
    former: str = ""
    in_floats: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def has_graph(self) -> bool:
        """Whether the model could be exported; if not, sentence-transformers runs it."""
        return self.graph_bytes > 0

    def to_json(self) -> str:
        """Return the stored form of the identity."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def read(cls, folder: Path) -> ModelIdentity:
        """Read the identity of a prepared model.

        Raises:
            UnreadableError: it is missing, damaged, or of another format.
        """
        try:
            stored = json.loads((folder / IDENTITY_FILE).read_text("utf-8"))
            if stored.get("format") != FORMAT:
                raise UnreadableError(f"The model in {folder} was prepared by another version.")
            stored["inputs"] = tuple(stored["inputs"])
            stored["probe"] = tuple(stored["probe"])
            return cls(**stored)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise UnreadableError(f"The model in {folder} can't be read: {error}") from error


class Embedder(Protocol):
    """Turns texts into unit vectors of a fixed dimension.

    Attributes:
        identity: The key that its vectors are stored under; vectors of different ones don't mix.
        name: The model's display name.
        dimension: The number of components of a vector.
        is_local: Whether texts stay on this machine.
    """

    identity: str
    name: str
    dimension: int
    is_local: bool

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; shape (len(texts), dimension)."""

    def query(self, text: str) -> Vectors:
        """Embed one query; shape (dimension,)."""

    def close(self) -> None:
        """Release memory and processes."""


@runtime_checkable
class CanBeRough(Protocol):
    """An embedder that a much faster approximation can be made of."""

    def rough(self, goes_on: Callable[[], bool]) -> Embedder | None:
        """Return it, or None if there is none.

        It is built on the first call, which takes half a minute. Meanwhile `goes_on` is called
        again and again; it may wait, and returns False to stop.
        """


class PreparedEmbedder(ABC):
    """The base class of embedders whose model was prepared on this machine.

    It says once, for all of them, what of a text is read.
    """

    is_local = True

    def __init__(self, model: ModelIdentity) -> None:
        self.model = model
        self.identity = model.fingerprint  # of the weights and of how they were prepared
        self.former = model.former
        self.name = model.name
        self.dimension = model.dimension

    @property
    def remark(self) -> str:
        """What is to be known of how the model runs here, as a sentence; mostly empty."""
        return f"{self.name} multiplies floats: {why}." if (why := self.model.in_floats) else ""

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, without what of their markup has no meaning."""
        return self._embed_documents([storable(_MARKUP.sub("", text)) for text in texts])

    def query(self, text: str) -> Vectors:
        """Embed one query as a 1-D vector."""
        return self._embed_query(storable(text))

    @abstractmethod
    def _embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages that a tokenizer can read."""

    @abstractmethod
    def _embed_query(self, text: str) -> Vectors:
        """Embed a query that a tokenizer can read."""

    @abstractmethod
    def close(self) -> None:
        """Release memory and processes."""


class OnnxEmbedder(PreparedEmbedder):
    """A prepared sentence-transformers model, run on one thread.

    `documents` and `query` may run concurrently, so a query doesn't wait for the backlog.
    """

    def __init__(self, folder: Path, unproved: ModelIdentity | None = None) -> None:
        """Load the model; with `unproved`, one that is being prepared and has no probe yet.

        Raises:
            UnreadableError: the prepared files are damaged; prepare the model again.
        """
        super().__init__(unproved or ModelIdentity.read(folder))
        self._folder = folder
        self._tokenizer = _load_tokenizer(folder, self.model.max_tokens)
        self._session = _load_session(folder, self.model.graph_bytes)
        if unproved is None:
            self._check_probe()

    def _embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, batching texts of similar length to reduce padding."""
        import numpy as np

        encodings = self._tokenizer.encode_batch(
            [self.model.document_prompt + text for text in texts]
        )
        found = np.empty((len(texts), self.model.dimension), dtype=np.float32)
        for batch in _batches([len(encoding.ids) for encoding in encodings]):
            found[batch] = self._run([encodings[i].ids for i in batch])
        return found

    def _embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._run([self._tokenizer.encode(self.model.query_prompt + text).ids])[0]
        return vector

    def close(self) -> None:
        """Do nothing: memory is freed with the object."""

    def rough(self, goes_on: Callable[[], bool]) -> Embedder | None:
        """Load the rough model stored beside this one, or build it."""
        from kbtui.search.embedding import rough_embedder

        count = self._tokenizer.get_vocab_size()
        table = rough_embedder.read_table(self._folder, count)
        if table is None:
            names = [self._tokenizer.id_to_token(n) or "" for n in range(count)]
            table = rough_embedder.make_table(names, self._run_plain, goes_on)
            if table is not None:
                with suppress(OSError):
                    rough_embedder.write_table(self._folder, table)
        if table is None:
            return None
        identity = f"{self.identity}-{rough_embedder.FILE.removesuffix('.npy')}"
        return rough_embedder.RoughEmbedder(self.name, identity, table, self._plain_tokens)

    def _plain_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        cleaned = [storable(text) for text in texts]
        encodings = self._tokenizer.encode_batch(cleaned, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def _run_plain(self, lists: list[list[int]]) -> Vectors:
        """Embed lists of token ids, adding the model's special tokens around each."""
        (plain,), whole = self._plain_tokens(["a"]), self._tokenizer.encode("a").ids
        at = whole.index(plain[0])
        before, after = whole[:at], whole[at + len(plain) :]
        return self._run([[*before, *ids, *after] for ids in lists])

    def _run(self, lists: Sequence[Sequence[int]]) -> Vectors:
        import numpy as np

        width = max(map(len, lists))
        ids = np.zeros((len(lists), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(lists):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            (vectors,) = self._session.run(None, {name: feeds[name] for name in self.model.inputs})
        except Exception as error:  # onnxruntime's own exceptions share no public base
            raise ModelError(
                f"{self.name} failed: {shorten(str(error), _ERROR_WIDTH)}",
                "Search by words goes on; `kbtui doctor` checks the model.",
            ) from error
        return np.asarray(vectors, dtype=np.float32)

    def _check_probe(self) -> None:
        import numpy as np

        expected = np.asarray(self.model.probe, dtype=np.float32)
        if expected.shape != (self.model.dimension,):
            raise UnreadableError(f"The prepared model {self.name} has no usable probe.")
        try:
            found = self._run([self._tokenizer.encode(PROBE).ids])[0]
        except ModelError as error:
            raise UnreadableError(f"The prepared model can't be used. {error.message}") from error
        if found.shape != expected.shape or float(found @ expected) < _MIN_COSINE:
            raise UnreadableError(
                f"The prepared model {self.name} no longer gives its own answers."
            )


def _batches(lengths: list[int]) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    batches: list[list[int]] = []
    for i in order:
        # The order is ascending, so the new text is the longest of its batch.
        if not batches or (len(batches[-1]) + 1) * lengths[i] > _BATCH_TOKENS:
            batches.append([])
        batches[-1].append(i)
    return batches


def _load_tokenizer(folder: Path, max_tokens: int) -> Any:
    # Set before the import: the library's thread pool would use every core.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    except Exception as error:  # tokenizers raises bare Exception
        raise UnreadableError(f"The tokenizer in {folder} can't be read: {error}") from error
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return tokenizer


def _load_session(folder: Path, graph_bytes: int) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            f"onnxruntime can't be loaded: {error}", "Search by words goes on without it."
        ) from error
    graph = folder / GRAPH_FILE
    if not graph.is_file() or graph.stat().st_size != graph_bytes:
        raise UnreadableError(f"The model file {graph} is not the one that was prepared.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # shapes differ from run to run
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The graph was optimised when it was prepared.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no public base
        raise UnreadableError(f"The model file {graph} can't be loaded: {error}") from error
