"""Parses and validates a model's answer that condenses a slice of conversation.

One call returns everything: the archive's paragraph, the day's notes, single facts, and
corrections. Small models keep facts when asked for them one by one, and lose them when asked for a
whole memory. An answer is untrusted and accepted as a whole or rejected: a wrong type, an echo of
the prompt, an apology, or an error text in place of an answer raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rapidfuzz import fuzz, process

from kbtui.errors import ModelAnswerError
from kbtui.knowledge.entries.entry import ENTRY_TYPES
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact, statements
from kbtui.memory.records.usable_answers import (
    clean_answer,
    is_placeholder,
    usable_text,
    why_unusable,
)
from kbtui.models.dialects import without_thoughts
from kbtui.models.port import ToolSpec
from kbtui.models.schema import ArgumentError, check_arguments
from kbtui.text import clean_line

_MAX_ARGUMENTS = 1_000_000
_MAX_ITEMS = 200
_MAX_LINE = 2_000
_MAX_TITLE = 200
_LIKE = 70.0  # likeness of a line that changed, in percent
_FOLDERS = {folder: kind for kind, folder in ENTRY_TYPES.items()}
_KINDS = frozenset(normalise(name) for pair in ENTRY_TYPES.items() for name in pair)
_FENCED = re.compile(r"\A```[a-zA-Z]*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
USER = "user"
"""The type of facts about the user, which every conversation needs."""

LASTING = 3
"""The importance of lasting facts, on a scale from 1."""

NOTED = 0
"""The importance of what is only noted on its day, whatever recurs or was asked for."""


def _property(kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "description": text, **more}


def _object_list(text: str, required: str, /, **properties: dict[str, Any]) -> dict[str, Any]:
    item = {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }
    return {"type": "array", "description": text, "items": item}


_IMPORTANCE = _property(
    "integer",
    "3: it will be true and needed for years; 2: for some months; 1: it is of the day.",
    minimum=1,
    maximum=LASTING,
)
_MESSAGE = _property("integer", "The number of the message that says it.")
_SUBJECT = _property(
    "string", "Whom or what it is about, as a short name; that of the known entry if it has one."
)
_PROPERTIES = {
    "summary": _property(
        "string", "2 to 5 sentences on what happened, with the names, numbers and terms in it."
    ),
    "title": _property("string", "What the conversation is about, in at most 5 words."),
    "notes": _property(
        "array",
        "What matters today: decisions, events, things to do, a short line each.",
        items={"type": "string"},
    ),
    "facts": _object_list(
        "What the user stated and will still matter next month, one statement each.",
        "text type subject",
        text=_property("string", "The statement, complete, in the user's own words."),
        type=_property(
            "string",
            "`user` for who the user is, standing wishes and what is going on in their life; "
            "else what kind of thing its subject is.",
            enum=[USER, *ENTRY_TYPES],
        ),
        subject=_SUBJECT,
        message=_MESSAGE,
        importance=_IMPORTANCE,
    ),
    "corrections": _object_list(
        "Known statements that are no longer true.",
        "old new",
        old=_property("string", "The known statement as it stands."),
        new=_property("string", "What is true now; empty if nothing took its place."),
        subject=_SUBJECT,
        message=_MESSAGE,
    ),
}
SAVE_MEMORY = ToolSpec(
    "save_memory",
    "Save what this conversation leaves behind.",
    {
        "type": "object",
        "properties": _PROPERTIES,
        "required": ["summary", "notes", "facts", "corrections"],
        "additionalProperties": False,
    },
    # Anything else is unwrapped, or rejected with an explanation, when it is parsed.
    accepted={"type": "object"},
)


_SEEDS_NAMES = {"history_entry": "summary", "memory_update": "memory"}
"""What older forms of the tool call the summary, and MEMORY.md as a whole."""

_TEXT = {"type": "string"}
_TYPE_AND_SUBJECT = {"type": _TEXT, "subject": _TEXT}
# Also accepted: other kinds, numbers in any form, and a fact that is only a text.
_ACCEPTED: Mapping[str, Any] = {
    "properties": {
        "summary": _TEXT,
        "memory": _TEXT,
        "title": _TEXT,
        "notes": {"type": "array", "items": _TEXT, "maxItems": _MAX_ITEMS},
        "facts": {
            "type": "array",
            "items": {"properties": {"text": _TEXT, **_TYPE_AND_SUBJECT}},
            "maxItems": _MAX_ITEMS,
        },
        "corrections": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"old": _TEXT, "new": _TEXT, **_TYPE_AND_SUBJECT},
                "required": ["old", "new"],
            },
            "maxItems": _MAX_ITEMS,
        },
    },
    "required": ["summary"],
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete, accepted answer.

    Corrections are `facts` with `replaces`; `title` is empty if the model gave none. `refused` are
    lines that nobody had said, in place of which there are now sentences. `memory` is MEMORY.md as
    a whole, which older forms of the answer give.
    """

    summary: str
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    title: str = ""
    refused: tuple[str, ...] = ()
    memory: str = ""


def read_answer(arguments: str) -> Answer:
    """Parse the arguments of ``save_memory``, or the same as plain JSON, fenced or not.

    Raises:
        ModelAnswerError: It is unusable; the message tells the model why, for the next try.
    """
    try:
        value = check_arguments(_renamed(_unwrap(_load(arguments))), _ACCEPTED)
    except ArgumentError as error:
        raise ModelAnswerError(error.message) from None
    facts = [*_facts(value.get("facts", ())), *_corrections(value.get("corrections", ()))]
    title = clean_line(clean_answer(value.get("title", "")))
    memory = clean_answer(value.get("memory", ""))
    return Answer(
        usable_text(value["summary"], "summary"),
        tuple(dict.fromkeys(facts)),
        tuple(_lines(value.get("notes", ()))),
        "" if is_placeholder(title) or why_unusable(title) else title,
        memory="" if is_placeholder(memory) else _check_usable(memory, "The memory"),
    )


def _renamed(value: Any) -> Any:
    """Rename what an older form calls by another name."""
    if not isinstance(value, dict):
        return value
    return {_SEEDS_NAMES.get(name, name): each for name, each in value.items()}


def with_update(answer: Answer, memory: str) -> Answer:
    """Return an answer that gives MEMORY.md as a whole with what that adds to `memory` as facts.

    A line that it leaves out stays. One that it has with a few other words is a correction, which
    changes nothing unasked.
    """
    before, after = statements(memory), statements(answer.memory)
    known = {normalise(each) for each in before}
    new = [each for each in after if normalise(each) not in known]
    left_out = [each for each in before if each not in after]
    facts = [_updated(line, left_out) for line in _lines(new)]
    return replace(answer, facts=(*answer.facts, *facts), memory="")


def _updated(line: str, left_out: Sequence[str]) -> Fact:
    """Return a new line as a fact, which corrects the line left out that is most like it."""
    best = process.extractOne(line, left_out, scorer=fuzz.token_sort_ratio, score_cutoff=_LIKE)
    replaces = best[0] if best else ""
    return Fact(
        line, "fact", replaces=replaces, place="memory", importance=LASTING, asks=bool(best)
    )


def _load(text: str) -> Any:
    if len(text) > _MAX_ARGUMENTS:
        raise ModelAnswerError(f"The answer has {len(text):,} characters, far too many.")
    text = without_thoughts(text).strip()
    fenced = _FENCED.match(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except ValueError as error:
        raise ModelAnswerError(f"The arguments are not valid JSON: {error}.") from None
    except RecursionError:
        raise ModelAnswerError("The arguments are nested too deeply.") from None


def _unwrap(value: Any) -> Any:
    """Unwrap the object from what models and servers put around it."""
    value = _decoded(value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and value.get("name") in (SAVE_MEMORY.name, None):
        for key in ("arguments", "parameters"):
            inner = _decoded(value.get(key))
            if isinstance(inner, dict) and "summary" not in value:
                value = inner
    return value


def _decoded(value: Any) -> Any:
    """Decode a value that is JSON in a string; return others unchanged."""
    return _load(value) if isinstance(value, str) and value.lstrip().startswith("{") else value


def _lines(texts: Iterable[str]) -> list[str]:
    found: dict[str, str] = {}
    for text in texts:
        line = plain_fact(clean_answer(text))
        if not is_placeholder(line):
            found.setdefault(normalise(line), _line(line))
    return list(found.values())


def _line(line: str) -> str:
    _check_usable(line, "A fact")
    if len(line) > _MAX_LINE:
        raise ModelAnswerError(f"A fact has {len(line):,} characters; it must be a short line.")
    return line


def _facts(items: Iterable[Any]) -> list[Fact]:
    found: list[Fact] = []
    for item in items:
        if isinstance(item, str):
            item = {"text": item, "type": USER}  # noqa: PLW2901 - what small models make of it
        if not isinstance(item, dict):
            raise ModelAnswerError("A fact must be an object with `text`, `type` and `subject`.")
        text = plain_fact(clean_answer(item.get("text", "")))
        if not is_placeholder(text):
            found.append(_fact(_line(text), item))
    return found


def _fact(text: str, item: Mapping[str, Any], replaces: str = "") -> Fact:
    kind = clean_answer(item.get("type", "")).lower()
    kind = _FOLDERS.get(kind, kind)
    subject, message = _subject(item), item.get("message")
    is_own = kind == USER or (not subject and kind not in ENTRY_TYPES)
    return Fact(
        text,
        kind if kind in ENTRY_TYPES else "fact" if is_own else "topic",
        "" if is_own else subject,
        message if type(message) is int else None,  # not a bool
        replaces,
        "memory" if is_own else "entry",
        importance=_importance(item.get("importance")),
    )


def _subject(item: Mapping[str, Any]) -> str:
    """Return the subject, or "" if it names a kind of thing, as small models do."""
    subject = clean_line(clean_answer(item.get("subject", "")))
    is_none = is_placeholder(subject) or len(subject) > _MAX_TITLE or normalise(subject) in _KINDS
    return "" if is_none else subject


def _importance(value: Any) -> int:
    """Return the importance from 1 to 3; anything that isn't a number counts as 1."""
    digits = value.strip() if isinstance(value, str) else value
    is_number = str(digits).isdecimal() and not isinstance(digits, bool)
    return min(max(int(digits), 1), LASTING) if is_number else 1


def _corrections(items: Iterable[Mapping[str, Any]]) -> list[Fact]:
    found = []
    for item in items:
        old, new = (plain_fact(clean_answer(item[key])) for key in ("old", "new"))
        if is_placeholder(old) or old == new:
            continue
        _check_usable(new, "A correction")
        found.append(_fact("" if is_placeholder(new) else new, item, old))
    return found


def _check_usable(text: str, name: str) -> str:
    why = why_unusable(text)
    if why is not None:
        raise ModelAnswerError(f"{name} {why}.")
    return text
