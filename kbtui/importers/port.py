"""The port that every source implements: an export as conversations, notes and skipped items.

A source recognises an export by its content, never by its file name, and yields items one at a
time, so that no export is ever held in memory as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from kbtui.importers.export_files import OpenedExport
from kbtui.text import Packed, pack, unpack

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One message of a conversation.

    Attributes:
        said: Its `text`, which is packed, as a long conversation is held as a whole.
        time: Time in UTC, if the export has it.
        id: The export's own id, or empty.
        attached: Names of attached files.
        taint: The private entries that kbtui's model was shown before it, as in a session's log.
    """

    role: Role
    said: Packed
    time: datetime | None = None
    id: str = ""
    attached: tuple[str, ...] = ()
    taint: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Pack the text."""
        if isinstance(self.said, str):
            object.__setattr__(self, "said", pack(self.said))

    @property
    def text(self) -> str:
        """What a person saw, without thinking, hidden context or notices of the program."""
        return unpack(self.said)


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """One conversation in the branch that was shown last; title, times and url may be missing.

    Attributes:
        id: The export's own id, or one derived from content that stays when the export grows.
        messages: At least one message.
        branches: Number of other branches, which are left out.
        named: Counts of content left out, by kind: ``{"picture": 2, "step of a tool": 5}``.
    """

    id: str
    title: str
    created: datetime | None
    updated: datetime | None
    messages: tuple[ImportedMessage, ...]
    url: str = ""
    branches: int = 0
    named: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class ImportedNote:
    """A note or file that isn't a conversation: a project's document, a memory, a page, a clipping.

    Attributes:
        id: As in `ImportedConversation`.
        text: Markdown.
        folder: Folder in the export, separated by slashes; the tree is kept.
        url: Where it came from.
        data: Content of a binary file (an image, a PDF); then `text` is empty and `title` is the
            file name.
        at: Fixed path below the source's own folder, for notes that others link to. If empty, the
            path is derived from `folder` and `title`.
        has_head: Whether `text` is a file of notes, whose properties stay its own. In any other,
            lines between ``---`` at the top are text.
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
    has_head: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that wasn't imported: its title, id or file and line, and the reason.

    It is `lost` if it should have been there and can't be read, so that the import is partial.
    """

    place: str
    why: str
    lost: bool = False


Item = ImportedConversation | ImportedNote | Skipped


@dataclass(frozen=True, slots=True)
class Source:
    """A program whose exports can be read.

    Attributes:
        name: Display name: ``Claude.ai``.
        key: Stable name for file names and identities: ``claude``.
        recognises: Predicate on the content of an export.
        read: Generator of all items; a conversation may come more than once. Raises
            `UnreadableError` if the export as a whole can't be read.
        is_alone: Whether its folders hold no notes of a person's: sources that read any Markdown or
            web page, whoever wrote it, aren't asked for what it leaves.
        is_any: Whether it is such a source.
    """

    name: str
    key: str
    recognises: Callable[[OpenedExport], bool]
    read: Callable[[OpenedExport], Iterator[Item]]
    is_alone: bool = False
    is_any: bool = False
