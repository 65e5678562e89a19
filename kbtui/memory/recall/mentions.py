"""Finds where something is said, in the lines of a document and in conversations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.document import Document, read
from kbtui.knowledge.format.facts import normalise, plain_fact
from kbtui.knowledge.format.frontmatter import value_text
from kbtui.knowledge.format.lines import split_lines
from kbtui.memory.records.claims import is_own
from kbtui.memory.records.transcript import questions_in
from kbtui.offline.frames import stands_alone
from kbtui.offline.lines import sentence_spans
from kbtui.sessions.log_records import TITLE, Mask, SessionLog
from kbtui.text import clean_line

SUMMARY = "summary"
_NAMES = frozenset({"title", "type", "created", "updated", "private"})
_INSEPARABLE = frozenset({"comment", "html"})
_ABOUT = re.compile(
    r"^(?:please\s+)?(?:(?:everything|all|anything)\s+)?(?:(?:that\s+)?(?:you|i)\s+"
    r"(?:know|said|told you)\s+)?(?:about\s+)?",
    re.IGNORECASE,
)
# What isn't part of a word although it may be elsewhere: C#, 5 %.
_MARKUP = re.compile(r"(?<!\w)[#%$]+(?=\w)|(?<=\w)#(?=\w)|(?<=\w)(?:\$|%%)(?!\w)|<[^<>]*>|[|^]")
_SPEAKER = re.compile(r"(?:[-*] )?(?:user|assistant): ")
_LEAD = re.compile(
    r"[ \t>]*(?:#{1,6}[ \t]+)?"
    r"(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?:\d\d:\d\d[ \t]+)?)?"
    r"(?:\[\d{4}-\d\d-\d\d[^\]\n]*\][ \t]*)?(?:\[RAW\][ \t]*)?(?:(?:user|assistant):[ \t]+)?"
)


@dataclass(frozen=True, slots=True)
class MentioningLine:
    """A line that states something; line 0 is a property at the top, called `key`.

    `text` has the sentences that state it, `rest` is the line, `left` the property, without them.
    """

    line: int
    text: str
    rest: str = ""
    key: str = ""
    left: Any = None


def words_of(text: str) -> frozenset[str]:
    """Return the words that tell what a text is about."""
    return frozenset(normalise(_ABOUT.sub("", text.strip(), count=1).replace("|", " ")).split())


def states(text: str, wanted: frozenset[str]) -> bool:
    """Return whether a text has all wanted words."""
    return bool(wanted) and wanted <= _words(text)


def states_any(text: str, facts: Iterable[frozenset[str]]) -> bool:
    """Return whether a text states one of some facts, each given by its words."""
    return any(states(text, fact) for fact in facts)


def _words(text: str) -> frozenset[str]:
    """Return the words of a text, including those of link names, tags and table cells."""
    words = frozenset(normalise(text.replace("|", " ")).split())
    bare = _MARKUP.sub(" ", text)
    return words if bare == text else words | frozenset(normalise(bare).split())


def mentions(data: bytes, facts: Sequence[frozenset[str]]) -> list[MentioningLine]:
    """Return what states one of some facts, each given by its words, in a file.

    Every visible line counts but the title, which is a name. If the file is about a fact as a
    whole, every line states it. A line of a conversation is read together with the question before
    it.
    """
    values = frontmatter.parse(data).values
    document = read(data.decode("utf-8", "surrogateescape"))
    is_all = _is_about(str(values.get("title") or ""), document, facts)
    found = {each.line: each for each in _in_lines(document, facts, is_all=is_all)}
    for block in document.blocks:
        numbers = range(block.first + 1, block.stop + 1)
        stated = [each for each in map(found.get, numbers) if each is not None]
        # Half a comment, or the line below a heading that is gone, would be something else.
        is_broken = block.kind == "heading" and any(not each.rest for each in stated)
        if is_broken or (block.kind in _INSEPARABLE and stated):
            text = " ".join(each.text for each in stated)
            found |= {number: MentioningLine(number, "") for number in numbers}
            found[numbers[0]] = MentioningLine(numbers[0], text)
    properties = _in_properties(values, facts, is_all=is_all)
    return [*properties, *(found[number] for number in sorted(found))]


def _in_lines(
    document: Document, facts: Sequence[frozenset[str]], *, is_all: bool
) -> Iterator[MentioningLine]:
    asked, own, title = "", "", _title_line(document)
    # Without its first line, what stands in a block of code would no longer be code.
    fences = {each.first: document.bare_fence(each) for each in document.fenced_blocks}
    for number, kind, _, _ in document.visible_lines():
        if kind == "property" or (number == title and not is_all):
            continue
        line = document.line(number).rstrip("\r")
        if is_all:
            yield MentioningLine(number + 1, plain_fact(line))
            continue
        speaker = _SPEAKER.match(line)
        is_users = speaker is not None and "user" in speaker[0]
        spans = spans_saying(line, facts, asked)
        if speaker is not None and is_users and not spans:
            rest = [span for span in sentence_spans(line) if span[1] > speaker.end()]
            spans = tuple(_answer_to(own, line, rest[:1], facts))
        if spans:
            yield _mention(number + 1, line, spans, fences.get(number, ""))
        asked = line if speaker is not None and line.rstrip().endswith("?") else ""
        own = asked if is_users else own


def _in_properties(
    values: Mapping[str, Any], facts: Sequence[frozenset[str]], *, is_all: bool
) -> Iterator[MentioningLine]:
    """Yield the properties that state a fact, each with what is left of it: nothing, or a list."""
    for key, value in values.items():
        items = value if isinstance(value, list) else [value]
        texts = [each if isinstance(each, str) else value_text(each, flow=True) for each in items]
        name = "" if is_own(key) else key
        stating = [states_any(f"{name} {text}", facts) for text in texts]
        if key in _NAMES or not (any(stating) or (is_all and key == SUMMARY)):
            continue
        kept = [each for each, is_stating in zip(items, stating, strict=True) if not is_stating]
        told = [text for text, is_stating in zip(texts, stating, strict=True) if is_stating]
        left = kept if isinstance(value, list) and kept else None
        yield MentioningLine(0, clean_line(", ".join(told or texts)), key=key, left=left)


def _title_line(document: Document) -> int | None:
    heading = next((each for each in document.blocks if each.kind == "heading"), None)
    return heading.first if heading is not None and heading.level == 1 else None


def _is_about(title: str, document: Document, facts: Sequence[frozenset[str]]) -> bool:
    """Return whether a document's title or first heading is exactly one of the facts."""
    line = _title_line(document)
    heading = document.line(line).strip("# \t\r") if line is not None else ""
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
        found |= dict.fromkeys(matching or _answer_to(asked, text, pieces[:1], [fact]))
        for number, span in enumerate(pieces[1:]):
            if pieces[number] in matching:
                found |= dict.fromkeys(
                    _answer_to(text[slice(*pieces[number])], text, [span], [fact])
                )
    return tuple(sorted(found))


def _answer_to(
    asked: str,
    text: str,
    pieces: Sequence[tuple[int, int]],
    facts: Sequence[frozenset[str]],
) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a text that say nothing but for a question that states a fact."""
    if asked.rstrip().endswith("?") and states_any(asked, facts):
        said = ((span, _SPEAKER.sub("", text[slice(*span)], count=1)) for span in pieces)
        yield from (span for span, sentence in said if not stands_alone(sentence))


def masks_of(log: SessionLog, facts: Sequence[frozenset[str]]) -> list[Mask]:
    """Return masks for what states a fact in a conversation, tool calls and results included."""
    spans = spans_saying(log.title, facts)
    found = [Mask(TITLE, spans)] if spans else []
    asked, own = "", ""
    for message in log.messages:
        is_users = message.role == "user"
        spans = spans_saying(message.content, facts, asked if is_users else "")
        if is_users and not spans:
            first = sentence_spans(message.content)[:1]
            spans = tuple(_answer_to(own, message.content, first, facts))
        arguments = " ".join(call.arguments for call in message.tool_calls)
        calls = states_any(arguments, facts)
        if spans or calls:
            found.append(Mask(message.id, spans, calls))
        if message.is_said:
            asked = " ".join(questions_in(message.content))
            own = asked if is_users else own  # an answer that there is none stands in between
    return found


def without(data: bytes, found: Iterable[MentioningLine]) -> bytes:
    """Remove what the mentions state from a file; every other byte stays."""
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
    left = {each.key: each.left for each in found if each.key}
    return frontmatter.set_keys(changed, left) if left else changed


def _mention(number: int, line: str, spans: Sequence[tuple[int, int]], bare: str) -> MentioningLine:
    """Return the sentences of a line that state something, and the line without them.

    If nothing else is on it, `bare` is left.
    """
    lead = _LEAD.match(line)
    start = lead.end() if lead else 0
    matching, rest = [], line[start:]
    for first, last in reversed(spans):
        begin = max(first, start)
        matching.append(line[begin:last])
        rest = f"{rest[: begin - start].rstrip()} {rest[last - start :].lstrip()}"
    text = plain_fact(" ".join(reversed(matching)))
    rest_text = rest.strip()
    return MentioningLine(number, text, line[:start] + rest_text if normalise(rest_text) else bare)
