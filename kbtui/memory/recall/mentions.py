"""Where something is said: in the lines of a document, and in conversations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.knowledge import frontmatter
from kbtui.knowledge.statements import normalise, plain_fact
from kbtui.memory.edits.memory_file import is_statement, split_lines
from kbtui.memory.records.transcript import said_by_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kbtui.sessions.store import SessionMessage

SUMMARY = "summary"
_ABOUT = re.compile(
    r"^(?:please\s+)?(?:(?:everything|all|anything)\s+)?(?:(?:that\s+)?(?:you|i)\s+"
    r"(?:know|said|told you)\s+)?(?:about\s+)?",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])[ \t]+(?=\S)")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_LEAD = re.compile(r"[ \t]*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?")


@dataclass(frozen=True, slots=True)
class Mention:
    """A line that says it.

    Attributes:
        line: Its number; 0 for the summary in the frontmatter.
        text: The sentences that say it.
        rest: What of the line stays when they are taken out; empty: nothing.
    """

    line: int
    text: str
    rest: str = ""


def words_of(text: str) -> frozenset[str]:
    """The words that tell what a text is about."""
    return frozenset(normalise(_ABOUT.sub("", text.strip(), count=1)).split())


def says(text: str, wanted: frozenset[str]) -> bool:
    """Whether a text holds all of some words."""
    return bool(wanted) and wanted <= set(normalise(text).split())


def mentions(data: bytes, wanted: frozenset[str]) -> list[Mention]:
    """The lines of a document that say something; code and headings don't count."""
    parts = frontmatter.split(data)
    found = []
    summary = frontmatter.read(parts).values.get(SUMMARY)
    if isinstance(summary, str) and says(summary, wanted):
        found.append(Mention(0, summary))
    head = len(data) - len(parts.body)
    first = data[:head].count(b"\n")
    for number, line in _spoken_lines(parts.body.decode("utf-8", "surrogateescape")):
        if says(line, wanted):
            found.append(_mention(first + number, line, wanted))
    return found


def without(data: bytes, found: Iterable[Mention]) -> bytes:
    """A document without what some mentions say; every other byte stays."""
    by_line = {each.line: each for each in found}
    lines = split_lines(data.decode("utf-8", "surrogateescape"))
    kept = []
    for number, line in enumerate(lines, 1):
        mention = by_line.get(number)
        if mention is None:
            kept.append(line)
        elif mention.rest:
            kept.append(mention.rest + line[len(line.rstrip("\r\n")) :])
    changed = "".join(kept).encode("utf-8", "surrogateescape")
    return frontmatter.set_keys(changed, {SUMMARY: None}) if 0 in by_line else changed


def said_in(messages: Sequence[SessionMessage], facts: Sequence[frozenset[str]]) -> list[int]:
    """The messages that say one of some facts, an answer taken together with its question."""
    spoken = [each for each in messages if each.role in ("user", "assistant")]
    users = [each.id for each in spoken if each.role == "user"]
    texts = {each.id: each.content for each in spoken}
    texts |= dict(zip(users, (text for _, text in said_by_user(messages)), strict=True))
    return [number for number, text in texts.items() if any(says(text, fact) for fact in facts)]


def _spoken_lines(body: str) -> Iterator[tuple[int, str]]:
    fence = ""
    for number, line in enumerate(split_lines(body), 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        elif not fence and is_statement(line):
            yield number, line.rstrip("\r\n")


def _mention(number: int, line: str, wanted: frozenset[str]) -> Mention:
    """The sentences of a line that say it; the whole line where none says it by itself."""
    lead = _LEAD.match(line)
    start = lead.end() if lead else 0
    sentences = _SENTENCES.split(line[start:])
    telling = [each for each in sentences if says(each, wanted)]
    others = [each for each in sentences if each not in telling]
    if not telling or not others:
        return Mention(number, plain_fact(line))
    return Mention(number, " ".join(telling), line[:start] + " ".join(others))
