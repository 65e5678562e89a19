"""Few frames are painted but those that a test can look at: of an app that has come to rest.

Between a key and the rest that follows it an app paints half a dozen frames, which nobody sees here
and which took a third of the time of its tests. Of these every eighth is painted, so that one that
can't be is still noticed. Where and when anything has to be painted is left to Textual; what is put
off is the painting itself. Nor is a style sheet parsed for each app anew.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest
from textual._compositor import Compositor
from textual.app import ScreenStackError
from textual.css.stylesheet import Stylesheet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from textual.app import App
    from textual.geometry import Region
    from textual.screen import Screen

_EVERY = 8
_plain_render = Compositor.render_update
_put_off: WeakKeyDictionary[Compositor, set[Region]] = WeakKeyDictionary()


@contextmanager
def put_off() -> Iterator[None]:
    """Paint few frames but where `paint` is called."""
    frames = count(1)

    def render_update(
        self: Compositor,
        full: bool = False,
        screen_stack: list[Screen[Any]] | None = None,
        simplify: bool = False,
    ) -> RenderableType | None:
        if simplify:  # a picture of it is wanted
            return _plain_render(self, full, screen_stack, simplify)
        if next(frames) % _EVERY == 0:
            self._dirty_regions.update(_put_off.pop(self, ()))
            return _plain_render(self, full, screen_stack, simplify)
        regions = _put_off.setdefault(self, set())
        regions.update({self.size.region} if full else self._dirty_regions)
        self._dirty_regions.clear()
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", render_update)
        yield


def paint(app: App[Any]) -> bool:
    """Paint what has been put off on the screen in front; False if there was nothing."""
    try:
        screen = app.screen
    except ScreenStackError:
        return False
    regions = _put_off.pop(screen._compositor, None)
    if not regions or app._exit or not app.is_running:
        return False
    screen._compositor._dirty_regions.update(regions)
    _plain_render(screen._compositor, screen_stack=app._background_screens)
    return True


@contextmanager
def style_sheets_kept() -> Iterator[None]:
    """Let apps whose variables are the same share what they have parsed."""
    parsed: dict[frozenset[tuple[str, str]], Any] = {}
    plain = Stylesheet.set_variables

    def init(self: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
        plain_init(self, variables=variables)
        self._parse_cache = parsed.setdefault(frozenset(self._variables.items()), {})

    def set_variables(self: Stylesheet, variables: dict[str, str]) -> None:
        self._parse_cache = {}  # type: ignore[assignment]  # which it clears
        plain(self, variables)
        self._parse_cache = parsed.setdefault(frozenset(variables.items()), {})

    plain_init = Stylesheet.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "__init__", init)
        patch.setattr(Stylesheet, "set_variables", set_variables)
        yield
