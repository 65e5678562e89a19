"""The word lists of languages, and the tokenizer that matches them; one file per language.

A language needs only its file in ``languages/``, with these lists of words or phrases:

- ``question``: starts of questions typed without a question mark; ``who``: of questions who
  somebody is;
- ``greeting``, ``thanks``, ``talk``: small talk that isn't worth storing;
- ``remember``, ``decision``, ``task``: starts of commands to kbtui; one that ends in a colon
  matches only with it. ``keeps`` are those of ``decision`` that belong in a title; ``remember
  that`` are whole sentences that order to remember what was said before them;
- ``forget`` and ``forget that``: starts of orders to forget a thing, and what is so; ``erase``, of
  which ``delete`` says nothing else, and ``rename``: their verbs, before or after what they are
  about, which begins with one of ``everything`` or ``note``; ``into``: what parts an old and a new
  name; ``tail``: what else may end such an order; ``undo``: whole orders; ``polite`` and
  ``request``: what may stand around one; ``clause``: words with which it is a statement instead;
- ``asks_tasks``, ``asks_coming``, ``asks_day``: whole questions, but for a time, for open tasks,
  for what is coming, and for what was said on a day; ``asserts``: verbs behind one of them that
  make it the subject of a statement: *what happened today was ...*;
- ``owes``: how people say what they have to do: *I have to*; ``does``: verbs with which a note to
  oneself begins, or ends where nouns have capitals, ``does the`` those that are nouns as well, so
  an article or a name follows; ``unlike``: words behind one of them that make it a noun;
- ``recall``: phrases that start like a command but aren't one;
- ``work``: starts of requests that need a model;
- ``reason``: starts of the reason in a decision;
- ``change``: words that request a change, ``write`` a new entry or note; ``claim``: phrases by
  which an answer claims to have written something; ``calls``: names of a model's tool calls;
- ``small``: stop words, in addition to Whoosh's of the language;
- ``beginners``: further words that aren't names although capitalized at the start of a clause, in
  any form with the same stem;
- ``numbers`` from two on, ``weekdays`` and ``months``, in order; ``calendar``: further calendar
  words;
- ``named``: starts of lines that state the user's name; ``self``: pronouns by which speakers mean
  themselves; ``agree``: starts of answers that agree;
- ``deny``: negations; ``on``: the word before a date;
- ``labels``: words of headings and names of things that state nothing by themselves;
- ``articles``: in languages that capitalize nouns, words that precede nouns but not names.

A ``~`` in a phrase stands for each of the language's ``endings``. The phrases of ``[times]`` are
those of `kbtui.offline.times`, the lists of ``[frames]`` those of `kbtui.offline.frames`.

Splitting and stemming the lists takes longer than a short command, so what comes of it is kept in
the cache between processes, until a file in ``languages/`` is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib import resources
from typing import Any, NamedTuple

from kbtui.cache import compiled
from kbtui.offline.frame_patterns import pattern_of
from kbtui.search.index import analyser
from kbtui.text import fold

_WORD = re.compile(r"[^\W_]+(?:['\u2019\u00b4][^\W_]+)*")
_APOSTROPHES = re.compile(r"['\u2019\u00b4]")
CACHE_LIMIT = 4_096
"""The results for texts of this many characters or more aren't cached."""
_MIN_ABBREVIATION = 3
# What names a heading, and what orders are made of, tells no language; what asks for a list is
# matched as a whole.
_NOT_IN_KNOWN = frozenset(
    ("labels", "delete", "erase", "everything", "note", "rename", "into", "tail", "undo")
) | {"polite", "request", "clause", "asks_tasks", "asks_coming", "asks_day", "asserts"}
# What decides how the lists are split and stemmed.
_CODE = (
    __name__,
    pattern_of.__module__,
    "kbtui.text",
    analyser.__name__,
    f"{analyser.__package__}.chain",
    f"{analyser.__package__}.letters",
    "whoosh.lang.stopwords",
)
_AFTER_PHRASE = re.compile(r"\s*[:,;.!\u2013\u2014-]*\s*")


class Token(NamedTuple):
    """A word of a text, folded and without apostrophes, with its span."""

    word: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Return the words of a text; in scripts without spaces a run of letters is one."""
    return list(_cached_tokens(text)) if len(text) < CACHE_LIMIT else _tokenize(text)


@lru_cache(maxsize=512)  # numbers, names, stems and language of a line are looked up in turn
def _cached_tokens(text: str) -> tuple[Token, ...]:
    return tuple(_tokenize(text))


def _tokenize(text: str) -> list[Token]:
    return [Token(folded(match[0]), *match.span()) for match in _WORD.finditer(text)]


@lru_cache(maxsize=1 << 14)  # the same words recur in many lines
def folded(word: str) -> str:
    """Return a word for comparison: without case, accents and apostrophes."""
    return fold(_APOSTROPHES.sub("", word))


class Phrases:
    """A set of folded phrases; one that ends in a colon matches only with it."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._known = frozenset(filter(None, phrases))
        self._longest = max([each.count(" ") for each in self._known], default=0) + 1
        self._begins = frozenset([each.partition(" ")[0].rstrip(":") for each in self._known])

    @property
    def words(self) -> frozenset[str]:
        """The single-word phrases, folded."""
        return frozenset([each.rstrip(":") for each in self._known if " " not in each])

    def match(self, text: str, found: list[Token], at: int = 0) -> int:
        """Return the length in words of the longest phrase at token `at`, or 0."""
        if at >= len(found) or found[at].word not in self._begins:
            return 0
        words = [token.word for token in found[at : at + self._longest]]
        for count in range(len(words), 0, -1):
            phrase = " ".join(words[:count])
            if phrase in self._known:
                return count
            after = text[found[at + count - 1].end :]
            if f"{phrase}:" in self._known and after.lstrip().startswith(":"):
                return count
        return 0

    def places(self, text: str, found: list[Token]) -> list[tuple[int, int]]:
        """Return where phrases start, as token indexes, with the length of the longest there."""
        begin = [at for at, token in enumerate(found) if token.word in self._begins]
        return [(at, count) for at in begin if (count := self.match(text, found, at))]


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its lists in the order of its file, folded, and the words of each."""

    code: str
    lists: dict[str, list[str]]
    words: dict[str, frozenset[str]]
    known: frozenset[str]
    stop_words: frozenset[str]
    """Words that say little about the topic of a text."""
    places: dict[str, dict[str, int]]
    """The 0-based position of each word and its abbreviation in the ordered lists."""
    month_names: list[str]
    """The months as they are written."""
    times: dict[str, Any]
    """The phrases for days and times, word by word, with what each means under ``""``."""
    halves: dict[str, Any]
    """Those that tell morning from evening."""
    slots: dict[str, Any]
    """The numbers and units in these phrases, word by word."""
    frames: dict[str, list[str]]
    """The phrases that frame a statement, as written in the file; see `kbtui.offline.frames`."""
    frame_patterns: dict[str, str]
    """The same as patterns."""
    frame_words: dict[str, list[str]]
    """The words of those phrases that stand for no others, folded."""

    @property
    def nouns_have_capitals(self) -> bool:
        """Whether nouns are capitalized, so that a capital alone doesn't mark a name."""
        return bool(self.lists["articles"])

    def has(self, name: str, word: str) -> bool:
        """Return whether a folded word is in a list."""
        return word in self.words[name]

    def list(self, name: str) -> Phrases:
        """Return one of the lists."""
        return _phrases(name, self.code)


@cache
def language_with(code: str) -> Language:
    """Return the language with a code."""
    return {each.code: each for each in languages()}[code]


@cache
def languages() -> tuple[Language, ...]:
    """Return all languages with a file, English first."""
    return tuple([_language(**each) for each in _compiled()["languages"]])


def _language(
    code: str,
    lists: dict[str, list[str]],
    small: list[str],
    places: dict[str, dict[str, int]],
    frames: dict[str, list[str]],
    **times: Any,
) -> Language:
    words = {
        name: frozenset(" ".join(phrases).replace(":", "").split())
        for name, phrases in lists.items()
    }
    words["small"] |= _words(small)
    words["calendar"] |= words["weekdays"] | words["months"]
    stop_words = (words["small"] | words["question"]) - words["calendar"]
    known = frozenset().union(*[words[name] for name in words if name not in _NOT_IN_KNOWN])
    return Language(code, lists, words, known, stop_words, places, frames=frames, **times)


def _words(phrases: Iterable[str]) -> frozenset[str]:
    return frozenset(" ".join(phrases).replace(":", "").split())


@cache
def _compiled() -> dict[str, Any]:
    """Return the arguments of each `_language`, English first, and the stem of each word."""
    folder = resources.files("kbtui.offline").joinpath("languages").iterdir()
    files = [file for file in folder if file.name.endswith(".ini")]
    files.sort(key=lambda file: (file.name != "en.ini", file.name))
    texts = {file.name.removesuffix(".ini"): file.read_bytes() for file in files}
    content = [part for code, text in texts.items() for part in (code.encode(), text)]
    return compiled("languages", content, _CODE, partial(_compile, texts))


def _compile(texts: Mapping[str, bytes]) -> dict[str, Any]:
    read = [_read(code, text.decode()) for code, text in texts.items()]
    words = {word for each in read for found in _language(**each).words.values() for word in found}
    return {
        "languages": read,
        "stems": {word: analyser.terms_of(word)[0] for word in sorted(words)},
    }


def _read(code: str, text: str) -> dict[str, Any]:
    """Return the arguments of `_language` for a file."""
    from whoosh.lang.stopwords import stoplists

    typed = {"articles": (), **_lists(text)}
    lists = {name: [_folded_phrase(each) for each in phrases] for name, phrases in typed.items()}
    small = [_folded_phrase(word) for word in sorted(stoplists.get(code, ()))]
    calendar = _words([*lists["calendar"], *lists["weekdays"], *lists["months"]])
    short = [word for word in calendar if len(word) >= _MIN_ABBREVIATION]
    places = {name: _places(typed[name], short) for name in ("weekdays", "months")}
    places["numbers"] = _places(typed["numbers"])
    times = _times(_lists(text, "times"), typed["numbers"])
    months = list(typed["months"])
    frames = {name: list(phrases) for name, phrases in _lists(text, "frames").items()}
    return {"code": code, "lists": lists, "small": small, "places": places} | {
        "month_names": months,
        "frames": frames,
        "frame_patterns": {name: pattern_of(phrases) for name, phrases in frames.items()},
        "frame_words": {name: _frame_words(phrases) for name, phrases in frames.items()},
        **times,
    }


def _frame_words(phrases: Iterable[str]) -> list[str]:
    plain = (phrase for phrase in phrases if "*" not in phrase)
    return list({token.word: None for phrase in plain for token in tokens(phrase)})


def _times(phrases: Mapping[str, Iterable[str]], numbers: Iterable[str]) -> dict[str, Any]:
    """Return the phrases for days and times, those for halves of the day, and their numbers."""
    slots: dict[str, Any] = {"NUMBER": {}, "UNIT": {}, "HALF": {}}
    found: dict[str, Any] = {"times": {}, "halves": {}, "slots": slots}
    for number, word in enumerate(numbers, 2):
        _grow(slots["NUMBER"], word, number)
    for key, each in phrases.items():
        kind, *rest = key.split()
        step = rest[-1] if rest else ""
        place = found["times"]
        value: object = [kind, int(step) if step[1:].isdigit() else None]
        if kind == "count":
            place, value = slots["NUMBER"], int(step)
        elif kind == "half":
            place, value = slots["HALF"], [rest[0], int(step)]
        elif step.isdigit():
            place, value = slots["UNIT"], [kind, int(step)]
        elif step == "noon":
            place = found["halves"]
        for phrase in each:
            _grow(place, phrase, value)
    return found


def _grow(place: dict[str, Any], phrase: str, value: object) -> None:
    """Add a phrase word by word; a word in capitals stays one."""
    for token in tokens(phrase):
        word = phrase[token.start : token.end]
        place = place.setdefault(word if word.isupper() and len(word) > 1 else token.word, {})
    place[""] = value


def _folded_phrase(phrase: str) -> str:
    return " ".join([each.word for each in tokens(phrase)]) + (":" if phrase[-1:] == ":" else "")


def _lists(text: str, section: str = "lists") -> dict[str, tuple[str, ...]]:
    """Parse a language file: phrases by list name, with ``~`` expanded to each ending."""
    from configparser import ConfigParser

    parser = ConfigParser(delimiters=("=",), interpolation=None)
    parser.read_string(text)
    typed = {
        name: [each.strip() for each in value.replace("\n", " ").split(",")]
        for name, value in parser[section].items()
    }
    endings = typed.pop("endings", [])
    return {
        name: tuple(
            each.replace("~", end) for each in phrases for end in (endings if "~" in each else [""])
        )
        for name, phrases in typed.items()
    }


def _places(words_in_order: Iterable[str], short: Iterable[str] = ()) -> dict[str, int]:
    """Return the positions of words, their plurals (Sundays) and their abbreviations `short`."""
    words = [fold(each) for each in words_in_order]
    found: dict[str, int] = {}
    for number, word in enumerate(words):
        found.setdefault(word, number)
    for number, word in enumerate(words):
        found.setdefault(f"{word}s", number)
    for each in short:
        matching = (number for number, word in enumerate(words) if word.startswith(each))
        if (place := next(matching, None)) is not None:
            found.setdefault(each, place)
    return found


@cache
def _phrases(name: str, *codes: str) -> Phrases:
    found = [each for each in languages() if not codes or each.code in codes]
    return Phrases([phrase for each in found for phrase in each.lists.get(name, ())])


def of_all(name: str) -> Phrases:
    """Return one list of all languages combined."""
    return _phrases(name)


@cache
def stems_of(name: str) -> frozenset[str]:
    """Return the stems of the words of a list in all languages."""
    stems = _compiled()["stems"]
    return frozenset([stems[word] for each in languages() for word in each.words.get(name, ())])


@cache
def known_stems() -> frozenset[str]:
    """Return the stems of all words that a list of any language has."""
    stems = _compiled()["stems"]
    return frozenset([stems[word] for each in languages() for word in each.known])


def language_of(*texts: str) -> Language:
    """Return the language with the most listed words in some texts; English if none has any."""
    words: Sequence[frozenset[str]] = ()
    for text in texts:
        found = _listed(text) if len(text) < CACHE_LIMIT else _listed.__wrapped__(text)
        words = [*map(frozenset.union, words, found)] if words else found
    counts = list(map(len, words))
    return languages()[counts.index(max(counts))]


@lru_cache(maxsize=2_048)  # a line is compared with many others
def _listed(text: str) -> tuple[frozenset[str], ...]:
    """Return the listed words of a text, a set a language."""
    found = {token.word for token in tokens(text)}
    return tuple([each.known & found for each in languages()])


def begins(text: str, phrases: Phrases) -> str | None:
    """Return what follows the phrase at the start of a text; None if there is none."""
    found = tokens(text)
    count = phrases.match(text, found)
    if not count:
        return None
    end = found[count - 1].end
    after = _AFTER_PHRASE.match(text, end)
    return text[after.end() if after else end :]


def holds(text: str, phrases: Phrases) -> bool:
    """Return whether a phrase occurs anywhere in a text."""
    return bool(phrases.places(text, tokens(text)))


def unmatched(text: str, lists: Iterable[Phrases]) -> Iterator[Token]:
    """Yield the words of a text that no phrase of some lists covers."""
    found, known, at = tokens(text), list(lists), 0
    while at < len(found):
        count = max(phrases.match(text, found, at) for phrases in known)
        if not count:
            yield found[at]
        at += max(1, count)


def significant_terms(text: str) -> list[str]:
    """Return the stems of the words that say what a text is about, each once."""
    language = language_of(text)
    found: dict[str, None] = {}
    for token in tokens(text):
        if token.word not in language.stop_words and (len(token.word) > 1 or token.word.isdigit()):
            found |= dict.fromkeys(analyser.terms_of(text[token.start : token.end])[:1])
    return list(found)
