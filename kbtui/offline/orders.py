"""Orders: what a message tells kbtui to do with the notes, by its shape and the lists of languages.

A message is an order only as a whole: a verb of a list at its start, in some languages also at its
end, and besides it no more than what the order is about. With a word that makes a clause of that
("Rename Anna to Anne was her idea"), or in several sentences, it is a statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kbtui.offline.language import (
    Language,
    Phrases,
    Token,
    begins,
    languages,
    of_all,
    tokens,
    unmatched,
)
from kbtui.offline.lines import sentences

OrderKind = Literal["forget", "erase", "delete", "rename", "undo"]
_SMALL_TALK = ("greeting", "thanks", "talk")
_MAX_WORDS = 10
_MAX_BARE_WORDS = 5
_ENDS = " \t.!?\u2026\u3002\u00bf\u00a1,;:"
_QUOTES = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"


@dataclass(frozen=True, slots=True)
class Order:
    """An order.

    Attributes:
        kind: ``forget`` and ``delete`` are of everything about something, and of the note of that
            name; ``erase`` doesn't say which, and may be no order at all.
        about: What it is about, as typed; empty for ``undo``.
        names: The old and the new name of a ``rename``, for each place where they may be parted.
    """

    kind: OrderKind
    about: str = ""
    names: tuple[tuple[str, str], ...] = ()


def read_order(text: str) -> Order | None:
    """Return the order that a message is, if it is one."""
    if "\n" in text.strip() or begins(text, of_all("recall")) is not None:
        return None
    text = without_lead(text.strip())
    asked = begins(text, of_all("request"))
    if text.rstrip().endswith("?") and asked is None:
        return None
    text = _without_polite(asked or text).strip(_ENDS)
    if not text or len(sentences(text)) > 1:
        return None
    orders = (_in_language(text, each) for each in languages())
    return next((each for each in orders if each is not None), None)


def without_lead(text: str) -> str:
    """Strip leading small talk from a message: *ok*, *hey*."""
    for kind in _SMALL_TALK:
        rest = begins(text, of_all(kind))
        if rest:
            return without_lead(rest)
    return text


def _without_polite(text: str) -> str:
    polite = of_all("polite")
    while rest := begins(text, polite):
        text = rest
    while (shorter := _without_end(text, polite)) is not None:
        text = shorter
    return text


def _without_end(text: str, phrases: Phrases) -> str | None:
    """Return a text without the phrase at its end; None if there is none, or nothing else."""
    found = tokens(text)
    for at, token in enumerate(found[1:], 1):
        if phrases.match(text, found, at) == len(found) - at:
            return text[: token.start].rstrip(_ENDS)
    return None


def _in_language(text: str, language: Language) -> Order | None:
    plain = " ".join([each.word for each in unmatched(text, [language.list("polite")])])
    if (words := tokens(plain)) and language.list("undo").match(plain, words) == len(words):
        return Order("undo")
    said = begins(text, language.list("forget that"))
    if said:
        return Order("forget", said)
    about = begins(text, language.list("forget"))
    if about:
        about = begins(about, language.list("everything")) or about
        return Order("forget", _bare(about)) if _is_thing(about, language) else None
    if rest := _after_verb(text, language, "rename"):
        return _rename(_without_end(rest, language.list("tail")) or rest, language)
    if rest := _after_verb(text, language, "erase"):
        return _erase(rest, language, may_be_bare=bool(_after_verb(text, language, "delete")))
    return None


def _after_verb(text: str, language: Language, name: str) -> str | None:
    """Return what an order is about, whose verb stands before it or after it."""
    verbs = language.list(name)
    rest = begins(text, verbs) or _without_end(text, verbs)
    return _without_polite(rest) if rest else None


def _erase(rest: str, language: Language, *, may_be_bare: bool) -> Order | None:
    kinds: tuple[tuple[OrderKind, str], ...] = (("forget", "everything"), ("delete", "note"))
    for kind, name in kinds:
        about = begins(rest, language.list(name))
        if about:
            about = _without_end(about, language.list("tail")) or about
            return Order(kind, _bare(about)) if _is_thing(about, language) else None
    is_bare = len(tokens(rest)) <= _MAX_BARE_WORDS and _is_thing(rest, language)
    return Order("erase", _bare(rest)) if may_be_bare and is_bare else None


def _rename(rest: str, language: Language) -> Order | None:
    rest = begins(rest, language.list("note")) or rest
    names = tuple(_parted(rest, tokens(rest), language.list("into")))
    return Order("rename", rest, names) if names and _is_thing(rest, language) else None


def _parted(text: str, found: list[Token], into: Phrases) -> Iterator[tuple[str, str]]:
    """Yield the parts of a text before and after each word that parts an old and a new name."""
    for at in range(1, len(found) - 1):
        if count := into.match(text, found, at):
            after = text[found[at + count - 1].end :]
            old, new = _bare(text[: found[at].start]), _bare(after)
            if old and new:
                yield old, new


def _is_thing(text: str, language: Language) -> bool:
    """Return whether a text may be the name of something: it is short, and has no clause in it."""
    found = tokens(text)
    words = language.words["clause"]
    return 0 < len(found) <= _MAX_WORDS and not any(each.word in words for each in found)


def _bare(text: str) -> str:
    return text.strip(_ENDS + _QUOTES)
