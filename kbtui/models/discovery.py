"""Looks for a model that could be used as it is: keys in the environment, and Ollama."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, build_opener

from kbtui.models.providers import PROVIDERS, ollama_base

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)
OLLAMA = "Ollama"
PATIENCE_SECONDS = 0.3
_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """A model that was found.

    `source` says where, e.g. ``OPENAI_API_KEY`` or ``Ollama``; not `usable`: it can't chat.
    """

    name: str
    source: str
    usable: bool


async def discover(environment: Mapping[str, str]) -> list[Found]:
    """Look around, for a third of a second at most."""
    found = in_environment(environment)
    asking = asyncio.to_thread(ollama_models, environment)
    try:
        return found + await asyncio.wait_for(asking, PATIENCE_SECONDS)
    except TimeoutError:
        return found


def discover_now(environment: Mapping[str, str]) -> list[Found]:
    """Look around in the calling thread."""
    return in_environment(environment) + ollama_models(environment)


def in_environment(environment: Mapping[str, str]) -> list[Found]:
    """The providers that the environment has a key for."""
    found = []
    for provider in PROVIDERS:
        source = next(
            (name for name in provider.variables if environment.get(name, "").strip()), ""
        )
        if source:
            found.append(Found(provider.model, source, usable=True))
    return found


def ollama_models(environment: Mapping[str, str]) -> list[Found]:
    """The models of a running Ollama, the one last changed first; none if none is running."""
    # Without proxies: this machine is asked, or one that the user named.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(
            f"{ollama_base(environment)}/api/tags", timeout=PATIENCE_SECONDS
        ) as answer:
            value = json.loads(answer.read(_MOST_BYTES))
    except (OSError, ValueError, HTTPException) as error:
        log.debug("no Ollama: %s", type(error).__name__)
        return []
    models = value.get("models") if isinstance(value, dict) else None
    named = [model for model in models or () if isinstance(model, dict) and model.get("name")]
    return [Found(f"ollama_chat/{model['name']}", OLLAMA, usable=_chats(model)) for model in named]


def _chats(model: Mapping[str, Any]) -> bool:
    """True if a model is for conversation; embedding models are not."""
    details = model.get("details")
    family = str(details.get("family", "")) if isinstance(details, dict) else ""
    return "bert" not in family and "embed" not in str(model["name"])
