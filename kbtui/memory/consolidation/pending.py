"""Messages that aren't archived yet, by session, read from disk, in pages that a model can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.memory.consolidation.page import Page
from kbtui.memory.records.transcript import read_conversation, tokens_of
from kbtui.models.port import message_tokens
from kbtui.sessions.slices import pages, split_units
from kbtui.workspace.jsonl import read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kbtui.knowledge.library import Library
    from kbtui.memory.records.archive import Archive
    from kbtui.memory.records.tombstones import Tombstones
    from kbtui.memory.records.transcript import Conversation
    from kbtui.sessions.slices import Unit
    from kbtui.workspace.layout import Workspace


class Pending:
    """Reads sessions, whoever has them open, and compares them with the archive."""

    def __init__(
        self,
        workspace: Workspace,
        library: Library,
        archive: Archive,
        tombstones: Tombstones | None = None,
    ) -> None:
        self._workspace = workspace
        self._library = library
        self._archive = archive
        self._tombstones = tombstones

    def conversation(self, session: str) -> Conversation:
        """A session as it stands on disk."""
        lines = read_lines(self._workspace.sessions / f"{session}.jsonl")
        private = [info.path for info in self._library.infos() if info.private]
        forgotten = self._tombstones.dropped(session) if self._tombstones is not None else ()
        return read_conversation(session, lines.records, private, forgotten)

    def is_private(self, path: str) -> bool:
        """True if only local models may read a file."""
        return self._library.is_private(path)

    def parts(self, conversation: Conversation, *, closed: bool = False) -> list[list[Unit]]:
        """Unarchived messages, in stretches without a gap; `closed` as in `split_units`."""
        covered = self._archive.covered(conversation.id)
        return [split_units(part, closed=closed) for part in conversation.pending(covered)]

    def tokens(self, session: str) -> int:
        """Estimate the tokens that what isn't archived takes in a prompt."""
        return tokens_in(self.parts(self.conversation(session)))


def tokens_in(parts: Iterable[Sequence[Unit]]) -> int:
    """Estimate the tokens that some stretches take in a prompt, results of tools included."""
    return sum(prompt_cost(unit) for part in parts for unit in part)


def prompt_cost(unit: Unit) -> int:
    """Estimate the tokens that a unit takes in the prompt of whoever answers."""
    return sum(message_tokens(message.as_prompt()) for message in unit.messages)


def pages_for(
    conversation: Conversation,
    units: Iterable[Unit],
    limit: int,
    count: Callable[[str], int],
) -> list[Page]:
    """Cut units into pages of at most `limit` tokens, what is private apart from the rest.

    Pages that hold nothing but what the ledger drops are left out.
    """

    def is_secret(unit: Unit) -> bool:
        return any(
            message.id in conversation.private and conversation.shown(message)
            for message in unit.messages
        )

    found = [
        Page(conversation, tuple(page), private=any(map(is_secret, page)))
        for page in pages(units, limit, tokens_of(conversation, count), is_secret)
    ]
    return [page for page in found if any(map(conversation.shown, page.messages))]
