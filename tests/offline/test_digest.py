"""The digest of a long conversation: its own sentences, within the budget, most said in least room."""

from __future__ import annotations

from hypothesis import given, strategies as st

from kbtui.offline.condensing import digest


def test_what_says_something_is_kept_and_small_talk_is_not() -> None:
    said = (
        "Hi there! How are you?",
        "Fine, thanks! And you?",
        "Alice moved the Kestrel station to plot 17 in Bergen. It was nice.",
        "Wow, that is nice!",
    )
    assert digest(said, 80) == ["Alice moved the Kestrel station to plot 17 in Bergen."]


def test_what_was_said_twice_is_kept_once() -> None:
    said = [*["The launch is on Friday in Bergen."] * 5, "Tickets cost 40 euros."]
    assert digest(said, 1000) == [
        "The launch is on Friday in Bergen.",
        "Tickets cost 40 euros.",
    ]


@given(st.lists(st.text(max_size=400), max_size=20), st.integers(0, 2000))
def test_nothing_is_invented_the_order_stays_and_the_budget_holds(
    texts: list[str], budget: int
) -> None:
    kept = digest(texts, budget)
    assert sum(map(len, kept)) <= budget
    said = [" ".join(text.split()) for text in texts]
    places = iter(range(len(said)))
    for text in kept:
        words = {word.rstrip("…") for word in text.split()}
        assert any(
            words <= _parts(said[place]) or not said[place].isprintable() for place in places
        )


def _parts(text: str) -> set[str]:
    return {word[:end] for word in text.split() for end in range(len(word) + 1)}
