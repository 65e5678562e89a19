"""Finds statements of archived conversations that memory doesn't have, by their words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kbtui.errors import KbtuiError
from kbtui.knowledge.format.facts import normalise, statements
from kbtui.memory.consolidation.page import Pending
from kbtui.memory.records.archive import ArchiveEntry, is_record
from kbtui.memory.records.ranges import holds
from kbtui.memory.records.transcript import SessionTranscript
from kbtui.memory.services import Services
from kbtui.offline.lines import sentences
from kbtui.text import shorten
from kbtui.workspace import files

NOT_SUMMED_UP = "not in the summary"
_MIN_SHARE = 0.6  # share of a sentence's words in one line of memory
_WIDTH = 200


@dataclass(frozen=True, slots=True)
class LeftOutMessage:
    """A statement that was archived but is nowhere in memory, and the reason."""

    session: str
    message: int
    text: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def left_out(services: Services, pending: Pending) -> Iterator[LeftOutMessage]:
    """Yield the user's archived statements that memory doesn't have; reads files."""
    lines = _Lines(_memory_statements(services))
    entries: dict[str, list[ArchiveEntry]] = defaultdict(list)
    for entry in services.archive.entries():
        if entry.session is not None and entry.messages is not None:
            entries[entry.session].append(entry)
    for session in sorted(entries):
        try:
            conversation = pending.conversation(session)
        except KbtuiError:
            continue
        yield from _left_out_of(conversation, entries[session], lines)


def _left_out_of(
    conversation: SessionTranscript, entries: Sequence[ArchiveEntry], lines: _Lines
) -> Iterator[LeftOutMessage]:
    for message in conversation.messages:
        holders = [each for each in entries if each.messages and holds([each.messages], message.id)]
        if message.role != "user" or not holders:
            continue
        reason = conversation.reasons.get(message.id)
        if reason is not None:
            text = shorten(message.content, _WIDTH)
            yield LeftOutMessage(conversation.id, message.id, text, reason)
            continue
        archived = {word for each in holders for word in normalise(each.content).split()}
        for text in _uncovered(conversation.spoken(message), lines, archived):
            shown = shorten(text, _WIDTH)
            yield LeftOutMessage(conversation.id, message.id, shown, NOT_SUMMED_UP)


def _uncovered(text: str, lines: _Lines, archived: set[str]) -> Iterator[str]:
    """Yield the statements of a message that no line of memory and no archive text covers."""
    for sentence in sentences(text):
        words = set(normalise(sentence).split())
        if words and not sentence.endswith("?") and not lines.covers(words, archived):
            yield sentence


def _memory_statements(services: Services) -> Iterator[str]:
    root = services.workspace
    notes = [f"memory/{file.name}" for file in services.workspace.memory.glob("[!.]*.md")]
    paths = [path for path in notes if not is_record(path)]
    for path in [*paths, "USER.md", *(info.path for info in services.library.infos())]:
        try:
            yield from statements(files.read_text(root, path))
        except KbtuiError:
            continue


class _Lines:
    """An index of memory's lines by word."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for number, line in enumerate(lines):
            for word in normalise(line).split():
                self._by_word[word].add(number)

    def covers(self, words: set[str], archived: set[str]) -> bool:
        """Return whether the archive's words, or a single line, cover most of some words."""
        enough = _MIN_SHARE * len(words)
        if len(words & archived) >= enough:
            return True
        counts: dict[int, int] = defaultdict(int)
        for word in words:
            for number in self._by_word.get(word, ()):
                counts[number] += 1
        return max(counts.values(), default=0) >= enough
