"""Words of English, German and Spanish: classes, stems, and typed values such as dates.

Rules elsewhere in this room are written over these classes, so that they hold for any trade.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kbtui.text import fold


def word_set(*texts: str) -> frozenset[str]:
    """The words of some texts, folded."""
    return frozenset(fold(word) for text in texts for word in text.split())


_FILE = Path(__file__).with_name("words.txt")
_PARTS = (part.partition("]\n") for part in _FILE.read_text("utf-8").split("[")[1:])
_TEXTS = {name: text.strip() for name, _, text in _PARTS}


def listed(name: str) -> frozenset[str]:
    """A list of words by its name in words.txt."""
    return word_set(_TEXTS[name])


def weights(name: str) -> dict[str, float]:
    """Numbers by their names, a line each, from words.txt."""
    pairs = (line.rsplit(maxsplit=1) for line in _TEXTS[name].splitlines())
    return {sign: float(number) for sign, number in pairs}


FUNCTION = listed("function")
"""Words that say nothing by themselves."""

GREETING = listed("greeting")
THANKS = listed("thanks")
CHAT = GREETING | THANKS | listed("chat")
INTERJECTION = listed("interjection")
EMOTIVE = listed("emotive")
DURABLE = listed("durable")
RELATION = listed("relation")
PRONOUN = listed("pronoun")
FIRST_PERSON = listed("first person")
SECOND_PERSON = listed("second person")
COPULA = listed("copula")
ARTICLE = listed("article")
PREPOSITION = listed("preposition")
CONJUNCTION = listed("conjunction")
_WEEKDAYS = (
    r"mon(?:day)?s?|tue(?:s(?:day)?)?s?|wed(?:nesday)?s?|thu(?:r(?:s(?:day)?)?)?s?|fri(?:day)?s?"
    r"|sat(?:urday)?s?|sun(?:day)?s?"
    r"|montags?|dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonnabends?|sonntags?"
    r"|lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bados?|domingos?"
)
_MONTHS = (
    r"jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|m[aä]rz|apr(?:il)?|may|mai|june?|juni|july?"
    r"|juli|aug(?:ust)?|sep(?:t(?:ember)?)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?|j[aä]nner"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre"
)
_AFTER_DAY = (
    r"(?:(?<=\b(?:mon|tue|wed|thu|fri|sat|sun) )|(?<=day )|(?<=days )|(?<=tag )|(?<=woch ))"
)
_UNITS = r"h|hrs?|min|kg|g|km|cm|mm|m|l|ml|mg|gb|mb|tb|kw|m2|qm"
_VALUES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(form, re.IGNORECASE))
    for kind, form in (
        ("id", r"\b\d{1,3}(?:\.\d{1,3}){2,}\b|\b\+?\d[\d /-]{6,}\d\b|\bv?\d+\.\d+\.\d+\b"),
        ("date", r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)?(?!\d)"),
        (
            "date",
            rf"\b\d{{1,2}}(?:st|nd|rd|th|\.|º)?\s+(?:of\s+|de\s+)?(?:{_MONTHS})\b\.?(?:\s+\d{{4}}\b)?",
        ),
        ("date", rf"\b(?:{_MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?!:)(?:,?\s+\d{{4}}\b)?"),
        ("date", r"\b(?:the\s+)?\d{1,2}(?:st|nd|rd|th)\b"),
        (
            "time",
            (
                r"\b\d{1,2}(?::|h)\d\d(?:\s?[ap]m)?\b|\b\d{1,2}\s?[ap]m\b|\b\d{1,2}(?:[.:]\d\d)?\s?uhr\b"
                r"|\b\d{1,2}\s?h\b|(?<=\bat )\d{1,2}\b(?!\s?%)|(?<=\bum )\d{1,2}\b|(?<=\ba las )\d{1,2}\b"
                rf"|{_AFTER_DAY}\d{{1,2}}(?:[.:]\d\d)?\b(?!\s*(?:[a-z%]|[./-]\s?\d|\.))"
                r"|\bnoon\b|\bmidnight\b|\bmediod[ií]a\b|\bhalb (?:\w+)\b"
            ),
        ),
        (
            "room",
            (
                r"\b(?:hall|room|gate|platform|building|block|lot|bay|rack|terminal|saal|raum|halle|gleis"
                r"|sala|aula|puerta|and[eé]n)\s+[a-z]?\d{1,3}[a-z]?\b|\b(?!vitamin|class|plan)[a-z]{3,}\s(?-i:[A-HJ-Z])\b(?![.'’])"
            ),
        ),
        ("code", r"\b[a-z]{1,2}-?\d{1,4}\b"),
        (
            "money",
            (
                r"[€$£]\s?\d[\d.,]*\s?[km]?\b(?:/\w+)?|\b\d[\d.,]*\s?(?:[km]\b\s?)?(?:€|\$|£|eur\b|euros?\b"
                r"|usd\b|dollars?\b|pounds?\b|chf\b|franken\b|pesos?\b)(?:/\w+)?"
            ),
        ),
        ("percent", r"\b\d+(?:[.,]\d+)?\s?%|\b\d+\s(?:percent|prozent|por ciento)\b"),
        ("weekday", rf"\b(?:{_WEEKDAYS})\b"),
        ("month", rf"\b(?:{_MONTHS})\b"),
        (
            "day",
            (
                r"\b(?:today|tomorrow|tonight|tmrw|next (?:week|month|year|spring|summer|autumn|fall|winter)"
                r"|heute|morgen|[uü]bermorgen|n[aä]chste[nsr]? (?:woche|monat|jahr)"
                r"|hoy|mañana|la pr[oó]xima semana|el pr[oó]ximo (?:mes|año))\b"
            ),
        ),
        ("number", rf"[#~]?\b\d+(?:[.,]\d+)*(?:\s?(?:k|{_UNITS}))?\b"),
        (
            "number",
            (
                r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|zwei|drei"
                r"|vier|f[uü]nf|sechs|sieben|acht|neun|zehn|elf|zw[oö]lf|dos|tres|cuatro|cinco|seis|siete"
                r"|ocho|nueve|diez|once|doce)\b"
            ),
        ),
    )
)
_AMBIGUOUS = frozenset({"may", "mar", "sat", "sun", "once", "morgen", "wed", "mon"})
_CONCEPTS = tuple(word_set(line) for line in _TEXTS["concepts"].splitlines())
_WORD = re.compile(r"[^\W_]+(?:['’´][^\W_]+)*")
_ENDINGS = tuple(
    sorted(
        """ings ing ungen ung ed es er ern en em s e n a o os as y ie ies ic ar ir isch ico ica ado ada
        idos ido ida amos emos imos aron ieron aba aban ando iendo ista istas ist istin isten""".split(),  # noqa: SIM905
        key=len,
        reverse=True,
    )
)
_PERSON_ENDINGS = frozenset({"t", "st", "te", "ten"})
_LEAST_STEM = 3
_REMEMBERED = 4096  # texts: each statement is compared with every line that is known
_COMPOUND = 8
_PART_OF_COMPOUND = 5
_SAME_BEGINNING = 5


@dataclass(frozen=True, slots=True)
class Value:
    """Something exact in a text: its kind (date, time, money ...), where it stands, and it."""

    kind: str
    start: int
    end: int
    text: str


@lru_cache(_REMEMBERED)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, folded; an apostrophe's ending is cut off."""
    return tuple(
        fold(word.replace("\u2019", "'").replace("\u00b4", "'")) for word in _WORD.findall(text)
    )


@lru_cache(8192)
def stem(word: str) -> str:
    """A folded word without its ending, for comparing; numbers stay whole."""
    word = word.partition("'")[0] if len(word.partition("'")[0]) > 1 else word.replace("'", "")
    if any(char.isdigit() for char in word):
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            word = word[: -len(ending)]
            return word[:-1] if len(word) > _LEAST_STEM and word[-1] == word[-2] else word
    return word


@lru_cache(_REMEMBERED)
def content(text: str) -> tuple[str, ...]:
    """The words of a text that say something, folded, in order."""
    return tuple(word for word in words(text) if is_content(word))


def is_content(word: str) -> bool:
    """True if a folded word says something by itself."""
    plain = word.replace("'", "")
    if plain in FUNCTION or word.partition("'")[0] in FUNCTION:
        return False
    return len(plain) > 1 or plain.isdigit()


@lru_cache(16384)
def alike(one: str, other: str) -> bool:
    """True if two folded words are forms of one, or one is the end of a compound of the other."""
    a, b = stem(one), stem(other)
    if a == b:
        return True
    if any(char.isdigit() for char in a + b):
        return False
    if len(a) > len(b):
        a, b = b, a
    if len(a) > _LEAST_STEM and b.startswith(a) and b[len(a) :] in _PERSON_ENDINGS:
        return True
    if len(_skeleton(a)) >= _SAME_BEGINNING and _skeleton(a) == _skeleton(b):
        return True
    if len(a) >= _SAME_BEGINNING and b.startswith(a[: max(_SAME_BEGINNING, len(a) - 1)]):
        return len(b) - len(a) <= _LEAST_STEM
    return _is_compound(a, b) or _is_compound(*sorted((one, other), key=len))


def _is_compound(part: str, whole: str) -> bool:
    long = len(whole) >= _COMPOUND and len(part) >= _PART_OF_COMPOUND
    return long and (whole.endswith(part) or whole.startswith(part))


@lru_cache(8192)
def _skeleton(word: str) -> str:
    """The consonants of a word, each run once: *vertritt* and *Vertretung* share them."""
    return re.sub(r"(.)\1+", r"\1", word[:1] + re.sub(r"[aeiouy]", "", word[1:]))


@lru_cache(4096)
def concepts(word: str) -> frozenset[int]:
    """The groups of words of one meaning that a folded word belongs to."""
    return frozenset(
        number
        for number, group in enumerate(_CONCEPTS)
        if word in group or any(stem(word) == stem(other) for other in group if len(other) > 4)
    )


def synonyms(word: str) -> list[str]:
    """Other words of the meanings of a folded word."""
    return sorted(other for number in concepts(word) for other in _CONCEPTS[number])


@lru_cache(_REMEMBERED)
def values(text: str) -> tuple[Value, ...]:
    """The exact values of a text, in order, without overlaps; the more telling kind wins."""
    found: list[Value] = []
    for kind, form in _VALUES:
        for match in form.finditer(text):
            start, end = match.span()
            if fold(match[0]) in _AMBIGUOUS and not match[0][:1].isupper():
                continue
            if all(end <= other.start or start >= other.end for other in found):
                found.append(Value(kind, start, end, match[0]))
    return tuple(sorted(found, key=lambda value: value.start))


def weekday(text: str) -> int:
    """The number of a day of the week, from 0 for Monday; -1 for another word."""
    return next((n for n, begins in enumerate(_DAYS) if fold(text).startswith(begins)), -1)


def weekdays(text: str) -> set[int]:
    """The days of the week that a text names, with those between: *tue-thu*, *Mo bis Fr*."""
    found = {weekday(value.text) for value in values(text) if value.kind == "weekday"}
    for match in _SPAN_OF_DAYS.finditer(text):
        first, last = weekday(match["first"]), weekday(match["last"])
        found |= {day % 7 for day in range(first, last + 1 + 7 * (last < first))}
    return found


def names(text: str) -> Iterator[str]:
    """Words written with a capital within a sentence: names, mostly."""
    for match in _WORD.finditer(text):
        before = text[: match.start()].rstrip(" \"'([„“«")
        at_start = not before or before[-1] in ".!?\n:-*•"
        if match[0][0].isupper() and not at_start and fold(match[0]) not in FUNCTION:
            yield match[0]


def language(text: str) -> str:
    """``en``, ``de`` or ``es``, by the function words of a text."""
    told = words(text)
    marks = {code: sum(word in marked for word in told) for code, marked in _MARKS.items()}
    best = max(marks, key=lambda code: (marks[code], code == "en"))
    if best == "en" and re.search("[äöüß]", text.lower()):
        return "de"
    if best == "en" and re.search("[ñ¿¡áíóú]", text.lower()):
        return "es"
    return best


def pronouns(text: str) -> frozenset[str]:
    """The pronouns that a text may have: Ella is a name, where it isn't Spanish."""
    return PRONOUN if language(text) == "es" else PRONOUN - {"ella"}


_MARKS = {code: listed(f"mark {code}") for code in ("en", "de", "es")}
_DAYS = (
    ("mo", "lun"),
    ("tu", "di", "mar"),
    ("we", "mit", "mie"),
    ("th", "do", "jue"),
    ("fr", "vie"),
    ("sa", "sonna"),
    ("su", "so", "dom"),
)
_SPAN_OF_DAYS = re.compile(
    rf"\b(?P<first>{_WEEKDAYS}|mo|di|mi|do|fr|sa)\s?(?:-|–|to|till|until|through|thru|bis|a)\s?(?P<last>{_WEEKDAYS}|di|mi|do|fr|sa|so)\b",
    re.IGNORECASE,
)
SINGULAR = listed("singular")
