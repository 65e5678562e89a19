"""Which models can be used here as things are: servers that answer, and keys in the environment.

Servers are asked by plain HTTP, all at once, and within a third of a second; who is slower is as
good as none. Nothing else is connected to, and nothing is sent but the questions, with the key
that belongs to the address.
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

PATIENCE_SECONDS = 0.3
OLLAMA_CONTEXT_WINDOW = 16_384
"""Tokens that Ollama is asked to hold: its own default is a few thousand."""
_PLAIN_OLLAMA_WINDOW: Final = 4_096
_IN_TIME: Final = 0.9  # of the patience, so that half an answer is still handed over
_MOST_BYTES: Final = 4_000_000
_MOST: Final = 10**15
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
    """A model as its server lists it.

    `window` is what it holds as it is loaded, in tokens, and `size` that of its file in bytes;
    None where the server doesn't tell.
    """

    id: str
    window: int | None = None
    size: int | None = None
    chats: bool = True
    loaded: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What a server tells of a model: its window, and whether it takes tools; None: nothing."""

    window: int | None = None
    tools: bool | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers at `base`, and what it has; the loaded models first."""

    kind: str
    base: str
    models: tuple[Served, ...]


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that was found.

    `source` says where, e.g. ``OPENAI_API_KEY`` or ``Ollama``; not `usable`: it can't chat. Where
    a server runs it, `host` names that, and `api_base` is the address that it has to be asked at
    if its name alone doesn't say so. It `is_local` on this very machine.
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
        """True if a person means this one: by its whole name, or without provider or usual tag."""
        bare = self.name.split("/", 1)[-1]
        return name in (self.name, bare) or bare == f"{name}:latest"

    @property
    def about(self) -> str:
        """Where it runs, how large it is and what it holds, as far as that is known."""
        if not self.host:
            return f"through {self.source}"
        place = f"{self.source} on this machine" if self.is_local else self.source
        parts = [f"{place} ({self.host})"]
        if self.size:
            parts.append(f"{self.size / _GIGABYTE:.1f} GB")
        if self.window:
            parts.append(f"holds {counted(self.window, 'token')}")
        return ", ".join(parts)


def look_around(environment: Mapping[str, str], addresses: Sequence[str]) -> list[FoundModel]:
    """All models that were found: those of servers first, then the providers there is a key for.

    Servers are Ollama, those at `addresses`, and the one that ``OPENAI_BASE_URL`` names, in this
    order. Takes `PATIENCE_SECONDS` at most.
    """
    found = [each for server in answering(environment, addresses) for each in _found_at(server)]
    return found + in_environment(environment)


def in_environment(environment: Mapping[str, str]) -> list[FoundModel]:
    """The providers that the environment has a key for."""
    found = []
    for provider in PROVIDERS:
        source = next(
            (name for name in provider.variables if environment.get(name, "").strip()), ""
        )
        if source:
            found.append(FoundModel(provider.model, source, usable=True))
    return found


def answering(environment: Mapping[str, str], addresses: Sequence[str]) -> list[Server]:
    """The servers that answer, each once."""
    ollama = ollama_base(environment)
    key = environment.get("OPENAI_API_KEY", "").strip()
    named = openai_base(environment)
    keys = {**dict.fromkeys(addresses, ""), **({named: key} if named else {})}
    places: dict[str, Callable[[], Server | None]] = {
        host_of(ollama): partial(ollama_at, ollama),
    }
    for base, its_key in keys.items():
        places.setdefault(host_of(base), partial(server_at, base, its_key))
    return [server for server in together(list(places.values()), PATIENCE_SECONDS) if server]


def together(works: Sequence[Callable[[], T]], seconds: float) -> list[T | None]:
    """Do several things at once; None for what isn't done in time."""
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
    """Ask a server that speaks OpenAI's protocol what it has; None where none answers."""
    asking = _Asking(base, key, seconds)
    value = asking.get(f"{base.rstrip('/')}/models")
    entries = _entries(value, "data")
    # Somebody's own program at a usual port may list models of anything.
    if not entries or not (value.get("object") == "list" or any(map(_served_window, entries))):
        return None
    kind = next((_KINDS[by] for each in entries if (by := _owner(each)) in _KINDS), _UNKNOWN_KIND)
    models = [_served(entry) for entry in entries]
    if not any(model.window for model in models):
        models = list(_more_told(models, asking))
    models.sort(key=lambda model: not model.loaded)
    return Server(kind, base, tuple(models))


def ollama_at(base: str, seconds: float | None = None) -> Server | None:
    """Ask an Ollama what it has, the one last changed first; None where none answers."""
    value = _Asking(base, "", seconds).get(f"{base}/api/tags")
    if "models" not in value:
        return None
    models = []
    for entry in _entries(value, "models", name="name"):
        details = entry.get("details")
        family = str(details.get("family", "")) if isinstance(details, dict) else ""
        chats = _chats(str(entry["name"])) and "bert" not in family
        models.append(Served(str(entry["name"]), None, _number(entry.get("size")), chats))
    return Server(OLLAMA, base, tuple(models))


def ollama_tells(base: str, model: str, seconds: float) -> Told:
    """What Ollama tells of a model: the window to ask it for, and whether it takes tools.

    The window is what the model's file says, or as much as it can hold.
    """
    shown = _Asking(base, "", seconds).get(f"{base}/api/show", {"model": model})
    known = _as_shown(shown)
    if known is None:
        return Told()
    chosen, most = known
    asked = chosen or OLLAMA_CONTEXT_WINDOW
    window = min(asked, most or asked)
    able = shown.get("capabilities")
    return Told(window, "tools" in able if isinstance(able, list) and able else None)


def window_at(base: str, names: Sequence[str], key: str, seconds: float) -> int | None:
    """The window of a model by one of its `names` at a server that speaks OpenAI's protocol."""
    deadline = monotonic() + seconds
    server = server_at(base, key, seconds)
    models = server.models if server else ()
    named = next((each for each in models if each.id in names or len(models) == 1), None)
    if named is not None and named.window:
        return named.window
    return _plain_ollama_window(_Asking(base, key, deadline - monotonic()), names[0])


def _plain_ollama_window(asking: _Asking, model: str) -> int | None:
    """The window of an Ollama that is asked in OpenAI's protocol, where none can be asked for."""
    for entry in _entries(asking.get(f"{asking.root}/api/ps"), "models", name="name"):
        if entry["name"] == model and (window := _number(entry.get("context_length"))):
            return window
    known = _as_shown(asking.get(f"{asking.root}/api/show", {"model": model}))
    if known is None:
        return None
    return min(known[0] or _PLAIN_OLLAMA_WINDOW, known[1] or _PLAIN_OLLAMA_WINDOW)


class _NoRedirect(HTTPRedirectHandler):
    """Follows nobody to another address, which would be sent the key."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


class _Asking:
    """Questions to one server, which together may take only so long."""

    def __init__(self, base: str, key: str, seconds: float | None) -> None:
        self.root = re.sub(r"/v1/?$", "", base.rstrip("/"))
        self._key = key
        patience = PATIENCE_SECONDS * _IN_TIME if seconds is None else seconds
        self._deadline = monotonic() + patience
        # Without proxies: this machine is asked, or one that the user named.
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())

    def get(self, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object that is answered; an empty one for anything else."""
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
                value = json.loads(answer.read(_MOST_BYTES))
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


def _served(entry: Mapping[str, Any]) -> Served:
    return Served(
        str(entry["id"]),
        _served_window(entry),
        _number(_meta(entry).get("size")),
        _chats(str(entry["id"])) and entry.get("type") != "embeddings",
        entry.get("state") == "loaded",
    )


def _served_window(entry: Mapping[str, Any]) -> int | None:
    told = (_meta(entry).get("n_ctx"), *(entry.get(name) for name in _WINDOW_FIELDS))
    return next((number for each in told if (number := _number(each))), None)


def _meta(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What llama.cpp tells of a model beside its name."""
    meta = entry.get("meta")
    return meta if isinstance(meta, dict) else {}


def _more_told(models: Sequence[Served], asking: _Asking) -> Iterator[Served]:
    """The models with what their server tells in ways of its own: llama.cpp's, LM Studio's."""
    settings = asking.get(f"{asking.root}/props").get("default_generation_settings")
    holds = _number(settings.get("n_ctx")) if isinstance(settings, dict) else None
    if holds:
        yield from (replace(model, window=holds) for model in models)
        return
    listed = _entries(asking.get(f"{asking.root}/api/v0/models"), "data")
    by_id = {each.id: each for each in map(_served, listed)}
    yield from (by_id.get(model.id, model) for model in models)


def _as_shown(shown: Mapping[str, Any]) -> tuple[int | None, int | None] | None:
    """The window that a model's file asks for, and its longest; None if this is no Ollama."""
    info = shown.get("model_info")
    if not isinstance(info, dict):
        return None
    chosen = _NUM_CTX.search(str(shown.get("parameters") or ""))
    longest = next((value for name, value in info.items() if name.endswith(".context_length")), 0)
    return (_number(int(chosen[1])) if chosen else None), _number(longest)


def _chats(name: str) -> bool:
    """True if a model is for conversation, by its name; embedding models are not."""
    return _NO_CHAT.search(name) is None


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < _MOST else None


def _found_at(server: Server) -> Iterator[FoundModel]:
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
