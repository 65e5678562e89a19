"""Matches the patterns of the table, and verifies their matches."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter
from typing import Any

from kbtui.cache import compiled
from kbtui.redaction import table
from kbtui.redaction.heads import Heads, TextMatcher, canonical, heads_of, matcher_of
from kbtui.redaction.values import TESTS, is_random_text

Span = tuple[int, int, str]
_MIN_HEAD = 2
_STRIPPED = ".,:?*_ \t\r\n"
_MIN_ISSUED = 15  # length of the shortest key that is recognized by its prefix
_BEGINNING = 2
_BEGINNINGS = re.compile(r"(?<![A-Za-z0-9])(?=(\S\S))")
# What decides what is made of the table.
_CODE = (__name__, heads_of.__module__, table.__name__)
_CLASSES = {
    "w": "[A-Za-z0-9]",
    "u": "[A-Z0-9]",
    "x": "[0-9a-fA-F]",
    "b": r"[\w-]",
    "t": r"[\w.-]",
    "e": r"[\w+/=.-]",
}


@dataclass(frozen=True, eq=False)
class Form:
    """A row of the table: a kind of secret, its pattern, and the test that matches must pass.

    Attributes:
        section: The section of the table.
        place: Its index in the section; of two overlapping matches the lower index wins.
        kind: The kind of secret, as shown to users.
        test: A key of `TESTS`.
        source: The pattern; its group `secret`, or else its last matching group, is the secret.
        heads: Literals that each match contains; none if they are too short to be selective.
    """

    section: str
    place: int
    kind: str
    test: str
    source: str
    heads: Heads

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled on first use."""
        return re.compile(self.source)

    @cached_property
    def also(self) -> frozenset[str]:
        """Literals of which each match contains one besides a head, as the matcher names them."""
        return frozenset(map(canonical, self.heads.also))

    def secret_in(self, match: re.Match[str]) -> Span | None:
        """Return the span of the secret in a match of the pattern, None if it is none."""
        names = self.pattern.groupindex
        group = "secret" if "secret" in names else 0 if names else match.lastindex or 0
        secret = match[group].rstrip(_STRIPPED if self.test != "any" else None)
        if not secret or not TESTS[self.test](secret):
            return None
        return match.start(group), match.start(group) + len(secret), self.kind


class Text:
    """A text, prefiltered for the forms that may match in it.

    Attributes:
        forms: The forms that may match, by section.
        long_words: The words, in lowercase, that are as long as the shortest key of an issuer.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # Preserves offsets: `lower` turns one letter into two; `re` takes others for i and s.
        even = text.replace("İ", "i").replace("ı", "i").replace("ſ", "s")
        self.lowered = even.lower()
        finder, of_head, anywhere = _finder()
        words = set(self.lowered.split())
        self.long_words = [word for word in words if len(word) >= _MIN_ISSUED]
        longest = max(map(len, self.long_words), default=_MIN_ISSUED)
        self._found = finder.places(self.lowered, words)
        self._places: dict[Form, list[int]] = {}
        for head, places in self._found.items():
            for form in of_head.get(head, ()):
                self._places.setdefault(form, []).extend(places)
        self.forms: dict[str, list[Form]] = {section: [] for section in SECTIONS}
        likely = [form for form in anywhere if form.heads.word <= longest]
        for form in sorted({*likely, *self._places}, key=attrgetter("place")):
            self.forms[form.section].append(form)

    def spans(self, section: str) -> Iterator[Span]:
        """Yield the spans of secrets of a section's forms."""
        for form in self.forms[section]:
            for match in self.matches(form):
                if (span := form.secret_in(match)) is not None:
                    yield span

    def matches(self, form: Form, *, small: bool = False) -> Iterator[re.Match[str]]:
        """Yield a form's matches, in the lowercase text if `small`."""
        text = self.lowered if small else self.text
        if form.heads.texts and form.heads.begin:
            end = 0
            for place in sorted(self._places.get(form, ())):
                if place >= end and (match := form.pattern.match(text, place)):
                    end = match.end()
                    yield match
        elif form.heads.texts and not form.heads.crosses:
            for first, last in self._likely_lines(form):
                yield from form.pattern.finditer(text, first, last)
        elif form in self._places or not form.heads.texts:
            yield from form.pattern.finditer(text)

    def _likely_lines(self, form: Form) -> Iterator[tuple[int, int]]:
        """Yield the spans of the lines that have what each match of a form has."""
        places = self._places.get(form)
        heads = self._found.keys() & form.also if places else ()
        others = sorted(place for head in heads for place in self._found[head])
        if not places or (form.also and not others):
            return
        for first, last in self.lines(sorted(places)):
            at = bisect_left(others, first)
            if not form.also or (at < len(others) and others[at] < last):
                yield first, last

    def lines(self, places: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the spans of the lines that contain the given offsets."""
        end = -1
        for place in places:
            if place >= end:
                end = self.end(place)
                yield self.text.rfind("\n", 0, place) + 1, end

    def end(self, place: int) -> int:
        """Return the end of the line at an offset."""
        return self.text.find("\n", place) + 1 or len(self.text)


@cache
def forms(section: str) -> list[Form]:
    """Return the forms of a section."""
    return [
        Form(section, place, kind, test, source, Heads(*heads))
        for place, (kind, test, source, heads) in enumerate(_compiled()["forms"][section])
    ]


@cache
def _finder() -> tuple[TextMatcher, dict[str, list[Form]], list[Form]]:
    """Return a matcher of all heads, the forms by head, and the forms without heads."""
    of_head: dict[str, list[Form]] = {}
    every = [form for name in SECTIONS for form in forms(name)]
    for form in every:
        for head in {canonical(text) for text in form.heads.texts}:
            of_head.setdefault(head, []).append(form)
    matcher = TextMatcher(*_compiled()["matcher"])
    return matcher, of_head, [form for form in every if not form.heads.texts]


@cache
def _compiled() -> dict[str, Any]:
    """Return the forms by section, and the arguments of the `TextMatcher` of their heads.

    Analysing the patterns takes longer than redacting what a short command writes.
    """
    return compiled("secrets", [table.content().encode()], _CODE, _compile)


def _compile() -> dict[str, Any]:
    found: dict[str, list[tuple[str, str, str, Heads]]] = {name: [] for name in SECTIONS}
    for name in SECTIONS:
        for kind, test, source, *_ in table.rows(name):
            pattern = table.whole(source)
            found[name].append((kind, test, pattern, _useful(heads_of(pattern))))
    every = [heads for rows in found.values() for *_, heads in rows]
    texts = {text for heads in every for text in (*heads.texts, *heads.also)}
    return {"forms": found, "matcher": matcher_of(texts)}


def _useful(heads: Heads) -> Heads:
    is_worth = min(map(len, heads.texts), default=0) >= _MIN_HEAD
    return heads if is_worth else heads._replace(texts=[])


SECTIONS = ("forms", "guesses", "told", "told before", "columns")


@dataclass(frozen=True)
class Issued:
    """The format of an issuer's keys: prefix, and class and number of the characters after it."""

    kind: str
    prefix: str
    rest: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern; it begins with the literal prefix, which `re` searches for fast."""
        chars, counts = _CLASSES[self.rest[0]], self.rest[1:].rstrip("!")
        least, dash, most = counts.partition("-")
        ends = "[A-Za-z0-9]*" if dash and not most else "(?![A-Za-z0-9])"
        begin = re.escape(self.prefix)
        form = f"{begin}(?<![A-Za-z0-9]{begin}){chars}{{{least}{dash and ','}{most}}}{ends}"
        return re.compile(form, re.ASCII)

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of such keys."""
        for match in self.pattern.finditer(text):
            secret = match[0].rstrip("-_.")  # markup may follow
            if not self.rest.endswith("!") or is_random_text(match[0].removeprefix(self.prefix)):
                yield match.start(), match.start() + len(secret), self.kind


@cache
def issued_forms() -> list[Issued]:
    """Return the known key formats, one per prefix."""
    rows = table.rows("issued")
    return [Issued(kind, each, rest) for kind, prefixes, rest in rows for each in prefixes.split()]


@cache
def _by_beginning() -> dict[str, list[int]]:
    """Return the places of the key formats in their list, by how their prefixes begin."""
    found: dict[str, list[int]] = {}
    for place, form in enumerate(issued_forms()):
        found.setdefault(form.prefix[:_BEGINNING].lower(), []).append(place)
    return found


def issued(scan: Text) -> Iterator[Span]:
    """Yield the spans of keys recognized by their prefix."""
    words = " ".join(scan.long_words)
    begun = set(_BEGINNINGS.findall(words)) if words else set[str]()
    begun |= {each[0] for each in begun}
    places, every = _by_beginning(), issued_forms()
    for place in sorted(place for each in begun & places.keys() for place in places[each]):
        if every[place].prefix.lower() in words:
            yield from every[place].spans(scan.text)
