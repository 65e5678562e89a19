"""What makes a function a life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.replay.stage import Stage


@dataclass(frozen=True)
class Life:
    """A life by its name, with what it is about."""

    name: str
    about: str
    play: Callable[[Stage], None]


LIVES: dict[str, Life] = {}


def life(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
    """Make a function a life: its name is the life's, its docstring says what it is about."""
    name = play.__name__.replace("_", "-")
    LIVES[name] = Life(name, (play.__doc__ or "").strip().splitlines()[0], play)
    return play
