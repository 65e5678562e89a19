"""Two lines, of which one was said later: whether that one says what holds instead."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from kbtui.memory.comparing.line import WHEN, ComparedLine, Item, is_word
from kbtui.memory.comparing.sentences import form_among
from kbtui.memory.comparing.turned import has_other_order, names_in
from kbtui.offline.frames import found_in

_MAX_VALUE = 5  # content words of a value
_MANY = 3  # content words in common that make up for a missing word of change
_MIN_SHARED = 2
_LABEL = re.compile(r"^[^:]{2,60}:\s")


@dataclass(frozen=True, eq=False)
class Pair:
    """Two lines, of which the new one was said later."""

    old: ComparedLine
    new: ComparedLine

    @cached_property
    def forms(self) -> dict[str, str]:
        """The words of the new line that the old one has, each with its form there."""
        words = {each.key for each in self.old.items if each.kind in ("word", "name")}
        found = {}
        for each in self.new.items:
            if each.kind in ("word", "name"):
                form = form_among(each.key, words)
                is_begun = form.startswith(each.key) or each.key.startswith(form)
                if each.kind == "name" and not is_begun:
                    form = ""  # Grandma and Grandpa are two
            else:
                form = each.key if each.key in self.old.keys else ""
            if form:
                found[each.key] = form
        return found

    @cached_property
    def shared(self) -> frozenset[str]:
        """The words of the old line that the new one has, in whatever form."""
        return frozenset(self.forms.values())

    @cached_property
    def rest_old(self) -> list[int]:
        """The positions of the other items of the old line."""
        return [n for n, each in enumerate(self.old.items) if each.key not in self.shared]

    @cached_property
    def rest_new(self) -> list[int]:
        """The positions of the other items of the new line."""
        return [n for n, each in enumerate(self.new.items) if each.key not in self.forms]

    @property
    def is_newer(self) -> bool:
        """Whether the new line says what holds instead of the old one."""
        if not self.shared:
            return self._has_moved_house()
        if not self._same_label():
            return False
        if self._is_denial() or self._is_exchanged() or self._is_event():
            return True
        if self.new.happened or self.new.denies or not self._is_anchored():
            return False
        texts = self.old.text, self.new.text
        if has_other_order(*texts, names_in(*texts)) or self._is_done_otherwise():
            return False  # who owes whom; lives with, works with
        return self._is_other_value() or self._is_other_figure() or self._is_told_changed()

    def _same_label(self) -> bool:
        """Return whether the words before a colon, if any, are in the other line too."""
        lines = ((self.old, self.shared), (self.new, frozenset(self.forms)))
        labels = [
            frozenset(each.key for each in line.items if label and each.start < label.end())
            for line, _ in lines
            for label in [_LABEL.match(line.plain)]
        ]
        return all(label <= keys for label, (_, keys) in zip(labels, lines, strict=True))

    def _is_anchored(self) -> bool:
        """Return whether it is plain of what both lines tell: the router, my dentist, Jonas, we."""
        is_typed = any(self.new.items[n].kind not in ("word", "name") for n in self.rest_new)
        lines = (self.new, {*self.forms}), (self.old, self.shared)
        if all(line.is_of_speaker for line, _ in lines):
            is_one = is_typed and not self._is_one_of_many()  # a meeting at 9, a meeting at 14
            return is_one or self.new.is_changed or self._has_names()
        if is_typed and self.new.is_changed and self._is_named():
            return True
        return all(self._is_told(line, keys, is_typed=is_typed) for line, keys in lines)

    def _is_one_of_many(self) -> bool:
        return any(
            is_word(word, "indefinite", self.new.codes)
            for each in self.new.items
            if each.key in self.forms
            for word in each.before
        )

    def _is_named(self) -> bool:
        """Return whether both lines say the same of somebody, who has a name in both."""
        names = [each for each in self.new.items if each.kind == "name" and each.key in self.forms]
        return bool(names) and names[0] is self.new.items[0] and len(self.shared) > _MANY

    def _has_names(self) -> bool:
        return bool(self.rest_new and self.rest_old) and all(
            line.items[rest[-1]].kind == "name"
            for line, rest in ((self.new, self.rest_new), (self.old, self.rest_old))
        )

    def _is_told(self, line: ComparedLine, keys: Container[str], *, is_typed: bool) -> bool:
        first = line.items[0]
        is_bare = first.key in keys and not first.before
        if is_bare and (is_typed or first.kind == "name"):
            return not line.plain.startswith(",", first.start + len(first.key))
        named = (each for each in line.items if each.kind == "name" and not each.before)
        if self.new.is_changed and any(each.key in keys for each in named):
            return True
        return any(
            each.key in keys
            and any(
                is_word(word, name, line.codes)
                for word in each.before
                for name in ("definite", "own")
            )
            for each in line.items
        )

    # What is no longer so, and what is done -----------------------------------------------------

    def _is_denial(self) -> bool:
        """Return whether one of both denies what the other says."""
        if self.new.denies == self.old.denies or not self._is_anchored_denial():
            return False
        if not self._has_same_subject() or (self.new.is_ended and not self._is_ended_by_same()):
            return False
        if self.new.denies:
            left = len(self.rest_new)
            if self.new.is_changed:
                return left <= 1 and len(self.shared) + (left == 0) >= _MIN_SHARED
            return not left and len(self.shared) >= _MIN_SHARED
        return not self.rest_old and len(self.shared) >= _MIN_SHARED

    def _has_same_subject(self) -> bool:
        """Return whether neither line begins with somebody whom the other doesn't tell of."""
        lines = (self.old, self.shared), (self.new, frozenset(self.forms))
        return not any(self._is_of_another(line, keys) for line, keys in lines)

    def _is_of_another(self, line: ComparedLine, keys: Container[str]) -> bool:
        """Return whether a line begins with somebody of whom the other one doesn't tell."""
        first = line.items[0]
        is_named = first.kind == "name" and not line.is_of_speaker and not first.before
        return first.key not in keys and (is_named or _has_before(line, first, "own"))

    def _is_ended_by_same(self) -> bool:
        """Return whether who gave something up is who did it: *I stopped*, *Jonas stopped*."""
        if self.old.is_of_speaker or self.new.is_of_speaker:
            return self.old.is_of_speaker and self.new.is_of_speaker
        return self.old.items[0].key in self.shared and len(self.shared) >= _MIN_SHARED

    def _is_anchored_denial(self) -> bool:
        if not (self.rest_old or self.rest_new) and self.old.is_of_speaker:
            return self.new.is_of_speaker
        return self.new.is_changed or len(self.shared) >= _MANY or self._is_anchored()

    # What happened, and changes it --------------------------------------------------------------

    def _is_exchanged(self) -> bool:
        """Return whether the new line says that what the old one names was given up for another."""
        spans = found_in(self.new.text, "exchanged", self.new.codes)
        if not spans or self.new.denies or self.old.has("exchanged"):
            return False
        start, end = spans[0]
        given_up = {
            self.forms.get(each.key) for each in self.new.items if start <= each.start < end
        }
        first = self.old.items[0].key
        is_same = self.old.is_of_speaker and self.new.is_of_speaker
        is_same |= first in self.shared and first not in given_up
        is_same |= self.old.has("own") and self.old.items[-1].key in given_up
        return is_same and not given_up <= {None}

    def _is_event(self) -> bool:
        if self.new.denies:
            return False
        return self._is_moved() or self._has_joined() or self._is_delayed()

    def _has_moved_house(self) -> bool:
        """Return whether speakers say that they moved, and said where they live."""
        lines = (self.old, self.new)
        return (
            all(each.is_of_speaker for each in lines)
            and self.old.has("living")
            and not self.new.denies
            and len(self.new.items) == _MIN_SHARED
            and len(self.new.words_of("moving")) == 1
            and all(each.is_placed(each.items[-1]) for each in lines)
        )

    def _is_moved(self) -> bool:
        verbs = self.new.words_of("moving")
        if not verbs or (self.old.happened and not self.old.words_of("moving")):
            return False
        named = [
            each
            for each in self.new.items
            if each.key not in verbs and each not in self._places(self.new, verbs)
        ]
        if not named or any(each.key not in self.forms for each in named):
            return False
        if self._is_qualified(named):
            return False
        if self.old.items[0].key not in self.shared or not self._is_known(named):
            return False
        return self._tells_place() or len(named) >= _MIN_SHARED

    def _tells_place(self) -> bool:
        """Return whether the old line says where something is, and no more: *lives in Ghent*."""
        placed = self._places(self.old, ())
        left = [n for n in self.rest_old if self.old.items[n] not in placed]
        return len(left) < len(self.rest_old) and len(left) <= 1

    def _is_known(self, named: Sequence[Item]) -> bool:
        return any(
            each.kind == "name"
            or (each is self.new.items[0] and not each.before)
            or _has_before(self.new, each, "definite")
            or _has_before(self.new, each, "own")
            for each in named
        )

    def _places(self, line: ComparedLine, verbs: Container[str]) -> list[Item]:
        """Return the words for places: those behind a preposition, up to the verb or an article."""
        found: list[Item] = []
        for number, each in enumerate(line.items):
            is_bound = not each.before or _has_before(line, each, "purposes")
            follows = is_bound and found and found[-1] is line.items[number - 1]
            if each.key not in verbs and (follows or line.is_placed(each)):
                found.append(each)
        return found

    def _is_qualified(self, named: Sequence[Item]) -> bool:
        """Return whether the old line says of a thing which one, and the new one doesn't."""
        heads = {self.forms[each.key] for each in named}
        items = self.old.items
        return any(
            after.key in heads and one.key not in heads and not after.before and one.kind != "word"
            for one, after in pairwise(items)
        )

    def _has_joined(self) -> bool:
        if not (self.new.words_of("joining") and self.old.has("working")):
            return False
        subject = self.new.items[0]
        is_same = subject.kind == "name" and subject.key in self.forms
        is_same |= self.old.is_of_speaker and self.new.is_of_speaker
        return is_same and all(
            any(line.is_placed(line.items[n]) for n in rest)
            for line, rest in ((self.old, self.rest_old), (self.new, self.rest_new))
        )

    def _is_delayed(self) -> bool:
        verbs = self.new.words_of("delaying")
        if not verbs:
            return False
        own = self._values(self.new, self.rest_new)
        theirs = self._values(self.old, self.rest_old)
        if not own or not theirs or own[-1].kind not in WHEN:
            return False
        named = [each for each in self.old.items if each.kind in ("word", "name")]
        first = named[0].key if named else ""
        left = [
            each
            for each in (self.new.items[n] for n in self.rest_new)
            if each not in own and each.key not in verbs
        ]
        return bool(first) and first in self.shared and len(left) <= 1

    # What is otherwise now ----------------------------------------------------------------------

    def _is_other_value(self) -> bool:
        """Return whether both lines are the same but for one value."""
        own = [self.new.items[n] for n in self.rest_new]
        theirs = [self.old.items[n] for n in self.rest_old]
        if not own or not theirs or max(len(own), len(theirs)) > _MAX_VALUE:
            return False
        sides = (self.old, self.rest_old, theirs), (self.new, self.rest_new, own)
        if not all(_is_run(rest) and _is_one_value(line, items) for line, rest, items in sides):
            return False
        if self._is_other_verb(own) or not _are_alike(self, theirs, own):
            return False
        if not self.new.is_changed and (self.new.has("several") or self._is_shareable(own)):
            return False
        return self._is_in_place_of(theirs, own)

    def _is_other_verb(self, own: Sequence[Item]) -> bool:
        """Return whether another verb follows somebody: it is something else that is told."""
        is_behind = len(self.shared) == 1 and self.rest_new[0] == 1 and len(own) > 1
        return is_behind and own[0].kind == "word" and not own[0].before

    def _is_done_otherwise(self) -> bool:
        """Return whether only the verb between the same words is another one."""
        if self.rest_old != [1] or self.rest_new != [1]:
            return False
        return all(
            len(line.items) > _MIN_SHARED
            and line.items[1].kind == "word"
            and not line.items[1].before
            and line.items[2].before
            for line in (self.old, self.new)
        )

    def _is_shareable(self, own: Sequence[Item]) -> bool:
        values = {each.key for each in own}
        return bool(self.new.words_of("sharing") - values) or (
            self.new.has("sharing") and all(each.kind in ("word", "name") for each in own)
        )

    def _is_in_place_of(self, theirs: Sequence[Item], own: Sequence[Item]) -> bool:
        """Return whether a value stands where another one stood, and is none that qualifies."""
        places = self._place(self.old, self.rest_old), self._place(self.new, self.rest_new)
        is_named = all(each[0].kind == "name" for each in (own, theirs))
        if places == ("start", "start"):
            return is_named and self._is_other_subject(theirs, own)
        if "start" in places:
            return self.new.is_changed and is_named
        purpose = _has_before(self.new, own[0], "purposes") and _has_before(
            self.old, theirs[0], "purposes"
        )
        is_typed = own[0].kind not in ("word", "name")
        if purpose and not is_typed and not (own[0].kind == "name" and len(self.shared) == 1):
            return False
        if places == ("mid", "mid") and not self.new.is_changed and not is_typed:
            return not self.new.is_placed(own[0])
        return self._is_value(theirs, own)

    def _is_other_subject(self, theirs: Sequence[Item], own: Sequence[Item]) -> bool:
        """Return whether somebody else does now what one does alone: drive the van on Fridays."""
        if own[0].before or theirs[0].before or self._is_numbered():
            return False
        is_definite = self.new.has("definite") and not self.new.has("sharing")
        return self.new.is_changed or (is_definite and len(self.shared) >= _MANY)

    def _is_numbered(self) -> bool:
        """Return whether a number follows the words at the start: they say which one it is."""
        after = [
            line.items[rest[-1] + 1 : rest[-1] + 2]
            for line, rest in ((self.old, self.rest_old), (self.new, self.rest_new))
        ]
        return any(each and not each[0].before and each[0].kind == "number" for each in after)

    def _is_value(self, theirs: Sequence[Item], own: Sequence[Item]) -> bool:
        """Return whether words are a value: a number, a day, a name, a place, or changed."""
        if self.new.is_changed or _are_typed(own, theirs):
            return True
        return self.new.is_placed(own[0]) and self.old.is_placed(theirs[0])

    def _place(self, line: ComparedLine, rest: Sequence[int]) -> Literal["start", "mid", "end"]:
        if rest[-1] == len(line.items) - 1:
            return "end"
        return "start" if rest[0] == 0 and not line.is_of_speaker else "mid"

    def _is_other_figure(self) -> bool:
        """Return whether all that the new line says stands in the old one, but for a number."""
        own = [self.new.items[n] for n in self.rest_new]
        if len(own) != 1 or own[0].kind != "number" or len(self.shared) < _MIN_SHARED:
            return False
        unit = _after(self.new, self.rest_new[0])
        theirs = (n for n, each in enumerate(self.old.items) if each.kind == "number")
        return bool(unit) and any(_after(self.old, n) == self.forms.get(unit) for n in theirs)

    def _is_told_changed(self) -> bool:
        """Return whether the new line says that something changed, and has such a value."""
        if not self.new.is_changed or self._is_of_another(self.new, frozenset(self.forms)):
            return False
        left = [self.old.items[n] for n in self.rest_old]
        is_typed = any(each.kind not in ("word", "name") for each in left)
        is_known = len(left) <= 1 and len(self.shared) >= _MIN_SHARED and not is_typed
        if is_known and self._repeats_value():
            return True
        own, theirs = self._values(self.new, self.rest_new), self._values(self.old, self.rest_old)
        if not own or not theirs or own[-1].kind != theirs[-1].kind:
            return False
        if own[-1].kind == "name" and self._shares_place():
            return False
        return not self._are_two_things(
            self._beside(self.old, self.rest_old, theirs),
            self._beside(self.new, self.rest_new, own),
        )

    def _shares_place(self) -> bool:
        return any(
            line.is_placed(each)
            for line in (self.old, self.new)
            for each in line.items
            if each.key in {*self.shared, *self.forms}
        )

    def _beside(
        self, line: ComparedLine, rest: Sequence[int], values: Sequence[Item]
    ) -> list[Item]:
        """Return what else than the value of a line isn't in the other one."""
        value = _last_run(line, values)
        return [each for each in (line.items[n] for n in rest) if each not in value]

    def _are_two_things(self, theirs: Sequence[Item], own: Sequence[Item]) -> bool:
        """Return whether what stands beside the values tells two things apart."""
        kin = self.new.words_of("relation")
        if any(each.key in kin or self._qualifies(each) for each in own):
            return True  # my dentist and that of my sister, the wifi and the office wifi
        if all(any(one.kind not in WHEN for one in each) for each in (theirs, own)):
            is_told_alike = self.old.is_of_speaker == self.new.is_of_speaker
            if is_told_alike or self._tell_apart(theirs, own):
                return True  # the flats in Mainz and in Trier; when it opens and when it closes
        return any(len([one for one in each if one.kind == "word"]) > 1 for each in (theirs, own))

    def _tell_apart(self, theirs: Sequence[Item], own: Sequence[Item]) -> bool:
        return any(_tells_apart(self.old, each) for each in theirs) or any(
            _tells_apart(self.new, each) for each in own
        )

    def _qualifies(self, item: Item) -> bool:
        """Return whether a word of the new line stands directly before a thing of both."""
        place = self.new.items.index(item) + 1
        after = self.new.items[place : place + 1]
        is_thing = after and after[0].key in self.forms and not after[0].before
        return bool(item.before and is_thing and item.kind in ("word", "name"))

    def _repeats_value(self) -> bool:
        """Return whether the last name or figure of the old line is told in the new one too."""
        values = [each for each in self.old.items[1:] if each.kind != "word"]
        return bool(values) and bool(self.rest_new) and values[-1].key in self.shared

    def _values(self, line: ComparedLine, rest: Sequence[int]) -> list[Item]:
        return [line.items[n] for n in rest if line.items[n].kind != "word"]


def _has_before(line: ComparedLine, item: Item, name: str) -> bool:
    return any(found_in(each, name, line.codes) for each in item.before[-2:])


def _tells_apart(line: ComparedLine, item: Item) -> bool:
    """Return whether a word says which of several things is meant: in Mainz, for the pool."""
    return (
        item.kind in ("name", "number")
        or (item.kind == "word" and line.is_placed(item))
        or _has_before(line, item, "purposes")
        or _has_before(line, item, "own")
    )


def _last_run(line: ComparedLine, values: Sequence[Item]) -> list[Item]:
    """Return the values that stand side by side at the end: Dr. Blum, 9 June."""
    found = [values[-1]]
    for each in reversed(values[:-1]):
        if line.items.index(found[0]) - line.items.index(each) != 1 or found[0].before:
            break
        found.insert(0, each)
    return found


def _are_typed(own: Sequence[Item], theirs: Sequence[Item]) -> bool:
    kinds = {own[0].kind, theirs[0].kind}
    return len(kinds) == 1 and kinds != {"word"}


def _is_run(places: Sequence[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


def _is_one_value(line: ComparedLine, items: Sequence[Item]) -> bool:
    """Return whether words are one value: no verb of being stands in it, nor a thing and a figure.

    So *the plumber 120 euros* is none, nor *Porto on 10 June* or *1.20 at Lidl*, and a name behind
    a comma says to whom one talks.
    """
    if items[0].kind == "name" and line.plain[: items[0].start].rstrip().endswith(","):
        return False
    if _is_thing_and_place(line, items):
        return False
    if items[-1].kind == "number" and any(
        e.before and (e.kind == "word" or line.is_placed(e)) for e in items[:-1]
    ):
        return False
    return not any(_is_told_apart(line, each) for each in items[1:])


def _is_thing_and_place(line: ComparedLine, items: Sequence[Item]) -> bool:
    """Return whether words are a thing and where it is, or leads: the S7 to the gym."""
    is_thing = bool(items[0].before) and not line.is_placed(items[0])
    if is_thing and any(each.kind == "word" and line.is_placed(each) for each in items[1:]):
        return True
    kinds = {items[0].kind, items[-1].kind}
    return len(kinds) > 1 and not kinds <= {*WHEN} and line.is_placed(items[-1])


def _is_told_apart(line: ComparedLine, item: Item) -> bool:
    """Return whether a verb, or what a thing is for, stands between a word and those before it."""
    names = ["being", "sharing", *(("purposes",) if item.kind in ("word", "name") else ())]
    return any(found_in(before, name, line.codes) for before in item.before for name in names)


def _are_alike(pair: Pair, theirs: Sequence[Item], own: Sequence[Item]) -> bool:
    """Return whether two values are of a kind: numbers, days, times, places, or words."""
    kinds = [{each.kind for each in items} for items in (theirs, own)]
    is_count = all({"number", "date"} & each for each in kinds)
    more, less = (kinds[1] - kinds[0] - {"word", "name"}, kinds[0] - kinds[1] - {"word", "name"})
    if (more and not is_count) or (less - {"time"} and not is_count):
        return False  # the time of day may be left out: Thursday at 10, Friday
    if less and not kinds[1] & set(WHEN):
        return False
    firsts = ((pair.old, theirs[0]), (pair.new, own[0]))
    if not _are_typed(own, theirs):  # art is a source of joy, and gives joy
        said = [any(found_in(b, "being", line.codes) for b in item.before) for line, item in firsts]
        if said[0] != said[1]:
            return False
    placed = [line.is_placed(item) for line, item in firsts]
    return placed[0] == placed[1]


def _after(line: ComparedLine, place: int) -> str:
    following = line.items[place + 1 : place + 2]
    return following[0].key if following else ""
