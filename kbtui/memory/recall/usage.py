"""How often the lines of MEMORY.md were of use: in how many messages the user spoke of them.

Nothing is counted while it happens, as the conversations are there to be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from weakref import WeakKeyDictionary

from kbtui.errors import KbtuiError
from kbtui.memory.records.dates import local
from kbtui.offline.language import significant_terms
from kbtui.sessions.store import SessionStore

_MAX_SESSIONS = 60
_MAX_MESSAGES = 2_000
_MIN_SHARED = 2  # content words of a line that a message has
_MAX_LINES_OF_WORD = 5  # a word in more lines tells none of them apart
_CACHED: WeakKeyDictionary[SessionStore, tuple[tuple[object, ...], Counter[str]]] = (
    WeakKeyDictionary()
)


def uses_of(sessions: SessionStore, lines: Sequence[str], before: date) -> Counter[str]:
    """Return in how many of the user's messages before a day each of some lines was spoken of.

    A message that states a line isn't one of them, nor is any of today: what is chosen by this for
    a prompt should stay the same all day. Only the newest conversations are read, and none again
    for the same lines on the same day.
    """
    key = (tuple(lines), before)
    known = _CACHED.get(sessions)
    if known is None or known[0] != key:
        known = (key, _counted(lines, _messages(sessions, before)))
        _CACHED[sessions] = known
    return known[1]


def _counted(lines: Sequence[str], messages: Iterable[str]) -> Counter[str]:
    terms = {line: frozenset(significant_terms(line)) for line in lines}
    spread = Counter(term for found in terms.values() for term in found)
    by_term: dict[str, list[str]] = {}
    for line, found in terms.items():
        for term in found:
            by_term.setdefault(term, []).append(line)
    uses: Counter[str] = Counter()
    for message in messages:
        said = frozenset(significant_terms(message))
        shared = Counter(line for term in said for line in by_term.get(term, ()))
        for line, count in shared.items():
            is_told_apart = any(spread[term] <= _MAX_LINES_OF_WORD for term in said & terms[line])
            is_restated = terms[line] <= said
            uses[line] += is_told_apart and not is_restated and count >= _MIN_SHARED
    return uses


def _messages(sessions: SessionStore, before: date) -> Iterator[str]:
    """Yield the user's newest messages before a day."""
    count = 0
    for info in sessions.list()[:_MAX_SESSIONS]:
        try:
            found = sessions.read(info.id)
        except KbtuiError:
            continue
        for each in found:
            if each.role == "user" and _day(each.time) < before:
                count += 1
                yield each.content
        if count >= _MAX_MESSAGES:
            return


def _day(time: datetime) -> date:
    return local(time).date()
