"""Messenger chats between people, as one conversation per chat and month.

Only the owner's messages count as the user's, and none if the export doesn't name its owner; the
messages of others begin with their author's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from kbtui.importers.port import ImportedConversation, ImportedMessage, Role, Skipped
from kbtui.importers.reading import conversation

_AGAIN = "(more)"  # behind a month


@dataclass(frozen=True, slots=True)
class ChatLine:
    """A chat message; `is_own` if by the export's owner. `named`: kinds of content left out."""

    author: str
    text: str
    time: datetime | None = None
    id: str = ""
    attached: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    is_own: bool = False


def by_month(
    id_: str, title: str, lines: Iterable[ChatLine], place: str = ""
) -> Iterator[ImportedConversation | Skipped]:
    """Yield the conversations of a chat, one per month in order.

    A month is over when the one after the next begins, so that a chat of any length is held in
    part: days are those of this machine's zone, and files may be cut at those of another. What is
    dated back to a month that is over makes another conversation. If there are no messages, and a
    `place` is given, that is reported.
    """
    months: dict[str, tuple[list[ImportedMessage], Counter[str]]] = {}
    over: set[str] = set()
    newest = month = ""
    is_empty = True
    for line in lines:
        month = f"{line.time.astimezone():%Y-%m}" if line.time else month
        if month > newest:
            gone = [each for each in sorted(months) if each < newest and not each.endswith(_AGAIN)]
            for each in gone:
                yield from _talk(id_, title, each, *months.pop(each))
            over.update(gone)
            newest = month
        place = f"{month} {_AGAIN}" if month in over else month
        messages, named = months.setdefault(place, ([], Counter()))
        named.update(line.named)
        if line.text or line.attached:
            text = line.text if line.is_own else f"{line.author}: {line.text}".strip()
            role: Role = "user" if line.is_own else "assistant"
            messages.append(ImportedMessage(role, text, line.time, line.id, line.attached))
            is_empty = False
    for each in sorted(months):
        yield from _talk(id_, title, each, *months.pop(each))
    if is_empty and place:
        yield Skipped(place, "It holds no messages.")


def _talk(
    id_: str, title: str, month: str, messages: list[ImportedMessage], named: Counter[str]
) -> Iterator[ImportedConversation]:
    name = ", ".join(filter(None, (title, month)))
    if found := conversation(f"{id_} {month}".strip(), name, messages, named=named):
        yield found
