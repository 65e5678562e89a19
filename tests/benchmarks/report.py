"""How a benchmark reports: medians and p95, tables for people, JSON for scripts."""

from __future__ import annotations

import platform
import statistics
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Spread:
    """The middle and the tail of a series of measurements."""

    median: float
    p95: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """Median and 95th percentile (nearest rank)."""
    ordered = sorted(values)
    return Spread(
        statistics.median(ordered),
        ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))],
        len(ordered),
    )


@dataclass
class Table:
    """Rows under a heading; numbers are shown with four significant digits."""

    title: str
    columns: list[str]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def row(self, *cells: Any) -> None:
        """Add a row, one cell a column."""
        self.rows.append(cells)

    def __str__(self) -> str:
        lines = [self.columns, *[[_cell(cell) for cell in row] for row in self.rows]]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        shown = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        ]
        return "\n".join(
            [self.title, shown[0], "  ".join("-" * width for width in widths), *shown[1:]]
        )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def versions(*packages: str) -> dict[str, str]:
    """What was measured: Python, this program, and the packages that matter."""
    found = {name: metadata.version(name) for name in packages}
    return {"python": platform.python_version(), "kbtui": metadata.version("kbtui"), **found}
