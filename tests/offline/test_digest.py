"""The digest of a long conversation: its own sentences, within the budget, most said in least room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbtui.offline.condensing import Message, digest


def _said(*texts: str) -> list[Message]:
    return [Message("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(texts)]


def test_what_says_something_is_kept_and_small_talk_is_not() -> None:
    said = _said(
        "Hi there! How are you?",
        "Fine, thanks! And you?",
        "Alice moved the Kestrel station to plot 17 on 3 May. It was nice.",
        "Wow, that is nice!",
    )
    kept = digest(said, 70)
    assert [text for _, text in kept] == ["Alice moved the Kestrel station to plot 17 on 3 May."]


def test_what_was_said_twice_is_kept_once() -> None:
    said = _said(*["The launch is on Friday in Bergen."] * 5, "Tickets cost 40 euros.")
    assert [text for _, text in digest(said, 1000)] == [
        "The launch is on Friday in Bergen.",
        "Tickets cost 40 euros.",
    ]


@given(st.lists(st.text(max_size=400), max_size=20), st.integers(0, 2000))
def test_nothing_is_invented_the_order_stays_and_the_budget_holds(
    texts: list[str], budget: int
) -> None:
    said = _said(*texts)
    kept = digest(said, budget)
    positions = [next(n for n, s in enumerate(said) if s is message) for message, _ in kept]
    assert positions == sorted(set(positions))
    assert sum(len(text) for _, text in kept) <= budget
    for message, text in kept:
        flat = " ".join(message.text.split())
        assert set(text.split()) <= set(flat.split()) or not flat.isprintable()
