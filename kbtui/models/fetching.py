"""Chooses a model that fits this machine, and downloads it through Ollama."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from importlib import resources
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from kbtui.errors import ModelError, ModelUnreachableError
from kbtui.models.providers import host_of
from kbtui.text import json_object, shorten

GIGABYTE: Final = 1_000_000_000
_IDLE_SECONDS: Final = 600.0
"""Timeout between two lines: Ollama verifies the download, which takes minutes on a slow disk."""
_LONGEST_LINE: Final = 100_000


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that can be downloaded: its size, and the memory that a machine needs to run it."""

    name: str
    size_gb: float
    memory_gb: float


def offers() -> list[Offer]:
    """Return the recommended models, best first."""
    text = resources.files("kbtui.models").joinpath("local_models.toml").read_text("utf-8")
    return [Offer(**each) for each in tomllib.loads(text)["model"]]


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


def _steps(base: str, model: str, place: str) -> Iterator[dict[str, Any]]:
    """Yield Ollama's progress objects; an HTTP error is yielded as ``{"error": ...}``."""
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
