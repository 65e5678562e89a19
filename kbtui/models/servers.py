"""Discovers usable models: servers that answer, and API keys in the environment.

Servers are queried concurrently by plain HTTP, with a timeout of a third of a second. Nothing else
is connected to, and each server is sent only the query, with the key that belongs to its address.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPException
from time import monotonic
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from kbtui.models.providers import OLLAMA, PROVIDERS, host_of, is_loopback, ollama_base, openai_base
from kbtui.text import counted

T = TypeVar("T")
log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 0.3
OLLAMA_CONTEXT_WINDOW = 16_384
"""Context window to request from Ollama, in tokens; its own default is a few thousand."""
_PLAIN_OLLAMA_WINDOW: Final = 4_096
_IN_TIME: Final = 0.9  # fraction of the timeout after which partial results are returned
_MAX_BYTES: Final = 4_000_000
_MAX_NUMBER: Final = 10**15
_GIGABYTE: Final = 1_000_000_000
_KINDS: Final = {"llamacpp": "llama.cpp", "vllm": "vLLM", "organization_owner": "LM Studio"}
_UNKNOWN_KIND: Final = "a server"
_WINDOW_FIELDS: Final = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
)
_NO_CHAT = re.compile(
    r"embed|bert\b|\bbge-|\be5-|\bgte-|rerank|whisper|\btts\b|dall-e|moderation", re.IGNORECASE
)
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Served:
    """A model in a server's list.

    `window` is its context window as loaded, in tokens, and `size` that of its file, in bytes; None
    if the server doesn't report them.
    """

    id: str
    window: int | None = None
    size: int | None = None
    chats: bool = True
    loaded: bool = False


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A server's report on a model: its window and tool support, each None if not reported."""

    window: int | None = None
    tools: bool | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers at `base`, and its models, loaded ones first."""

    kind: str
    base: str
    models: tuple[Served, ...]


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A discovered model.

    `source` says where it was found, e.g. ``OPENAI_API_KEY`` or ``Ollama``; it isn't `usable` if it
    can't chat. For a model on a server, `host` names the server, and `api_base` is its address
    unless the model's name implies it. `is_local` means on this machine.
    """

    name: str
    source: str
    usable: bool
    api_base: str | None = None
    host: str = ""
    is_local: bool = False
    window: int | None = None
    size: int | None = None

    def is_called(self, name: str) -> bool:
        """Return whether `name` means this model; provider and ``:latest`` may be omitted."""
        bare = self.name.split("/", 1)[-1]
        return name in (self.name, bare) or bare == f"{name}:latest"

    @property
    def about(self) -> str:
        """A description: where it runs, its size and its window, as far as known."""
        if not self.host:
            return f"through {self.source}"
        place = f"{self.source} on this machine" if self.is_local else self.source
        parts = [f"{place} ({self.host})"]
        if self.size:
            parts.append(f"{self.size / _GIGABYTE:.1f} GB")
        if self.window:
            parts.append(f"holds {counted(self.window, 'token')}")
        return ", ".join(parts)


def discover_models(environment: Mapping[str, str], addresses: Sequence[str]) -> list[FoundModel]:
    """Return all discovered models: those on servers, then those of providers with a key.

    The servers are Ollama, those at `addresses`, and the one in ``OPENAI_BASE_URL``, in this order.
    Takes `TIMEOUT_SECONDS` at most.
    """
    found = [each for server in find_servers(environment, addresses) for each in _models_of(server)]
    return found + models_of_environment(environment)


def models_of_environment(environment: Mapping[str, str]) -> list[FoundModel]:
    """Return the default models of the providers with a key in the environment."""
    found = []
    for provider in PROVIDERS:
        source = next(
            (name for name in provider.variables if environment.get(name, "").strip()), ""
        )
        if source:
            found.append(FoundModel(provider.model, source, usable=True))
    return found


def find_servers(environment: Mapping[str, str], addresses: Sequence[str]) -> list[Server]:
    """Return the servers that answer, without duplicates."""
    ollama = ollama_base(environment)
    key = environment.get("OPENAI_API_KEY", "").strip()
    named = openai_base(environment)
    keys = {**dict.fromkeys(addresses, ""), **({named: key} if named else {})}
    places: dict[str, Callable[[], Server | None]] = {
        host_of(ollama): partial(ollama_at, ollama),
    }
    for base, its_key in keys.items():
        places.setdefault(host_of(base), partial(server_at, base, its_key))
    return [server for server in run_concurrently(list(places.values()), TIMEOUT_SECONDS) if server]


def run_concurrently(works: Sequence[Callable[[], T]], seconds: float) -> list[T | None]:
    """Run callables concurrently; the result of one that takes too long is None."""
    done: list[T | None] = [None] * len(works)

    def do(number: int) -> None:
        done[number] = works[number]()

    deadline = monotonic() + seconds
    threads = [
        threading.Thread(target=do, args=(number,), name="kbtui-looking", daemon=True)
        for number in range(len(works))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - monotonic()))
    return list(done)


def server_at(base: str, key: str = "", seconds: float | None = None) -> Server | None:
    """List the models of an OpenAI-compatible server; None if none answers."""
    client = _Client(base, key, seconds)
    value = client.get(f"{base.rstrip('/')}/models")
    entries = _entries(value, "data")
    # An unrelated program on a common port may have a "models" list as well.
    if not entries or not (value.get("object") == "list" or any(map(_parse_window, entries))):
        return None
    kind = next((_KINDS[by] for each in entries if (by := _owner(each)) in _KINDS), _UNKNOWN_KIND)
    models = [_parse_model(entry) for entry in entries]
    if not any(model.window for model in models):
        models = list(_with_details(models, client))
    models.sort(key=lambda model: not model.loaded)
    return Server(kind, base, tuple(models))


def ollama_at(base: str, seconds: float | None = None) -> Server | None:
    """List an Ollama's models, most recently changed first; None if none answers."""
    value = _Client(base, "", seconds).get(f"{base}/api/tags")
    if "models" not in value:
        return None
    models = []
    for entry in _entries(value, "models", name="name"):
        details = entry.get("details")
        family = str(details.get("family", "")) if isinstance(details, dict) else ""
        chats = _is_chat_model(str(entry["name"])) and "bert" not in family
        models.append(Served(str(entry["name"]), None, _number(entry.get("size")), chats))
    return Server(OLLAMA, base, tuple(models))


def ollama_report(base: str, model: str, seconds: float) -> ModelReport:
    """Query Ollama for a model's tool support and the window to request.

    The window is the one set in the model file, or else our default, at most the model's maximum.
    """
    shown = _Client(base, "", seconds).get(f"{base}/api/show", {"model": model})
    known = _windows_of(shown)
    if known is None:
        return ModelReport()
    chosen, most = known
    asked = chosen or OLLAMA_CONTEXT_WINDOW
    window = min(asked, most or asked)
    able = shown.get("capabilities")
    return ModelReport(window, "tools" in able if isinstance(able, list) and able else None)


def window_at(base: str, names: Sequence[str], key: str, seconds: float) -> int | None:
    """Return the window of a model, by one of its `names`, on an OpenAI-compatible server."""
    deadline = monotonic() + seconds
    server = server_at(base, key, seconds)
    models = server.models if server else ()
    named = next((each for each in models if each.id in names or len(models) == 1), None)
    if named is not None and named.window:
        return named.window
    return _plain_ollama_window(_Client(base, key, deadline - monotonic()), names[0])


def _plain_ollama_window(client: _Client, model: str) -> int | None:
    """Return the window of a model that Ollama serves by OpenAI's protocol, which can't set it."""
    for entry in _entries(client.get(f"{client.root}/api/ps"), "models", name="name"):
        if entry["name"] == model and (window := _number(entry.get("context_length"))):
            return window
    known = _windows_of(client.get(f"{client.root}/api/show", {"model": model}))
    if known is None:
        return None
    return min(known[0] or _PLAIN_OLLAMA_WINDOW, known[1] or _PLAIN_OLLAMA_WINDOW)


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, since the key would be sent along to another address."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse the redirect."""


class _Client:
    """A client for one server, with one deadline for all its requests."""

    def __init__(self, base: str, key: str, seconds: float | None) -> None:
        self.root = re.sub(r"/v1/?$", "", base.rstrip("/"))
        self._key = key
        patience = TIMEOUT_SECONDS * _IN_TIME if seconds is None else seconds
        self._deadline = monotonic() + patience
        # Without proxies: the server is on this machine, or one that the user named.
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())

    def get(self, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Request a URL and return the JSON object of its response, or {} if there is none."""
        left = self._deadline - monotonic()
        if left <= 0 or urlsplit(url).scheme not in ("http", "https"):
            return {}
        headers = {"Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        try:
            request = Request(url, data, headers)  # noqa: S310 - nothing but HTTP gets here
            with self._opener.open(request, timeout=left) as answer:
                value = json.loads(answer.read(_MAX_BYTES))
        except (OSError, ValueError, HTTPException, RecursionError) as error:
            log.debug("%s doesn't tell: %s", host_of(url), type(error).__name__)
            return {}
        return value if isinstance(value, dict) else {}


def _entries(value: Mapping[str, Any], field: str, name: str = "id") -> list[dict[str, Any]]:
    listed = value.get(field)
    if not isinstance(listed, list):
        return []
    return [each for each in listed if isinstance(each, dict) and each.get(name)]


def _owner(entry: Mapping[str, Any]) -> str:
    return str(entry.get("owned_by", ""))


def _parse_model(entry: Mapping[str, Any]) -> Served:
    return Served(
        str(entry["id"]),
        _parse_window(entry),
        _number(_meta(entry).get("size")),
        _is_chat_model(str(entry["id"])) and entry.get("type") != "embeddings",
        entry.get("state") == "loaded",
    )


def _parse_window(entry: Mapping[str, Any]) -> int | None:
    told = (_meta(entry).get("n_ctx"), *(entry.get(name) for name in _WINDOW_FIELDS))
    return next((number for each in told if (number := _number(each))), None)


def _meta(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that llama.cpp adds to a model."""
    meta = entry.get("meta")
    return meta if isinstance(meta, dict) else {}


def _with_details(models: Sequence[Served], client: _Client) -> Iterator[Served]:
    """Yield the models with details from llama.cpp's or LM Studio's own API."""
    settings = client.get(f"{client.root}/props").get("default_generation_settings")
    holds = _number(settings.get("n_ctx")) if isinstance(settings, dict) else None
    if holds:
        yield from (replace(model, window=holds) for model in models)
        return
    listed = _entries(client.get(f"{client.root}/api/v0/models"), "data")
    by_id = {each.id: each for each in map(_parse_model, listed)}
    yield from (by_id.get(model.id, model) for model in models)


def _windows_of(shown: Mapping[str, Any]) -> tuple[int | None, int | None] | None:
    """Return the window set in the model file and the model's maximum; None if not from Ollama."""
    info = shown.get("model_info")
    if not isinstance(info, dict):
        return None
    chosen = _NUM_CTX.search(str(shown.get("parameters") or ""))
    longest = next((value for name, value in info.items() if name.endswith(".context_length")), 0)
    return (_number(int(chosen[1])) if chosen else None), _number(longest)


def _is_chat_model(name: str) -> bool:
    """Return whether a model's name suggests that it is for chat, not for embeddings or audio."""
    return _NO_CHAT.search(name) is None


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < _MAX_NUMBER else None


def _models_of(server: Server) -> Iterator[FoundModel]:
    local = is_loopback(server.base)
    is_ollama = server.kind == OLLAMA
    for model in server.models:
        yield FoundModel(
            f"ollama_chat/{model.id}" if is_ollama else f"openai/{model.id}",
            server.kind,
            model.chats,
            None if is_ollama else server.base,
            host_of(server.base),
            local,
            model.window,
            model.size,
        )
