"""Facts: statements worth keeping, before they are written to a file.

They come from a model's structured answer or from the offline parser of messages. This module also
decides when two facts say the same, and extracts the statements a document already makes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.document import read_body
from kbtui.knowledge.format.lines import bullet_of
from kbtui.text import clean_line, fold

# Words that don't change what is said of the user. Never "not", names, he, she, was.
_FILLER_WORDS = re.compile(
    "a|an|the|user|i|my|me|mine|it|that|this|is|are|am|be|been|do|does|s|m|re"
)
_SYNONYMS = {
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
_CONTRACTIONS = ((re.compile(r"\bcan't\b"), "can not"), (re.compile(r"\bwon't\b"), "will not"))
_NT_SUFFIX = re.compile(r"n't\b")
# Punctuation that makes a difference: C and C#, 5 and 5 %, a tag, an address.
_SIGNIFICANT = frozenset("#%&@")
_NUMBER_SIGNS = frozenset(".,:/-")
_PUNCTUATION = re.compile(r"[\W_]")
_RULE = re.compile(r"^[ \t]*(?:[-*_][ \t]*){3,}$")
_MIN_PLURAL = 4
_CACHE_LIMIT = 32_768  # characters; the statements of longer texts aren't cached
_SUMMARY = "summary"
Place = Literal["entry", "memory"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement worth keeping.

    Attributes:
        text: The statement as written, one or more lines of Markdown; offline the speaker's own
            clause, verbatim.
        kind: The type of the entry it belongs to, one of `templates.ENTRY_TYPES`.
        subject: What it is about, as a person would title it: a noun phrase of at most 6 words;
            empty if it has no subject of its own.
        message: The id of the message that states it, if known.
        replaces: The statement that this one makes obsolete, or a distinctive part of it.
        place: ``entry``: the subject's own entry; ``memory``: MEMORY.md, for what every
            conversation needs.
        related: Names of other entries it mentions.
        tags: Labels for its entry.
        summary: One line for the catalogue, if it differs from the text.
        importance: From 1 (of the day) to 3 (lasting), as rated by whoever condensed it; 0 if it is
            only noted on its day.
        asks: Whether a person decides on what it corrects, even if that is only a value.
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
    asks: bool = False


@lru_cache(maxsize=256)  # a line and its only sentence are often looked up in succession
def normalise(fact: str) -> str:
    """Return the normal form of a fact, which is the same for facts that say the same.

    Removes case, accents, punctuation, articles, "the user" and plural endings; keeps word order,
    negations, numbers and names. Idempotent.
    """
    words = [_canonical(word) for word in _folded_words(fact)]
    significant = [word for word in words if not _FILLER_WORDS.fullmatch(word)]
    if significant or words:
        return " ".join(significant or words)
    return " ".join(fact.casefold().split())


def plain_fact(text: str) -> str:
    """Return a fact as one line without bullet or control characters."""
    return clean_line(text[len(bullet_of(text)) :])


def statements(text: str) -> list[str]:
    """Return the statements of a Markdown document: its list items, lines of prose and summary.

    Headings, rules, code and the rest of the frontmatter don't count.
    """
    return list(
        _cached_statements(text)
        if len(text) < _CACHE_LIMIT
        else _cached_statements.__wrapped__(text)
    )


@lru_cache(maxsize=256)  # several checks compare the same few files
def _cached_statements(text: str) -> tuple[str, ...]:
    return tuple(filter(str.strip, dict.fromkeys(_statements(text))))


def without_facts(facts: dict[str, str], others: dict[str, str]) -> dict[str, str]:
    """Return the `facts` whose normal form isn't among `others`."""
    return {key: fact for key, fact in facts.items() if key and key not in others}


def _statements(text: str) -> list[str]:
    parts = frontmatter.split(text.encode("utf-8", "replace"))
    return [*_in_head(parts), *_in_body(parts.body)]


def _in_head(parts: frontmatter.Parts) -> Iterator[str]:
    if _SUMMARY.encode() not in parts.head:
        return  # fast path: undo checks thousands of files
    summary = frontmatter.read(parts).values.get(_SUMMARY)
    if isinstance(summary, str):
        yield clean_line(summary)


def _in_body(body: bytes) -> list[str]:
    return [plain_fact(line) for _, line in stating_lines(body.decode("utf-8", "replace"))]


def stating_lines(body: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that state something and their 1-based numbers.

    Those are all but headings, rules and code between fences; what is merely indented need not be
    meant as code.
    """
    document = read_body(body)
    headings = (range(each.first, each.stop) for each in document.headings)
    silent = document.fenced.union(*headings)
    for number, line in enumerate(body.split("\n")):
        if line.strip() and not (number in silent or _RULE.match(line)):
            yield number + 1, line.rstrip("\r")


def _folded_words(text: str) -> list[str]:
    folded = fold(text).replace("\u2019", "'").replace("`", "'")
    for pattern, plain in _CONTRACTIONS:
        folded = pattern.sub(plain, folded)
    folded = _NT_SUFFIX.sub(" not", folded)
    return _PUNCTUATION.sub(_kept_or_blank, folded).split()


def _kept_or_blank(mark: re.Match[str]) -> str:
    """Return a character that isn't a letter or digit if it is significant, else a blank."""
    text, at, char = mark.string, mark.start(), mark[0]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char in _NUMBER_SIGNS and after.isdigit():
        is_significant = before.isdigit() or (char == "-" and not before.strip())
    else:
        is_significant = char in _SIGNIFICANT or unicodedata.category(char)[0] not in "PZC"
    return char if is_significant else " "


def _canonical(word: str) -> str:
    word = _SYNONYMS.get(word, word)
    plural = word.endswith("s") and not word.endswith(("ss", "us", "is"))
    if plural and len(word) >= _MIN_PLURAL and word.isascii() and word.isalpha():
        word = word[:-1]
    return _SYNONYMS.get(word, word)
