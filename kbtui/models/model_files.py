"""Which files of a sentence-transformers model are needed, and which of them could run code.

Only safetensors weights and settings are: pickles run code when they are loaded, modules of a
model's own are code, and copies for other programs (ONNX, TensorFlow, OpenVINO) aren't used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from pathlib import PurePosixPath

_NEEDED = re.compile(
    r"[^/]+\.(safetensors|json|txt|model)|\d+_\w+/(config\.json|[^/]+\.safetensors)"
)
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
_OWN_MODULES = "sentence_transformers."
CONFIG = "config.json"
MODULES = "modules.json"


def is_needed(path: str) -> bool:
    """Return whether a file of a model, by its path in the model's folder, is to be fetched."""
    return _NEEDED.fullmatch(path) is not None


def why_unsafe(paths: Collection[str], read: Callable[[str], str | bytes]) -> str:
    """Return why a model isn't loaded, as the rest of a sentence; empty if nothing is wrong.

    Args:
        paths: The model's files, by their paths in its folder.
        read: Returns the content of one of them, a file of JSON.

    Raises:
        ValueError: such a file isn't JSON, or not of the expected shape.
    """
    try:
        modules = json.loads(read(MODULES)) if MODULES in paths else [{"type": _OWN_MODULES}]
        for module in modules:
            if not str(module["type"]).startswith(_OWN_MODULES):
                return f"brings code of its own ({module['type']})"
            if _is_pickled(paths, str(module.get("path", ""))):
                return "has weights that are pickled, which can run code when they are loaded"
        if CONFIG not in paths or not any(path.endswith(".safetensors") for path in paths):
            return "has no config.json with safetensors weights"
        needs_code = "auto_map" in json.loads(read(CONFIG))
    except (KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"not of the expected shape: {error!r}") from error
    return "needs code of its own (auto_map)" if needs_code else ""


def _is_pickled(paths: Collection[str], folder: str) -> bool:
    """Return whether a module's folder has weights only as pickles."""
    inside = PurePosixPath(folder)
    suffixes = {each.suffix for path in paths if (each := PurePosixPath(path)).parent == inside}
    return not suffixes.isdisjoint(_PICKLED) and ".safetensors" not in suffixes
