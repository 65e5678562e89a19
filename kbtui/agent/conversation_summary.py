"""Summaries of the part of a conversation that no longer fits its prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kbtui.agent.sources import quoted
from kbtui.memory.records.archive import Archive
from kbtui.models.port import cut_to_tokens, estimate_tokens
from kbtui.sessions.store import SessionMessage
from kbtui.text import shorten

_LINE_WIDTH = 160
_MIN_LINE_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Condensed:
    """A range of a session's messages (first and last id) with its summary from the archive.

    `when` is the archive's timestamp of the summary.
    """

    messages: tuple[int, int]
    summary: str
    when: str = ""

    def holds(self, message: SessionMessage) -> bool:
        """Return whether a message is in the range."""
        return self.messages[0] <= message.id <= self.messages[1]


def condensed_of(archive: Archive, session: str) -> tuple[Condensed, ...]:
    """Return the archive's summaries of a session, oldest first."""
    return tuple(
        Condensed(entry.messages, entry.content, entry.timestamp)
        for entry in archive.entries()
        if entry.session == session and entry.messages is not None
    )


def earlier_text(
    left: Sequence[SessionMessage], condensed: Sequence[Condensed], budget: int
) -> str:
    """Summarize the messages that no longer fit a prompt, within `budget` tokens.

    Messages not `condensed` yet get a line each. The most recent take precedence.
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
    spoken = (each for each in left if each.is_said)
    uncovered = [each for each in spoken if not any(stretch.holds(each) for stretch in condensed)]
    width = max(_MIN_LINE_WIDTH, min(_LINE_WIDTH, 3 * budget // max(1, len(uncovered)) - 12))
    yield from (f"- {each.role}: {shorten(each.content, width)}" for each in reversed(uncovered))
    for stretch in reversed(condensed):
        if stretch.messages[0] <= left[-1].id and stretch.summary.strip():
            yield f"- [{stretch.when}] {stretch.summary.strip()}"
