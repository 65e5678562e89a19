"""Finds where something is said, in the lines of a document and in conversations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.facts import normalise, plain_fact, stating_lines
from kbtui.knowledge.format.lines import split_lines
from kbtui.memory.records.transcript import questions_in
from kbtui.offline.lines import sentence_spans
from kbtui.sessions.log_records import TITLE, Mask, SessionLog

SUMMARY = "summary"
_ABOUT = re.compile(
    r"^(?:please\s+)?(?:(?:everything|all|anything)\s+)?(?:(?:that\s+)?(?:you|i)\s+"
    r"(?:know|said|told you)\s+)?(?:about\s+)?",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"(?:[-*] )?(?:user|assistant): ")
_LEAD = re.compile(
    r"[ \t]*(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?:\d\d:\d\d[ \t]+)?)?"
    r"(?:\[\d{4}-\d\d-\d\d[^\]\n]*\][ \t]*)?(?:\[RAW\][ \t]*)?(?:(?:user|assistant):[ \t]+)?"
)


@dataclass(frozen=True, slots=True)
class MentioningLine:
    """A line that states something; line 0 is the summary in the frontmatter.

    `text` has the sentences that state it, `rest` is the line without them.
    """

    line: int
    text: str
    rest: str = ""


def words_of(text: str) -> frozenset[str]:
    """Return the words that tell what a text is about."""
    return _words(_ABOUT.sub("", text.strip(), count=1))


def states(text: str, wanted: frozenset[str]) -> bool:
    """Return whether a text has all wanted words."""
    return bool(wanted) and wanted <= _words(text)


def states_any(text: str, facts: Iterable[frozenset[str]]) -> bool:
    """Return whether a text states one of some facts, each given by its words."""
    return any(states(text, fact) for fact in facts)


def _words(text: str) -> frozenset[str]:
    """Return the words of a text, including those of link names and table cells."""
    return frozenset(normalise(text.replace("|", " ")).split())


def mentions(data: bytes, facts: Sequence[frozenset[str]]) -> list[MentioningLine]:
    """Return the lines of a document that state one of some facts, each given by its words.

    Code and headings don't count. If the document is about a fact as a whole, every line does. A
    line of a conversation is read together with the question before it.
    """
    parts = frontmatter.split(data)
    found = []
    values = frontmatter.read(parts).values
    summary = values.get(SUMMARY)
    body = parts.body.decode("utf-8", "surrogateescape")
    is_all = _is_about(str(values.get("title") or ""), body, facts)
    if isinstance(summary, str) and (is_all or states_any(summary, facts)):
        found.append(MentioningLine(0, summary))
    first = data[: len(data) - len(parts.body)].count(b"\n")
    asked = ""
    for number, line in stating_lines(body):
        if is_all:
            found.append(MentioningLine(first + number, plain_fact(line)))
        elif spans := spans_saying(line, facts, asked):
            found.append(_mention(first + number, line, spans))
        asked = line if _SPEAKER.match(line) and line.rstrip().endswith("?") else ""
    return found


def _is_about(title: str, body: str, facts: Sequence[frozenset[str]]) -> bool:
    """Return whether a document's title or first heading is exactly one of the facts."""
    heading = next((line[2:] for line in body.splitlines() if line.startswith("# ")), "")
    names = [_words(each) for each in (title, heading) if each.strip()]
    return any(name in facts for name in names)


def spans_saying(
    text: str, facts: Sequence[frozenset[str]], asked: str = ""
) -> tuple[tuple[int, int], ...]:
    """Return the spans of the sentences that state one of some facts, each given by its words.

    Words in `asked`, the question that the text answers, needn't be repeated.
    """
    pieces = sentence_spans(text)
    found: dict[tuple[int, int], None] = {}
    known = _words(asked)
    for fact in facts:
        matching = [span for span in pieces if states(text[slice(*span)], fact)]
        if not matching and states(f"{asked} {text}", fact):
            new = fact - known or fact
            matching = [span for span in pieces if new & _words(text[slice(*span)])]
        found |= dict.fromkeys(matching)
    return tuple(sorted(found))


def masks_of(log: SessionLog, facts: Sequence[frozenset[str]]) -> list[Mask]:
    """Return masks for what states a fact in a conversation, tool calls and results included."""
    spans = spans_saying(log.title, facts)
    found = [Mask(TITLE, spans)] if spans else []
    asked = ""
    for message in log.messages:
        spans = spans_saying(message.content, facts, asked if message.role == "user" else "")
        arguments = " ".join(call.arguments for call in message.tool_calls)
        calls = states_any(arguments, facts)
        if spans or calls:
            found.append(Mask(message.id, spans, calls))
        if message.is_said:
            asked = " ".join(questions_in(message.content))
    return found


def without(data: bytes, found: Iterable[MentioningLine]) -> bytes:
    """Remove what the mentions state from a document; every other byte stays."""
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


def _mention(number: int, line: str, spans: Sequence[tuple[int, int]]) -> MentioningLine:
    """Return the sentences of a line that state something, and the line without them."""
    lead = _LEAD.match(line)
    start = lead.end() if lead else 0
    matching, rest = [], line[start:]
    for first, last in reversed(spans):
        begin = max(first, start)
        matching.append(line[begin:last])
        rest = f"{rest[: begin - start].rstrip()} {rest[last - start :].lstrip()}"
    text = plain_fact(" ".join(reversed(matching)))
    rest_text = rest.strip()
    return MentioningLine(number, text, line[:start] + rest_text if normalise(rest_text) else "")
