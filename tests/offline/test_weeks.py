"""Whole weeks of messages in three languages: what is kept of them, and how questions are answered.

`weeks.jsonl` holds invented people's messages with what a person would want kept (`must`: groups of
alternatives, whole words), what no longer holds after a correction (`gone`), what must never be
kept (`never`), and what an answer must and must not say. Files are simulated by a list of lines, so
this tests reading and choosing alone.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kbtui.knowledge.entries.templates import ENTRY_TYPES
from kbtui.offline.answer import answer
from kbtui.offline.lines import Line
from kbtui.offline.understand import Said, understand
from kbtui.text import fold, slugify
from kbtui.workspace.redact import redact

Message = dict[str, Any]


def _weeks() -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = defaultdict(list)
    for line in (Path(__file__).parent / "weeks.jsonl").read_text("utf-8").splitlines():
        message = json.loads(line)
        found[message["week"]].append(message)
    return found


WEEKS = _weeks()


@dataclass
class Notes:
    """What is kept: lines by entry, as the edit engine would put them."""

    lines: list[Line] = field(default_factory=list)

    def keep(self, facts: Any) -> None:
        for fact in facts:
            path = f"knowledge/{ENTRY_TYPES[fact.kind]}/{slugify(fact.subject)}.md"
            for n, line in enumerate(self.lines):
                if fact.replaces and line.current and line.text == fact.replaces:
                    self.lines[n] = Line(line.path, line.title, line.text, current=False)
                    path = line.path
            for text in fact.text.split("\n"):
                line = Line(path, fact.subject, text.removeprefix("- "), len(self.lines))
                if fold(line.text) not in [fold(each.text) for each in self.lines]:
                    self.lines.append(line)

    def of(self, path: str, *, current: bool) -> str:
        here = [line for line in self.lines if line.path == path and line.current >= current]
        return "\n".join([here[0].title if here else "", *(line.text for line in here)])


def _has(text: str, group: list[str]) -> bool:
    for value in group:
        star = value.endswith("*")
        form = re.escape(fold(value.rstrip("*"))) + (r"\w*" if star else r"(?!\w)")
        if re.search(rf"(?<!\w){form}", fold(text)):
            return True
    return False


def _faults(messages: list[Message]) -> list[str]:
    """What goes wrong in a week."""
    notes, said, faults = Notes(), [], []
    for message in messages:
        text = message["text"]
        before = list(notes.lines)
        found = understand(text, said[-6:], list(reversed(notes.lines)))
        notes.keep(found.facts)
        told = ""
        if found.question:
            told = "\n".join(line.text for line in answer(found.question, notes.lines).lines)
        paths = {line.path for line in notes.lines}
        kept = [notes.of(path, current="gone" in message) for path in paths]
        if message["keep"] is True and not any(
            all(_has(each, group) for group in message["must"]) for each in kept
        ):
            faults.append(f"not kept: {text!r}: {[fact.text for fact in found.facts]}")
        if message["keep"] is False and notes.lines != before:
            faults.append(f"kept: {text!r}: {[fact.text for fact in found.facts]}")
        if "answer_must" in message and not all(_has(told, g) for g in message["answer_must"]):
            faults.append(f"not answered: {text!r}: {told!r}")
        if any(_has(told, [value]) for value in message.get("answer_not", ())):
            faults.append(f"answered with what is over: {text!r}: {told!r}")
        if message.get("unanswerable") and told:
            faults.append(f"answered what nobody said: {text!r}: {told!r}")
        said += [Said("user", redact(text).text), Said("assistant", told)]
    for message in messages:
        stale = [
            line.text
            for line in notes.lines
            if line.current
            and any(_has(line.text, [gone]) for gone in message.get("gone", ()))
            and not all(_has(line.text, group) for group in message["must"])
        ]
        faults += [f"still there after {message['text']!r}: {text!r}" for text in stale]
    everything = "\n".join([*(line.text for line in notes.lines), *(each.text for each in said)])
    never = [value for message in messages for value in message.get("never", ())]
    return faults + [f"a secret stands there: {value}" for value in never if value in everything]


@pytest.mark.parametrize("week", list(WEEKS))
def test_hardly_a_message_goes_wrong_in_a_week(week: str) -> None:
    faults = _faults(WEEKS[week])
    assert not [fault for fault in faults if "secret" in fault]
    assert len(faults) <= 1, "\n".join(faults)


@pytest.mark.parametrize("week", list(WEEKS))
def test_what_is_kept_was_said_word_for_word(week: str) -> None:
    said: list[Said] = []
    for message in WEEKS[week]:
        for fact in understand(message["text"], said).facts:
            for line in fact.text.split("\n"):
                assert line.removeprefix("- ") in " ".join(message["text"].split())
            assert 0 < len(fact.subject.split()) <= 6
            assert len(fact.subject) <= 60
        said = [Said("user", message["text"])]
