"""Finds what has a form of the table, and asks whether it is a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter

from kbtui.redaction import table
from kbtui.redaction.heads import Heads, TextMatcher, heads_of
from kbtui.redaction.values import TESTS, is_made

Span = tuple[int, int, str]
_WORTH = 2
_STRIPPED = ".,:?*_ \t\r\n"
_LEAST_ISSUED = 15  # characters of the shortest key that is known by how it begins
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
    """A row: a kind of secret, the name of the test that it must pass, and the pattern.

    Attributes:
        section: The section of the table.
        place: Its number in it, from 0: of two that overlap the first is more certain.
        kind: What it is, for people.
        test: A name of `TESTS`.
        source: A pattern, whose group `secret`, or else the last that takes part, is the secret.
    """

    section: str
    place: int
    kind: str
    test: str
    source: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when a text may hold it."""
        return re.compile(self.source)

    @cached_property
    def heads(self) -> Heads:
        """What it can't do without; empty if that is so little that it stands anywhere."""
        found = heads_of(self.source)
        is_worth = min(map(len, found.texts), default=0) >= _WORTH
        return found if is_worth else found._replace(texts=frozenset())

    def spans(self, read: Text) -> Iterator[Span]:
        """Where secrets of this form stand."""
        names = self.pattern.groupindex
        for match in read.matches(self):
            group = "secret" if "secret" in names else 0 if names else match.lastindex or 0
            secret = match[group].rstrip(_STRIPPED if self.test != "any" else None)
            if secret and TESTS[self.test](secret):
                yield match.start(group), match.start(group) + len(secret), self.kind


class Text:
    """A text, and where in it forms may stand.

    Attributes:
        forms: Those that may stand in it, by their sections.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # As long as the text: of one letter `lower` makes two. `re` takes others for small ones.
        even = text.replace("İ", "i").replace("ı", "i").replace("ſ", "s")
        self.lowered = even.lower()
        finder, of_head, anywhere = _finder()
        self._places: dict[Form, list[int]] = {}
        for head, places in finder.places(self.lowered).items():
            for form in of_head[head]:
                self._places.setdefault(form, []).extend(places)
        self.forms: dict[str, list[Form]] = {section: [] for section in SECTIONS}
        for form in sorted({*anywhere, *self._places}, key=attrgetter("place")):
            self.forms[form.section].append(form)

    def spans(self, section: str) -> Iterator[Span]:
        """Where secrets of the forms of a section stand."""
        for form in self.forms[section]:
            yield from form.spans(self)

    def matches(self, form: Form, *, small: bool = False) -> Iterator[re.Match[str]]:
        """All that a form's pattern finds, in `small` letters or as they are."""
        text = self.lowered if small else self.text
        if form.heads.texts and form.heads.begin:
            end = 0
            for place in sorted(self._places.get(form, ())):
                if place >= end and (match := form.pattern.match(text, place)):
                    end = match.end()
                    yield match
        elif form.heads.texts and not form.heads.crosses:
            for line in self.lines(sorted(self._places.get(form, ()))):
                yield from form.pattern.finditer(text, *line)
        elif form in self._places or not form.heads.texts:
            yield from form.pattern.finditer(text)

    def lines(self, places: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Where the lines of these places begin and end."""
        end = -1
        for place in places:
            if place >= end:
                end = self.end(place)
                yield self.text.rfind("\n", 0, place) + 1, end

    def end(self, place: int) -> int:
        """Where the line of a place ends."""
        return self.text.find("\n", place) + 1 or len(self.text)


@cache
def forms(section: str) -> list[Form]:
    """The forms of a section; what the rows give as examples is for tests."""
    return [
        Form(section, place, kind, test, table.whole(source))
        for place, (kind, test, source, *_) in enumerate(table.rows(section))
    ]


@cache
def _finder() -> tuple[TextMatcher, dict[str, list[Form]], list[Form]]:
    """Finds heads; the forms that each is one of, and those that have none."""
    of_head: dict[str, list[Form]] = {}
    every = [form for name in SECTIONS for form in forms(name)]
    for form in every:
        for head in form.heads.texts:
            of_head.setdefault(head, []).append(form)
    return TextMatcher(of_head), of_head, [form for form in every if not form.heads.texts]


SECTIONS = ("forms", "guesses", "told", "told before", "columns")


@dataclass(frozen=True)
class Issued:
    """How an issuer's keys look: their beginning, and the class and number of what follows."""

    kind: str
    prefix: str
    rest: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Begins with the prefix itself, so that `re` can look for that first."""
        chars, counts = _CLASSES[self.rest[0]], self.rest[1:].rstrip("!")
        least, dash, most = counts.partition("-")
        ends = "[A-Za-z0-9]*" if dash and not most else "(?![A-Za-z0-9])"
        begin = re.escape(self.prefix)
        form = f"{begin}(?<![A-Za-z0-9]{begin}){chars}{{{least}{dash and ','}{most}}}{ends}"
        return re.compile(form, re.ASCII)

    def spans(self, text: str) -> Iterator[Span]:
        """Where such keys stand."""
        for match in self.pattern.finditer(text):
            secret = match[0].rstrip("-_.")  # markup may follow
            if not self.rest.endswith("!") or is_made(match[0].removeprefix(self.prefix)):
                yield match.start(), match.start() + len(secret), self.kind


@cache
def issued_forms() -> list[Issued]:
    """A form a prefix."""
    rows = table.rows("issued")
    return [Issued(kind, each, rest) for kind, prefixes, rest in rows for each in prefixes.split()]


def issued(text: str) -> Iterator[Span]:
    """Keys that are known by how they begin."""
    words = " ".join([word for word in text.split() if len(word) >= _LEAST_ISSUED])
    for form in issued_forms() if words else ():
        if form.prefix in words:
            yield from form.spans(text)
