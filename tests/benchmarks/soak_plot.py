"""Lines over time as a picture, written by hand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, LEGEND, GAP = 620, 170, 60, 250, 46
_COLOURS = ["#2563eb", "#dc2626", "#16a34a", "#9333ea", "#ea580c", "#0891b2", "#ca8a04", "#db2777"]
_POINTS = 60
"""Points of a line: medians of what falls together."""

Series = Mapping[str, Sequence[tuple[float, float]]]


def draw(title: str, minutes: float, panels: Mapping[str, Series]) -> str:
    """One panel below the other, each with its own scale from 0 and a legend at its right."""
    parts = [_text(LEFT, 22, title, "font-weight='bold'")]
    top = 40
    for name, series in panels.items():
        parts += _panel(name, minutes * 60, series, top)
        top += HEIGHT + GAP
    size = f"width='{LEFT + WIDTH + LEGEND}' height='{top}'"
    style = "font-family='sans-serif' font-size='12'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {style}>"
    return "\n".join([head, "<rect width='100%' height='100%' fill='white'/>", *parts, "</svg>\n"])


def _panel(name: str, seconds: float, series: Series, top: int) -> list[str]:
    lines = {label: _thinned(points, seconds) for label, points in series.items() if points}
    highest = _round_up(max((y for line in lines.values() for _, y in line), default=1))
    frame = f"<rect x='{LEFT}' y='{top}' width='{WIDTH}' height='{HEIGHT}'"
    parts = [f"{frame} fill='none' stroke='#bbb'/>", _text(LEFT, top - 5, name)]
    for part in (0.0, 0.5, 1.0):
        parts.append(_text(LEFT - 6, top + HEIGHT * (1 - part) + 4, f"{highest * part:g}", _END))
        minute = f"{seconds / 60 * part:g} min"
        parts.append(_text(LEFT + WIDTH * part, top + HEIGHT + 15, minute, _MIDDLE))
    for number, (label, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        dash = " stroke-dasharray='4 2'" if number >= len(_COLOURS) else ""
        where = " ".join(
            f"{LEFT + WIDTH * min(1, x / seconds):.1f},{top + HEIGHT * (1 - y / highest):.1f}"
            for x, y in line
        )
        parts.append(f"<polyline points='{where}' fill='none' stroke='{colour}'{dash}/>")
        shown = f"{label}: {line[0][1]:.3g} to {line[-1][1]:.3g}"
        parts.append(_text(LEFT + WIDTH + 10, top + 12 + 15 * number, shown, f"fill='{colour}'"))
    return parts


_END, _MIDDLE = "text-anchor='end'", "text-anchor='middle'"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}' {more}>{escape(text)}</text>"


def _thinned(points: Sequence[tuple[float, float]], seconds: float) -> list[tuple[float, float]]:
    together: dict[int, list[tuple[float, float]]] = {}
    for x, y in points:
        together.setdefault(min(_POINTS - 1, int(x / seconds * _POINTS)), []).append((x, y))
    return [
        (statistics.median(x for x, _ in part), statistics.median(y for _, y in part))
        for _, part in sorted(together.items())
    ]


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 with zeros."""
    size = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * size for step in (1, 2, 5, 10) if step * size >= value)
