"""Background work asks before it costs, and stops at the day's cap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import BudgetError, ModelAnswerError
from kbtui.memory.background.budget import (
    BackgroundModels,
    Budget,
    ConsentNeededError,
    MeteredModel,
)
from kbtui.models.port import Message, Reply, Usage
from kbtui.models.roles import ModelRegistry
from kbtui.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 6, 12, tzinfo=UTC)


class _Model:
    """A model that costs what it is told to; nothing but the price matters here."""

    name = "openai/dear"
    context_window = 1000

    def __init__(self, cost: float | None, *, is_local: bool = False, fails: bool = False) -> None:
        self.cost = cost
        self.is_local = is_local
        self.fails = fails

    def count_tokens(self, text: str) -> int:
        return len(text)

    def stream(self, messages: object, tools: object = ()) -> object:
        raise NotImplementedError

    async def complete(
        self, messages: object, tools: object = (), *, force_tool: str | None = None
    ) -> Reply:
        if self.fails:
            raise ModelAnswerError("no")
        return Reply("yes", (), "stop", Usage(1000, 100, self.cost))


def _metered(model: _Model, budget: Budget, *, ask_first: bool = False) -> MeteredModel:
    return MeteredModel(model, budget, ask_first=ask_first)  # type: ignore[arg-type]


ASK = [Message("user", "hello")]


async def test_a_paid_model_that_was_only_found_needs_consent(tmp_path: Path) -> None:
    budget = Budget(1.0, tmp_path)
    model = _metered(_Model(0.1), budget, ask_first=True)
    with pytest.raises(ConsentNeededError) as refused:
        await model.complete(ASK)
    assert refused.value.model == "openai/dear"
    assert not refused.value.refused
    budget.agree("openai/dear", yes=True)
    assert (await model.complete(ASK)).text == "yes"
    budget.agree("openai/dear", yes=False)
    with pytest.raises(ConsentNeededError):
        await model.complete(ASK)


async def test_the_cap_counts_over_all_processes_and_days_start_again(tmp_path: Path) -> None:
    now = [NOON]
    budget = Budget(0.25, tmp_path, lambda: now[0])
    model = _metered(_Model(0.1), budget)
    for _ in range(3):
        await model.complete(ASK)
    with pytest.raises(BudgetError, match=r"\$0\.30 today; the cap is \$0\.25"):
        await _metered(_Model(0.1), Budget(0.25, tmp_path, lambda: now[0])).complete(ASK)
    now[0] += timedelta(days=1)
    await model.complete(ASK)
    assert budget.spent_today() == pytest.approx(0.1)


async def test_a_cap_of_nothing_allows_nothing_that_costs(tmp_path: Path) -> None:
    budget = Budget(0.0, tmp_path)
    with pytest.raises(BudgetError):
        await _metered(_Model(0.1), budget).complete(ASK)
    await _metered(_Model(None, is_local=True), budget).complete(ASK)
    assert budget.spent_today() == 0


async def test_an_unknown_price_and_a_useless_answer_are_charged(tmp_path: Path) -> None:
    budget = Budget(1.0, tmp_path)
    await _metered(_Model(None), budget).complete(ASK)
    known = budget.spent_today()
    assert known > 0
    with pytest.raises(ModelAnswerError):
        await _metered(_Model(None, fails=True), budget).complete(ASK)
    assert budget.spent_today() > known


def test_a_damaged_file_counts_as_nothing_written_down(tmp_path: Path) -> None:
    (tmp_path / "background.json").write_bytes(b'{"spent": [')
    budget = Budget(1.0, tmp_path)
    assert budget.spent_today() == 0
    assert budget.consent_to("x") is None
    budget.agree("x", yes=True)
    assert budget.consent_to("x") is True


def test_it_is_the_users_own(tmp_path: Path) -> None:
    Budget(1.0, tmp_path / "state").agree("x", yes=True)
    assert (tmp_path / "state/background.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("variables", "overrides", "asks"),
    [
        ({"OPENAI_API_KEY": "sk-x"}, {}, True),
        ({"OPENAI_API_KEY": "sk-x"}, {"consolidate": {"model": "openai/gpt-5.4-mini"}}, False),
        ({"OPENAI_API_KEY": "sk-x"}, {"chat": {"model": "openai/gpt-5.4-mini"}}, False),
    ],
    ids=["found in the environment", "chosen for the role", "chosen for the chat"],
)
async def test_consent_is_needed_for_a_model_that_nobody_chose(
    tmp_path: Path, variables: dict[str, str], overrides: dict[str, object], asks: bool
) -> None:
    settings = load_settings(environment={}, overrides={"models": {"servers": [], **overrides}})
    nobody = {"OLLAMA_HOST": "127.0.0.1:1"}
    registry = ModelRegistry(settings, environment={**nobody, **variables})
    budget = Budget(0.0, tmp_path)
    model = BackgroundModels(registry, settings, budget).get("consolidate")
    assert model.name == "openai/gpt-5.4-mini"
    with pytest.raises(ConsentNeededError if asks else BudgetError) as refused:
        await model.complete(ASK)
    assert isinstance(refused.value, ConsentNeededError) is asks


def test_what_talking_costs_is_counted_by_day_and_has_no_cap(tmp_path: Path) -> None:
    budget = Budget(0.01, tmp_path, lambda: NOON)
    budget.record_conversation(0.4)
    Budget(0.01, tmp_path, lambda: NOON).record_conversation(0.1)
    assert budget.conversations_today() == pytest.approx(0.5)
    assert budget.spent_today() == 0.0
    tomorrow = Budget(0.01, tmp_path, lambda: NOON + timedelta(days=1))
    assert tomorrow.conversations_today() == 0.0
