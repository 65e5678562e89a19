"""What must be known of a language: short lists of its words, a file a language.

A file in ``languages/`` is all that a language takes. Its lists, each of words or phrases:

- ``question``: how a question begins that is typed without a question mark;
- ``greeting``, ``thanks``, ``talk``: what nobody wants to have kept;
- ``remember``, ``forget``, ``decision``, ``task``: how an order to kbtui begins; one that ends in a
  colon is meant only with it. ``keeps`` are those of ``decision`` that a title can't do without;
- ``recall``: what begins like an order and is none;
- ``work``: how a wish begins that only a model can fulfil;
- ``reason``: where the reason of a decision begins;
- ``change``: words that ask to change what is written, ``write`` to write an entry or a note;
  ``claim``: how an answer says it was;
- ``small``: words that say nothing by themselves, beside Whoosh's stop words of the language;
- ``beginners``: further words that are no names though they begin a clause with a capital;
- ``numbers`` from two on, ``weekdays`` and ``months``, in their order; ``calendar``: further words
  of the kind;
- ``named``: how a line begins that says what the user is called; ``self``: what speakers are called
  where they are meant themselves; ``agree``: how an answer begins that agrees;
- ``deny``: words that turn what follows into its opposite.

``nouns_have_capitals`` says that nouns do, and ``articles`` what stands before them, so that names
can be told.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple, get_args

from kbtui.search.index import analyser
from kbtui.text import fold

ListName = Literal[
    "question",
    "greeting",
    "thanks",
    "talk",
    "remember",
    "forget",
    "decision",
    "keeps",
    "task",
    "recall",
    "work",
    "reason",
    "change",
    "write",
    "claim",
    "small",
    "beginners",
    "numbers",
    "weekdays",
    "months",
    "calendar",
    "articles",
    "named",
    "self",
    "agree",
    "deny",
]
_WORD = re.compile(r"[^\W_]+(?:['\u2019\u00b4][^\W_]+)*")
_APOSTROPHES = re.compile(r"['\u2019\u00b4]")
_ORDERED = ("numbers", "weekdays", "months")
_SHORT = 3
_BEHIND_PHRASE = re.compile(r"\s*[:,;.!\u2013\u2014-]*\s*")


class Token(NamedTuple):
    """A word of a text, folded and without apostrophes, and where it stands."""

    word: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases by their first word, the longest first; each with True where a colon must follow."""

    by_first: dict[str, list[tuple[tuple[str, ...], bool]]]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Phrases:
        """Read phrases as they stand in a file."""
        found: dict[str, list[tuple[tuple[str, ...], bool]]] = {}
        for text in texts:
            words = tuple(token.word for token in tokens(text))
            if words:
                found.setdefault(words[0], []).append((words, text.endswith(":")))
        for phrases in found.values():
            phrases.sort(key=lambda phrase: (-len(phrase[0]), not phrase[1]))
        return cls(found)

    def match(self, text: str, found: list[Token], at: int = 0) -> int:
        """How many words from the one `at` on are the longest phrase; 0: none is."""
        first = found[at].word if at < len(found) else ""
        for phrase, with_colon in self.by_first.get(first, ()):
            end = at + len(phrase)
            if tuple(token.word for token in found[at:end]) != phrase:
                continue
            if not with_colon or text[found[end - 1].end :].lstrip().startswith(":"):
                return len(phrase)
        return 0


@dataclass(frozen=True, slots=True)
class Language:
    """One language, as its file has it."""

    code: str
    name: str
    nouns_have_capitals: bool
    phrases: dict[str, Phrases]
    words: dict[str, frozenset[str]]
    ordered: dict[str, tuple[str, ...]] = field(repr=False)
    known: frozenset[str] = field(repr=False)

    def list(self, name: ListName) -> Phrases:
        """One of its lists."""
        return self.phrases[name]

    def has(self, name: ListName, word: str) -> bool:
        """True if a folded word is one of a list's."""
        return word in self.words[name]

    def place(self, name: Literal["numbers", "weekdays", "months"], word: str) -> int | None:
        """Where a folded word, or its short form, stands in a list that has an order, from 0."""
        words = self.ordered[name]
        for each in (word, word.removesuffix("s")):  # Sundays
            if each in words:
                return words.index(each)
        short = len(word) >= _SHORT and name != "numbers" and self.has("calendar", word)
        return next((n for n, each in enumerate(words) if short and each.startswith(word)), None)


def tokens(text: str) -> list[Token]:
    """The words of a text; in scripts without blanks a run of letters is one."""
    return [
        Token(fold(_APOSTROPHES.sub("", match[0])), match.start(), match.end())
        for match in _WORD.finditer(text)
    ]


@cache
def languages() -> tuple[Language, ...]:
    """All languages that there is a file of, English first."""
    folder = resources.files("kbtui.offline").joinpath("languages")
    found = [
        _read(file.name.removesuffix(".toml"), file.read_text("utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    ]
    return tuple(sorted(found, key=lambda each: (each.code != "en", each.code)))


def _read(code: str, text: str) -> Language:
    from whoosh.lang.stopwords import stoplists

    values = tomllib.loads(text)
    lists = {name: values.get(name, []) for name in get_args(ListName)}
    lists["small"] = [*lists["small"], *stoplists.get(code, ())]
    words = {
        name: frozenset(token.word for phrase in phrases for token in tokens(phrase))
        for name, phrases in lists.items()
    }
    words["calendar"] |= words["weekdays"] | words["months"]
    return Language(
        code,
        values["name"],
        bool(values.get("nouns_have_capitals")),
        {name: Phrases.of(phrases) for name, phrases in lists.items()},
        words,
        {name: tuple(map(fold, lists[name])) for name in _ORDERED},
        frozenset().union(*words.values()),
    )


def language_of(text: str) -> Language:
    """The language whose listed words a text has most of; English where none tells."""
    found = {token.word for token in tokens(text)}
    return max(languages(), key=lambda each: len(found & each.known))


@cache
def of_all(name: ListName) -> Phrases:
    """One list of all languages together."""
    by_first: dict[str, list[tuple[tuple[str, ...], bool]]] = {}
    for language in languages():
        for first, phrases in language.list(name).by_first.items():
            by_first.setdefault(first, []).extend(phrases)
    for phrases in by_first.values():
        phrases.sort(key=lambda phrase: (-len(phrase[0]), not phrase[1]))
    return Phrases(by_first)


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
    found = tokens(text)
    return any(phrases.match(text, found, at) for at in range(len(found)))


@cache
def stems_of(name: ListName) -> frozenset[str]:
    """The stems of the words of a list in all languages."""
    return frozenset(
        analyser.terms_of(word)[0] for language in languages() for word in language.words[name]
    )


def left_over(found: list[Token], text: str, lists: Iterable[Phrases]) -> Iterator[Token]:
    """The words of a text that no phrase of some lists takes up."""
    known = list(lists)
    at = 0
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
        listed = language.has("small", token.word) or language.has("question", token.word)
        says_little = listed and not language.has("calendar", token.word)
        if not says_little and (len(token.word) > 1 or token.word.isdigit()):
            found |= dict.fromkeys(analyser.terms_of(text[token.start : token.end])[:1])
    return list(found)
