"""Chooses models that fit this machine, and downloads them.

Chat models come through Ollama (`pull`), models for search by meaning from sentence-transformers'
hub, by a child process (`fetch`). Neither begins without the person's yes, which callers ask for.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kbtui.child_process import ChildProcess, ClosedError, StuckError, own_paths, own_program
from kbtui.errors import ModelError, ModelUnreachableError, StorageError, UsageError
from kbtui.models.providers import host_of
from kbtui.settings import OFFLINE, Settings
from kbtui.text import json_object, shorten

GIGABYTE: Final = 1_000_000_000
_IDLE_SECONDS: Final = 600.0
"""Timeout between two lines: Ollama verifies the download, which takes minutes on a slow disk."""
_LONGEST_LINE: Final = 100_000
_HUB_SECONDS: Final = 120.0
"""Timeout between two messages of the child process, which checks the hash of large files."""
_OFFLINE_VARIABLES: Final = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_NO: Final = ("", "0", "false", "no", "off")
PREPARING_ROOM: Final = 3
"""Times the weights: a prepared graph is written twice, and some space must remain."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that can be downloaded: its size, and the memory that a machine needs to run it."""

    name: str
    size_gb: float
    memory_gb: float


@dataclass(frozen=True, slots=True)
class SearchOffer:
    """The model for search by meaning in many languages, with the hash of its weights."""

    name: str
    size_mb: int
    license: str
    languages: int
    sha256: str

    def describe(self) -> str:
        """Return what fetching it takes, in brackets behind its name."""
        return f"{self.name} ({self.size_mb} MB, {self.license} licence)"


def offers() -> list[Offer]:
    """Return the recommended chat models, best first."""
    return [Offer(**each) for each in _local_models()["model"]]


def search_offer() -> SearchOffer:
    """Return the recommended model for search by meaning in other languages than English."""
    return SearchOffer(**_local_models()["search"])


def _local_models() -> dict[str, Any]:
    from importlib import resources

    text = resources.files("kbtui.models").joinpath("local_models.toml").read_text("utf-8")
    return tomllib.loads(text)


def offer_for(memory: int) -> Offer | None:
    """Return the best model for a machine with `memory` bytes."""
    return next((each for each in offers() if each.memory_gb * GIGABYTE <= memory), None)


def memory_of_machine() -> int:
    """Return the machine's memory in bytes, or 0 if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return 0


def pull(base: str, model: str, progress: Callable[[str, int, int], None]) -> None:
    """Have Ollama download a model; an interrupted download resumes next time.

    `progress` is called with the status text of each step, and its completed and total bytes (0 if
    unknown).

    Raises:
        ModelUnreachableError: Ollama doesn't answer, or stopped answering.
        ModelError: The download failed.
    """
    place = f"Ollama at {host_of(base)}"
    for step in _steps(base, model, place):
        if error := step.get("error"):
            raise ModelError(
                f"{place} couldn't fetch {model}: {shorten(str(error), 240)}",
                "Check the name at https://ollama.com/library, and the network and disk.",
            )
        progress(
            str(step.get("status", "")), _count(step.get("completed")), _count(step.get("total"))
        )
        if step.get("status") == "success":
            return
    raise ModelUnreachableError(
        f"{place} broke off while it fetched {model}.", "Do it again: it goes on where it was."
    )


def hub_name(name: str) -> str:
    """Return a model's full name at the hub: without an owner it is sentence-transformers' own."""
    return name if "/" in name else f"sentence-transformers/{name}"


def hub_folder() -> Path:
    """Return the folder in which sentence-transformers' hub keeps what was fetched."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(os.path.expandvars(cache)).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = os.environ.get("HF_HOME") or Path(caches) / "huggingface"
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def why_offline(settings: Settings) -> str:
    """Return as a sentence why nothing may be fetched from the hub; empty if it may."""
    for name in _OFFLINE_VARIABLES:
        if os.environ.get(name, "").lower() not in _NO:
            return f"{name} is set, so that nothing is fetched."
    if settings.models.chat.model == OFFLINE:
        return f"models.chat.model is `{OFFLINE}`, so that nothing is fetched."
    return ""


def fetch(
    name: str,
    settings: Settings,
    progress: Callable[[str, int, int], None],
    is_stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Fetch a model for search by meaning; return whether it is there, False if it was stopped.

    What was interrupted goes on next time where it was. `progress` is called as by `pull`;
    `is_stopped` is polled.

    Raises:
        UsageError: This machine or its settings are offline.
        ModelUnreachableError: The hub doesn't answer, or stopped answering.
        ModelError: It has no such model, or none that is safe to load.
        StorageError: There is no room.
    """
    if why := why_offline(settings):
        raise UsageError(why, "Unset it to go on; `hf download` fetches a model by other means.")
    name = hub_name(name)
    command = own_program("kbtui.models.hub", name, str(hub_folder()))
    try:
        child = ChildProcess(command, _hub_environment(), _HUB_SECONDS)
    except OSError as error:
        raise ModelError(f"{name} can't be fetched: {error.strerror}.") from error
    try:
        while "ok" not in (step := _next_step(child, name, is_stopped)):
            progress(f"Fetching {name}", _count(step.get("done")), _count(step.get("total")))
    except ClosedError:
        return False
    finally:
        child.end()
    return True


def _next_step(child: ChildProcess, name: str, is_stopped: Callable[[], bool]) -> dict[str, Any]:
    """Ask the child for its next step, and raise the error it tells."""
    try:
        step = json_object(child.ask(b"", None, is_stopped)) or {}
    except StuckError as error:
        raise ModelUnreachableError(
            f"The hub stopped answering while {name} was fetched.",
            "Do it again: it goes on where it was.",
        ) from error
    except OSError as error:
        raise ModelError(
            f"The process that fetched {name} ended.", "Do it again: it goes on where it was."
        ) from error
    if "error" in step:
        kinds = {each.__name__: each for each in (ModelUnreachableError, StorageError)}
        raise kinds.get(str(step.get("kind")), ModelError)(step["error"], step.get("hint", ""))
    return step


def _hub_environment() -> dict[str, str]:
    """Return the child's environment: the hub's library tells nobody what it does, nor draws."""
    quiet = ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_XET")
    return {**os.environ, **own_paths(), **dict.fromkeys(quiet, "1")}


def _steps(base: str, model: str, place: str) -> Iterator[dict[str, Any]]:
    """Yield Ollama's progress objects; an HTTP error is yielded as ``{"error": ...}``."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, Request, build_opener

    data = json.dumps({"model": model, "stream": True}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{base}/api/pull", data, headers)  # noqa: S310 - the user's own address
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_IDLE_SECONDS) as answer:
            while line := answer.readline(_LONGEST_LINE):
                yield json_object(line) or {}
    except HTTPError as error:
        with error:
            yield {"error": error.reason, **(json_object(error.read(_LONGEST_LINE)) or {})}
    except (OSError, ValueError, HTTPException) as error:
        raise ModelUnreachableError(
            f"{place} doesn't answer: {error}.", "Start it with `ollama serve`, and do it again."
        ) from None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
