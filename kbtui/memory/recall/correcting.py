"""Correcting a value everywhere: every place that still tells the old value of the same thing.

A place is a line of a note, of MEMORY.md or of a summary. What tells of its own day stays as it was
written: a line of the journal gets a pointer, a decision a dated line under Evolution. What isn't
about it, isn't the user's, or isn't told, is no place: code, what others said, private notes, what
was struck out or done, and the same value of something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from difflib import SequenceMatcher
from functools import cache, cached_property
from itertools import pairwise
from typing import Literal

from kbtui.errors import ConflictError, KbtuiError, UsageError
from kbtui.history.change import Actor, Change, Commit, Origin
from kbtui.knowledge.catalog.catalog import ROOT_INDEX
from kbtui.knowledge.entries.entry import EVOLUTION, append_to_section, parse_entry
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.document import Document, read
from kbtui.knowledge.format.facts import normalise, plain_fact
from kbtui.memory.comparing.same_thing import is_newer
from kbtui.memory.comparing.turned import names_in
from kbtui.memory.recall.said import Said, SaidTimes
from kbtui.memory.records.claims import OWN_WORDS
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import local, without_dates
from kbtui.memory.records.journal import day_of, with_pointer
from kbtui.memory.services import Services
from kbtui.offline.frames import FICTION, PAST, QUOTED, SAYS, WHOSE, frames_of, relations_of
from kbtui.offline.language import language_of, of_all, significant_terms, tokens
from kbtui.offline.lines import TIMED_ITEM, lines_of
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

PlaceKind = Literal["line", "task", "heading", "summary", "decision", "journal", "index"]
_SUMMARY = "summary"
_NO_PLACE = frozenset({"property", "code", "quote", "comment", "html"})
_NOT_SO = frozenset({QUOTED, SAYS, FICTION, PAST})
_MIN_SHARE = 0.5  # of the words by which both sentences name the thing
_MAX_PLACES = 2_000
_GAP = r"\s+"
_WORD = re.compile(r"\S+")
_EDGES = " \t.,;:!?()[]{}*_\"'\u201c\u201d\u201e\u2026"
_UNIT = re.compile(r" ?([^\W\d_]+|[€$£%])")
_CLAUSE_END = re.compile(r"[,;.!?](?:\s|$)|\s[-\u2013\u2014]\s")
_TASK = re.compile(r"[ \t]*[-*+][ \t]+\[ \][ \t]")
_WE = frozenset({"we", "wir", "nous", "on", "nosotros", "noi"})
_BOX = re.compile(r"^\[[ xX]\][ \t]+")
_STRUCK = re.compile(r"~~.+?~~")
_DONE = re.compile(r"[ \t]*[-*+][ \t]+\[[xX]\]")
_DATED = re.compile(r"[ \t]*(?:[-*+][ \t]+)?\[?\d{4}-\d\d-\d\d")
_SPEAKER = re.compile(r"(?:[-*] )?(?:\[[^\]]*\] )?(?:user|assistant): ", re.IGNORECASE)
_TARGET = re.compile(r"\[\[[^\]|]*(?=[\]|])|\]\([^)\s]*\)|<?[a-z][\w+.-]*://\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SaidBy:
    """A line that says the old or the new value: where it stands, who wrote it, and when.

    `said` is None where that isn't known, `time` what a line of the journal says.
    """

    path: str
    line: int
    who: str = ""
    said: Said | None = None
    time: str = ""


@dataclass(frozen=True, slots=True)
class CorrectedPlace:
    """A place that repeats the old value; line 0 is the property `key`.

    `follows` is true of a line that is generated from another one.
    """

    path: str
    line: int
    kind: PlaceKind
    before: str
    after: str
    said: SaidBy
    key: str = ""

    @property
    def id(self) -> str:
        """A name for it in this plan."""
        return f"{self.path}:{self.line or self.key}"

    @property
    def follows(self) -> bool:
        """Whether it is generated from another place and follows by itself."""
        return self.kind == "index"


@dataclass(frozen=True, slots=True)
class CorrectionPlan:
    """What correcting a statement would change.

    Attributes:
        old: What was so.
        new: What is so.
        values: The values that differ: was, and is.
        old_said: Where the old one was said first, if it stands anywhere.
        new_said: Where the new one was said last.
        places: The places, in the order of their files.
    """

    old: str
    new: str
    values: tuple[tuple[str, str], ...]
    old_said: SaidBy | None
    new_said: SaidBy | None
    places: tuple[CorrectedPlace, ...]


class Correcting:
    """Plans and makes corrections; nothing changes before `correct`."""

    def __init__(self, services: Services, clock: Callable[[], datetime]) -> None:
        self._services = services
        self._layout = services.workspace
        self._times = SaidTimes(services.history, services.sessions, clock)
        self._clock = clock

    def plan(self, old: str, new: str, about: str = "") -> CorrectionPlan:
        """Find every place that repeats the old value of the same thing.

        Args:
            old: What was so.
            new: What is so.
            about: The title that `old` stands under, which says what it is of if it names nothing.

        Raises:
            UsageError: It can't be told which value changes, or of what.
        """
        thing = _Thing.of(_bare(old), _bare(new), about)
        found: list[CorrectedPlace] = []
        stating: list[tuple[str, SaidBy]] = []
        for path, text in self._files(thing):
            places = [*self._places(path, text, thing)]
            saying = [*_stating(text, thing)]
            numbers = {*(each.line for each in places), *(number for number, _ in saying)} - {0}
            said = self._said(path, text, numbers) if numbers else {}
            found += [replace(each, said=said.get(each.line, each.said)) for each in places]
            stating += [(line, said[number]) for number, line in saying]
        if len(found) > _MAX_PLACES:
            raise UsageError(f"{len(found):,} places say so.", "Say more of what it is about.")
        said_old = [each for line, each in stating if normalise(line) == normalise(thing.old)]
        said_new = [each for line, each in stating if normalise(line) == normalise(thing.new)]
        return CorrectionPlan(
            thing.old,
            thing.new,
            thing.values,
            min(said_old, key=_when, default=None),
            max(said_new, key=_when, default=None),
            tuple(found),
        )

    def correct(
        self,
        plan: CorrectionPlan,
        chosen: Collection[str] | None = None,
        *,
        actor: Actor = Actor.YOU,
        origin: Origin = Origin(),  # noqa: B008  # frozen
    ) -> Commit | None:
        """Make the correction in the places with some ids, by default in all, as one commit.

        Raises:
            ConflictError: A line was changed meanwhile; nothing is done.
            StorageError: The file system refused.
        """
        places = [
            each
            for each in plan.places
            if not each.follows and (chosen is None or each.id in chosen)
        ]
        today = local(self._clock()).date()
        pointer = _pointer(plan, places, today)

        def work(change: Change) -> None:
            for path in dict.fromkeys(each.path for each in places):
                before = change.read(path)
                if before is None:
                    raise ConflictError(f"{short_name(path)} is gone by now.", "Look again.")
                own = [each for each in places if each.path == path]
                after = _corrected(before, own, plan.values, pointer, today)
                change.put(path, after, over=before)

        reason = f"Corrected: {plan.old} \N{RIGHTWARDS ARROW} {plan.new}"
        _, commit = committed(
            self._services.history, self._layout, actor, clean_line(reason), origin, work
        )
        return commit

    # Finding ---------------------------------------------------------------------------------

    def _files(self, thing: _Thing) -> Iterator[tuple[str, str]]:
        """Yield the files that may repeat the value, without private ones."""
        for path in (*self._services.notes, ROOT_INDEX):
            if self._services.library.is_private(path):
                continue
            data = files.read_if_there(self._layout, path)
            text = files.text_of(data) if data is not None else ""
            if text and thing.may_stand_in(text):
                yield path, text

    def _places(self, path: str, text: str, thing: _Thing) -> Iterator[CorrectedPlace]:
        if path.endswith("INDEX.md"):
            yield from _index_places(path, text, thing)
            return
        document = read(text)
        entry = parse_entry(path, text.encode("utf-8", "surrogateescape"))
        about = [entry.title, *entry.aliases] if path.startswith("knowledge/") else []
        for number, kind, _, under in document.visible_lines():
            line = document.line(number).rstrip("\r")
            is_evolution = under.casefold() == EVOLUTION.casefold()
            if kind in _NO_PLACE or is_evolution or not thing.may_stand_in(line):
                continue
            contexts = about if kind == "heading" or under in about else [*about, under]
            after = thing.corrected(line, contexts, _hidden_in(document, number, len(line)))
            if after is not None:
                place = _kind_of(path, kind, is_decision=entry.type == "decision")
                by = SaidBy(path, number + 1)
                yield CorrectedPlace(path, number + 1, place, line, after, by)
        yield from _property_places(path, text, about, thing)

    def _said(self, path: str, text: str, numbers: Collection[int]) -> dict[int, SaidBy]:
        """Return who wrote some lines of a file, and when."""
        try:
            origins = self._services.history.blame(path, text=text)
        except KbtuiError:
            origins = ()
        times = self._times.of_lines(path, text, numbers)
        lines = text.split("\n")
        is_day = day_of(path) is not None
        found = {}
        for number in numbers:
            timed = TIMED_ITEM.match(lines[number - 1]) if is_day else None
            who = origins[number - 1].who if number <= len(origins) else ""
            time = timed["time"] if timed else ""
            found[number] = SaidBy(path, number, who, times.get(number), time)
        return found


def _hidden_in(document: Document, number: int, length: int) -> list[tuple[int, int]]:
    """Return the code and the comments in a line, from its start in characters."""
    start = document.line_starts[number]
    return [
        (max(0, first - start), last - start)
        for ranges in (document.code, document.comments)
        for first, last in ranges
        if first < start + length and start < last
    ]


def _kind_of(path: str, kind: str, *, is_decision: bool) -> PlaceKind:
    """Return what a line of a file is to who corrects it."""
    if kind == "heading":
        return "heading"
    if day_of(path) is not None or re.match(r"memory/\d{4}-\d\d-\d\d", path):
        return "journal"
    if kind == "task":
        return "task"
    return "decision" if is_decision else "line"


def _when(by: SaidBy) -> tuple[float, str, int]:
    return by.said.moment if by.said is not None else 0.0, by.path, by.line


def _stating(text: str, thing: _Thing) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are the old or the new statement."""
    wanted = {normalise(thing.old), normalise(thing.new)}
    for number, line in enumerate(text.split("\n"), 1):
        if normalise(_bare(line)) in wanted:
            yield number, _bare(line)


def _index_places(path: str, text: str, thing: _Thing) -> Iterator[CorrectedPlace]:
    for number, line in enumerate(text.split("\n"), 1):
        name, _, summary = line.partition(": ")
        after = thing.corrected(summary, (name.lstrip("- "),), ())
        if after is not None:
            whole = f"{name}: {after}"
            yield CorrectedPlace(path, number, "index", line, whole, SaidBy(path, number))


def _property_places(
    path: str, text: str, about: Sequence[str], thing: _Thing
) -> Iterator[CorrectedPlace]:
    values = frontmatter.parse(text.encode("utf-8", "surrogateescape")).values
    for key, value in values.items():
        if isinstance(value, str) and key not in {"title", "type", "created", "updated"}:
            after = thing.corrected(value, about if key == _SUMMARY else [*about, key], ())
            if after is not None:
                kind: PlaceKind = "summary" if key == _SUMMARY else "line"
                yield CorrectedPlace(path, 0, kind, value, after, SaidBy(path, 0), key)


# What is corrected -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Thing:
    """What is corrected: a statement, another one, and the values in which they differ.

    `about` says what they are of if they don't.
    """

    old: str
    new: str
    values: tuple[tuple[str, str], ...]
    about: str = ""

    @classmethod
    def of(cls, old: str, new: str, about: str) -> _Thing:
        """Compare two statements that stand under a title.

        Raises:
            UsageError: They are the same, or it can't be told in which value they differ.
        """
        if normalise(old) == normalise(new):
            raise UsageError("Both say the same.", "Say what was so, and then what is so.")
        found = cls(old, new, tuple(_differing(old, new)))
        if not _terms(" ".join(names_in(old, new))) & found.naming:
            found = replace(found, about=about)
        if not found.values:
            raise UsageError(
                "Which value changes can't be told from these two sentences.",
                "Say the new one like the old one, with nothing but the value changed.",
            )
        if not found.naming:
            raise UsageError(
                "That says a value, but not of what.",
                'Say the whole: kbtui correct "The rent is 870 euros" "The rent is 910 euros"',
            )
        return found

    @cached_property
    def naming(self) -> frozenset[str]:
        """The stems by which both statements name the thing, without values and their units."""
        units = (_unit_after(self.old, pattern) for pattern in self._patterns)
        values = _terms(" ".join([*(was for was, _ in self.values), *units]))
        said = _terms(self.old) & _terms(self.new)
        return frozenset((said | _terms(self.about)) - values)

    @cached_property
    def _telling(self) -> frozenset[str]:
        """The stems without which it is something else: names, and what qualifies another word.

        What stands behind the value only tells more of it.
        """
        texts = [self._subject, self.about]
        found = set(_terms(" ".join(names_in(self.old, self.new, self.about))))
        found &= _terms(" ".join(texts))
        for text in texts:
            for one, other in pairwise(tokens(text)):
                is_joined = not text[one.end : other.start].strip(" -")
                if is_joined and _terms(other.word) & self.naming:
                    found |= _terms(one.word)
        return self.naming.intersection(found)

    @cached_property
    def _subject(self) -> str:
        """What stands before the value if that names anything, else the whole statement."""
        before = self.old[: self._value_in(self.old)[0]]
        return before if _terms(before) & self.naming else self.old

    def _value_in(self, text: str) -> tuple[int, int]:
        """Return where the first of the old values begins in a text, and where the last ends."""
        spans = [found.span() for each in self._patterns for found in each.finditer(text)]
        return min(spans, default=(0, 0))[0], max((end for _, end in spans), default=0)

    @cached_property
    def _known(self) -> frozenset[str]:
        return _terms(f"{self.old} {self.new} {self.about}")

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_pattern(was) for was, _ in self.values)

    def may_stand_in(self, text: str) -> bool:
        """Return whether a text has one of the old values."""
        return any(pattern.search(text) for pattern in self._patterns) or self.is_stated_in(text)

    def is_stated_in(self, text: str) -> bool:
        """Return whether a text may have the new statement."""
        return any(now in text for _, now in self.values)

    def corrected(
        self, line: str, contexts: Sequence[str], hidden: Sequence[tuple[int, int]]
    ) -> str | None:
        """Return a line with the new value; None if it doesn't tell the old one of this thing."""
        spans = [*hidden, *(each.span() for each in _STRUCK.finditer(line))]
        spans += [each.span() for each in _TARGET.finditer(line)]
        after, count = line, 0
        places = sorted(
            (found.start(), found.end(), now)
            for pattern, (_, now) in zip(self._patterns, self.values, strict=True)
            for found in pattern.finditer(line)
            if not any(found.start() < stop and start < found.end() for start, stop in spans)
        )
        for start, stop, now in reversed(places):
            after = after[:start] + now + after[stop:]
            count += 1
        if not count or not self._is_about(line, contexts):
            return None
        worded = [now for _, now in self.values if not now.isdigit()]
        if worded and not any(now in worded for _, _, now in places):
            return None  # a bare figure may be of anything
        return after

    def _is_about(self, line: str, contexts: Sequence[str]) -> bool:
        """Return whether a line that has the value tells it of this thing.

        `contexts` are the names of what it stands under.
        """
        told, context = _bare(line), " ".join(contexts)
        if not self._is_so(line, told, context):
            return False
        own = _terms(told)
        if not self._telling <= own | _terms(context):
            return False
        # What a line names by itself, it names under any heading.
        is_named = bool(self._telling) and self._telling <= own
        is_named |= _begins_with_speaker(told) and _begins_with_speaker(self.old)
        above = [] if is_named else [each for each in contexts if not _terms(each) <= _own_words()]
        if any(map(self._is_qualified, above)):
            return False
        return is_newer(self.new, told) or self._names(line, told, context)

    def _is_so(self, line: str, told: str, context: str) -> bool:
        """Return whether a line says what is so, and of the same person."""
        if _DONE.match(line) or _DATED.match(line) or _SPEAKER.match(line) or told.endswith("?"):
            return False
        if (frames_of(told) - frames_of(self.old)) & _NOT_SO:
            return False
        above = _owners(context)
        return _owners(told) - above == _owners(self.old) - above

    def _names(self, line: str, told: str, context: str) -> bool:
        """Return whether a line names the thing, and nothing else of the kind."""
        left = self.naming & _terms(f"{self._subject} {self.about}") - _terms(context)
        shared = left & _terms(told)
        if len(shared) < _MIN_SHARE * len(left):
            return False
        clause = self._clause(told)
        if _TASK.match(line):  # it begins with a verb, which is no name
            clause = clause.partition(" ")[2]
        # A word that stands instead of one that is lacking names something else: flat, barn.
        others = _terms(clause) - self._known - _terms(context)
        return not (others and shared != left) and not self._is_qualified(clause)

    def _clause(self, told: str) -> str:
        """Return a line up to the end of the clause that has the value.

        If the old statement names nothing behind its value, neither does this.
        """
        end = self._value_in(told)[1]
        behind = self.old[self._value_in(self.old)[1] :]
        if not _terms(behind) & self.naming:
            return told[:end]
        stop = _CLAUSE_END.search(told, end)
        return told[: stop.start()] if stop else told

    def _is_qualified(self, text: str) -> bool:
        """Return whether a text has a name, or a word before what names the thing, of another."""
        known = self._known | _terms(" ".join(now for _, now in self.values))
        if _terms(" ".join(names_in(self.old, text))) - known:
            return True
        stop_words = language_of(text).stop_words
        for before, token in pairwise(tokens(text)):
            is_joined = not text[before.end : token.start].strip(" -")
            if is_joined and _terms(token.word) & self.naming and before.word not in stop_words:
                stems = _terms(before.word)
                if stems and not stems & known and not before.word.isdigit():
                    return True
        return False


def _begins_with_speaker(text: str) -> bool:
    first = tokens(text)[:1]
    return bool(first) and first[0].word in of_all("self").words | _WE


def _unit_after(text: str, value: re.Pattern[str]) -> str:
    """Return the word directly behind a value that has a figure: euros."""
    found = value.search(text)
    after = _UNIT.match(text, found.end()) if found and any(map(str.isdigit, found[0])) else None
    return after[1] if after else ""


def _terms(text: str) -> frozenset[str]:
    return frozenset(significant_terms(text))


@cache
def _own_words() -> frozenset[str]:
    """Return the stems of kbtui's own headings, which name nothing."""
    return _terms(OWN_WORDS)


def _owners(text: str) -> frozenset[str]:
    """Return whose a line tells of, besides the speaker's own: my sister's."""
    return relations_of(text) if WHOSE in frames_of(text) or relations_of(text) else frozenset()


def _bare(line: str) -> str:
    """Return what a line says: without marker, checkbox, time of day, and bracketed dates."""
    timed = TIMED_ITEM.match(line)
    text = line[timed.end() :] if timed else _BOX.sub("", plain_fact(line))
    return clean_line(without_dates(text)).strip("# ")


def _differing(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield what stands in one sentence where the other one has something else."""
    was, now = ([each[0].strip(_EDGES) for each in _WORD.finditer(text)] for text in (old, new))
    folded = [[word.casefold() for word in words] for words in (was, now)]
    codes = SequenceMatcher(None, folded[0], folded[1], autojunk=False).get_opcodes()
    stop_words = language_of(f"{old} {new}").stop_words
    spans = _across_gaps(
        [code[1:] for code in codes if code[0] == "replace"], folded[0], stop_words
    )
    found = [(" ".join(was[a:b]), " ".join(now[c:d])) for a, b, c, d in spans]
    if found := [pair for pair in found if _terms(pair[0])]:
        yield from found
        return
    gone = _telling(was, [code[1:3] for code in codes if code[0] == "delete"])
    come = _telling(now, [code[3:5] for code in codes if code[0] == "insert"])
    if len(gone) == len(come) == 1:
        yield gone[0], come[0]


def _across_gaps(
    replaced: Iterable[tuple[int, int, int, int]], words: Sequence[str], gaps: Container[str]
) -> list[tuple[int, int, int, int]]:
    """Join replaced spans with only small words between: *on the fridge*, *in the notebook*."""
    merged: list[tuple[int, int, int, int]] = []
    for first, last, begin, end in replaced:
        if merged and all(word in gaps for word in words[merged[-1][1] : first]):
            merged[-1] = (merged[-1][0], last, merged[-1][2], end)
        else:
            merged.append((first, last, begin, end))
    return merged


def _telling(words: Sequence[str], spans: Iterable[tuple[int, int]]) -> list[str]:
    """Return those spans of words that have a content word."""
    texts = (" ".join(words[first:last]) for first, last in spans)
    return [text for text in texts if _terms(text)]


def _pattern(value: str) -> re.Pattern[str]:
    """Return a pattern for a value in a text, whatever its case and the marks in its numbers."""
    words = (
        re.escape(word) if not word[:1].isdigit() else re.sub(r"[.,'\u2019 ]", "[.,'\u2019]?", word)
        for word in value.split()
    )
    return re.compile(rf"(?<![\w.,-])(?:{_GAP.join(words)})(?!\w|[.,:]\d)", re.IGNORECASE)


# Writing ------------------------------------------------------------------------------------------


def _pointer(plan: CorrectionPlan, places: Sequence[CorrectedPlace], today: date) -> str:
    """Return what a line of the journal points to: the newer line's day and time, or its note."""
    said = plan.new_said
    if said is not None and (day := day_of(said.path)) is not None:
        return f"{day} {said.time}".rstrip()
    stays = [each for each in places if each.kind != "journal"]
    path = said.path if said is not None else stays[0].path if stays else ""
    return f"[[{short_name(path)}]]" if path else today.isoformat()


def _corrected(
    data: bytes,
    places: Sequence[CorrectedPlace],
    values: Sequence[tuple[str, str]],
    pointer: str,
    today: date,
) -> bytes:
    """Return a file with a correction in some of its lines.

    Raises:
        ConflictError: A line isn't what it was.
    """
    text = data.decode("utf-8", "surrogateescape")
    past: list[str] = []
    lines = text.split("\n")
    numbers = {each: _number_of(each, lines) for each in places if each.line}
    for each, number in numbers.items():
        if each.kind != "journal":
            lines[number] = f"{each.after}{lines[number][len(each.before) :]}"
        if each.kind == "decision":
            past.append(f"- {today.isoformat()}, until then: {plain_fact(each.before)}")
    text = "\n".join(lines)
    for each, number in numbers.items():
        if each.kind == "journal":
            said = _quotable(text, number + 1, values)
            text = with_pointer(each.path, text, number + 1, said, pointer)
    for line in past:
        text = append_to_section(text, EVOLUTION, line, "decision")
    changed = text.encode("utf-8", "surrogateescape")
    keys = {each.key: each.after for each in places if not each.line}
    if any(frontmatter.parse(changed).values.get(e.key) != e.before for e in places if not e.line):
        raise ConflictError(f"{short_name(places[0].path)} was changed meanwhile.", "Look again.")
    return frontmatter.set_keys(changed, keys) if keys else changed


def _number_of(place: CorrectedPlace, lines: Sequence[str]) -> int:
    """Return the index of a place's line, which may have moved.

    Raises:
        ConflictError: The line is another one by now.
    """
    same = [number for number, line in enumerate(lines) if line.rstrip("\r") == place.before]
    if place.line - 1 in same:
        return place.line - 1
    if len(same) != 1:
        raise ConflictError(
            f"Line {place.line} of {short_name(place.path)} was changed meanwhile.",
            "Nothing was changed. Look again.",
        )
    return same[0]


def _quotable(text: str, line: int, values: Sequence[tuple[str, str]]) -> str:
    """Return what is quoted of a line that has one of some values."""
    patterns = [_pattern(was) for was, _ in values]
    near = (each for each in lines_of(text) if each.first == line)
    having = (each.text for each in near if any(found.search(each.text) for found in patterns))
    return next(having, "")
