"""Parses queries tolerantly (any text is a query), makes snippets, and marks matches.

Plain words are read here; a query with operators is written in Whoosh's language and parsed by
``whoosh.qparser`` (`operators`). A word like ``http:`` that only looks like a field is a word, as
is text after an unclosed quotation mark. What Whoosh can't read is plain words, and that is said.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from kbtui.clock import local_day
from kbtui.search.index import analyser
from kbtui.search.index.language import function_words, language_of
from kbtui.search.index.letters import PUNCTUATION, QUESTION_MARKS
from kbtui.text import clean

if TYPE_CHECKING:
    from kbtui.search.query.operators import Operators

Marker = Callable[[str], list[tuple[int, int]]]
# What stands before a text, the text, what stands after it, and its characters that are operators.
_Part = tuple[str, str, str, str]

_LOG = logging.getLogger(__name__)
_MAX_CHARACTERS = 20_000
MAX_TERMS = 256
_MAX_GROUPS = 100  # brackets; Whoosh nests a matcher for each AND as well
_SHOUTED_FROM = 3  # words
Filter = Literal["type", "tag", "path", "title", "heading", "created", "updated", "said"]
_FIELDS: dict[str, Filter] = {
    "type": "type",
    "tag": "tag",
    "tags": "tag",
    "path": "path",
    "in": "path",
    "folder": "path",
    "title": "title",
    "heading": "heading",
    "created": "created",
    "updated": "updated",
    "by": "said",
    "after": "updated",
    "before": "updated",
}
_SINCE = {"after": ">=", "before": "<"}
_DATED = frozenset({"created", "updated"})
_QUOTES = '"“”„«»'
_PART = re.compile(
    rf"(?P<sign>[-+])?(?:(?P<field>[A-Za-z]{{2,12}}):)?"
    rf"(?:[{_QUOTES}](?P<phrase>[^{_QUOTES}]*)[{_QUOTES}](?P<within>~[1-9]\d?(?!\S))?"
    rf"|\[(?P<range>[^\]\n]*)\](?!\S)|(?P<word>\S+))"
)
# The same where brackets group, and stand for themselves.
_GROUPED = re.compile(
    r"(?P<bracket>[-+]?(?:[A-Za-z]{2,12}:)?\(|\))|"
    + _PART.pattern.replace(r"(?P<word>\S+)", r"(?P<word>[^\s()]+)")
)
_GROUPS = re.compile(r"(?:^|[\s(])(?:AND|OR|NOT)(?=[\s()])|(?:^|\s)(?:[-+]|[-+]?[A-Za-z]{2,12}:)\(")
_HASHTAG = re.compile(r"#.*?[^\W\d_]", re.DOTALL)
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_NO_QUOTES = str.maketrans("", "", _QUOTES)
_TRAILING = ".,;!)]}"
_BEGINNING = re.compile(r"[^\W_][\w'.-]*[^\W_]\*")
_PATTERN = re.compile(r"(?!\*.*\*$)(?=(?:.*\w){3})\*?[\w'-]+(?:[*?][\w'-]+)*\*?")
_MISSPELT = re.compile(r"[^\W_]{3,}~[12]?")
_DAY = r"\d{4}(?:-\d{1,2}){0,2}"
_DAY_FIRST = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_YEAR_FIRST = re.compile(r"\b(\d{4})(?:[./](\d{1,2})[./](\d{1,2})|(\d\d)(\d\d))\b")
_RANGE = re.compile(rf"(?P<since>{_DAY})?\.\.(?P<until>{_DAY})?")
_COMPARISON = re.compile(rf"(?P<sign>[<>]=?)?(?P<day>{_DAY})")
_RECENT = {"today": 0, "yesterday": 1, "week": 7, "month": 31, "year": 366}
_NO_DAY = (
    "names no day and is looked for as words: write 2026-03-01, 2026-03, >2026, 2026-01..2026-03,"
    " today, yesterday, week, month or year."
)
_AFTER_ALL = "~"  # sorts after every digit and dash


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    Attributes:
        text: What may be in a document, for search by meaning.
        words: The words to rank by.
        phrases: The phrases that a document may or must have.
        beginnings: What words may begin with; with ``*`` and ``?`` where they aren't at the end.
        operators: The conditions, as queries of Whoosh's; None for plain words.
        notice: What couldn't be read, in a sentence, or ``""``.
    """

    text: str = ""
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()
    operators: Operators | None = None
    notice: str = ""

    @property
    def has_words(self) -> bool:
        """Whether there is anything to rank by besides filters."""
        return bool(self.words or self.phrases or self.beginnings)

    @property
    def has_conditions(self) -> bool:
        """Whether there is something that a document must or must not have."""
        return self.operators is not None and bool(
            self.operators.required or self.operators.excluded
        )

    def terms(self) -> Mapping[str, str]:
        """Return the terms to score by, with the word each came from.

        Stop words are left out if there are other words.
        """
        return _terms_of((*self.words, *" ".join(self.phrases).split()), self.text)


@lru_cache(maxsize=16)
def _terms_of(words: Sequence[str], text: str) -> Mapping[str, str]:
    content = content_words(words, text)
    found: dict[str, str] = {}
    for word in content or words:
        for term in analyser.terms(word):
            found.setdefault(term, word)
    return MappingProxyType(dict(list(found.items())[:MAX_TERMS]))


def content_words(words: Sequence[str], text: str) -> list[str]:
    """Return words without stop words of English and of the language of a text."""
    foreign = function_words(language_of(text))
    return [
        word
        for word in words
        if not analyser.is_stop_word(word)
        and (not foreign or word.strip(PUNCTUATION).lower() not in foreign)
    ]


def parse(text: str) -> Query:
    """Parse a query; never raises."""
    return _parse(text[:_MAX_CHARACTERS].replace("\0", " "), local_day())


@lru_cache(maxsize=16)
def _parse(text: str, today: date) -> Query:
    found, notices = _parts(text, today)
    if all(part[0] == part[2] == part[3] == "" for part in found):
        return _plain_words([part[1] for part in found], notices)
    try:
        return _with_operators(found, notices, quoted=not text.rstrip().endswith(QUESTION_MARKS))
    except Exception as error:  # noqa: BLE001 — whatever is the matter with Whoosh's parser
        _LOG.info("Whoosh can't read a query: %r", error)
        words = [word.strip(f"{_QUOTES}()") for word in text.split() if word not in _OPERATORS]
        fault = "The operators can't be read; all words are looked for as they are."
        return _plain_words([word for word in words if word], [fault])


def _plain_words(words: Sequence[str], notices: Sequence[str]) -> Query:
    return Query(" ".join(words), tuple(words), notice=" ".join(notices))


def _with_operators(found: Sequence[_Part], notices: Sequence[str], *, quoted: bool) -> Query:
    """Read a query with Whoosh's parser.

    Raises:
        Exception: of any type.
    """
    from kbtui.search.query import operators

    parsed = operators.read(found, tuple(dict.fromkeys(_FIELDS.values())), quoted=quoted)
    positive = parsed.positive()
    return Query(
        " ".join(text for _, text in positive),
        tuple(text for kind, text in positive if kind in {"word", "misspelt"}),
        tuple(text for kind, text in positive if kind == "phrase"),
        tuple(text for kind, text in positive if kind == "letters"),
        parsed if parsed.has_more_than_words else None,
        " ".join(notices),
    )


def _parts(text: str, today: date) -> tuple[list[_Part], list[str]]:
    """Return the parts of a query, and what can't be read, in sentences."""
    notices: list[str] = []
    is_grouped = _is_grouped(text, notices)
    is_shouted = _is_shouted(text)
    found: list[_Part] = []
    for match in (_GROUPED if is_grouped else _PART).finditer(text):
        word = match["word"]
        if is_grouped and match["bracket"]:
            found.append((_bracket(match["bracket"]), "", "", ""))
        elif word not in _OPERATORS or match["field"] or match["sign"]:
            found += _part(match, today, notices)
        elif is_shouted:
            found.append(("", word, "", ""))
        elif is_grouped and (word == "NOT" or (found and found[-1][0] not in _OPERATORS)):
            found.append((word, "", "", ""))
    return found, list(dict.fromkeys(notices))


def _is_grouped(text: str, notices: list[str]) -> bool:
    """Return whether operators and brackets group a query; too many are noted."""
    if _is_shouted(text) or not _GROUPS.search(text):
        return False
    counts = {"brackets": text.count("("), "operators": sum(map(text.split().count, _OPERATORS))}
    too_many = [what for what, count in counts.items() if count > _MAX_GROUPS]
    notices += [f"More than {_MAX_GROUPS} {what} can't be read." for what in too_many]
    return not too_many


def _is_shouted(text: str) -> bool:
    """Return whether a text is all in capitals, so that OR is a word like the others."""
    return text.isupper() and len(text.split()) > _SHOUTED_FROM


def _bracket(text: str) -> str:
    sign, name = re.fullmatch(r"([-+]?)(?:(\w+):)?[()]", text).groups()  # type: ignore[union-attr]
    field = _FIELDS.get((name or "").lower())
    return f"{sign}{field}:{text[-1]}" if field else sign + text[-1]


def _part(match: re.Match[str], today: date, notices: list[str]) -> Iterator[_Part]:
    """Yield what a match is: words, a phrase or a condition, or nothing."""
    word = match["word"] or ""
    condition = _condition(match)
    if word.endswith(":") and word[:-1].lower() in _FIELDS:
        return  # a field without a value
    if condition is None:
        yield from _word_parts(match) if match["phrase"] is None else _phrase_part(match)
        return
    name, value = condition
    sign = match["sign"] or ""
    if name not in _DATED:
        yield from _condition_part(sign, name, value, is_phrase=match["phrase"] is not None)
    elif span := date_bounds(value, today):
        yield f"{sign}{name}:[{span[0]} to {span[1]}]", "", "", ""
    else:
        if value:
            notices.append(f"“{_remainder(match)}” {_NO_DAY}")
        yield from _word_parts(match)


def _word_parts(match: re.Match[str]) -> Iterator[_Part]:
    sign = match["sign"] or ""
    if not (match["word"] or "")[:1].isalnum():
        sign = ""
    for each in (_remainder(match) if sign else match[0]).split():
        if _has_term(bare := each.strip(_QUOTES)):
            yield _word_part(sign, bare)


def _phrase_part(match: re.Match[str]) -> Iterator[_Part]:
    phrase, within = match["phrase"], match["within"] or ""
    whole = _remainder(match).removesuffix(within).translate(_NO_QUOTES)
    if _has_term(phrase):
        yield f'{match["sign"] or ""}"', " ".join(whole.split()), f'"{within}', ""


def _remainder(match: re.Match[str]) -> str:
    """Return a part as written, without its sign."""
    return match[0][len(match["sign"] or "") :]


def _has_term(text: str) -> bool:
    return bool(analyser.terms(text))


def _condition(match: re.Match[str]) -> tuple[Filter, str] | None:
    """Return the field and the value of a part; None if it has no field that is known."""
    value, *_ = [v for v in (match["phrase"], match["range"], match["word"]) if v is not None]
    name = (match["field"] or "").lower()
    if not name and match["word"] and _HASHTAG.match(value):
        name, value = "tag", value[1:]
    field = _FIELDS.get(name)
    if field is None:
        return None
    value = value.strip(f" {_QUOTES}").lstrip("#" if field == "tag" else "")
    return field, _SINCE.get(name, "") + value if value else ""


def _condition_part(sign: str, name: str, value: str, *, is_phrase: bool) -> Iterator[_Part]:
    if not value:
        return
    if is_phrase or " " in value:
        yield f'{sign}{name}:"', value, '"', ""
        return
    before, text, after, kept = _word_part(sign, value)
    yield f"{before}{name}:", text, after, kept


def _word_part(sign: str, word: str) -> _Part:
    """Return a word; one that is misspelt, or has letters left out, with operators."""
    bare = word.rstrip(_TRAILING)
    if {*bare}.isdisjoint("*?~"):
        return sign, word, "", ""
    if _MISSPELT.fullmatch(bare):
        text, _, distance = bare.partition("~")
        return sign, text, f"~{distance}", ""
    if _BEGINNING.fullmatch(bare) or _PATTERN.fullmatch(bare):
        return sign, bare, "", "*?"
    return sign, word, "", ""


def split_conditions(text: str, *, whole: bool = False) -> tuple[list[str], str]:
    """Split a query into its conditions, as written, and the rest.

    A query with AND, OR, NOT or brackets isn't split.

    Args:
        text: The query as it is being typed; the last word may be incomplete.
        whole: The query is complete, including its last word.
    """
    found: list[str] = []
    rest, at = "", 0
    for match in _PART.finditer(text) if not _GROUPS.search(text) else ():
        if not _is_complete(match, whole=whole):
            continue
        found.append(match[0])
        rest += text[at : match.start()]
        at = match.end() + 1
    return found, (rest + text[at:]).lstrip() if found else text


def _is_complete(match: re.Match[str], *, whole: bool) -> bool:
    """Return whether a part is a finished condition."""
    text, end = match.string, match.end()
    ends = whole if end == len(text) else text[end].isspace()
    is_quoted = match["word"] is not None and any(quote in match["word"] for quote in _QUOTES)
    condition = _condition(match)
    if not ends or is_quoted or condition is None or not condition[1]:
        return False
    return condition[0] not in _DATED or date_bounds(condition[1]) is not None


def date_bounds(value: str, today: date | None = None) -> tuple[str, str] | None:
    """Return the bounds of a date filter, as strings that compare with ISO dates.

    Understands ``2026``, ``2026-03``, ``>2026-03-01``, ``01.03.2026``, ``2026-01..2026-03``,
    ``2026-01 to 2026-03`` and ``week``; returns None for anything else.
    """
    value = _DAY_FIRST.sub(r"\3-\2-\1", _YEAR_FIRST.sub(_dashed, value))
    value = value.replace(" to ", "..").lower().removeprefix("last ").removeprefix("this ").strip()
    sign = re.match(r"(?:>=|<)(?=[a-z])", value)
    if sign and value[sign.end() :] in _RECENT:
        recent = date_bounds(value[sign.end() :], today)
        value = sign[0] + (recent or ("", ""))[0]
    if not all(map(_is_day, re.findall(_DAY, value))):
        return None
    if value in _RECENT:
        last = today or local_day()  # a day to come is none of these
        start = last - timedelta(days=_RECENT[value])
        return start.isoformat(), (start if value == "yesterday" else last).isoformat()
    if match := _RANGE.fullmatch(value):
        until = match["until"]
        return _padded(match["since"] or ""), (_padded(until) + _AFTER_ALL if until else _AFTER_ALL)
    match = _COMPARISON.fullmatch(value)
    if match is None:
        return None
    day = _padded(match["day"])
    before = day[:-1] + chr(ord(day[-1]) - 1) + _AFTER_ALL
    spans = {">": (day + _AFTER_ALL, _AFTER_ALL), ">=": (day, _AFTER_ALL), "<": ("", before)}
    return {**spans, "<=": ("", day + _AFTER_ALL)}.get(match["sign"] or "", (day, day + _AFTER_ALL))


def _dashed(day: re.Match[str]) -> str:
    return "-".join(filter(None, day.groups()))


def _is_day(day: str) -> bool:
    year, month, number = (*map(int, day.split("-")), 1, 1)[:3]
    try:
        date(year, month, number)
    except ValueError:
        return False
    return True


def _padded(day: str) -> str:
    return "-".join(part.zfill(2) for part in day.split("-"))


WIDTH = 240
_SPACE = re.compile(r"\s+")
SEPARATOR = "\N{MIDDLE DOT}"
"""The character in a snippet that separates paragraphs and list items."""
_ITEM = r"(?:[-*+]|\d+[.)])[ \t]+(?:\[.\][ \t]+)?"
_ROW_BREAK = r"[ \t]*\|[ \t]*\n[ \t]*\|(?:[-:| \t]+(?:\n[ \t]*\||\Z))?"
_QUOTED = re.compile(r"(?<=\n)[ \t]*(?:>[ \t]?)+")
_BREAK = re.compile(rf"{_ROW_BREAK}|[ \t]*\n\s*(?:\n\s*(?:{_ITEM})?|{_ITEM})")
_LINK = re.compile(r"!?\[\[[^\]\n]*\]\]|!?\[[^\]\n]*\]\([^)\n]*\)|`[^`\n]+`")
_MAX_LINK = 200
_MAX_MATCHES = 400
_LEAD_CHARACTERS = 50


@dataclass(frozen=True, slots=True)
class Snippet:
    """A one-line excerpt; `matches` are offsets in it.

    `line` is the 0-based line in the chunk of the first match, or of the excerpt's start.
    """

    text: str
    matches: tuple[tuple[int, int], ...] = ()
    line: int = 0


def make_snippet(
    text: str,
    words: Sequence[tuple[int, int, str]],
    wanted: Sequence[re.Pattern[str]] = (),
    fallback: int = 0,
) -> Snippet:
    """Make a snippet of the densest matches in `text`, or of the text at offset `fallback`.

    Matches are `words`, as by `analyser.matches`, and those of the `wanted` patterns.
    """
    found = [(m.start(), m.end(), "") for pattern in wanted for m in pattern.finditer(text)]
    matches = sorted([*found, *words[: max(0, _MAX_MATCHES - len(found))]])
    start, end = _window(text, matches, fallback)
    return _on_one_line(text, start, end, [m for m in matches if start <= m[0] and m[1] <= end])


def patterns(query: Query) -> list[re.Pattern[str]]:
    """Return patterns of the phrases of a query, and of the letters that it looks for."""
    phrases = [pattern for each in query.phrases if (pattern := phrase_pattern(each)) is not None]
    return [*phrases, *map(letters_pattern, query.beginnings)]


def phrase_pattern(phrase: str) -> re.Pattern[str] | None:
    """Compile a pattern for an exact phrase that ignores case and punctuation; None if empty."""
    words = re.findall(r"\w+", phrase)
    if not words:
        return None
    inner = r"\W+".join(re.escape(word) for word in words)
    unspaced = analyser.is_unspaced(phrase)
    return re.compile(inner if unspaced else rf"\b{inner}\b", re.IGNORECASE)


def letters_pattern(letters: str) -> re.Pattern[str]:
    """Compile a pattern for words with some letters, such as ``archi*`` or ``wom?n``."""
    inner = re.escape(letters).replace(r"\*", r"\w*").replace(r"\?", r"\w")
    return re.compile(rf"\b{inner}\b", re.IGNORECASE)


def _window(text: str, matches: list[tuple[int, int, str]], fallback: int) -> tuple[int, int]:
    """Choose the snippet's bounds for the most distinct matches, then for the most matches."""
    if matches and len(text) <= WIDTH:
        return 0, len(text)
    if not matches:
        return _bounds(text, fallback, fallback)
    best, best_score = 0, (0, 0)
    for i, (start, _, _) in enumerate(matches):
        inside = []
        for match in matches[i:]:
            if match[1] > start + WIDTH - _LEAD_CHARACTERS:
                break
            inside.append(match)
        score = (len({match[2] or match for match in inside}), len(inside))
        if score > best_score:
            best, best_score = i, score
    return _bounds(text, max(0, matches[best][0] - _LEAD_CHARACTERS), matches[best][0])


def _bounds(text: str, start: int, before: int) -> tuple[int, int]:
    """Adjust the bounds to the start of a line or word, the end of a word, and whole links."""
    line = text.rfind("\n", start, before) + 1
    if line > start:
        start = line
    elif start > 0 and not text[start - 1].isspace():
        space = text.find(" ", start, before)
        start = space + 1 if space >= 0 else before
    start = next((m.start() for m in _link_across(text, start)), start)
    end = min(len(text), start + WIDTH)
    if end < len(text) and text[end].isalnum():
        space = text.rfind(" ", start + WIDTH // 2, end)
        end = space if space > 0 else end
    return start, next((m.end() for m in _link_across(text, end)), end)


def _link_across(text: str, at: int) -> Iterator[re.Match[str]]:
    """Yield the link that spans the offset `at`, if any."""
    line = text.rfind("\n", 0, at) + 1
    first = max(line, at - _MAX_LINK)
    if text.find("[", first, at + 1) < 0 and text.find("`", first, at) < 0:
        return
    for match in _LINK.finditer(text, first, at + _MAX_LINK):
        if match.start() < at < match.end():
            yield match


def _on_one_line(text: str, start: int, end: int, matches: list[tuple[int, int, str]]) -> Snippet:
    """Collapse white space, drop control characters, and map the matches to the result."""
    parts: list[str] = []
    length = 0
    spans: list[tuple[int, int]] = []
    at = start
    for match_start, match_end, _ in matches:
        if match_start < at:
            continue
        before = _squeeze(text[at:match_start], first=not length)
        inside = _squeeze(text[match_start:match_end], first=True)
        parts += [before, inside]
        spans.append((length + len(before), length + len(before) + len(inside)))
        length += len(before) + len(inside)
        at = match_end
    parts.append(_squeeze(text[at:end], first=not length))
    shown = "".join(parts).rstrip(f" {SEPARATOR}")
    line = text.count("\n", 0, matches[0][0] if matches else start)
    return Snippet(shown, tuple(span for span in spans if span[0] < span[1] <= len(shown)), line)


def _squeeze(text: str, *, first: bool) -> str:
    if text.isprintable() and "  " not in text:  # as most are
        return text.lstrip() if first else text
    text = clean(text).lstrip() if first else clean(text)
    text = _QUOTED.sub("", text) if ">" in text else text
    return _SPACE.sub(" ", _BREAK.sub(f" {SEPARATOR} ", text))


def marker(query: str) -> Marker:
    """Return a function that finds the words, phrases and prefixes of a query in a text.

    It returns sorted, non-overlapping character ranges. Words are compared by their terms, so that
    the query ``planning`` matches ``plans``.
    """
    parsed = parse(query)
    words, wanted = parsed.terms(), patterns(parsed)
    terms = {*words, *(form for word in words.values() for form in analyser.forms_of(word))}

    def mark(text: str) -> list[tuple[int, int]]:
        found = [(start, end) for start, end, _ in analyser.matches(text, terms)]
        found += [match.span() for pattern in wanted for match in pattern.finditer(text)]
        return _merge_overlaps(sorted(found))

    return mark


def _merge_overlaps(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
