"""How the offline model dreams: by explicit patterns, without guessing or making up anything.

What new archive entries state and nobody knows yet goes where it fits; what is evidently out of
order is put in order. There is no state: each call works the whole plan out again from the material
in the prompt, and sees by the calls in the conversation how far it has come. English only (design
10, 23).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kbtui.models.material import ARCHIVE, FILE, PROBLEMS, Block, blocks_in
from kbtui.models.offline_memory import fill_in
from kbtui.models.offline_patterns import clauses, is_question, understand
from kbtui.models.port import Message, ToolCall
from kbtui.models.transcript import CONVERSATION
from kbtui.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kbtui.models.offline_patterns import Note

DREAM = "You are Dream"
STUDY = "study_memory"
_ENTRIES = "knowledge/"
MEMORY = "memory/MEMORY.md"
_AT_ONCE = 30
_RAW = re.compile(r"^\[RAW\][^\n]*\n")
_NOTED = re.compile(r"(?:^|\s)Noted: (?P<facts>[^\n]+?)\.?\s*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+")
_KEYED = re.compile(r"^(?P<key>[A-Z][\w' /-]{1,59}?): +(?P<value>\S.*)$")
_LIKES = (
    "prefers|likes|loves|enjoys|hates|dislikes|avoids|uses|knows|speaks|owns|plays|studies|teaches"
    "|works|lives|wants|never uses|always uses|doesn't like|does not like"
)
_USER = re.compile(rf"^(?:the )?user (?P<rest>(?:(?:also|now) )?(?:{_LIKES})\b.+)$", re.IGNORECASE)
_USERS = re.compile(
    r"^(?:the )?user's (?P<key>[\w' -]{2,60}?) (?:is|are) (?P<value>.+)$", re.IGNORECASE
)
_DECIDED = re.compile(
    r"^(?:(?:the )?(?:user|team|users)|we|they)?\s*(?P<rest>(?:decided|agreed) .+)$", re.IGNORECASE
)
_PROBLEM = re.compile(
    r"^- (?P<kind>[a-z ]+) in (?P<path>\S+): (?P<what>.+?)(?: => (?P<right>.+))?$"
)
_WORD = re.compile(r"\w+")
_SILENT = frozenset(
    ["a", "an", "the", "user", "users", "s", "i", "my", "is", "are", "was", "were", "also", "now"]
)
_NOT = frozenset(["not", "no", "never", "without", "doesn", "don", "didn", "isn", "aren", "won"])
_TEXT = re.compile(r"^(?!#)\S.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Deed:
    """One thing to do: the finding that it comes from, and the call that does it.

    `key` is the name that it gives a value to. Without a tool there is nothing to do.
    """

    kind: str
    about: str
    what: str
    tool: str
    arguments: Mapping[str, Any]
    cursors: tuple[int, ...] = ()
    key: str = ""


def study(messages: Sequence[Message]) -> str:
    """The arguments of ``study_memory``: what there is to do, as JSON."""
    findings = [
        {
            "kind": deed.kind,
            "about": deed.about,
            "what": deed.what,
            "cursors": list(deed.cursors),
        }
        for deed in _plan(messages)
    ]
    return json.dumps({"findings": findings}, ensure_ascii=False)


def is_editing(messages: Sequence[Message], tools: Iterable[str]) -> bool:
    """Whether a prompt is that of Dream's second phase."""
    return bool(messages) and messages[0].content.startswith(DREAM) and "edit_file" in tools


def next_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls to make now; ``finish`` when all are made."""
    deeds = _plan(messages)
    made = sum(len(message.tool_calls) for message in messages)
    calls = [
        ToolCall(f"{number}-{deed.tool}", deed.tool, json.dumps(deed.arguments, ensure_ascii=False))
        for number, deed in enumerate(deeds[made : made + _AT_ONCE], made + 1)
    ]
    return calls or [ToolCall(f"{made + 1}-finish", "finish", "{}")]


def _plan(messages: Sequence[Message]) -> list[_Deed]:
    """All there is to do, in order; the same for the same material."""
    material = [
        block
        for message in messages
        if message.role == "user"
        for block in blocks_in(message.content)
    ]
    known = _Known(material)
    deeds = [
        deed
        for block in material
        if block.tag == PROBLEMS
        for line in block.text.splitlines()
        if (deed := _repair(line, known)) is not None
    ]
    stated = [deed for block in material if block.tag == ARCHIVE for deed in _facts(block, known)]
    return deeds + [deed for deed in _newest(stated) if deed.tool and known.is_news(deed)]


class _Known:
    """What the files in the prompt say."""

    def __init__(self, material: Iterable[Block]) -> None:
        self.texts: dict[str, str] = {}
        self.changed: dict[str, str] = {}
        self._said: list[tuple[str, frozenset[str]]] = []
        for block in material:
            if block.tag == FILE:
                path = block.attributes.get("path", "")
                self.texts[path] = block.text
                self.changed[path] = block.attributes.get("changed", "")
                name = _words(path.rpartition("/")[2].removesuffix(".md").replace("-", " "))
                about = name if path.startswith(_ENTRIES) else frozenset()
                self._said += [(path, _words(line) | about) for line in block.text.splitlines()]

    def is_news(self, deed: _Deed) -> bool:
        """Whether nothing says what a deed would; from then on something does.

        An entry is news as long as no entry says it, for MEMORY.md is only its short form.
        """
        words = _words(deed.what)
        only = _ENTRIES if deed.tool == "create_entry" else ""
        for path, said in self._said:
            if path.startswith(only) and words <= said and words & _NOT == said & _NOT:
                return False
        self._said.append((f"{_ENTRIES}new" if only else MEMORY, words))
        return True

    def line_with(self, key: str) -> str | None:
        """The one line of MEMORY.md that gives a value to a name."""
        lines = [_BULLET.sub("", line).strip() for line in self.texts.get(MEMORY, "").splitlines()]
        found = [line for line in lines if key and _key(line) == key]
        return found[0] if len(found) == 1 else None


# What is out of order ----------------------------------------------------------------------------


def _repair(line: str, known: _Known) -> _Deed | None:
    match = _PROBLEM.match(line)
    if match is None:
        return None
    kind, path, what, right = match.group("kind", "path", "what", "right")
    if kind == "same twice" and right:
        arguments: dict[str, Any] = {"entry": what, "into": right}
        return _Deed(
            "duplicate", path, f"{what} says nothing beyond {right}", "merge_entries", arguments
        )
    if kind == "broken link" and right:
        arguments = {"path": path, "link": what, "to": right}
        return _Deed("broken_link", path, f"{what} is {right}", "fix_link", arguments)
    if kind == "old summary" and right:
        arguments = {"entry": path, "summary": right}
        return _Deed("stale_summary", path, right, "set_summary", arguments)
    if kind == "repeated line":
        passage = _second(known.texts.get(path, ""), what)
        if passage is not None:
            arguments = {"path": path, "old": passage[0], "new": passage[1]}
            return _Deed("duplicate", path, f"{what} stands there twice", "edit_file", arguments)
    return None


def _second(text: str, fact: str) -> tuple[str, str] | None:
    """A passage that is unique and ends with the second line that states a fact; without it."""
    lines = text.splitlines()
    wanted = _words(fact)
    places = [number for number, line in enumerate(lines) if _words(line) == wanted]
    if len(places) < 2:  # noqa: PLR2004 - twice
        return None
    end = places[1]
    for begin in range(end - 1, -1, -1):
        passage = "\n".join(lines[begin : end + 1])
        if text.count(passage) == 1:
            return passage, "\n".join(lines[begin:end])
    return None


# What is new -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """The archive entry that something stands in: its cursor, and when it was said."""

    cursors: tuple[int, ...]
    time: str


def _facts(block: Block, known: _Known) -> Iterator[_Deed]:
    """What an archive entry states by explicit patterns, each as a deed."""
    cursor = block.attributes.get("cursor", "")
    source = _Source((int(cursor),) if cursor.isdecimal() else (), block.attributes.get("time", ""))
    if "raw" in block.attributes or _RAW.match(block.text):
        yield from _of_conversation(_RAW.sub("", block.text), known, source)
        return
    for match in _NOTED.finditer(block.text):
        for fact in match["facts"].split("; "):
            yield _remembered(fact.strip(), known, source)
    for line in _NOTED.sub("", block.text).splitlines():
        for sentence in clauses(_BULLET.sub("", line).strip()):
            if not is_question(sentence):
                yield from _of_statement(sentence.rstrip(".!").strip(), known, source)


def _of_conversation(text: str, known: _Known, source: _Source) -> Iterator[_Deed]:
    """What the user stated in messages that were archived as they are."""
    prompt = Message("user", f"{CONVERSATION}\n{text}")
    found = json.loads(fill_in("save_memory", [prompt]))
    for fact in found["memory_update"]["facts"]:
        yield _remembered(fact, known, source)
    for entry in found["knowledge_entries"]:
        what = next(iter(_TEXT.findall(entry["body"])), entry["title"])
        yield _Deed("new", entry["title"], what, "create_entry", entry, source.cursors)


def _of_statement(said: str, known: _Known, source: _Source) -> Iterator[_Deed]:
    if match := _USER.match(said):
        yield _remembered(_capital(match["rest"]), known, source)
    elif match := _USERS.match(said):
        yield _remembered(f"{_capital(match['key'])}: {match['value']}", known, source)
    elif match := _DECIDED.match(said):
        rest = match["rest"]
        for note in understand(f"We {rest[0].lower()}{rest[1:]}").notes:
            yield _as_entry(_without_we(note), source)
    else:
        people = (note for note in understand(said).notes if note.type == "person")
        for note in people:
            yield _as_entry(note, source)


def _without_we(note: Note) -> Note:
    """A decision without the *we* that was put before it to be understood."""

    def own(text: str) -> str:
        return _capital(text.removeprefix("We "))

    sections = {name: own(text) for name, text in note.sections.items()}
    return replace(note, line=own(note.line), summary=own(note.summary), sections=sections)


def _as_entry(note: Note, source: _Source) -> _Deed:
    parts = [f"## {name}\n{text}" if name else text for name, text in note.sections.items()]
    entry = {
        "type": note.type,
        "title": note.title,
        "summary": note.summary,
        "body": "\n\n".join(parts),
        "tags": [],
        "related": [note.about] if note.about else [],
    }
    said = note.line.lstrip("- ")
    what = f"{note.title}: {said}" if note.type == "person" else said
    return _Deed("new", note.title, what, "create_entry", entry, source.cursors)


def _remembered(fact: str, known: _Known, source: _Source) -> _Deed:
    """A fact for MEMORY.md, in the place of an older value of the same name."""
    fact = fact.rstrip(".")
    key = _key(fact)
    old = known.line_with(key)
    if old is None:
        arguments = {"path": MEMORY, "line": fact}
        return _Deed("new", MEMORY, fact, "add_line", arguments, source.cursors, key)
    if fold(old) == fold(fact) or source.time <= known.changed.get(MEMORY, ""):
        # It stands there so, or what stands there is newer.
        return _Deed("", MEMORY, fact, "", {}, source.cursors, key)
    arguments = {"path": MEMORY, "old": old, "new": fact}
    return _Deed("changed", MEMORY, fact, "edit_file", arguments, source.cursors, key)


def _newest(deeds: Sequence[_Deed]) -> Iterator[_Deed]:
    """Of several values of one name the one that was said last."""
    last = {deed.key: deed for deed in deeds if deed.key}
    yield from (deed for deed in deeds if not deed.key or last[deed.key] is deed)


def _key(line: str) -> str:
    match = _KEYED.match(line)
    return fold(match["key"].strip()) if match else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text))) - _SILENT


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
