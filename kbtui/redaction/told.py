"""Secrets that people tell in plain words: "the gate code is 4711", "mi contraseña es gatito99".

A row of the section ``told`` is what a language calls a secret, and how it says that it is this or
that; one of ``links`` is a way from there to the value, in any language.
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
_MOST_WORDS = 6
_LEAST_WORDS = {"phrase": 3, "said": 4}  # of a passphrase, by the test of a row
_BEHIND = " \t\r\n.,;?\"'`*_)”“»"
_MOST_MARKS = 12  # of Markdown before a word that stands alone in its line
_LONG_NUMBER = re.compile(r"\d{8,64}")
_LAST_WORD = re.compile(r"(\w+)[ -]?\Z")
_ASIDE = re.compile(r"[ \t]*\((?P<inside>[^()\n\"'{};]{1,24})\)")
_CLAUSE_END = re.compile(r"[.!?;]\s|\s[–—]\s|\"[,}]")
# Of a program that was made small: "e&&(t=n),", "return!0", "(a,b){", ");".
_CODE_MARK = re.compile(
    r"=>|[=!]==?|&&\b|\w\|\||[)\]}][)\]}{;.,:?=]|\w\([\w!)]|[,;({?]\w{1,3}[=:,()]|,\w+:\d|![01]"
    r"|\bfunction\b|\breturn\b"
)
_IS_NAME = re.compile(r"[A-Za-z]\.[A-Za-z$]|[/\\]")
_OF_A_SECRET = re.compile(
    r"(?:[A-Za-z]\w*[._])+(?:passw(?:or)?d|passphrase|pwd?|secret|token|credential|cred)s?"
)
_DIGIT = re.compile(r"\d")
_DRAWN = re.compile(r"(?i)\d|\b[b-df-hj-np-tv-xz]{4}\b")  # a digit, or a group without a vowel
_COMMENT = re.compile(r"(?://|#|/\*)[ \t]")
_QUOTES = frozenset("\"'`")
_MOST_CODE = 2  # such marks near a secret that is told in words
_NEAR = 80


class _Link(NamedTuple):
    """A way to a value: from where it is looked for, and whether it says "is"."""

    where: str
    says: bool
    pattern: re.Pattern[str]


@cache
def _links(language: str) -> list[_Link]:
    """The rows, with how a language says "is"."""
    links = []
    for where, says, source, *_ in table.rows("links"):
        whole = table.whole(source.replace("{is}", f"{{is_{language}}}"))
        links.append(_Link(where, says == "is", re.compile(whole, re.IGNORECASE)))
    return links


class _ValuePlace(NamedTuple):
    """Where a value may begin, where its clause ends, and if "is" or a colon stands before it."""

    first: int
    stop: int
    says: bool


def told(read: Text) -> Iterator[Span]:
    """Secrets behind a word that tells of them."""
    for form in read.forms["told"]:
        for match in read.matches(form, small=True):
            if not _is_spoken_of(read, match):
                yield from _values(read.text, match, form)


def _is_spoken_of(read: Text, match: re.Match[str]) -> bool:
    """True if it is another thing that has this name, or only its length or policy is told."""
    if table.part("no_secret").match(read.lowered, match.end()):
        return True
    before = _LAST_WORD.search(read.lowered, max(0, match.start() - _LOOK_BACK), match.start())
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
    """Where the code ends that begins here; 0 if none does."""
    found = table.part(f"{test}_value").match(text, place.first)
    if not found or any(table.part("no_number").match(text, at) for at in found.span()):
        return 0
    return found.end()


def _password_end(text: str, place: _ValuePlace, test: str) -> int:
    """Where the password ends that begins here; 0 if none does."""
    first, stop, says = place
    groups = table.part("groups_value").match(text, first, stop)
    if groups and (_DRAWN.search(groups[0]) or (says and is_passphrase(groups[0]))):
        return groups.end()
    phrase = text[first:stop].rstrip(_BEHIND)
    is_phrase = test == "phrase" or (says and test == "said")
    if is_phrase and is_passphrase(phrase, _LEAST_WORDS[test]):
        return first + len(phrase)
    found = table.part("word_value").match(text, first)
    return _word_end(found, test, says=says) if found else 0


def _word_end(found: re.Match[str], test: str, *, says: bool) -> int:
    """Where a word ends that is a password; 0 if it is none."""
    text, first = found.string, found.start()
    secret = found[0].rstrip(".,;:?)*_|" if says else ".,;:?)*_|!")
    last = first + len(secret)
    goes_on = secret.isalpha() and table.part("goes_on").match(text, last)
    if goes_on or _is_variable(text, first, last):
        return 0
    is_plain = test in _LEAST_WORDS
    is_secret = TESTS[test if says or not is_plain else "password"](secret)
    return last if is_secret or (is_plain and _LONG_NUMBER.fullmatch(secret)) else 0


def _places(text: str, begin: int, end: int, language: str) -> Iterator[_ValuePlace]:
    """Where the value may be that is told behind a name, the likeliest first."""
    if aside := _ASIDE.match(text, end):
        yield _ValuePlace(aside.start("inside"), aside.end() - 1, says=False)
        end = aside.end()
    stop = _clause_end(text, end + 3)
    is_of = table.part("says_of").match(text, end) is not None
    for link in _links(language):
        if link.where == "clause" or (link.where == "of" and is_of):
            for each in islice(link.pattern.finditer(text, end, stop), _MOST_WORDS):
                if text.count(" ", end, each.start()) > _MOST_WORDS:
                    break
                yield _ValuePlace(each.end(), stop, link.says)
        elif link.where == "alone" and not _is_alone(text, begin):
            continue
        elif found := link.pattern.match(text, end):
            yield _ValuePlace(found.end(), _clause_end(text, found.end() + 3), link.says)


def _clause_end(text: str, place: int) -> int:
    line = text.find("\n", place - 3, place + _LOOK_AHEAD)
    stop = min(place + _LOOK_AHEAD, len(text)) if line < 0 else line
    clause = _CLAUSE_END.search(text, min(place, stop), stop)
    return clause.start() if clause else stop


def _is_variable(text: str, first: int, last: int) -> bool:
    """True if a variable is handed on: "password=smtp_password,", "salt=salt)"."""
    name = text[first:last]
    is_given = text[last : last + 1] in {",", ")"} and _OF_A_SECRET.fullmatch(name)
    return bool(is_given) or text.startswith(f"{name}=", first - len(name) - 1)


def _is_alone(text: str, begin: int) -> bool:
    """True if nothing but marks stands in its line before a word."""
    before = text[max(0, begin - _MOST_MARKS) : begin]
    line = before.rpartition("\n")[2]
    return not line.strip(" \t>*#_-") and (line != before or begin < _MOST_MARKS)


def is_in_code(text: str, first: int, last: int) -> bool:
    """True if what stands around in its line is a program's text, in which nobody tells anything.

    What is quoted there is a value all the same, if it holds a digit and is no name.
    """
    inside = len(_CODE_MARK.findall(text, first, last))
    is_quoted = text[first - 1 : first] in _QUOTES and text[last : last + 1] in _QUOTES
    if is_quoted and not inside and _DIGIT.search(text, first, last):
        return _IS_NAME.search(text, first, last) is not None
    begin, end = max(0, first - _NEAR), last + _NEAR
    before = _COMMENT.split(text[begin:first].rpartition("\n")[2])[-1]
    around = before, text[last:end].partition("\n")[0]
    marks = sum(len(_CODE_MARK.findall(each)) for each in around)
    return marks > 1 and marks + inside > _MOST_CODE
