"""The known providers, their endpoints, and the storage of API keys.

litellm knows many more providers, but takes seconds to import.

Keys are stored in the operating system's keyring, or else in a file that only its owner can read.
A keyring may be missing, locked, or blocked by a dialog that nobody sees, so each access runs in a
thread with a timeout, and never while the app starts.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import queue
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kbtui.errors import StorageError
from kbtui.whole_file import replace_file

log = logging.getLogger(__name__)
OLLAMA = "Ollama"
OLLAMA_BASE = "http://127.0.0.1:11434"
_OLLAMA_PREFIXES = ("ollama", "ollama_chat")
_HOSTS_OF_CLAUDE = ("azure_ai", "bedrock", "openrouter", "vertex_ai")
_ANY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104 - listening addresses, replaced before connecting


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: its litellm prefix, and the environment variables of its key, most common first.

    `model` is the default: one that supports tools and isn't the most expensive.
    """

    prefix: str
    title: str
    variables: tuple[str, ...]
    model: str


PROVIDERS = (
    Provider("anthropic", "Anthropic", ("ANTHROPIC_API_KEY",), "anthropic/claude-sonnet-4-6"),
    Provider("openai", "OpenAI", ("OPENAI_API_KEY",), "openai/gpt-5.4-mini"),
    Provider(
        "gemini", "Google", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini/gemini-flash-latest"
    ),
    Provider("openrouter", "OpenRouter", ("OPENROUTER_API_KEY",), "openrouter/openrouter/auto"),
    Provider("mistral", "Mistral", ("MISTRAL_API_KEY",), "mistral/mistral-medium-latest"),
    Provider("groq", "Groq", ("GROQ_API_KEY",), "groq/openai/gpt-oss-120b"),
    Provider("deepseek", "DeepSeek", ("DEEPSEEK_API_KEY",), "deepseek/deepseek-chat"),
    Provider("xai", "xAI", ("XAI_API_KEY",), "xai/grok-4.3-latest"),
    Provider("cerebras", "Cerebras", ("CEREBRAS_API_KEY",), "cerebras/gpt-oss-120b"),
)
_BY_PREFIX = {provider.prefix: provider for provider in PROVIDERS}


def prefix_of(model: str) -> str:
    """Return the provider prefix of a model name, or ""."""
    return model.split("/", 1)[0] if "/" in model else ""


def provider_of(model: str) -> Provider | None:
    """Return the provider of a model, if it is a known one."""
    return _BY_PREFIX.get(prefix_of(model))


def is_ollama(model: str) -> bool:
    """Return whether a model name has one of Ollama's prefixes."""
    return prefix_of(model) in _OLLAMA_PREFIXES


def takes_cache_marks(model: str) -> bool:
    """Return whether a model's provider needs explicit cache markers in the prompt.

    The other providers cache prompt prefixes automatically.
    """
    prefix, _, name = model.lower().partition("/")
    if prefix == "openrouter" and "gemini" in name:
        return True
    return prefix == "anthropic" or (prefix in _HOSTS_OF_CLAUDE and "claude" in name)


def is_loopback(url: str) -> bool:
    """Return whether an endpoint is on this machine."""
    host = (urlsplit(url if "//" in url else f"//{url}").hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def ollama_base(environment: Mapping[str, str]) -> str:
    """Return Ollama's address, from its environment variables or the default."""
    base = environment.get("OLLAMA_API_BASE") or environment.get("OLLAMA_HOST") or OLLAMA_BASE
    if "//" not in base:
        base = f"http://{base}"
    parts = urlsplit(base)
    for any_address in _ANY_ADDRESS:
        base = base.replace(any_address, "127.0.0.1", 1)
    has_port = re.search(r":\d+$", parts.netloc) is not None
    return base.rstrip("/") if has_port or parts.scheme == "https" else f"{base.rstrip('/')}:11434"


def openai_base(environment: Mapping[str, str]) -> str | None:
    """Return the override of OpenAI's address in the variables that its libraries read."""
    named = environment.get("OPENAI_BASE_URL") or environment.get("OPENAI_API_BASE") or ""
    return named.strip() or None


def host_of(url: str) -> str:
    """Return host and port of an endpoint, for messages and as the name of its key."""
    parts = urlsplit(url if "//" in url else f"//{url}")
    host = parts.hostname or url
    try:
        return f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        return host


SERVICE = "kbtui"
_TIMEOUT_SECONDS = 3.0


class KeyStore:
    """A store of API keys by name: a provider's prefix, or an endpoint's ``host:port``."""

    def __init__(self, patience: float = _TIMEOUT_SECONDS) -> None:
        self._patience = patience
        self._broken = False

    def get(self, name: str) -> str:
        """Return a key, or "" if there is none."""
        stored = self._with_keyring(lambda keyring: keyring.get_password(SERVICE, name))
        return str(stored or self._read().get(name, ""))

    def put(self, name: str, key: str) -> str:
        """Store a key, and return where, worded for people.

        Raises:
            StorageError: Neither the keyring nor the file could be written.
        """

        def store(keyring: Any) -> bool:
            keyring.set_password(SERVICE, name, key)
            return bool(keyring.get_password(SERVICE, name) == key)

        if self._with_keyring(store):
            self._write({**self._read(), name: None})
            return "the keyring"
        self._write({**self._read(), name: key})
        return str(self._file)

    def forget(self, name: str) -> None:
        """Remove a key from the keyring and the file."""
        self._with_keyring(lambda keyring: keyring.delete_password(SERVICE, name))
        self._write({**self._read(), name: None})

    @property
    def _file(self) -> Path:
        from kbtui.settings import config_folder

        return config_folder() / "keys.json"

    def _with_keyring(self, work: Callable[[Any], Any]) -> Any:
        """Run `work` on the keyring with a timeout; return None if it fails."""
        if self._broken:
            return None
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # A daemon, so that a keyring that hangs can't keep the process from exiting.
        threading.Thread(
            target=lambda: answers.put(_try_keyring(work)), name="kbtui-keyring", daemon=True
        ).start()
        try:
            return answers.get(timeout=self._patience)
        except queue.Empty:
            log.warning("the keyring did not answer in %s seconds; using the file", self._patience)
            self._broken = True
            return None

    def _read(self) -> dict[str, str]:
        try:
            value = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(value, dict):
            return {}
        return {str(name): str(key) for name, key in value.items()}

    def _write(self, keys: dict[str, str | None]) -> None:
        kept = {name: key for name, key in keys.items() if key}
        if kept == self._read():
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._file, json.dumps(kept, indent=2).encode())
        except OSError as error:
            raise StorageError(f"Can't keep the key in {self._file}: {error.strerror}.") from error


def _try_keyring(work: Callable[[Any], Any]) -> Any:
    try:
        import keyring
        import keyring.errors

        return work(keyring)
    except keyring.errors.KeyringError as error:
        log.info("the keyring can't be used: %s", type(error).__name__)
    except Exception as error:  # noqa: BLE001 - backends raise whatever their D-Bus or C library does
        log.info("the keyring failed: %s", type(error).__name__)
    return None
