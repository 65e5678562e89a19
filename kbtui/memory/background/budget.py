"""The budget of background work: the user's consent, and a daily cap.

Both apply to all workspaces and processes of this account, so they are kept in the user's state
directory. What was spent is recorded before the next call may be made.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import platformdirs

from kbtui.clock import local_now
from kbtui.errors import BudgetError, ModelAnswerError
from kbtui.models.litellm_model import LiteLLMModel
from kbtui.models.port import (
    ChatModel,
    DelegatingModel,
    Message,
    Reply,
    ReplyEvent,
    ToolSpec,
    Usage,
)
from kbtui.models.roles import ModelRegistry
from kbtui.settings import Settings
from kbtui.text import json_object
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.files import write_machine_file

# Used if no price is known: the price of a large model, so that the cap errs on the safe side.
_ASSUMED_PROMPT_USD = 3e-6
_ASSUMED_COMPLETION_USD = 15e-6
_DAYS_KEPT = 31
_FIELDS = {"consolidate": "consolidate", "dream": "dream", "import": "extract"}


class ConsentNeededError(BudgetError):
    """Background work would use a paid model that nobody chose, without the user's consent."""

    def __init__(self, model: str, *, refused: bool) -> None:
        consent = "you said no to that" if refused else "nobody has agreed to that yet"
        super().__init__(
            f"{model} costs money, and {consent}: nothing is condensed in the background.",
            "Agree to it, or choose another model for it with models.consolidate.model.",
        )
        self.model = model
        self.refused = refused


class Budget:
    """Records in `folder` what models have cost, and enforces the daily cap."""

    def __init__(
        self,
        daily_usd: float,
        folder: Path | None = None,
        clock: Callable[[], datetime] = local_now,
    ) -> None:
        self.daily_usd = daily_usd
        self._folder = folder or platformdirs.user_state_path("kbtui", appauthor=False)
        self._clock = clock

    def spent_today(self) -> float:
        """Return what background work has cost today in US dollars, in all workspaces."""
        return _number(_mapping(self._read(), "spent").get(self._today()))

    def conversations_today(self) -> float:
        """Return what conversations have cost today in US dollars, in all workspaces."""
        return _number(_mapping(self._read(), "talked").get(self._today()))

    def record_conversation(self, usd: float) -> None:
        """Record the cost of a conversation's call; no cap applies to it.

        Raises:
            StorageError: It can't be recorded.
        """
        self._add("talked", usd)

    def consent_to(self, model: str) -> bool | None:
        """Return the user's consent to a paid model in the background; None if not asked yet."""
        consent = _mapping(self._read(), "consent").get(model)
        return consent if isinstance(consent, bool) else None

    def agree(self, model: str, *, yes: bool) -> None:
        """Record the user's consent to a paid model, or their refusal.

        Raises:
            StorageError: It can't be recorded.
        """
        with self._changing() as state:
            state["consent"] = {**_mapping(state, "consent"), model: yes}

    def check(self, model: ChatModel, *, ask_first: bool) -> None:
        """Refuse a call that may not be made; `ask_first` if the model was found, not chosen.

        Raises:
            ConsentNeededError: The call costs money and the user hasn't agreed.
            BudgetError: Today's cap is reached.
        """
        if model.is_local:
            return
        consent = self.consent_to(model.name)
        if consent is False or (ask_first and consent is None):
            raise ConsentNeededError(model.name, refused=consent is False)
        spent = self.spent_today()
        if spent >= self.daily_usd:
            raise BudgetError(
                f"Background work has cost ${spent:.2f} today; the cap is ${self.daily_usd:.2f}.",
                "It goes on tomorrow. Raise budget.daily_usd to go on now.",
            )

    def spend(self, model: ChatModel, usage: Usage) -> float:
        """Record what a call has cost, and return it in US dollars.

        Raises:
            StorageError: It can't be recorded.
        """
        cost = 0.0 if model.is_local else _cost(usage)
        self._add("spent", cost)
        return cost

    def _add(self, account: Literal["spent", "talked"], usd: float) -> None:
        if usd > 0:
            with self._changing() as state:
                today = self._today()
                spent = _mapping(state, account)
                spent[today] = _number(spent.get(today)) + usd
                state[account] = dict(sorted(spent.items())[-_DAYS_KEPT:])

    def _today(self) -> str:
        return self._clock().astimezone().date().isoformat()

    def _read(self) -> dict[str, Any]:
        try:
            return json_object((self._folder / "background.json").read_bytes()) or {}
        except OSError:
            return {}

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Update the recorded state, one process at a time."""
        with storage_errors("Can't write down what background work costs"):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            lock = os.open(self._folder / "background.lock", flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self._read()
            yield state
            write_machine_file(self._folder, "background.json", json.dumps(state).encode())
        finally:
            os.close(lock)


class MeteredModel(DelegatingModel):
    """A chat model whose calls are checked against the budget and charged to it."""

    def __init__(self, model: ChatModel, budget: Budget, *, ask_first: bool) -> None:
        super().__init__(model)
        self._budget = budget
        self._ask_first = ask_first
        self.calls = 0
        self.cost_usd = 0.0

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """Yield the complete answer as one event, which is what background work needs.

        Raises:
            BudgetError: Today's cap is reached.
            ConsentNeededError: The user hasn't agreed.
        """
        yield await self.complete(messages, tools)

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """Complete a prompt as in `ChatModel`, charging the budget.

        Raises:
            BudgetError: Today's cap is reached.
            ConsentNeededError: The user hasn't agreed.
        """
        self._budget.check(self._model, ask_first=self._ask_first)
        self.calls += 1
        try:
            reply = await self._model.complete(messages, tools, force_tool=force_tool)
        except ModelAnswerError:
            # An unusable answer costs money all the same.
            self._charge(Usage(sum(self.count_tokens(message.content) for message in messages)))
            raise
        self._charge(reply.usage)
        return reply

    def _charge(self, usage: Usage) -> None:
        self.cost_usd += self._budget.spend(self._model, usage)


class BackgroundModels:
    """Provides metered models, as chosen by the registry and the settings."""

    def __init__(self, registry: ModelRegistry, settings: Settings, budget: Budget) -> None:
        self._registry = registry
        self._settings = settings
        self._budget = budget

    def get(self, role: str) -> MeteredModel:
        """Return the model of a role (consolidate, dream or import), with its server's window.

        Raises:
            ModelAccessError: It needs a key that nobody has given.
        """
        model = self._registry.chat(role)
        if isinstance(model, LiteLLMModel):
            model.read_window()
        return MeteredModel(model, self._budget, ask_first=not self._is_chosen(role))

    def _is_chosen(self, role: str) -> bool:
        """Return whether the model was chosen by a person or found in the environment."""
        own = getattr(self._settings.models, _FIELDS[role])
        return own.model is not None or not self._registry.describe().reason


def _cost(usage: Usage) -> float:
    if usage.cost_usd is not None:
        return usage.cost_usd
    prompt = usage.prompt_tokens * _ASSUMED_PROMPT_USD
    return prompt + usage.completion_tokens * _ASSUMED_COMPLETION_USD


def _mapping(state: dict[str, Any], key: str) -> dict[str, Any]:
    value = state.get(key)
    return dict(value) if isinstance(value, dict) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
