"""What must be known of a language: short lists of its words, a file a language.

A file in ``languages/`` is all that a language takes. Its lists, each of words or phrases:

- ``question``: how a question begins that is typed without a question mark; ``who``: one that asks
  who somebody is;
- ``greeting``, ``thanks``, ``talk``: what nobody wants to have kept;
- ``remember``, ``forget``, ``decision``, ``task``: how an order to kbtui begins; one that ends in a
  colon is meant only with it. ``keeps`` are those of ``decision`` that a title can't do without;
- ``recall``: what begins like an order and is none;
- ``work``: how a wish begins that only a model can fulfil;
- ``reason``: where the reason of a decision begins;
- ``change``: words that ask to change what is written, ``write`` to write an entry or a note;
  ``claim``: how an answer says it was;
- ``small``: words that say nothing by themselves, beside Whoosh's stop words of the language;
- ``beginners``: further words that are no names though they begin a clause with a capital, in any
  form that has the same stem;
- ``numbers`` from two on, ``weekdays`` and ``months``, in their order; ``calendar``: further words
  of the kind; ``before`` and ``after``: what means the year before this one, and the next;
- ``named``: how a line begins that says what the user is called; ``self``: what speakers are called
  where they are meant themselves; ``agree``: how an answer begins that agrees;
- ``deny``: words that turn what follows into its opposite;
- ``articles``: where all nouns have capitals, what stands before them and not before names.

A ``~`` in a phrase stands for each of the language's ``endings``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

from kbtui.search.index import analyser
from kbtui.text import fold

_WORD = re.compile(r"[^\W_]+(?:['\u2019\u00b4][^\W_]+)*")
_APOSTROPHES = re.compile(r"['\u2019\u00b4]")
LONG = 4_096
"""Characters from which on what was read of a text isn't kept."""
_SHORT = 3
_SEASONS = ("before", "after")  # Summer and Winter are names of people as well
_OF_ONE_WORD = 2  # the word, and whether a colon must follow
_BEHIND_PHRASE = re.compile(r"\s*[:,;.!\u2013\u2014-]*\s*")


class Token(NamedTuple):
    """A word of a text, folded and without apostrophes, and where it stands."""

    word: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The words of a text; in scripts without blanks a run of letters is one."""
    return list(_tokens(text)) if len(text) < LONG else _found(text)


@lru_cache(maxsize=512)  # a line is asked for its figures, names, stems and language in turn
def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(_found(text))


def _found(text: str) -> list[Token]:
    return [Token(folded(match[0]), *match.span()) for match in _WORD.finditer(text)]


@lru_cache(maxsize=1 << 14)  # the same words stand in line after line
def folded(word: str) -> str:
    """A word as the lists are compared: without case, accents and apostrophes."""
    return fold(_APOSTROPHES.sub("", word))


class Phrases:
    """Some phrases; one that ends in a colon is meant only with it."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._known = {(*(each.word for each in tokens(text)), text[-1:] == ":") for text in texts}
        self._longest = max(map(len, self._known), default=1) - 1
        self._begins = frozenset(each[0] for each in self._known)

    @property
    def words(self) -> frozenset[str]:
        """Those of one word, folded."""
        return frozenset(str(each[0]) for each in self._known if len(each) == _OF_ONE_WORD)

    def match(self, text: str, found: list[Token], at: int = 0) -> int:
        """How many words from the one `at` on are the longest phrase; 0: none is."""
        if at >= len(found) or found[at].word not in self._begins:
            return 0
        words = tuple([token.word for token in found[at : at + self._longest]])
        for count in range(len(words), 0, -1):
            if (*words[:count], False) in self._known:
                return count
            behind = text[found[at + count - 1].end :]
            if (*words[:count], True) in self._known and behind.lstrip().startswith(":"):
                return count
        return 0

    def places(self, text: str, found: list[Token]) -> list[tuple[int, int]]:
        """Where phrases begin, by words, and of how many words the longest there is."""
        begin = [at for at, token in enumerate(found) if token.word in self._begins]
        return [(at, count) for at in begin if (count := self.match(text, found, at))]


@dataclass(frozen=True, slots=True)
class Language:
    """One language: its lists, as its file has them, and the folded words of each."""

    code: str
    lists: dict[str, tuple[str, ...]]
    words: dict[str, frozenset[str]]
    known: frozenset[str]
    silent: frozenset[str]
    """The words that say little of what a text is about."""
    places: dict[str, dict[str, int]]
    """The place of each word, and of its short form, in the lists that have an order, from 0."""

    @property
    def nouns_have_capitals(self) -> bool:
        """True if a capital alone tells no name."""
        return bool(self.lists["articles"])

    def has(self, name: str, word: str) -> bool:
        """True if a folded word is one of a list's."""
        return word in self.words[name]

    def list(self, name: str) -> Phrases:
        """One of its lists."""
        return _phrases(name, self.code)


@cache
def languages() -> tuple[Language, ...]:
    """All languages that there is a file of, English first."""
    files = resources.files("kbtui.offline").joinpath("languages").iterdir()
    found = [
        _read(file.name.removesuffix(".ini"), file.read_text("utf-8"))
        for file in files
        if file.name.endswith(".ini")
    ]
    return tuple(sorted(found, key=lambda each: (each.code != "en", each.code)))


def _read(code: str, text: str) -> Language:
    from whoosh.lang.stopwords import stoplists

    lists = _lists(text)
    told = {**lists, "small": (*lists["small"], *stoplists.get(code, ()))}
    words = {
        name: frozenset(each.word for phrase in phrases for each in tokens(phrase))
        for name, phrases in told.items()
    }
    words["calendar"] |= words["weekdays"] | words["months"]
    silent = (words["small"] | words["question"]) - words["calendar"]
    short = [word for word in words["calendar"] if len(word) >= _SHORT]
    places = {name: _places(lists[name], short) for name in ("weekdays", "months")}
    places["numbers"] = _places(lists["numbers"])
    known = frozenset().union(*(found for name, found in words.items() if name not in _SEASONS))
    return Language(code, lists, words, known, silent, places)


def _lists(text: str) -> dict[str, tuple[str, ...]]:
    """The phrases of a file by the name of their list; in one ``~`` stands for each ending."""
    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read_string(text)
    typed = {
        name: [each.strip() for each in value.replace("\n", " ").split(",")]
        for name, value in parser["lists"].items()
    }
    endings = typed.pop("endings", [])
    return {
        name: tuple(
            each.replace("~", end) for each in said for end in (endings if "~" in each else [""])
        )
        for name, said in {"articles": [], **typed}.items()
    }


def _places(said: Iterable[str], short: Iterable[str] = ()) -> dict[str, int]:
    """Where each word stands, what is many of it (Sundays), and what is `short` for it."""
    words = [fold(each) for each in said]
    found: dict[str, int] = {}
    for number, word in enumerate(words):
        found.setdefault(word, number)
    for number, word in enumerate(words):
        found.setdefault(f"{word}s", number)
    for each in short:
        meant = (number for number, word in enumerate(words) if word.startswith(each))
        if (place := next(meant, None)) is not None:
            found.setdefault(each, place)
    return found


@cache
def _phrases(name: str, *codes: str) -> Phrases:
    found = (each for each in languages() if not codes or each.code in codes)
    return Phrases(phrase for each in found for phrase in each.lists.get(name, ()))


def of_all(name: str) -> Phrases:
    """One list of all languages together."""
    return _phrases(name)


@cache
def stems_of(name: str) -> frozenset[str]:
    """The stems of the words of a list in all languages."""
    found = (word for each in languages() for word in each.words.get(name, ()))
    return frozenset(analyser.terms_of(word)[0] for word in found)


def language_of(text: str) -> Language:
    """The language whose listed words a text has most of; English where none tells."""
    return _language_of(text) if len(text) < LONG else _language_of.__wrapped__(text)


@lru_cache(maxsize=512)
def _language_of(text: str) -> Language:
    found = {token.word for token in tokens(text)}
    counts = [len(found & each.known) for each in languages()]
    return languages()[counts.index(max(counts))]


def begins(text: str, phrases: Phrases) -> str | None:
    """What follows the phrase that a text begins with; None where it begins with none."""
    found = tokens(text)
    count = phrases.match(text, found)
    if not count:
        return None
    end = found[count - 1].end
    behind = _BEHIND_PHRASE.match(text, end)
    return text[behind.end() if behind else end :]


def holds(text: str, phrases: Phrases) -> bool:
    """True if a phrase stands anywhere in a text."""
    return bool(phrases.places(text, tokens(text)))


def left_over(text: str, lists: Iterable[Phrases]) -> Iterator[Token]:
    """The words of a text that no phrase of some lists takes up."""
    found, known, at = tokens(text), list(lists), 0
    while at < len(found):
        count = max(phrases.match(text, found, at) for phrases in known)
        if not count:
            yield found[at]
        at += max(1, count)


def telling_terms(text: str) -> list[str]:
    """The words of a text that say what it is about, each once, reduced to their stems."""
    language = language_of(text)
    found: dict[str, None] = {}
    for token in tokens(text):
        if token.word not in language.silent and (len(token.word) > 1 or token.word.isdigit()):
            found |= dict.fromkeys(analyser.terms_of(text[token.start : token.end])[:1])
    return list(found)
