"""Being told, coming and going."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui import listeners as listeners_module
from kbtui.errors import KbtuiError
from kbtui.listeners import Listeners

if TYPE_CHECKING:
    import pytest


def test_all_are_told_in_order_until_they_leave() -> None:
    told: list[str] = []
    listeners: Listeners[str] = Listeners()
    unsubscribe = listeners.add(lambda text: told.append(f"one {text}"))
    listeners.add(lambda text: told.append(f"two {text}"))
    listeners.tell("a")
    unsubscribe()
    unsubscribe()
    listeners.tell("b")
    assert told == ["one a", "two a", "two b"]


def test_the_same_listener_twice_leaves_once_for_each_time() -> None:
    told: list[int] = []
    listeners: Listeners[int] = Listeners()
    unsubscribe, _ = listeners.add(told.append), listeners.add(told.append)
    unsubscribe()
    unsubscribe()
    listeners.tell(1)
    assert told == [1]


def test_one_who_leaves_while_all_are_told_is_told_to_the_end() -> None:
    told: list[str] = []
    listeners: Listeners[[]] = Listeners()

    def first() -> None:
        unsubscribe()

    listeners.add(first)
    unsubscribe = listeners.add(lambda: told.append("second"))
    listeners.tell()
    listeners.tell()
    assert told == ["second"]
    assert listeners


def test_an_error_of_one_is_logged_and_the_others_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[int] = []
    logged: list[str] = []
    listeners: Listeners[int] = Listeners()
    monkeypatch.setattr(listeners_module.log, "exception", logged.append)

    def failing(_number: int) -> None:
        raise KbtuiError("out of order")

    listeners.add(failing)
    listeners.add(told.append)
    listeners.tell(1)
    assert told == [1]
    assert logged == ["a listener failed"]
