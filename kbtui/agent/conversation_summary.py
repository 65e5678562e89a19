"""The part of a conversation that its prompt no longer holds, in short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kbtui.agent.sources import quoted
from kbtui.memory.records.archive import Archive
from kbtui.models.port import cut_to_tokens, estimate_tokens
from kbtui.sessions.store import SessionMessage
from kbtui.text import shorten

_LINE_WIDTH = 160
_SHORTEST_LINE = 24


@dataclass(frozen=True, slots=True)
class Condensed:
    """A stretch of a session that the archive holds: its messages' ids, and what it says of them.

    `when` is the time of the content as the archive writes it.
    """

    messages: tuple[int, int]
    summary: str
    when: str = ""

    def holds(self, message: SessionMessage) -> bool:
        """True if it stands for a message."""
        return self.messages[0] <= message.id <= self.messages[1]


def condensed_of(archive: Archive, session: str) -> tuple[Condensed, ...]:
    """The words of the archive about a session, oldest first."""
    return tuple(
        Condensed(entry.messages, entry.content, entry.timestamp)
        for entry in archive.entries()
        if entry.session == session and entry.messages is not None
    )


def earlier_text(
    left: Sequence[SessionMessage], condensed: Sequence[Condensed], budget: int
) -> str:
    """Sum up the messages that left a prompt, within `budget` tokens: as they are `condensed`.

    Those that aren't yet have a line each. What was said last gets a place first.
    """
    lines = list(_lines(left, condensed, budget))
    kept: list[str] = []
    for line in lines:
        shown = line if estimate_tokens(line) <= budget else cut_to_tokens(line, budget).rstrip()
        if not shown and not kept:
            shown = shorten(line, max(_LINE_WIDTH, budget * 3))
        if not shown:
            kept.append("- (more was said before: search finds it)")
            break
        budget -= estimate_tokens(shown)
        kept.append(shown)
    if not kept:
        return ""
    return "# Earlier in this conversation\n\n" + quoted("\n".join(reversed(kept)))


def _lines(
    left: Sequence[SessionMessage], condensed: Sequence[Condensed], budget: int
) -> Iterator[str]:
    """What is to be said of them, the newest first."""
    spoken = (each for each in left if each.is_said)
    said = [each for each in spoken if not any(stretch.holds(each) for stretch in condensed)]
    width = max(_SHORTEST_LINE, min(_LINE_WIDTH, 3 * budget // max(1, len(said)) - 12))
    yield from (f"- {each.role}: {shorten(each.content, width)}" for each in reversed(said))
    for stretch in reversed(condensed):
        if stretch.messages[0] <= left[-1].id and stretch.summary.strip():
            yield f"- [{stretch.when}] {stretch.summary.strip()}"
