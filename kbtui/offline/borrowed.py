"""Which sentences of a message are the speaker's own, and which are pasted from elsewhere.

What stands in a quote, a letter, a mail, a log or code is nobody's statement about the speaker,
whoever says "I" there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from kbtui.knowledge.format.document import Document
from kbtui.offline.frames import holds_frame, phrase_at_start
from kbtui.offline.language import CACHE_LIMIT
from kbtui.offline.lines import sentence_spans
from kbtui.offline.message import is_machine_made

_LONGEST_SALUTATION = 60  # characters
_LONGEST_LEAD = 160
_QUOTE = re.compile(r"[ \t]*>")
_LEAD = re.compile(r":[ \t]*(?=\n|\Z)")
_COLON = re.compile(r":[ \t]+(?=\S)")


def sentences_with_owner(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the sentences of a message, each with whether it is borrowed from somebody else."""
    return _cached(text) if len(text) < CACHE_LIMIT else _cached.__wrapped__(text)


@lru_cache(maxsize=1_024)  # each turn asks for those of its whole conversation
def _cached(text: str) -> tuple[tuple[str, bool], ...]:
    return tuple(_sentences_with_owner(text))


def _sentences_with_owner(text: str) -> Iterator[tuple[str, bool]]:
    begun = _where_borrowed_begins(text)
    code = Document(text, has_head=False, is_excerpt=True).fenced
    for start, stop in sentence_spans(text):
        line = text[text.rfind("\n", 0, start) + 1 : stop]
        is_borrowed = stop > begun or _QUOTE.match(line) is not None
        yield text[start:stop], is_borrowed or (bool(code) and text.count("\n", 0, start) in code)


def _where_borrowed_begins(text: str) -> int:
    """Return where a letter or a pasted text begins, of which the rest of a message consists."""
    if is_machine_made(text):
        return 0
    end = 0
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        start, end = end, end + len(line)
        has_more = any(each.strip() for each in lines[number + 1 :])
        if has_more and _is_salutation(line):
            return start
        lead = line[:_LONGEST_LEAD]
        if has_more and _LEAD.search(line) and _introduces(lead):
            return end
        colon = _COLON.search(lead)
        if colon and _introduces(lead[: colon.start()]):
            return start + colon.end()
    return len(text) + 1


def _is_salutation(line: str) -> bool:
    plain = line.strip()
    is_short = len(plain) <= _LONGEST_SALUTATION and plain[-1:] in ",!:"
    return is_short and phrase_at_start(plain, "letter")


def _introduces(lead: str) -> bool:
    """Return whether the words before a colon announce somebody else's text."""
    return holds_frame(lead, "pasted") or holds_frame(lead, "says")
