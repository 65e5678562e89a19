"""The port that every source fills: from an export to conversations, notes, and what was skipped.

A source recognises an export by what is in it, never by its name, and reads it piece by piece:
nothing here holds a whole export.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from kbtui.importers.export_files import OpenedExport

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation.

    `text` is what a person saw: no thinking, no hidden context, no notices of unsupported blocks.
    `time` is in UTC; it and the export's own `id` may be missing. `attached` names files beside it.
    """

    role: Role
    text: str
    time: datetime | None = None
    id: str = ""
    attached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """One conversation as it stood at the end: one branch; `branches` says how many others it has.

    `id` is the export's own, else one made of what doesn't change when the export grows. There is
    always a message; a title, a time and a url may be missing. `named` counts what else it held
    that didn't come: ``{"picture": 2, "step of a tool": 5}``.
    """

    id: str
    title: str
    created: datetime | None
    updated: datetime | None
    messages: tuple[Said, ...]
    url: str = ""
    branches: int = 0
    named: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ImportedNote:
    """A text that isn't a conversation: a project's document, a memory, a page, a clipping.

    Attributes:
        id: As with a conversation.
        text: Markdown.
        folder: Where it stood, slashes between; its tree is kept.
        url: Where it came from.
        data: The bytes of a file that is no text (an image, a PDF); `text` is empty then, and
            `title` is its name.
        at: Where it lies below the source's own folder, with its name, where others link to it
            there; kept as it is. Otherwise `folder` and `title` say where it goes.
    """

    id: str
    title: str
    text: str
    updated: datetime | None = None
    created: datetime | None = None
    folder: str = ""
    tags: tuple[str, ...] = ()
    url: str = ""
    data: bytes | None = None
    at: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A thing that could not be taken: a title, an id or a file with a line, and the reason."""

    place: str
    why: str


Item = ImportedConversation | ImportedNote | Skipped


@dataclass(frozen=True, slots=True)
class Source:
    """A program whose exports can be read.

    Attributes:
        name: The program, as people call it: ``Claude.ai``.
        key: The same for file names and identities, never changed: ``claude``.
        recognises: True of such an export, by what is in it.
        read: Reads all of it, piece by piece. Conversations may come more than once. Raises
            `UnreadableError` where the whole can't be read: what, why, and what to do.
        is_alone: All of a folder is this program's: what isn't read there is nobody else's.
    """

    name: str
    key: str
    recognises: Callable[[OpenedExport], bool]
    read: Callable[[OpenedExport], Iterator[Item]]
    is_alone: bool = False
