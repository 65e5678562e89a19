"""What /cost says of a conversation: a price only where one is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kbtui.agent.events import UsageReported
from kbtui.tui.chat.commands.chat_commands import _cost
from kbtui.tui.chat.conversation.conversation import Spent


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        ([None], "1 call · 900 tokens read · 100 written · no price known"),
        ([0.0], "1 call · 900 tokens read · 100 written · free, on this machine"),
        ([0.25], "1 call · 900 tokens read · 100 written · $0.25"),
        ([0.001], "1 call · 900 tokens read · 100 written · <$0.01"),
        (
            [0.25, None],
            "2 calls · 1,800 tokens read · 200 written · $0.25, and 1 call without a known price",
        ),
    ],
)
async def test_a_price_is_said_where_one_is_known(prices: list[float | None], says: str) -> None:
    spent = Spent()
    for price in prices:
        spent.add(UsageReported(900, 100, price))
    told: list[Any] = []
    host: Any = SimpleNamespace(conversation=SimpleNamespace(spent=spent), tell=told.append)
    budget = SimpleNamespace(conversations_today=lambda: 0.0, spent_today=lambda: 0.0)
    kb: Any = SimpleNamespace(memory=SimpleNamespace(budget=budget))
    await _cost(host, kb, "")
    assert told[0].text.splitlines()[0] == says
    assert "Nothing was spent today" in told[0].text
