"""Texts to vectors: the protocol, and the prepared model run by onnxruntime.

The only file that imports onnxruntime and tokenizers, and only when a model is loaded. Preparing a
model (`prepare_model`) is what needs torch, and happens in another process.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kbtui.errors import ModelError, UnreadableError
from kbtui.text import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from threading import Event

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

IDENTITY_FILE = "model.json"
GRAPH_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
FORMAT = 1
PROBE = "The quick brown fox jumps over the lazy dog, twice."
_LEAST_COSINE = 0.999
_ERROR_WIDTH = 200
# Padded tokens in one run: few enough that what lies between two layers stays in the processor's
# cache. Passages of 97 tokens take 28 ms each, and 55 in runs of 2048 tokens.
_BATCH_TOKENS = 128


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """A prepared model's properties; stored beside it, and compared before it is used."""

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
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def has_graph(self) -> bool:
        """True if the model could be exported; if not, sentence-transformers itself runs it."""
        return self.graph_bytes > 0

    def to_json(self) -> str:
        """The identity as it is stored."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def read(cls, folder: Path) -> ModelIdentity:
        """Read the identity of a prepared model.

        Raises:
            UnreadableError: there is none, or it is of another format.
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
    """Turns texts into unit vectors of one length.

    Attributes:
        identity: The name that its vectors are stored under; another identity, other vectors.
        name: The model's name, for people.
        dimension: How long a vector is.
        is_local: Texts stay on this machine.
    """

    identity: str
    name: str
    dimension: int
    is_local: bool

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, one row each."""

    def query(self, text: str) -> Vectors:
        """Embed one query."""

    def rough(self, stop: Event) -> Embedder | None:
        """A far quicker embedder that comes near to this one; None if there can be none.

        It is made the first time, which takes half a minute, unless `stop` is set meanwhile.
        """

    def close(self) -> None:
        """Let go of memory and processes."""


class PreparedEmbedder:
    """The common part of embedders of a model that was prepared on this machine."""

    is_local = True

    def __init__(self, model: ModelIdentity) -> None:
        self.model = model
        self.identity = model.fingerprint  # of the weights and of how they were prepared
        self.name = model.name
        self.dimension = model.dimension

    def rough(self, _stop: Event) -> Embedder | None:
        """None, unless it can be made."""
        return None


class OnnxEmbedder(PreparedEmbedder):
    """A prepared sentence-transformers model, on one thread.

    `documents` and `query` may be called from different threads at once: a query does not wait for
    the backlog.
    """

    def __init__(self, folder: Path) -> None:
        """Load the model.

        Raises:
            UnreadableError: the prepared files are damaged; prepare the model again.
        """
        super().__init__(ModelIdentity.read(folder))
        self._folder = folder
        self._tokenizer = _load_tokenizer(folder, self.model.max_tokens)
        self._session = _load_session(folder, self.model.graph_bytes)
        self._check()

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; texts of like length share a run, so that little is padding."""
        import numpy as np

        encodings = self._tokenizer.encode_batch(
            [_sound(self.model.document_prompt + t) for t in texts]
        )
        found = np.empty((len(texts), self.model.dimension), dtype=np.float32)
        for batch in _batches([len(encoding.ids) for encoding in encodings]):
            found[batch] = self._run([encodings[i].ids for i in batch])
        return found

    def query(self, text: str) -> Vectors:
        """Embed one query as a flat vector."""
        text = _sound(self.model.query_prompt + text)
        vector: Vectors = self._run([self._tokenizer.encode(text).ids])[0]
        return vector

    def close(self) -> None:
        """Nothing to do: memory goes with the object."""

    def rough(self, stop: Event) -> Embedder | None:
        """Open the rough model that is kept beside this one, or make it."""
        from kbtui.search.embedding import rough_embedder

        count = self._tokenizer.get_vocab_size()
        table = rough_embedder.read_table(self._folder, count)
        if table is None:
            names = [self._tokenizer.id_to_token(n) or "" for n in range(count)]
            table = rough_embedder.make_table(names, self._run_bare, stop)
            if table is not None:
                with suppress(OSError):
                    rough_embedder.write_table(self._folder, table)
        if table is None:
            return None
        identity = f"{self.identity}-{rough_embedder.FILE.removesuffix('.npy')}"
        return rough_embedder.RoughEmbedder(self.name, identity, table, self._bare_tokens)

    def _bare_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        sound = [_sound(text) for text in texts]
        encodings = self._tokenizer.encode_batch(sound, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def _run_bare(self, lists: list[list[int]]) -> Vectors:
        """Embed bare tokens, each list between the marks that the model knows a text by."""
        (bare,), whole = self._bare_tokens(["a"]), self._tokenizer.encode("a").ids
        at = whole.index(bare[0])
        before, after = whole[:at], whole[at + len(bare) :]
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

    def _check(self) -> None:
        import numpy as np

        expected = np.asarray(self.model.probe, dtype=np.float32)
        if expected.shape != (self.model.dimension,):
            raise UnreadableError(f"The prepared model {self.name} has no usable probe.")
        try:
            found = self._run([self._tokenizer.encode(PROBE).ids])[0]
        except ModelError as error:
            raise UnreadableError(f"The prepared model can't be used. {error.message}") from error
        if found.shape != expected.shape or float(found @ expected) < _LEAST_COSINE:
            raise UnreadableError(
                f"The prepared model {self.name} no longer gives its own answers."
            )


def _sound(text: str) -> str:
    """A text without the halves of characters that no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _batches(lengths: list[int]) -> list[list[int]]:
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    batches: list[list[int]] = []
    for i in order:
        # The order is ascending, so the newcomer is the widest of its batch.
        if not batches or (len(batches[-1]) + 1) * lengths[i] > _BATCH_TOKENS:
            batches.append([])
        batches[-1].append(i)
    return batches


def _load_tokenizer(folder: Path, max_tokens: int) -> Any:
    # Set before the import: the library's own pool would take every core.
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
