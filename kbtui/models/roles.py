"""Resolves the model of each role from settings, API keys and discovered servers."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from kbtui.errors import UsageError
from kbtui.models.port import ChatModel, Message, OfflineModel
from kbtui.models.providers import (
    KeyStore,
    host_of,
    is_loopback,
    is_ollama,
    ollama_base,
    openai_base,
    prefix_of,
    provider_of,
)
from kbtui.settings import OFFLINE, RoleSettings, Settings, changed_config
from kbtui.text import clean_line

if TYPE_CHECKING:
    from kbtui.models.servers import FoundModel as FoundModel, Server

_MODEL_SPECIFIC = ("context_window", "vision")
_FIELDS = {"chat": "chat", "consolidate": "consolidate", "dream": "dream", "import": "extract"}


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The chat model as shown in the status line.

    `reason` explains why it was selected, or is "" if the user chose it. `place` names where
    messages are sent, or is "" without a model.
    """

    name: str
    is_local: bool
    offline: bool
    reason: str = ""
    chosen: bool = False
    place: str = ""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a model's messages would be sent, known before it is used.

    `place` is worded for people. `leaves` is set if the current model is on this machine and this
    one isn't: the user is to be asked first.
    """

    name: str
    api_base: str | None
    is_local: bool
    place: str
    leaves: bool

    @property
    def message(self) -> str:
        """The message to show once the model is in use."""
        if self.name == OFFLINE:
            return "Nothing is sent to a model from now on."
        where = f"{self.place}, on this machine" if self.is_local else self.place
        return f"{self.name} answers from now on. Messages go to {where}."


class ModelRegistry:
    """Provides the chat model of each role; the other roles default to ``chat``."""

    def __init__(
        self,
        settings: Settings,
        keys: KeyStore | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings.models
        self._keys = keys or KeyStore()
        self._environment = os.environ if environment is None else environment
        self._chosen: RoleSettings | None = None
        self._found: list[FoundModel] | None = None
        self._lock = threading.Lock()

    def chat(self, role: str = "chat") -> ChatModel:
        """Return the model of a role: chat, consolidate, dream or import.

        Takes up to a third of a second if servers have to be discovered first, and longer if a
        keyring has to be read, so don't call it on the app's event loop.

        Raises:
            ModelAccessError: The model needs a key and there is none.
            UsageError: There is no such role.
        """
        wanted = self._resolved(role)
        if wanted.model is None:
            self._discover_once()
            wanted = self._with_default(wanted)
        return self._make(wanted, in_background=role != "chat")

    def window(self, role: str = "chat") -> int:
        """Return the context window of a role's model, in tokens, as its server reports it.

        Takes as long as `chat`, plus a request.

        Raises:
            ModelAccessError: The model needs a key and there is none.
        """
        from kbtui.models.litellm_model import LiteLLMModel

        model = self.chat(role)
        if isinstance(model, LiteLLMModel):
            model.read_window()
        return model.context_window

    def describe(self, *, look: bool = False) -> ModelStatus:
        """Return the chat's model without connecting to it.

        With `look`, if no model is set, servers are discovered first, which may take a third of a
        second.
        """
        wanted = self._resolved("chat")
        if wanted.model is not None:
            offline = wanted.model == OFFLINE
            local = offline or self._is_local(wanted)
            place = "" if offline else _place_of(wanted.model, self._base(wanted))
            return ModelStatus(wanted.model, local, offline, chosen=True, place=place)
        if look:
            self._discover_once()
        default = self._default()
        if default is None:
            return ModelStatus(OFFLINE, is_local=True, offline=True, reason=self._why_offline())
        found = self._with_default(wanted)
        place = _place_of(default.name, self._base(found))
        number = sum(each.usable for each in self._known_models())
        first = f", the first of {number} that can be used" if number > 1 else ""
        return ModelStatus(
            default.name,
            self._is_local(found),
            offline=False,
            reason=f"Found {default.about}{first}.",
            place=place,
        )

    def ollama(self) -> Server | None:
        """Query Ollama on this machine or at the environment's address; None if none answers."""
        from kbtui.models.servers import ollama_at

        return ollama_at(ollama_base(self._environment))

    def named(
        self, name: str, api_base: str | None = None, api_key: str | None = None
    ) -> ChatModel:
        """Return a model by name, independent of roles.

        Raises:
            ModelAccessError: The model needs a key and there is none.
        """
        return self._make(
            RoleSettings.model_validate(
                {"model": name, "api_base": api_base or None, "api_key": api_key or None}
            )
        )

    def assign(self, roles: Sequence[str], name: str, api_base: str | None = None) -> None:
        """Set the model of roles in the user's settings, effective from the next start.

        Raises:
            StorageError: The settings couldn't be written.
        """
        for role in roles:
            _remember(name, api_base, _FIELDS[role])

    async def discover(self) -> list[FoundModel]:
        """Run `usable_here` in a thread."""
        import asyncio  # not needed by commands without a model

        return await asyncio.to_thread(self.usable_here)

    def usable_here(self) -> list[FoundModel]:
        """Rediscover models: on servers that answer, then by keys in the environment.

        The result is remembered for `chat` and `describe`. Takes up to a third of a second.
        """
        from kbtui.models.servers import discover_models

        found = discover_models(self._environment, self._settings.servers)
        self._found = found
        return found

    def destination(
        self, name: str, api_base: str | None = None, *, keep: bool = True
    ) -> Destination:
        """Return where the messages of a model with this name would be sent.

        If no address is given, `keep` resolves a bare name: to the local server that lists it, else
        to the current address if the provider is the same. A name without a provider gets that of
        the current model.

        Raises:
            UsageError: The name is empty.
        """
        name = clean_line(name)
        if not name:
            raise UsageError("Which model?", "Say it as provider/model, or `offline`.")
        now = self._in_use()
        if keep and api_base is None and name != OFFLINE:
            name, api_base = self._resolve_name(name, now)
        wanted = RoleSettings(model=name, api_base=api_base)
        offline = name == OFFLINE
        is_local = offline or self._is_local(wanted)
        leaves = now.model != OFFLINE and self._is_local(now) and not is_local
        place = "" if offline else _place_of(name, self._base(wanted))
        return Destination(name, api_base, is_local, place, leaves)

    def use(
        self, name: str, api_base: str | None = None, api_key: str | None = None, *, remember: bool
    ) -> ModelStatus:
        """Use a model, by its litellm name or ``offline``, for the chat from now on.

        With `remember`, the choice is written to the user's settings, and the key to the keyring or
        a 0600 file. Settings of the previous model (window, vision) don't carry over.

        Raises:
            UsageError: The name is empty.
            StorageError: The choice or the key couldn't be written.
        """
        name = clean_line(name)
        if not name:
            raise UsageError("Which model?", "Say it as provider/model, or `offline`.")
        before = self._resolved("chat")
        update: dict[str, Any] = {"model": name, "api_base": api_base or None}
        if name != before.model:
            update |= dict.fromkeys(_MODEL_SPECIFIC)
        if api_key or not _is_same_endpoint(before, name, api_base):
            update["api_key"] = SecretStr(api_key) if api_key else None
        choice = before.model_copy(update=update)
        if remember:
            if api_key:
                self._keys.put(_key_name(choice), api_key)
            _remember(name, api_base)
        self._chosen = choice
        return self.describe()

    def warm_up(self) -> None:
        """Import litellm ahead of the first request, in a background thread after first paint.

        Does nothing while the chat is offline. Takes seconds and sends nothing.
        """
        if not self.describe().offline:
            from kbtui.models.litellm_model import warm_up

            warm_up()

    async def try_out(
        self, name: str, api_base: str | None = None, api_key: str | None = None
    ) -> None:
        """Verify name, endpoint and key of a model by a minimal request.

        Raises:
            ModelError: The request failed.
        """
        model = self.named(name, api_base, api_key)
        await model.complete([Message("user", "Answer with the word ok.")])

    def _in_use(self) -> RoleSettings:
        """Return the chat's settings, with a discovered model if none is set."""
        now = self._resolved("chat")
        if now.model is not None:
            return now
        self._discover_once()
        return self._with_default(now)

    def _served(self, name: str, api_base: str | None) -> FoundModel | None:
        """Return the model of a running server that is called so, preferably at an address."""
        served = [each for each in self._known_models() if each.usable and each.host]
        here = [each for each in served if each.is_called(name)]
        return next((each for each in here if each.api_base == api_base), next(iter(here), None))

    def _resolve_name(self, name: str, now: RoleSettings) -> tuple[str, str | None]:
        """Return the full name and the address of a model; see `destination`."""
        if prefix_of(name) == "openai" or provider_of(name) is None:
            self._discover_once()
        if found := self._served(name, now.api_base):
            return found.name, found.api_base
        prefix = prefix_of(now.model or "")
        if "/" not in name and prefix:
            name = f"{prefix}/{name}"
        return name, now.api_base if _is_same_provider(now, name) else None

    def _resolved(self, role: str) -> RoleSettings:
        """Return a role's settings, completed by those of the chat."""
        if role not in _FIELDS:
            raise UsageError(f"There is no role {role!r}.", f"Roles are {', '.join(_FIELDS)}.")
        chat = self._chosen or self._settings.chat
        own: RoleSettings = getattr(self._settings, _FIELDS[role])
        if role == "chat":
            return chat
        update = {
            name: value
            for name in RoleSettings.model_fields
            if (value := getattr(own, name)) is not None
        }
        moved = own.model is not None and prefix_of(own.model) != prefix_of(chat.model or "")
        moved = moved or own.api_base not in (None, chat.api_base)
        # Another provider's model must not be asked at the chat's endpoint with the chat's key.
        base = chat.model_copy(update={"api_base": None, "api_key": None}) if moved else chat
        return base.model_copy(update=update)

    def _make(self, wanted: RoleSettings, *, in_background: bool = False) -> ChatModel:
        name = wanted.model or OFFLINE
        if name == OFFLINE:
            return OfflineModel()
        from kbtui.models.litellm_model import LiteLLMModel, ModelOptions
        from kbtui.models.model_errors import Endpoint, no_key

        base = self._base(wanted)
        key = self._key(wanted, base)
        provider = provider_of(name)
        if provider is not None and base is None and not (key or self._has_variable(wanted)):
            raise no_key(Endpoint(name))
        options = ModelOptions(
            context_window=wanted.context_window,
            max_tokens=wanted.max_tokens,
            temperature=wanted.temperature,
            in_background=in_background,
            vision=wanted.vision,
            first_token_seconds=self._settings.first_token_seconds,
            idle_seconds=self._settings.idle_seconds,
            retries=self._settings.retries,
        )
        return LiteLLMModel(name, base, key, options)

    def _base(self, wanted: RoleSettings) -> str | None:
        if wanted.api_base is None and is_ollama(wanted.model or ""):
            return ollama_base(self._environment)
        if wanted.api_base is None and prefix_of(wanted.model or "") == "openai":
            # litellm would use this address as well, but we couldn't tell the user.
            return openai_base(self._environment)
        return wanted.api_base

    def _is_local(self, wanted: RoleSettings) -> bool:
        base = self._base(wanted)
        return base is not None and is_loopback(base)

    def _key(self, wanted: RoleSettings, base: str | None) -> str:
        if wanted.api_key is not None:
            return wanted.api_key.get_secret_value()
        if self._has_variable(wanted) and wanted.api_base is None:
            # An address from the environment gets the key from the environment.
            return self._environment["OPENAI_API_KEY"].strip() if base is not None else ""
        if base is not None and is_ollama(wanted.model or "") and is_loopback(base):
            return ""
        return self._keys.get(_key_name(wanted))

    def _has_variable(self, wanted: RoleSettings) -> bool:
        """Return whether the environment has the provider's key, which litellm then uses."""
        provider = provider_of(wanted.model or "")
        return provider is not None and any(
            self._environment.get(name, "").strip() for name in provider.variables
        )

    def _discover_once(self) -> None:
        """Discover models once."""
        with self._lock:
            if self._found is None:
                self.usable_here()

    def _known_models(self) -> list[FoundModel]:
        if self._found is not None:
            return self._found
        from kbtui.models.servers import models_of_environment

        return models_of_environment(self._environment)

    def _default(self) -> FoundModel | None:
        """Return the model to use if none was chosen: the first local one, else the only one.

        Among several remote ones none is selected, as using one costs money and discloses text.
        """
        usable = [each for each in self._known_models() if each.usable]
        local = next((each for each in usable if each.is_local), None)
        return local or (usable[0] if len(usable) == 1 else None)

    def _with_default(self, wanted: RoleSettings) -> RoleSettings:
        """Return the settings of a role without a chosen model, completed by the default model."""
        found = self._default()
        if found is None:
            return wanted.model_copy(update={"model": OFFLINE})
        update: dict[str, str | None] = {"model": found.name}
        if found.api_base is not None:
            update["api_base"] = found.api_base
        return wanted.model_copy(update=update)

    def _why_offline(self) -> str:
        usable = [each.name for each in self._known_models() if each.usable]
        if not usable:
            return (
                "No model is configured: answers are quoted from your notes. Add one with /model."
            )
        names = ", ".join(usable[:4]) + (", …" if len(usable) > 4 else "")
        return f"Several models could be used ({names}): choose with /model."


def _key_name(wanted: RoleSettings) -> str:
    return host_of(wanted.api_base) if wanted.api_base else prefix_of(wanted.model or "") or "chat"


def _place_of(name: str, base: str | None) -> str:
    """Return where a model's messages go, for people."""
    from kbtui.models.model_errors import Endpoint

    return Endpoint(name, base).place


def _is_same_provider(now: RoleSettings, name: str) -> bool:
    """Return whether a model is of the current provider; an address without a model fits any."""
    without = now.model in (None, OFFLINE) and now.api_base is not None
    return without or prefix_of(now.model or "") == prefix_of(name)


def _is_same_endpoint(before: RoleSettings, name: str, api_base: str | None) -> bool:
    return _is_same_provider(before, name) and before.api_base == (api_base or None)


def _remember(name: str, api_base: str | None, role: str = "chat") -> None:
    """Set the model and endpoint of a role in the user's settings file.

    A key set there for another endpoint is removed, so that it isn't sent to this one.
    """
    import tomlkit

    with changed_config() as document:
        models = document.setdefault("models", tomlkit.table(is_super_table=True))
        own = models.setdefault(role, tomlkit.table())
        if own.get("api_base") != api_base:
            own.pop("api_key", None)
        if own.get("model") != name:
            for fact in _MODEL_SPECIFIC:
                own.pop(fact, None)
        own["model"] = name
        if api_base:
            own["api_base"] = api_base
        else:
            own.pop("api_base", None)
