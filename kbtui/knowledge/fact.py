"""A fact: one statement worth keeping, on its way from what somebody said into a file.

Facts come out of a model's structured answer or out of the offline reading of a message, and the
one edit engine of memory decides what each of them does to the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = Literal["entry", "memory"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement worth keeping.

    Attributes:
        text: The statement as it is written down, one or more lines of Markdown; offline the
            speaker's own clause, word for word.
        kind: The type of the entry that it belongs to, one of `templates.ENTRY_TYPES`.
        subject: What it is about, as a person would title it: a noun phrase of at most 6 words.
            Empty where it has no subject of its own.
        message: The id of the message that says it; None where that isn't known.
        replaces: The statement, or a telling part of it, that is no longer true because of this
            one; empty where nothing is superseded.
        place: ``entry``: the subject's own entry; ``memory``: MEMORY.md, for what every
            conversation needs.
        related: Names of other entries that it mentions.
        tags: Labels for its entry.
        summary: One line for the catalogue, where it says another thing than the text.
    """

    text: str
    kind: str
    subject: str = ""
    message: int | None = None
    replaces: str = ""
    place: Place = "entry"
    related: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    summary: str = ""
