"""Prepare the multilingual model: from the arrays of its package to an ONNX graph.

The Universal Sentence Encoder of 16 languages (Yang et al., 2020, arXiv:1907.04307) comes as a
package of 32 MB, whose code is never imported: its weights (``.npz``) and its SentencePiece model
are read here, and become the files that `embedder.OnnxEmbedder` loads. That takes seconds and
no torch. It never cuts a text, so only passages are given to it.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kbtui.errors import ModelError
from kbtui.search.embedding.prepared import MULTILINGUAL_SHA256
from kbtui.settings import MULTILINGUAL_EMBEDDING_MODEL

WEIGHTS, PIECES = "weights.npz", "sp.model"
SHA256 = {
    WEIGHTS: MULTILINGUAL_SHA256,
    PIECES: "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
DIMENSION = 512
MAX_TOKENS = 8192  # more than any passage has
INPUTS = ("input_ids", "attention_mask")
_OPSET, _IR = 17, 9
_BLOCKS = 17  # of the table of embeddings: token n is row n // 17 of block n % 17
_WIDTH = 256  # of each branch
_BRANCHES = ((2, 0), (3, 1), (5, 2))  # tokens in a window, and how many of them precede
_FLOAT, _INT64 = 1, 7  # of onnx.TensorProto
_LENGTH_DELIMITED, _FIXED_32, _FIXED_64 = 2, 5, 1
_UNKNOWN, _START, _END = 0, 1, 2
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"


def read(folder: Path) -> dict[str, bytes]:
    """Read the model's files, each once, and check what was read.

    Raises:
        ModelError: a file is missing, cut, or another one.
    """
    found: dict[str, bytes] = {}
    for name, expected in SHA256.items():
        try:
            found[name] = (folder / name).read_bytes()
        except OSError as error:
            raise ModelError(
                f"{MULTILINGUAL_EMBEDDING_MODEL} can't be read: {error.strerror}."
            ) from error
        if hashlib.sha256(found[name]).hexdigest() != expected:
            raise ModelError(
                f"{name} of {MULTILINGUAL_EMBEDDING_MODEL} in {folder} is not the file that it"
                " was made with.",
                "Install the package that brings the model again.",
            )
    return found


def write_graph(weights: bytes, target: Path) -> None:
    """Write the encoder, from token ids to unit vectors, as one ONNX graph."""
    import onnx

    with np.load(io.BytesIO(weights), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    onnx.save(_Graph().model(arrays), str(target))


def write_tokenizer(pieces: bytes, target: Path) -> None:
    """Write the tokenizer: SentencePiece's unigram model, with its normalisation."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary, charsmap = _read_pieces(pieces)
    tokenizer = Tokenizer(models.Unigram(vocabulary, _UNKNOWN, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(charsmap),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", _START), ("</s>", _END)]
    )
    tokenizer.save(str(target))


def _read_pieces(data: bytes) -> tuple[list[tuple[str, float]], bytes]:
    """Return the pieces with their scores, and the compiled normalisation.

    This model has an early layout of SentencePiece's ``ModelProto``: the normalisation stands in
    its field 3.
    """
    vocabulary: list[tuple[str, float]] = []
    charsmap = b""
    for number, value in _fields(data):
        if number == 1:
            piece = dict(_fields(value))
            score = struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0
            vocabulary.append((piece[1].decode("utf-8"), score))
        elif number == 3:
            charsmap = dict(_fields(value)).get(2, b"")
    return vocabulary, charsmap


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a protocol buffer that have a length, by their numbers."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _LENGTH_DELIMITED:
            size, at = _varint(data, at)
        else:
            size = {_FIXED_32: 4, _FIXED_64: 8}.get(kind, 0)
        if size:
            yield key >> 3, data[at : at + size]
            at += size
        elif kind != _LENGTH_DELIMITED:
            _, at = _varint(data, at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # the last byte has no high bit
            return value, at
        shift += 7


@dataclass
class _Graph:
    """A graph in the making: operators and constants, each named by its number."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = attributes.pop("named", f"v{len(self.nodes)}")
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return str(name)

    def model(self, arrays: dict[str, Any]) -> Any:
        """Return the whole model."""
        from onnx import helper

        wide = self.constant(np.array([2]))
        mask = self.add("Unsqueeze", self.add("Cast", INPUTS[1], to=_FLOAT), wide)
        embedded = self._embed(arrays, wide)
        features = self._features(arrays, embedded, mask)
        self._sentence(arrays, features, mask)
        ids, marks = (
            helper.make_tensor_value_info(name, _INT64, ["batch", "sequence"]) for name in INPUTS
        )
        result = helper.make_tensor_value_info("embedding", _FLOAT, ["batch", DIMENSION])
        graph = helper.make_graph(self.nodes, "encoder", [ids, marks], [result], self.constants)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR
        )

    def _embed(self, arrays: dict[str, Any], wide: str) -> str:
        """Look tokens up in a table of bytes, with a scale and a lowest value for each block."""
        blocks = [arrays[f"q{n + 1}"] for n in range(_BLOCKS)]
        table = np.stack(blocks, axis=1).reshape(-1, DIMENSION)
        block = self.add("Mod", INPUTS[0], self.constant(np.int64(_BLOCKS)))
        scale, lowest = (
            self.add("Unsqueeze", self.add("Gather", self.constant(arrays[name]), block), wide)
            for name in ("scale", "lo")
        )
        rows = self.add("Gather", self.constant(table), INPUTS[0])
        return self.add("Add", self.add("Mul", self.add("Cast", rows, to=_FLOAT), scale), lowest)

    def _features(self, arrays: dict[str, Any], embedded: str, mask: str) -> str:
        """Return each token's embedding beside those of the windows around it."""
        joined = {
            name: np.concatenate([arrays[f"{name}{n}"] for n, _ in _BRANCHES], axis=-1)
            for name in ("proj", "proj_b", "ln_g", "ln_b")
        }
        projected = self._dense(embedded, joined["proj"], joined["proj_b"])
        projected = self._norm(projected, joined["ln_g"], joined["ln_b"], arrays["eps"])
        projected = self.add("Mul", projected, mask)
        length = self.add("Shape", INPUTS[0], start=1, end=2)
        parts = [embedded]
        for i, window in enumerate(_BRANCHES):
            start, end = _WIDTH * i, _WIDTH * (i + 1)
            edges = (self.constant(np.array([n])) for n in (start, end, 2))
            branch = self.add("Slice", projected, *edges)
            for layer in ("1", "2"):
                weights = (arrays[f"{kind}{layer}_{window[0]}"] for kind in ("w", "b"))
                branch = self.add("Add", self._window(branch, length, window, *weights), branch)
                if layer == "1":
                    branch = self.add("Mul", branch, mask)
            parts.append(branch)
        whole = self.add("Concat", *parts, axis=2)
        return self._norm(whole, arrays["ln_g"], arrays["ln_b"], arrays["eps"])

    def _window(
        self, values: str, length: str, window: tuple[int, int], weights: Any, bias: Any
    ) -> str:
        """Return a layer over each token's window; beyond the text there are zeros."""
        size, before = window
        padding = np.array([0, before, 0, 0, size - 1 - before, 0])
        padded = self.add("Pad", values, self.constant(padding))
        axis = self.constant(np.array([1]))
        moved = []
        for n in range(size):
            by = self.constant(np.array([n]))
            moved.append(self.add("Slice", padded, by, self.add("Add", length, by), axis))
        return self.add("Relu", self._dense(self.add("Concat", *moved, axis=2), weights, bias))

    def _sentence(self, arrays: dict[str, Any], features: str, mask: str) -> None:
        """Add up the tokens, and put the sum through the last layers."""
        tokens = self.constant(np.array([1]))
        total = self.add("ReduceSum", self.add("Mul", features, mask), tokens, keepdims=0)
        count = self.add("ReduceSum", mask, tokens, keepdims=0)
        projected = self.add(
            "Add",
            self._times(total, arrays["cnn_W"]),
            self.add("Mul", count, self.constant(arrays["cnn_b"])),
        )
        mean = self.add("Div", projected, self.add("Sqrt", count))
        first = self.add("Relu", self._times(mean, arrays["d0"]))
        both = self.add("Add", self._times(mean, arrays["p1"]), self._times(first, arrays["d1"]))
        second = self.add("Relu", both)
        third = self.add("Relu", self._times(second, arrays["d2"]))
        last = self.add("Add", self._times(second, arrays["p3"]), self._times(third, arrays["d3"]))
        self.add("LpNormalization", self.add("Tanh", last), axis=1, p=2, named="embedding")

    def _times(self, values: str, weights: Any) -> str:
        return self.add("MatMul", values, self.constant(weights))

    def _dense(self, values: str, weights: Any, bias: Any) -> str:
        return self.add("Add", self._times(values, weights), self.constant(bias))

    def _norm(self, values: str, scale: Any, shift: Any, epsilon: Any) -> str:
        constants = (self.constant(each) for each in (scale, shift))
        return self.add("LayerNormalization", values, *constants, axis=-1, epsilon=float(epsilon))
