"""Facts: statements worth keeping, on their way from what somebody said into a file.

They come out of a model's structured answer or out of the offline reading of a message. Here is
also when two of them say the same, and which statements a document makes already.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.lines import bullet_of, fenced
from kbtui.text import clean_line, fold

# Words that change nothing about what is said of the user. Never "not", names, he, she, was.
_SILENT = re.compile("a|an|the|user|i|my|me|mine|it|that|this|is|are|am|be|been|do|does|s|m|re")
_SAME = {
    "favourite": "favorite",
    "colour": "color",
    "behaviour": "behavior",
    "organise": "organize",
    "centre": "center",
    "has": "have",
    "likes": "like",
    "ve": "have",
    "ll": "will",
    "d": "would",
}
_NOT = ((re.compile(r"\bcan't\b"), "can not"), (re.compile(r"\bwon't\b"), "will not"))
_NOT_END = re.compile(r"n't\b")
# Punctuation that tells things apart: C and C#, 5 and 5 %, a tag, an address.
_TELLING = frozenset("#%&@")
_IN_NUMBER = frozenset(".,:/-")
_MARK = re.compile(r"[\W_]")
_HEADING = re.compile(r"^ {0,3}#{1,6}(?:[ \t]|$)")
_RULE = re.compile(r"^[ \t]*(?:[-*_][ \t]*){3,}$")
_MIN_PLURAL = 4
_LONG = 32_768  # characters of a text whose statements aren't kept
_SUMMARY = "summary"
Place = Literal["entry", "memory"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement worth keeping.

    Attributes:
        text: The statement as it is written down, one or more lines of Markdown; offline the
            speaker's own clause, word for word.
        kind: The type of the entry that it belongs to, one of `templates.ENTRY_TYPES`.
        subject: What it is about, as a person would title it: a noun phrase of at most 6 words.
            Empty where it has no subject of its own.
        message: The id of the message that says it, if known.
        replaces: The statement, or a telling part of it, that isn't true any more by this one.
        place: ``entry``: the subject's own entry; ``memory``: MEMORY.md, for what every
            conversation needs.
        related: Names of other entries that it mentions.
        tags: Labels for its entry.
        summary: One line for the catalogue, where it says another thing than the text.
        importance: From 1, of the day, to 3, for good, by who condensed it.
    """

    text: str
    kind: str
    subject: str = ""
    message: int | None = None
    replaces: str = ""
    place: Place = "entry"
    related: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    summary: str = ""
    importance: int = 1


@lru_cache(maxsize=256)  # a line and its only sentence are asked about one after the other
def normalise(fact: str) -> str:
    """Reduce a fact to what it says: same facts in other clothes come out equal.

    Case, accents, punctuation, articles, "the user" and plural endings go; word order, negations,
    numbers and names stay. Applying it again changes nothing.
    """
    words = [_canonical(word) for word in _words(fact)]
    telling = [word for word in words if not _SILENT.fullmatch(word)]
    if telling or words:
        return " ".join(telling or words)
    return " ".join(fact.casefold().split())


def plain_fact(text: str) -> str:
    """A fact as one line without bullet or control characters."""
    return clean_line(text[len(bullet_of(text)) :])


def statements(text: str) -> list[str]:
    """The statements of a Markdown document: its bullets and lines of prose, and its summary.

    Headings, rules, code and the rest of the frontmatter state nothing.
    """
    return list(_stated(text) if len(text) < _LONG else _stated.__wrapped__(text))


@lru_cache(maxsize=256)  # each guard compares the same few files
def _stated(text: str) -> tuple[str, ...]:
    return tuple(filter(str.strip, dict.fromkeys(_statements(text))))


def restated(before: str, after: str) -> tuple[dict[str, str], dict[str, str]]:
    """The statements that only one or only the other of two documents has, by normal form."""
    old, new = (frontmatter.split(text.encode("utf-8", "replace")) for text in (before, after))
    was, now = (
        dict.fromkeys([*_in_body(parts.body), *(_in_head(parts) if old.head != new.head else ())])
        for parts in (old, new)
    )
    gone = {normalise(fact): fact for fact in was if fact not in now}
    come = {normalise(fact): fact for fact in now if fact not in was}
    return besides(gone, come), besides(come, gone)


def besides(facts: dict[str, str], others: dict[str, str]) -> dict[str, str]:
    """Those of some facts, by normal form, that aren't among others."""
    return {key: fact for key, fact in facts.items() if key and key not in others}


def _statements(text: str) -> Iterator[str]:
    parts = frontmatter.split(text.encode("utf-8", "replace"))
    yield from _in_head(parts)
    yield from _in_body(parts.body)


def _in_head(parts: frontmatter.Parts) -> Iterator[str]:
    if _SUMMARY.encode() not in parts.head:
        return  # an undo asks this of thousands of files
    summary = frontmatter.read(parts).values.get(_SUMMARY)
    if isinstance(summary, str):
        yield clean_line(summary)


def _in_body(body: bytes) -> Iterator[str]:
    return (plain_fact(line) for _, line in stating_lines(body.decode("utf-8", "replace")))


def stating_lines(body: str) -> Iterator[tuple[int, str]]:
    """The lines that state something, not headings, rules and code, with their numbers from 1."""
    for number, (line, is_code) in enumerate(fenced(body.split("\n")), 1):
        if line.strip() and not (is_code or _HEADING.match(line) or _RULE.match(line)):
            yield number, line.rstrip("\r")


def _words(text: str) -> list[str]:
    folded = fold(text).replace("\u2019", "'").replace("`", "'")
    for pattern, plain in _NOT:
        folded = pattern.sub(plain, folded)
    folded = _NOT_END.sub(" not", folded)
    return _MARK.sub(_kept, folded).split()


def _kept(mark: re.Match[str]) -> str:
    """A character that isn't a letter or digit, if it counts; else a blank."""
    text, at, char = mark.string, mark.start(), mark[0]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _IN_NUMBER and after.isdigit():
        kept = before.isdigit() or (char == "-" and not before.strip())
    else:
        kept = char in _TELLING or unicodedata.category(char)[0] not in "PZC"
    return char if kept else " "


def _canonical(word: str) -> str:
    word = _SAME.get(word, word)
    plural = word.endswith("s") and not word.endswith(("ss", "us", "is"))
    if plural and len(word) >= _MIN_PLURAL and word.isascii() and word.isalpha():
        word = word[:-1]
    return _SAME.get(word, word)
