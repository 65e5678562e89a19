"""Puts what a statement says into a line: a value, a name or a place where another stands.

Only what can be told is put there; a line in which two values could be meant stays as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache

from kbtui.offline import words as w
from kbtui.text import fold

_DAY_ALONE = re.compile(r"(?:the\s+)?(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?", re.IGNORECASE)
_BEFORE_DAY = re.compile(r"\b(?:the|on|am|den|der|el|d[ií]a)\s+(?:the\s+)?$", re.IGNORECASE)
# "switched the insurance to Admiral": another name in the place of the one before.
SWITCHED_TO = re.compile(
    r"\b(?i:switch\w*|chang(?:ed|ing)|mov(?:ed|ing)|went over|going over)\b[^,.;]*?\s(?:to|over to)\s+(?P<en>[A-ZÄÖÜ][\w'’&-]+(?:\s[A-Z][\w'’-]+)?)"
    r"|\b(?:zu|zur|zum)\s+(?P<de>(?:(?:Dr|Prof)\.\s|Frau\s|Herrn?\s)?[A-ZÄÖÜ][\w'’&-]+)\s+(?:gewechselt|übergegangen)\b|\b(?i:cambi(?:é|ado|amos))\b[^,.;]*?\s(?:a|por)\s+(?P<es>[A-ZÁÉÍÓÚÑ][\w'’&-]+)"
)
# "sold three, so 11 left": of what is counted.
_LEFT = re.compile(
    r"\b(?P<before>\d+)\s+(?:\w+\s+)?(?:left|remaining|übrig|to go)\b|\b(?:left with|noch|quedan)\s+(?P<after>\d+)\b",
    re.IGNORECASE,
)
# "the 14th and the 17th" are two days, "from 9 to 12" is a span: neither takes the other's place.
_BOTH = re.compile(
    r"\W*(?:and|und|y|or|oder|o|to|bis|till|until|through|a|al|[-–—&+/,])\W*(?:the|on|am|den|el)?\W*",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|no|can['’]?t|cannot|won['’]?t|isn['’]?t|doesn['’]?t|back to|instead|nicht|kein\w*|zurück zu)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;]|\s(?:and|und|y)\s", re.IGNORECASE)
_WITH = re.compile(
    r"\b(?:with|by|from|at|via|through|is|on|bei|mit|von|ist|con|de|es)\s+(?P<name>(?:(?:Dr|Prof|Mr|Mrs|Ms)\.?\s|Frau\s|Herrn?\s)?[A-ZÄÖÜÁÉÍÓÚÑ][\w'’&-]+(?:\s[A-Z][\w'’-]+)?)"
)
MOVED_TO = re.compile(
    r"\b(?:moved|moving|moves|relocated|relocating)\s+(?:back |over |house |(?:her|his|their|its|our|my|the)\s\w+\s)?(?:to|into)\s+(?P<en>[A-ZÄÖÜ][\w'’-]+(?:\s[A-Z][\w'’-]+)?)"
    r"|\b(?:nach|in)\s+(?P<de>[A-ZÄÖÜ][\w-]+(?:\s[A-ZÄÖÜ][\w-]+)?)\s+(?:umgezogen|gezogen)\b|\bzieht\s+(?:\w+\s+){0,3}?(?:nach|in)\s+(?P<de2>[A-ZÄÖÜ][\w-]+)"
    r"|\bse\s+(?:ha\s+)?mud\w+\s+(?:a|al)\s+(?P<es>[A-ZÁÉÍÓÚÑ][\w-]+(?:\s[A-ZÁÉÍÓÚÑ][\w-]+)?)"
)
PLACE = re.compile(
    r"\b(?:in|from|at|near|out of|based in|on|aus|auf|bei|im|en|de|desde)\s+(?:(?:the|der|dem)\s+)?(?P<place>[A-ZÄÖÜÁÉÍÓÚÑ][\w'’-]+(?:\s[A-ZÄÖÜÁÉÍÓÚÑ][\w'’-]+)?)"
)
# "the party is at the Swan instead", "wir treffen uns stattdessen im Löwen"
THERE_INSTEAD = re.compile(
    r"\b(?:in|at|im|en)\s+(?:(?:the|der|dem|el|la)\s+)?(?P<en>[A-ZÄÖÜÁÉÍÓÚÑ][\w'’-]+(?:\s[A-Z][\w'’-]+)?)[^.;]*?\s(?:instead|stattdessen|en su lugar)\b"
    r"|\b(?:instead|stattdessen|en su lugar|now|jetzt|neuerdings|doch|ahora)\b[^.;,]*?\s(?:in|at|im|bei|beim|en)\s+(?:(?:the|der|dem|el|la)\s+)?(?P<de>[A-ZÄÖÜÁÉÍÓÚÑ][\w'’-]+(?:\s[A-Z][\w'’-]+)?)"
)
_KINDS = {
    "date": "day",
    "weekday": "day",
    "day": "day",
    "month": "day",
    "number": "number",
    "money": "number",
    "id": "number",
    "code": "room",
}
CHANGES = re.compile(
    r"\b(?:left|remaining|moved|moves|moving|changed|changes|switched|postponed|rescheduled|pushed|shifted|brought forward|now|instead|from now on|these days|nowadays|replac\w+|takes? over|took over|new|no longer|not any ?more|any ?more|renamed|went up|went down|raised|increased|extended|turns out|after all|(?:down|up) to"
    r"|verschoben|geschoben|gewechselt|verlegt|vorverlegt|geändert|jetzt|nun|neuerdings|ab jetzt|stattdessen|umgezogen|zieht|umbenannt|ersetzt|übernimmt|erhöht|gestiegen|verlängert|nicht mehr|kein\w* mehr|nur noch|neue\w*|doch"
    r"|ahora|cambi[óoa]\w*|movi\w+|mueve|aplaz\w+|pospu?e\w+|traslad\w+|mud[óoa]\w*|en su lugar|sustituy\w+|reemplaz\w+|ya no|pasa a|pasó a|sub(?:e|ió|ido)|baj(?:a|ó)|adelant\w+|retras\w+|nuev\w+|al final|(?:s[óo]lo )?quedan|erst (?:am|um|ab|im|in|nächste\w*)|not (?:until|before))\b",
    re.IGNORECASE,
)


def replaced(said: str, text: str, old: str = "", new: str = "") -> str | None:
    """A line with the new value in the place of the old; None where that can't be told.

    Args:
        said: The statement, without its cue.
        text: The line.
        old: What the statement denies in words; empty where it only says what is so now.
        new: What holds in its place, in the statement's words.
    """
    named = old
    if not (old and find_value(old, text)):
        old, new = denied(said, text) or ("", "")
    if old and (span := find_value(old, text)):
        value = _last_like(new, text[slice(*span)], text)
        return text[: span[0]] + value + text[span[1] :] if value else None
    placed = _with_place(said, text) or _with_what_is_left(said, text)
    if placed:
        return placed
    renamed: str | None = text
    if switched := SWITCHED_TO.search(said):
        renamed = _with_name(next(part for part in switched.groups() if part), text)
    if renamed is None:
        return None
    return _with_values(said, renamed, named, changed=renamed != text)


def denied(said: str, text: str) -> tuple[str, str] | None:
    """The value of a line that a statement denies, and the one that it gives of the same kind."""
    given = w.values(said) if _DENIES.search(said) else ()
    for old, new in ((a, b) for a in given for b in given if a is not b):
        if kind_of(old) != kind_of(new):
            continue
        first, second = sorted((old, new), key=lambda value: value.start)
        if _BOTH.fullmatch(said[first.end : second.start]) or find_value(new.text, text):
            continue
        if find_value(old.text, text):
            return old.text, new.text.removeprefix("the ")
    return None


def find_value(old: str, text: str) -> tuple[int, int] | None:
    """Where what is denied stands in a line: all of it, or its longest beginning that does."""
    if re.fullmatch(r"\d[\d.,]*", old):
        for value in w.values(text):
            if re.fullmatch(rf"{re.escape(old)}\s?[^\W\d]{{0,3}}", value.text):
                return value.start, value.end
    tokens = old.split()
    while tokens and fold(tokens[0]) in w.ARTICLE | w.PREPOSITION:
        tokens.pop(0)
    while tokens:
        piece = " ".join(tokens).strip(".,;:!?'\"")
        match = (
            re.search(rf"(?<!\w)(?<!\d[.:]){re.escape(piece)}(?!\w|[.:]\d)", text, re.IGNORECASE)
            if piece
            else None
        )
        if match and w.content(piece):
            return match.span()
        tokens.pop()
    return None


def number_of_same(said: str, text: str) -> w.Value | None:
    """The number in a line of what a statement gives one of: "ramipril 10 mg", "ramipril 5 mg"."""
    given = [_beside(value, said) for value in w.values(said) if _is_number(value)]
    return next(
        (
            value
            for value in w.values(text)
            if _is_number(value) and any(_beside(value, text) & each for each in given)
        ),
        None,
    )


def kind_of(value: w.Value) -> str:
    """The kind of a value, those as one that may stand for each other: a weekday and a date."""
    return _KINDS.get(value.kind, value.kind)


def is_in(word: str, text: str) -> bool:
    """True if a text has a folded word in some form, or one of its meaning."""
    return any(same(word, other) for other in w.content(text))


@lru_cache(1 << 16)
def same(one: str, other: str) -> bool:
    """True if two folded words are forms of one, or mean the same."""
    return w.alike(one, other) or bool(w.concepts(one) & w.concepts(other))


def _with_place(said: str, text: str) -> str | None:
    moved = MOVED_TO.search(said) or THERE_INSTEAD.search(said)
    places = [each for each in PLACE.finditer(text) if not _is_day(each["place"])]
    if not moved or not places or _is_day(moved[0]):
        return None
    if len(places) > 1 and THERE_INSTEAD.search(said):
        return said
    start, end = places[-1].span("place")
    return text[:start] + next(part for part in moved.groups() if part) + text[end:]


def _with_what_is_left(said: str, text: str) -> str | None:
    left, counted = _LEFT.search(said), number_of_same(said, text)
    if left is None or counted is None:
        return None
    return f"{text[: counted.start]}{left['before'] or left['after']}{text[counted.end :]}"


def _with_name(name: str, text: str) -> str | None:
    names = [match for match in _WITH.finditer(text) if not _is_day(match["name"])]
    if name in text or not names:
        return None
    start, end = names[-1].span("name")
    return text[:start] + name + text[end:]


def _with_values(said: str, text: str, old: str, *, changed: bool) -> str | None:
    for value in w.values(said):
        if old and find_value(old, said) and value.text in old:
            continue
        if (dated := _day_within(value, said, text)) is not None:
            text, changed = dated, True
            continue
        slots = [v for v in w.values(text) if _fits(value, v, said, text)]
        slots = _in_named_clause(slots, said, text)
        if any(fold(slot.text) == fold(value.text) for slot in w.values(text)):
            continue
        if len(slots) != 1:
            if not slots and kind_of(value) in ("day", "time") and not changed:
                continue
            return None if not changed else text
        text = text[: slots[0].start] + value.text + text[slots[0].end :]
        changed = True
    return text if changed else None


def _in_named_clause(slots: list[w.Value], said: str, text: str) -> list[w.Value]:
    """The values in that clause of a line, of several, that a statement names alone."""
    ends = [match.start() for match in _CLAUSE.finditer(text)]
    clauses = {slot: bisect_left(ends, slot.start) for slot in slots}
    if len(set(clauses.values())) < 2:  # of which one is chosen
        return slots
    bounds = [0, *ends, len(text)]
    told = {
        n: {word for word in w.content(text[bounds[n] : bounds[n + 1]]) if is_in(word, said)}
        for n in set(clauses.values())
    }
    subject = w.content(text[: slots[0].start])
    common = set.intersection(*told.values()) | set(subject)
    named = [n for n, words in told.items() if words - common]
    return [slot for slot in slots if clauses[slot] == named[0]] if len(named) == 1 else slots


def _is_day(text: str) -> bool:
    return any(kind_of(v) == "day" for v in w.values(text))


def _day_within(new: w.Value, said: str, text: str) -> str | None:
    """A line with a day in the place of its only date's: "the 19th" for 12 dec is 19 dec.

    None where the value is no day alone, or may lie in the month after.
    """
    dates = [v for v in w.values(text) if v.kind == "date" and re.match(r"\d", v.text)]
    day = _DAY_ALONE.fullmatch(new.text)
    if day is None or len(dates) != 1 or new.kind not in ("date", "number"):
        return None
    old = re.match(r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?=\.?\s+(?:of\s|de\s)?\w{3})", dates[0].text)
    if old is None or (new.kind == "number" and not _BEFORE_DAY.search(said[: new.start])):
        return None
    if int(day["day"]) < int(old["day"]) and CHANGES.search(said):
        return None
    start = dates[0].start
    said_so = re.sub(r"the\s+", "", new.text, flags=re.IGNORECASE)
    return f"{text[:start]}{said_so}{text[start + old.end() :]}"


def _fits(new: w.Value, old: w.Value, said: str, text: str) -> bool:
    """True if a value can stand where another stands: of one kind, and counting the same thing."""
    if kind_of(new) != kind_of(old):
        return False
    if not _is_number(new):
        return True
    counted = _beside(new, said) & _beside(old, text)
    numbers = [v for v in w.values(text) if _is_number(v)]
    if len(numbers) == 1 or counted:
        return True
    alike = [v for v in numbers if v.kind == new.kind]
    return len(alike) == 1 and alike[0] == old


def _beside(value: w.Value, text: str) -> set[str]:
    """The telling words right before and right after a value: what it counts, or whose it is."""
    around = (*w.words(text[: value.start])[-1:], *w.words(text[value.end :])[:1])
    return {word for word in around if w.is_content(word)}


def _is_number(value: w.Value) -> bool:
    return _KINDS.get(value.kind) == "number"


def _last_like(new: str, old: str, text: str) -> str:
    """Of what stands before *not*, the last of the old value's kind that the line hasn't anyway."""
    kind = next((kind_of(v) for v in w.values(old)), "")
    if kind:
        held = {fold(v.text) for v in w.values(text)}
        fitting = [v for v in w.values(new) if kind_of(v) == kind]
        fitting = [v for v in fitting if fold(v.text) not in held] or fitting
        unit = re.search(r"\s?[^\W\d]{0,3}$", old)
        bare = bool(fitting) and fitting[-1].text.isdigit() and kind == "number"
        return fitting[-1].text + (unit[0] if bare and unit else "") if fitting else ""
    size = len(old.split())
    tokens = new.split()
    if old[:1].isupper():
        named = re.findall(r"[A-ZÄÖÜ][\w'’-]*(?:\s+(?:&\s+)?[A-ZÄÖÜ][\w'’-]*)*", new)
        return named[-1] if named else ""
    while size > 1 and tokens[-size:] and fold(tokens[-size:][0]) in w.ARTICLE | w.COPULA:
        size -= 1
    return " ".join(tokens[-size:])
