"""Condenses a slice of conversation: its facts, and what it was about in its own words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbtui.knowledge.templates import ENTRY_TYPES
from kbtui.offline import words as w
from kbtui.offline.digest import digest
from kbtui.offline.judging import sentences
from kbtui.offline.lines import Line
from kbtui.offline.understand import Said, understand
from kbtui.text import shorten, slugify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kbtui.knowledge.facts import Fact

_MOST_SENTENCES = 10
_SENTENCE_WIDTH = 160
# With MEMORY.md and the entries this stays below 40 % of the conversation.
_DIGEST_SHARE = 0.28
_SLUG_WIDTH = 40
_SLUG_WORDS = 5
_BEFORE = 6


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a slice; `judged`: what it states was kept when it was said, or wasn't."""

    id: int
    role: str
    text: str
    judged: bool = False


def facts_of(messages: Sequence[Message], known: Sequence[Line] = ()) -> list[Fact]:
    """What the user stated, message by message; what was judged when it was said is left out.

    Of a statement and its correction in one slice the correction stays.
    """
    found: list[Fact] = []
    before: list[Said] = []
    for each in messages:
        if each.role == "user" and not each.judged:
            own = [Line(_path(fact), fact.subject, fact.text) for fact in reversed(found)]
            for fact in understand(each.text, before[-_BEFORE:], [*own, *known]).facts:
                told = replace(fact, message=each.id)
                old = next((n for n, f in enumerate(found) if f.text == fact.replaces), None)
                if old is not None:
                    found[old] = replace(told, replaces=found[old].replaces)
                elif told.text not in [f.text for f in found]:
                    found.append(told)
        before.append(Said(each.role, each.text))
    return found


def _path(fact: Fact) -> str:
    return f"knowledge/{ENTRY_TYPES[fact.kind]}/{slugify(fact.subject)}.md"


def history_entry(messages: Sequence[Message]) -> str:
    """What the user said in their own words: of little the first sentences, of much a digest.

    What kbtui said is no source; it is quoted only where the user said nothing.
    """
    speaker = (
        "user"
        if any(each.role == "user" and each.text.strip() for each in messages)
        else "assistant"
    )
    lead = list(_leads(each.text for each in messages if each.role == speaker))
    if len(lead) <= _MOST_SENTENCES:
        return f"The {speaker} said: {' '.join(lead)}"
    said = [Said(each.role, each.text) for each in messages if each.role == speaker]
    budget = int(sum(len(each.text) for each in messages) * _DIGEST_SHARE)
    return "\n".join(f"- {each.role.capitalize()}: {text}" for each, text in digest(said, budget))


def slug_of(messages: Sequence[Message]) -> str:
    """A file name out of the first words of the user's that tell something."""
    for each in messages:
        told = [
            word
            for word in slugify(each.text).split("-")
            if w.is_content(word) and word not in w.CHAT
        ]
        if each.role == "user" and len(told) > 1:
            return slugify(" ".join(told[:_SLUG_WORDS]), _SLUG_WIDTH)
    return "conversation"


def notes_of(messages: Sequence[Message], known: Sequence[Line] = ()) -> list[str]:
    """The notes of the day: each statement worth keeping, as it was said."""
    fresh = [replace(each, judged=False) for each in messages]
    lines = (re.sub(r"\s*\n\s*-?\s*", "; ", fact.text) for fact in facts_of(fresh, known))
    return list(dict.fromkeys(lines))


def _leads(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        first = next((each.text for each in sentences(text)), "")
        line = shorten(first, _SENTENCE_WIDTH)
        if line:
            yield line if line[-1] in ".!?:…" else f"{line}."
