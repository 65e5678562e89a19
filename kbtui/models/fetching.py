"""Which model fits this machine, and fetching it through Ollama."""

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
_SILENT_SECONDS: Final = 600.0
"""Seconds that Ollama may say nothing: it checks what came, which takes a slow disk minutes."""
_LONGEST_LINE: Final = 100_000


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that could be fetched: how large it is, and the memory of a machine that runs it."""

    name: str
    size_gb: float
    memory_gb: float


def offers() -> list[Offer]:
    """The models that are known to do, the best first."""
    text = resources.files("kbtui.models").joinpath("local_models.toml").read_text("utf-8")
    return [Offer(**each) for each in tomllib.loads(text)["model"]]


def offer_for(memory: int) -> Offer | None:
    """The best model for a machine with so many bytes of memory."""
    return next((each for each in offers() if each.memory_gb * GIGABYTE <= memory), None)


def memory_of_machine() -> int:
    """The machine's memory in bytes; 0 where it can't be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return 0


def pull(base: str, model: str, told: Callable[[str, int, int], None]) -> None:
    """Let an Ollama fetch a model; what was begun goes on where it was the next time.

    `told` is called with each step, and the bytes that came of it and belong to it, where known.

    Raises:
        ModelUnreachableError: Ollama doesn't answer, or stopped to.
        ModelError: It couldn't fetch it.
    """
    place = f"Ollama at {host_of(base)}"
    for step in _steps(base, model, place):
        if error := step.get("error"):
            raise ModelError(
                f"{place} couldn't fetch {model}: {shorten(str(error), 240)}",
                "Check the name at https://ollama.com/library, and the network and disk.",
            )
        told(str(step.get("status", "")), _count(step.get("completed")), _count(step.get("total")))
        if step.get("status") == "success":
            return
    raise ModelUnreachableError(
        f"{place} broke off while it fetched {model}.", "Do it again: it goes on where it was."
    )


def _steps(base: str, model: str, place: str) -> Iterator[dict[str, Any]]:
    """What Ollama says while it fetches, a JSON object a line; its refusal as one, too."""
    data = json.dumps({"model": model, "stream": True}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{base}/api/pull", data, headers)  # noqa: S310 - the user's own address
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_SILENT_SECONDS) as answer:
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
