"""What blame knows of lines: where each one comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbtui.history.objects.commit import Actor, Origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """Who wrote a line, and where it stood then.

    Attributes:
        commit: The id of the commit; None: it isn't recorded yet, so it is the user's.
        actor: Who made it.
        time: When, in UTC; None where it isn't recorded.
        origin: What it was made from: session, messages, turn, archive cursor.
        path: The file that it was written into, by its name then.
        line: Its line there, 1-based.
    """

    commit: str | None
    actor: Actor = Actor.YOU
    time: datetime | None = None
    origin: Origin = field(default_factory=Origin)
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Version:
    """A file after a commit: its lines with their origins, and the origins of those it lost.

    `gone` is by a hash of the line's text, the last one that was lost for each.
    """

    lines: Sequence[str] = ()
    origins: Sequence[LineOrigin] = ()
    gone: Mapping[bytes, LineOrigin] = field(default_factory=dict)
