"""Puts in order what is evidently out of order: entries that say the same, repeated lines, links.

What is wrong is found elsewhere and handed in as plain data; this chooses the edits that put it
right. What an archive says of the user in plain statements, as other programs' archives do, and no
file says yet, is added. The same input gives the same edits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kbtui.offline.judging import sentences
from kbtui.offline.subjects import about
from kbtui.text import fold

MEMORY = "memory/MEMORY.md"
_WORD = re.compile(r"\w+")
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_NOTED = re.compile(r"(?:^|\s)Noted: (?P<facts>[^\n]+?)\.?\s*$", re.MULTILINE)
_KEYED = re.compile(r"^(?P<key>[A-Z][\w' /-]{1,59}?): +(?P<value>\S.*)$")
_USER = re.compile(
    r"^(?:the )?user (?P<rest>(?:(?:also|now) )?(?:prefers|likes|loves|enjoys|hates|dislikes|avoids"
    r"|uses|knows|speaks|owns|plays|studies|teaches|works|lives|wants|never uses|always uses"
    r"|doesn't like|does not like)\b.+)$",
    re.IGNORECASE,
)
_USERS = re.compile(
    r"^(?:the )?user's (?P<key>[\w' -]{2,60}?) (?:is|are) (?P<value>.+)$", re.IGNORECASE
)
_DECIDED = re.compile(
    r"^(?:(?:the )?(?:user|team|users)|we|they)?\s*(?P<rest>(?:decided|agreed) .+)$", re.IGNORECASE
)
_SPOKEN = re.compile(
    r"^[-*\s]*(?:(?:The )?(?:user|assistant) said:|(?:User|Assistant):)", re.IGNORECASE
)
_SILENT = frozenset(
    ["a", "an", "the", "user", "users", "s", "i", "my", "is", "are", "was", "were", "also", "now"]
)
_NOT = frozenset(["not", "no", "never", "without", "doesn", "don", "didn", "isn", "aren", "won"])


class Problem(Protocol):
    """One thing that is out of order; see `kbtui.memory.dream.reading`."""

    @property
    def kind(self) -> str:
        """``broken link``, ``same twice``, ``repeated line``, ``old summary``, ``not linked``."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def what(self) -> str:
        """The link's target, the line, the summary, or the other entry's name."""

    @property
    def instead(self) -> str:
        """The entry or summary that is right; empty: none is known."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: an operation's name with its arguments, and what it does in words."""

    operation: str
    arguments: Mapping[str, Any]
    what: str


def curate(problems: Iterable[Problem], texts: Mapping[str, str]) -> Iterator[Edit]:
    """The edits that put problems right, as far as the texts tell; the rest is left alone."""
    for problem in problems:
        path, what, instead = problem.path, problem.what, problem.instead
        if problem.kind == "same twice" and instead:
            said = f"{what} says nothing beyond {instead}"
            yield Edit("merge_entries", {"entry": what, "into": instead}, said)
        elif problem.kind == "broken link" and instead:
            arguments = {"path": path, "link": what, "to": instead}
            yield Edit("fix_link", arguments, f"{what} is {instead}")
        elif problem.kind == "not linked":
            arguments = {"entry": path, "to": instead}
            yield Edit("link_entries", arguments, f"{path} speaks of {what}")
        elif problem.kind == "old summary" and instead:
            yield Edit("set_summary", {"entry": path, "summary": instead}, instead)
        elif problem.kind == "repeated line" and (cut := _second(texts.get(path, ""), what)):
            arguments = {"path": path, "old": cut[0], "new": cut[1]}
            yield Edit("edit_file", arguments, f"{what} stands there twice")


@dataclass(frozen=True, slots=True)
class Archived:
    """What an archive says of a slice: its text, and when it was said (sorts as text)."""

    text: str
    time: str = ""


def learned(
    archive: Sequence[Archived], texts: Mapping[str, str], changed: str = ""
) -> Iterator[Edit]:
    """What an archive, oldest first, states and no text by path says yet, as edits.

    Values older than the day on which MEMORY.md was `changed` last don't overrule what stands there.
    """
    said = [
        (path, _words(line) - _SILENT) for path, text in texts.items() for line in text.splitlines()
    ]
    said += [(path, words | _name(path)) for path, words in said if path.startswith("knowledge/")]
    last: dict[str, tuple[str, str]] = {}
    entries: list[Edit] = []
    for each in archive:
        for fact in _facts(each.text):
            match = _KEYED.match(fact)
            last[fold(match["key"]) if match else fact] = fact, each.time
        for sentence in _statements(each.text):
            entries += _entry(sentence)
    for key, (fact, time) in last.items():
        edit = _remembered(key, fact, texts.get(MEMORY, ""), old=time <= changed)
        if edit is not None and not _is_said(_words(fact) - _SILENT, said, ""):
            yield edit
    for edit in entries:
        if not _is_said(_words(edit.what) - _SILENT, said, "knowledge/"):
            said.append(("knowledge/", _words(edit.what) - _SILENT))
            yield edit


def _facts(text: str) -> Iterator[str]:
    for noted in _NOTED.finditer(text):
        yield from (fact.strip().rstrip(".") for fact in noted["facts"].split("; "))
    for sentence in _statements(text):
        if match := _USER.match(sentence):
            yield match["rest"][:1].upper() + match["rest"][1:]
        elif match := _USERS.match(sentence):
            yield f"{match['key'][:1].upper()}{match['key'][1:]}: {match['value']}"


def _statements(text: str) -> Iterator[str]:
    for line in _NOTED.sub("", text).splitlines():
        if _SPOKEN.match(line):
            continue  # what was said was judged when it was said
        for each in sentences(_BULLET.sub("", line).strip()):
            if each.form in ("statement", "chat"):
                yield each.text.rstrip(".!").strip()


def _entry(sentence: str) -> Iterator[Edit]:
    if match := _DECIDED.match(sentence):
        rest = match["rest"]
        kind, title = about(f"We {rest[:1].lower()}{rest[1:]}")
        told = rest[:1].upper() + rest[1:]
    else:
        kind, title = about(sentence)
        told = sentence
        if kind != "person" or title.casefold() == "user":
            return
    arguments: dict[str, Any] = {
        "type": kind,
        "title": title,
        "summary": "",
        "body": told,
        "tags": [],
        "related": [],
    }
    yield Edit("create_entry", arguments, told)


def _remembered(key: str, fact: str, memory: str, *, old: bool) -> Edit | None:
    """A fact for MEMORY.md, in the place of an older value of the same name."""
    lines = [_BULLET.sub("", line).strip() for line in memory.splitlines()]
    found = [line for line in lines if (match := _KEYED.match(line)) and fold(match["key"]) == key]
    if len(found) != 1:
        return Edit("add_line", {"path": MEMORY, "line": fact}, fact)
    if old or fold(found[0]) == fold(fact):
        return None
    return Edit("edit_file", {"path": MEMORY, "old": found[0], "new": fact}, fact)


def _is_said(words: frozenset[str], said: Iterable[tuple[str, frozenset[str]]], under: str) -> bool:
    return any(
        path.startswith(under) and words <= there and words & _NOT == there & _NOT
        for path, there in said
    )


def _name(path: str) -> frozenset[str]:
    return _words(path.rpartition("/")[2].removesuffix(".md").replace("-", " "))


def _second(text: str, fact: str) -> tuple[str, str] | None:
    """A passage that is unique and ends with the second line that states a fact; without it."""
    lines = text.splitlines()
    wanted = _words(fact)
    places = [number for number, line in enumerate(lines) if _words(line) == wanted]
    if len(places) < 2:  # twice
        return None
    end = places[1]
    for begin in range(end - 1, -1, -1):
        passage = "\n".join(lines[begin : end + 1])
        if text.count(passage) == 1:
            return passage, "\n".join(lines[begin:end])
    return None


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text)))
