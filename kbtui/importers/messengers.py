"""Chats among people, as conversations: one a month and chat, each line with who said it.

Only what the owner of the export wrote is the user's; where it doesn't say who that is, nothing is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from kbtui.importers.port import ImportedConversation, Role, Said
from kbtui.importers.reading import conversation


@dataclass(frozen=True, slots=True)
class ChatLine:
    """What somebody wrote; `mine` of the export's owner. `named` are kinds of what didn't come."""

    who: str
    text: str
    time: datetime | None = None
    id: str = ""
    attached: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    mine: bool = False


def by_month(id_: str, title: str, lines: Iterable[ChatLine]) -> Iterator[ImportedConversation]:
    """The conversations of a chat, in the order of its months."""
    months: dict[str, tuple[list[Said], Counter[str]]] = {}
    month = ""
    for line in lines:
        month = f"{line.time:%Y-%m}" if line.time else month
        said, named = months.setdefault(month, ([], Counter()))
        named.update(line.named)
        if line.text or line.attached:
            text = line.text if line.mine else f"{line.who}: {line.text}".strip()
            role: Role = "user" if line.mine else "assistant"
            said.append(Said(role, text, line.time, line.id, line.attached))
    for month, (said, named) in sorted(months.items()):
        name = ", ".join(filter(None, (title, month)))
        if found := conversation(f"{id_} {month}".strip(), name, said, named=named):
            yield found
