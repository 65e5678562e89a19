"""Secrets in plain sentences: "the gate code is 4711", "mi contraseña es gatito99".

A row of the section ``told`` has a language's words for a kind of secret; a row of ``links`` is a
pattern that connects them to the value, in any language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from kbtui.redaction import table
from kbtui.redaction.forms import Form, Span, Text, forms
from kbtui.redaction.values import TESTS, is_passphrase

_LOOK_BACK = 40
_LOOK_AHEAD = 110
_MAX_WORDS = 6
_MIN_WORDS = {"phrase": 3, "said": 4}  # of a passphrase, by the test of a row
_TRAILING = " \t\r\n.,;?\"'`*_)”“»"
_MAX_MARKUP = 12  # characters of Markdown before a word that is alone on its line
_LONG_NUMBER = re.compile(r"\d{8,64}")
_LAST_WORD = re.compile(r"(\w+)[ -]?\Z")
_PARENTHESIS = re.compile(r"[ \t]*\((?P<inside>[^()\n\"'{};]{1,24})\)")
_CLAUSE_END = re.compile(r"[.!?;]\s|\s[–—]\s|\"[,}]")
# Typical of minified code: "e&&(t=n),", "return!0", "(a,b){", ");".
_CODE_MARK = re.compile(
    r"=>|[=!]==?|&&\b|\w\|\||[)\]}][)\]}{;.,:?=]|\w\([\w!)]|[,;({?]\w{1,3}[=:,()]|,\w+:\d|![01]"
    r"|\bfunction\b|\breturn\b"
)
_IS_NAME = re.compile(r"[A-Za-z]\.[A-Za-z$]|[/\\]")
_OF_A_SECRET = re.compile(
    r"(?:[A-Za-z]\w*[._])+(?:passw(?:or)?d|passphrase|pwd?|secret|token|credential|cred)s?"
)
_DIGIT = re.compile(r"\d")
_RANDOM = re.compile(r"(?i)\d|\b[b-df-hj-np-tv-xz]{4}\b")  # a digit, or a group without a vowel
_COMMENT = re.compile(r"(?://|#|/\*)[ \t]")
_QUOTES = frozenset("\"'`")
_MAX_CODE_MARKS = 2  # near a secret in a sentence
_NEAR = 80


class _Link(NamedTuple):
    """A pattern between name and value: where to search for it, and whether it contains "is"."""

    where: str
    has_is: bool
    pattern: re.Pattern[str]


@cache
def _links(language: str) -> list[_Link]:
    """Return the links with a language's words for "is" filled in."""
    links = []
    for where, has_is, source, *_ in table.rows("links"):
        whole = table.whole(source.replace("{is}", f"{{is_{language}}}"))
        links.append(_Link(where, has_is == "is", re.compile(whole, re.IGNORECASE)))
    return links


class _ValuePlace(NamedTuple):
    """A candidate: start of the value, end of its clause, and whether "is" or ":" precedes it."""

    first: int
    stop: int
    has_is: bool


def told(scan: Text) -> Iterator[Span]:
    """Yield the spans of secrets after a word that names one."""
    for form in scan.forms["told"]:
        for match in scan.matches(form, small=True):
            if not _is_other_meaning(scan, match):
                yield from _values(scan.text, match, form)


def _is_other_meaning(scan: Text, match: re.Match[str]) -> bool:
    """Return whether the name means something else, or only a length or policy is mentioned."""
    if table.part("no_secret").match(scan.lowered, match.end()):
        return True
    before = _LAST_WORD.search(scan.lowered, max(0, match.start() - _LOOK_BACK), match.start())
    return (
        before is not None and match[0].startswith("code") and before[1] in table.words("no code")
    )


def _values(text: str, match: re.Match[str], form: Form) -> Iterator[Span]:
    is_code = form.test in {"code", "digits"}
    end_of = _code_end if is_code else _password_end
    for place in _places(text, *match.span(), _languages()[form]):
        last = end_of(text, place, form.test)
        if last and not is_in_code(text, place.first, last):
            yield place.first, last, form.kind
            if not is_code:  # a PIN may be changed from one to another
                return


@cache
def _languages() -> dict[Form, str]:
    return dict(zip(forms("told"), (row[-1] for row in table.rows("told")), strict=True))


def _code_end(text: str, place: _ValuePlace, test: str) -> int:
    """Return the end of the code that starts here, or 0."""
    found = table.part(f"{test}_value").match(text, place.first)
    if not found or any(table.part("no_number").match(text, at) for at in found.span()):
        return 0
    return found.end()


def _password_end(text: str, place: _ValuePlace, test: str) -> int:
    """Return the end of the password that starts here, or 0."""
    first, stop, has_is = place
    groups = table.part("groups_value").match(text, first, stop)
    if groups and (_RANDOM.search(groups[0]) or (has_is and is_passphrase(groups[0]))):
        return groups.end()
    phrase = text[first:stop].rstrip(_TRAILING)
    is_phrase = test == "phrase" or (has_is and test == "said")
    if is_phrase and is_passphrase(phrase, _MIN_WORDS[test]):
        return first + len(phrase)
    found = table.part("word_value").match(text, first)
    return _word_end(found, test, has_is=has_is) if found else 0


def _word_end(found: re.Match[str], test: str, *, has_is: bool) -> int:
    """Return the end of a word that is a password, or 0."""
    text, first = found.string, found.start()
    secret = found[0].rstrip(".,;:?)*_|" if has_is else ".,;:?)*_|!")
    last = first + len(secret)
    goes_on = secret.isalpha() and table.part("goes_on").match(text, last)
    if goes_on or _is_variable(text, first, last):
        return 0
    is_plain = test in _MIN_WORDS
    is_secret = TESTS[test if has_is or not is_plain else "password"](secret)
    return last if is_secret or (is_plain and _LONG_NUMBER.fullmatch(secret)) else 0


def _places(text: str, begin: int, end: int, language: str) -> Iterator[_ValuePlace]:
    """Yield candidate positions of the value after a name, most likely first."""
    if parenthesis := _PARENTHESIS.match(text, end):
        yield _ValuePlace(parenthesis.start("inside"), parenthesis.end() - 1, has_is=False)
        end = parenthesis.end()
    stop = _clause_end(text, end + 3)
    is_of = table.part("says_of").match(text, end) is not None
    for link in _links(language):
        if link.where == "clause" or (link.where == "of" and is_of):
            for each in islice(link.pattern.finditer(text, end, stop), _MAX_WORDS):
                if text.count(" ", end, each.start()) > _MAX_WORDS:
                    break
                yield _ValuePlace(each.end(), stop, link.has_is)
        elif link.where == "alone" and not _is_alone(text, begin):
            continue
        elif found := link.pattern.match(text, end):
            yield _ValuePlace(found.end(), _clause_end(text, found.end() + 3), link.has_is)


def _clause_end(text: str, place: int) -> int:
    line = text.find("\n", place - 3, place + _LOOK_AHEAD)
    stop = min(place + _LOOK_AHEAD, len(text)) if line < 0 else line
    clause = _CLAUSE_END.search(text, min(place, stop), stop)
    return clause.start() if clause else stop


def _is_variable(text: str, first: int, last: int) -> bool:
    """Return whether a variable is passed: "password=smtp_password,", "salt=salt)"."""
    name = text[first:last]
    is_given = text[last : last + 1] in {",", ")"} and _OF_A_SECRET.fullmatch(name)
    return bool(is_given) or text.startswith(f"{name}=", first - len(name) - 1)


def _is_alone(text: str, begin: int) -> bool:
    """Return whether only markup precedes a word on its line."""
    before = text[max(0, begin - _MAX_MARKUP) : begin]
    line = before.rpartition("\n")[2]
    return not line.strip(" \t>*#_-") and (line != before or begin < _MAX_MARKUP)


def is_in_code(text: str, first: int, last: int) -> bool:
    """Return whether the surrounding line is program code rather than a sentence.

    A quoted string with a digit that isn't a name counts as a value even in code.
    """
    inside = len(_CODE_MARK.findall(text, first, last))
    is_quoted = text[first - 1 : first] in _QUOTES and text[last : last + 1] in _QUOTES
    if is_quoted and not inside and _DIGIT.search(text, first, last):
        return _IS_NAME.search(text, first, last) is not None
    begin, end = max(0, first - _NEAR), last + _NEAR
    before = _COMMENT.split(text[begin:first].rpartition("\n")[2])[-1]
    around = before, text[last:end].partition("\n")[0]
    marks = sum(len(_CODE_MARK.findall(each)) for each in around)
    return marks > 1 and marks + inside > _MAX_CODE_MARKS
