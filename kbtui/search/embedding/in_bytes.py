"""Have a transformer's ONNX graph multiply bytes instead of floats, in about half the time.

Weights have a scale for each output channel, and seven bits: sums of eight overflow on processors
without an instruction for them. Activations have one scale and offset for each multiplication,
measured on a few texts (`calibration_texts`) and fixed, so that a text's vector doesn't depend on
the others of its batch. A few channels are far larger than all others and would leave these a few
steps; they are scaled down, and their weights up (as SmoothQuant does, Xiao et al., 2023,
arXiv:2211.10438). Cosines with the vectors in floats are 0.997 on average.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kbtui.text import shorten

_FLOAT = 1  # of onnx.TensorProto
_LARGE = 2.0  # times the middle one of all channels' highest values
_STEPS = 255
_EPSILON = 1e-6
_PAGES = ("shipped/example/**/*.md", "cli/pages/*.md")
_MOST_TEXTS = 48
_WHY_WIDTH = 120
_LENGTH = 500  # characters, as of most passages

Feeds = dict[str, npt.NDArray[np.int64]]


def calibration_texts() -> list[str]:
    """Return pieces of the pages that come with kbtui."""
    package = Path(__file__).parents[2]
    files = (file for pattern in _PAGES for file in sorted(package.glob(pattern)))
    texts = (file.read_text("utf-8") for file in files)
    found = [text[at : at + _LENGTH] for text in texts for at in range(0, len(text), _LENGTH)]
    return found[:: max(1, len(found) // _MOST_TEXTS)]


class NotConvertedError(Exception):
    """A graph stays in floats; the message is why."""


def convert(graph: Path, transformer: Any, samples: Callable[[], Sequence[Feeds]]) -> None:
    """Convert an exported graph in place.

    Args:
        graph: The graph, from token ids to vectors.
        transformer: The first module of the model of sentence-transformers.
        samples: Returns inputs to measure activations with.

    Raises:
        NotConvertedError: it isn't a transformer that this suits, or the tools are missing.
    """
    with _without_warnings():
        try:
            from onnxruntime.quantization import QuantType, quantize_dynamic
            from onnxruntime.transformers.fusion_options import FusionOptions
            from onnxruntime.transformers.optimizer import optimize_model

            options = FusionOptions("bert")
            options.enable_skip_layer_norm = options.enable_bias_skip_layer_norm = False
            options.enable_gelu_approximation = True
            config = transformer.auto_model.config
            fused = optimize_model(
                str(graph),
                "bert",
                num_heads=config.num_attention_heads,
                hidden_size=config.hidden_size,
                opt_level=0,
                optimization_options=options,
            )
            inputs = _smooth(fused.model, samples())
            fused.save_model_to_file(str(graph))
            quantize_dynamic(
                graph,
                graph,
                per_channel=True,
                reduce_range=True,
                op_types_to_quantize=["MatMul", "Attention"],
                weight_type=QuantType.QInt8,
                extra_options={"DefaultTensorType": _FLOAT},
            )
            _fix_scales(graph, inputs)
        except Exception as error:  # it is tried on models, and with tools, that it wasn't made for
            why = shorten(str(error).strip() or type(error).__name__, _WHY_WIDTH)
            raise NotConvertedError(why) from error


@dataclass(frozen=True, slots=True)
class _Input:
    """The scale and the offset of the bytes that one multiplication reads."""

    scale: npt.NDArray[np.float32]
    offset: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, lowest: npt.NDArray[Any], highest: npt.NDArray[Any]) -> _Input:
        """Return the scale and the offset that bring all of a range into a byte."""
        low, high = float(lowest.min()), float(highest.max())
        scale = max((high - low) / _STEPS, _EPSILON)
        return cls(np.array(scale, np.float32), np.array(round(-low / scale), np.uint8))


def _smooth(model: Any, samples: Sequence[Feeds]) -> dict[str, _Input]:
    """Scale large channels down before they are multiplied; return each input by its name."""
    from onnx import helper, numpy_helper

    weights = {each.name: each for each in model.graph.initializer}
    readers: dict[str, list[Any]] = {}
    for node in model.graph.node:
        if node.op_type in {"MatMul", "Attention"} and node.input[1] in weights:
            readers.setdefault(node.input[0], []).append(node)
    found: dict[str, _Input] = {}
    for name, (lowest, highest) in _ranges(model, list(readers), samples).items():
        most = np.maximum(-lowest, highest)
        factors = np.maximum(1, most / max(_LARGE * float(np.median(most)), _EPSILON))
        factors = factors.astype(np.float32)
        smooth = f"{name}_smooth"
        found[smooth] = _Input.of(lowest / factors, highest / factors)
        factor = numpy_helper.from_array(1 / factors, f"{name}_factors")
        model.graph.initializer.append(factor)
        for node in readers[name]:
            weight = weights[node.input[1]]
            scaled = numpy_helper.to_array(weight) * factors[:, None]
            weight.CopyFrom(numpy_helper.from_array(scaled, weight.name))
            node.input[0] = smooth
        first = list(model.graph.node).index(readers[name][0])
        model.graph.node.insert(first, helper.make_node("Mul", [name, factor.name], [smooth]))
    return found


def _ranges(
    model: Any, names: list[str], samples: Sequence[Feeds]
) -> dict[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """Return the lowest and highest of the named values for the samples, by channel, and zero."""
    import onnx
    import onnxruntime
    from onnx import helper

    observed = onnx.ModelProto()
    observed.CopyFrom(model)
    observed.graph.output.extend(
        helper.make_tensor_value_info(name, _FLOAT, None) for name in names
    )
    session = onnxruntime.InferenceSession(
        observed.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found: dict[str, Any] = {}
    for feeds in samples:
        for name, values in zip(names, session.run(names, feeds), strict=True):
            rows = values.reshape(-1, values.shape[-1])
            low, high = found.get(name, (0.0, 0.0))
            found[name] = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
    return found


def _fix_scales(graph: Path, inputs: dict[str, _Input]) -> None:
    """Replace operators that measure an input at each run by ones that have its scale."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(graph)
    for node in model.graph.node:
        if node.op_type == "DynamicQuantizeLinear" and node.input[0] in inputs:
            name, (quantised, scale, offset) = node.input[0], node.output
            model.graph.initializer.extend(
                (
                    numpy_helper.from_array(inputs[name].scale, scale),
                    numpy_helper.from_array(inputs[name].offset, offset),
                )
            )
            node.CopyFrom(helper.make_node("QuantizeLinear", [name, scale, offset], [quantised]))
    _join_multiplications(model.graph)
    onnx.save(model, graph)


def _join_multiplications(graph: Any) -> None:
    """Join each multiplication of bytes with what brings its result back to floats, and the bias.

    ONNX Runtime joins them only where scales are measured at each run.
    """
    from onnx import helper

    makers = {output: node for node in graph.node for output in node.output}
    readers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    constants = {each.name: each for each in graph.initializer}
    dropped: set[str] = set()  # names of results
    for node in [node for node in graph.node if node.op_type == "MatMulInteger"]:
        values, weight, offset, weight_offset = node.input
        (cast,) = readers[node.output[0]]
        (scaled,) = readers[cast.output[0]]
        (scales,) = (name for name in scaled.input if name != cast.output[0])
        inputs = [values, weight, *makers[scales].input, offset, weight_offset]
        dropped |= {node.output[0], cast.output[0], scales}
        last = scaled
        following = readers[scaled.output[0]]
        if len(following) == 1 and following[0].op_type == "Add":
            bias = [name for name in following[0].input if name in constants]
            if bias and len(constants[bias[0]].dims) == 1:
                dropped.add(scaled.output[0])
                inputs, last = [*inputs, bias[0]], following[0]
        output = [last.output[0]]
        last.CopyFrom(
            helper.make_node("MatMulIntegerToFloat", inputs, output, domain="com.microsoft")
        )
    kept = [node for node in graph.node if not dropped.intersection(node.output)]
    del graph.node[:]
    graph.node.extend(kept)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence libraries that tell each step as a warning, in this process of its own."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
