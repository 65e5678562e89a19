"""A screen's layout that tells each widget of its new size.

Textual's compositor makes its map of the screen again when somebody asks after a scroll. The layout
that follows compares itself with that map, so that a widget that was shown or grew meanwhile gets
its size, but neither `Show` nor `Resize`: a pane stays empty or wrapped for another width.
"""

from __future__ import annotations

from typing import Any

from textual._compositor import Compositor, CompositorMap, ReflowResult
from textual.geometry import Size
from textual.widget import Widget


class _TellingCompositor(Compositor):
    """Compares a layout with the last one that widgets heard of, not only with the last map."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: CompositorMap = {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        hidden, shown, resized = super().reflow(parent, size)
        heard, self._heard = self._heard, self._full_map
        for widget, geometry in self._full_map.items():
            if widget not in heard:
                shown.add(widget)
            elif heard[widget].region.size != geometry.region.size:
                resized.add(widget)
        return ReflowResult(hidden, shown, resized)

    def clear(self) -> None:
        super().clear()
        self._heard.clear()


class TellsSizes:
    """Mixed into a screen: no widget misses the events of a layout."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._compositor: Compositor = _TellingCompositor()
