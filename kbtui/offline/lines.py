"""A line of somebody's notes, or of what he said: what facts are compared with and answers quote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kbtui.knowledge.templates import TYPE_OF_FOLDER

Source = Literal["entry", "memory", "note", "said"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        path: The file, relative to the workspace.
        title: What the file is called; of a conversation, its title.
        text: The line without its bullet.
        number: Where it stands, from 1.
        source: An entry, MEMORY.md, a note, or a message of the user's.
        current: False for what stands under Evolution: it held once.
        heading: The section that it stands in.
        day: When it was said, as YYYY-MM-DD; "" where that isn't known.
        relevance: How well search found it to fit, from 0 to 1; 0 where it didn't look.
    """

    path: str
    title: str
    text: str
    number: int = 0
    source: Source = "entry"
    current: bool = True
    heading: str = ""
    day: str = ""
    relevance: float = 0.0

    @property
    def kind(self) -> str:
        """The type of the entry that it stands in; ``fact`` elsewhere."""
        parts = self.path.split("/")
        return TYPE_OF_FOLDER.get(parts[1], "fact") if len(parts) > 2 else "fact"  # noqa: PLR2004
