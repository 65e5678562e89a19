"""What a model is asked for when a conversation is condensed, and what is accepted back.

An answer is untrusted. It is taken whole or not at all: what has the wrong type, echoes the
prompt, apologises, or is an error text in the place of an answer raises, and nothing changes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kbtui.errors import ModelAnswerError
from kbtui.knowledge import frontmatter
from kbtui.knowledge.statements import normalise, plain_fact
from kbtui.knowledge.templates import ENTRY_TYPES
from kbtui.memory.records.save_memory_tool import SAVE_MEMORY
from kbtui.memory.records.usable_answers import (
    clean_answer,
    is_placeholder,
    usable_text,
    why_unusable,
    without_thoughts,
)
from kbtui.text import clean_line

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "SAVE_MEMORY",
    "Correction",
    "Draft",
    "Extraction",
    "parse_extraction",
    "read_draft",
]

_MAX_ARGUMENTS = 1_000_000
_MAX_ITEMS = 200
_MAX_LINE = 2_000
_MAX_TITLE = 200
_FOLDERS = {folder: kind for kind, folder in ENTRY_TYPES.items()}
_FENCED = re.compile(r"\A```[a-zA-Z]*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Correction:
    """A line of the memory that is no longer true, and what is."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A knowledge entry as a model proposes it; `type` is one of `ENTRY_TYPES`."""

    type: str
    title: str
    summary: str
    body: str
    tags: tuple[str, ...] = ()
    related: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """A whole accepted answer. `full_memory` is the older form: the entire memory, rewritten."""

    history_entry: str
    facts: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    drafts: tuple[Draft, ...] = ()
    full_memory: str | None = None


def parse_extraction(arguments: str) -> Extraction:
    """Read the arguments of ``save_memory``, or the same as plain JSON, fenced or not.

    Raises:
        ModelAnswerError: it isn't usable; the message says what is wrong, for the next try.
    """
    value = _unwrap(_load(arguments))
    history_entry = _history_entry(value.get("history_entry"))
    update = value.get("memory_update")
    if isinstance(update, str) and update.lstrip().startswith("{"):
        update = _load(update)
    facts: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    full = None
    if isinstance(update, str):
        full = _full_memory(update)
    elif isinstance(update, dict):
        facts = _facts(update.get("facts"))
        corrections = _corrections(update.get("corrections"))
    elif update is not None:
        raise _wrong("memory_update", "an object with `facts` and `corrections`", update)
    return Extraction(
        history_entry, facts, corrections, _drafts(value.get("knowledge_entries")), full
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


def _unwrap(value: Any) -> Mapping[str, Any]:
    """Take the object out of the wrappings that models and servers put around it."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _load(value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and value.get("name") in (SAVE_MEMORY.name, None):
        for key in ("arguments", "parameters"):
            inner = value.get(key)
            if isinstance(inner, str):
                inner = _load(inner)
            if isinstance(inner, dict) and "history_entry" not in value:
                value = inner
    if not isinstance(value, dict):
        raise _wrong("The arguments", "a JSON object", value)
    return value


def _history_entry(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong("history_entry", "a text", value)
    return usable_text(value, "history_entry")


def _full_memory(text: str) -> str | None:
    plain = clean_answer(text)
    if is_placeholder(plain):
        return None
    return _honest(plain, "memory_update")


def _facts(value: Any) -> tuple[str, ...]:
    facts: dict[str, str] = {}
    for text in _texts(value, "memory_update.facts"):
        fact = plain_fact(text)
        if is_placeholder(fact):
            continue
        _honest(fact, "A fact")
        if len(fact) > _MAX_LINE:
            raise ModelAnswerError(f"A fact has {len(fact):,} characters; it must be a short line.")
        facts.setdefault(normalise(fact), fact)
    return tuple(facts.values())


def _corrections(value: Any) -> tuple[Correction, ...]:
    found = []
    for item in _items(value, "memory_update.corrections"):
        if not isinstance(item, dict):
            raise _wrong("A correction", "an object with `old` and `new`", item)
        old, new = item.get("old"), item.get("new")
        if not isinstance(old, str) or not isinstance(new, str):
            raise _wrong("A correction", "an object with the texts `old` and `new`", item)
        old, new = plain_fact(clean_answer(old)), plain_fact(clean_answer(new))
        if is_placeholder(old) or old == new:
            continue
        _honest(new, "A correction")
        found.append(Correction(old, "" if is_placeholder(new) else new))
    return tuple(dict.fromkeys(found))


def _drafts(value: Any) -> tuple[Draft, ...]:
    drafts = []
    for item in _items(value, "knowledge_entries"):
        if not isinstance(item, dict):
            raise _wrong("An entry", "an object", item)
        draft = read_draft(item)
        if draft is not None:
            drafts.append(draft)
    return tuple(drafts)


def read_draft(item: Mapping[str, Any]) -> Draft | None:
    """Read one entry; None for one that says nothing at all.

    Raises:
        ModelAnswerError: it has wrong types, no title, or a text that isn't an answer.
    """
    kind, title, summary, body = (
        _text(item.get(key), f"knowledge_entries.{key}")
        for key in ("type", "title", "summary", "body")
    )
    title, summary = clean_line(title), clean_line(summary)
    body = _body(body)
    summary = "" if is_placeholder(summary) else summary
    body = "" if is_placeholder(body) else body
    if not summary and not body:
        return None
    if not title.strip(" .…-_") or len(title) > _MAX_TITLE:
        raise ModelAnswerError(f"An entry needs a title of its own, not {title[:60]!r}.")
    for text in (summary, body):
        _honest(text, f"The entry {title!r}")
    kind = kind.strip().lower()
    kind = _FOLDERS.get(kind, kind)
    return Draft(
        kind if kind in ENTRY_TYPES else "topic",
        title,
        summary,
        body,
        tuple(dict.fromkeys(_labels(item.get("tags"), "tags", "#"))),
        tuple(dict.fromkeys(_labels(item.get("related"), "related", "[]"))),
    )


def _body(text: str) -> str:
    """The text below the title: a model's own frontmatter and first heading are left out."""
    body = frontmatter.split(text.lstrip().encode()).body.decode("utf-8", "replace")
    first, _, rest = body.strip().partition("\n")
    return (rest if re.match(r"#[ \t]", first) else body).strip()


def _labels(value: Any, name: str, around: str) -> list[str]:
    if isinstance(value, str):
        value = value.split(",")
    texts = [clean_line(text).strip(around).strip() for text in _texts(value, name)]
    return [text for text in texts if not is_placeholder(text)]


def _texts(value: Any, name: str) -> list[str]:
    items = _items([value] if isinstance(value, str) else value, name)
    for item in items:
        if not isinstance(item, str):
            raise _wrong(name, "a list of texts", item)
    return [clean_answer(item) for item in items]


def _text(value: Any, name: str) -> str:
    if value is not None and not isinstance(value, str):
        raise _wrong(name, "a text", value)
    return clean_answer(value or "")


def _items(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(name, "a list", value)
    if len(value) > _MAX_ITEMS:
        raise ModelAnswerError(f"{name} has {len(value)} items; at most {_MAX_ITEMS} make sense.")
    return value


def _honest(text: str, name: str) -> str:
    why = why_unusable(text)
    if why is not None:
        raise ModelAnswerError(f"{name} {why}.")
    return text


def _wrong(name: str, wanted: str, value: Any) -> ModelAnswerError:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    found = "missing" if value is None else f"not {kinds.get(type(value), 'a number')}"
    return ModelAnswerError(f"{name} must be {wanted}, {'it is ' if value is None else ''}{found}.")
