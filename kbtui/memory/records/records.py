"""Lines of JSON in files that go through the door: read whole, one record added at the end.

Whatever can't be read stays where it is and is reported: a torn last line is closed with a newline
before the next record, never cut off.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is kept but can't be used; `number` is 1-based."""

    path: str
    number: int
    data: bytes
    reason: str

    def __str__(self) -> str:
        start = self.data[:_SHOWN].decode("utf-8", "backslashreplace")
        return f"{self.path}:{self.number}: {self.reason}: {start}"


@dataclass(frozen=True, slots=True)
class Record:
    """A line that is a JSON object, as it was written and as it reads."""

    number: int
    data: bytes
    value: Mapping[str, Any]


def parse_records(data: bytes, path: str) -> tuple[list[Record], list[BadLine]]:
    """Read all lines; never raises."""
    records: list[Record] = []
    bad: list[BadLine] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        value = _value(line)
        if isinstance(value, dict):
            records.append(Record(number, line, value))
        else:
            bad.append(BadLine(path, number, line, "not a JSON object"))
    return records, bad


def add_record(data: bytes, record: Mapping[str, Any]) -> bytes:
    """Add a record behind everything that is there."""
    line = json.dumps(record, ensure_ascii=False, separators=(", ", ": "))
    gap = b"" if not data or data.endswith(b"\n") else b"\n"
    return data + gap + line.encode("utf-8", "replace") + b"\n"


def _value(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
