"""Completes small models' answers, which drop half of a sentence or whole messages.

"Yusuf is my head baker, on the early shift from 3" becomes "Yusuf is the head baker", the last
three of eight messages are missing, or two people's names are joined. A check of what an answer
says notices neither. So the answer only selects among the user's own sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kbtui.knowledge.format.facts import Fact
from kbtui.memory.consolidation.answer import Answer
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.sentences import UserSentences
from kbtui.memory.records.dates import local
from kbtui.models.port import ChatModel
from kbtui.offline.language import significant_terms
from kbtui.offline.lines import sentences
from kbtui.sessions.store import SessionMessage

_SMALL_WINDOW = 8_192
_MIN_WORDS = 3  # content words of a possible statement


def is_small(model: ChatModel) -> bool:
    """Return whether a model tends to repeat extra context and to omit the rest."""
    return model.context_window <= _SMALL_WINDOW


def user_sentences(messages: Iterable[SessionMessage]) -> UserSentences:
    """Return the user's sentences in a conversation."""
    said = (each for each in messages if each.role == "user")
    return UserSentences((each.content, local(each.time).date(), each.id) for each in said)


def in_whole_sentences(answer: Answer, source: UserSentences, ground: Ground) -> Answer:
    """Replace the lines of an answer with the user's sentences closest to them, if any.

    In the summary, only sentences without `ground` are replaced.
    """
    facts = dict.fromkeys(each for fact in answer.facts for each in _in_full(fact, source))
    notes = dict.fromkeys(text for note in answer.notes for text, _ in source.whole(note))
    summed = dict.fromkeys(
        text
        for line in sentences(answer.summary)
        for text, _ in (source.whole(line) if ground.lacks(line) else [(line, None)])
    )
    summary = " ".join(each if each[-1] in ".!?" else f"{each}." for each in summed)
    return replace(answer, summary=summary, facts=tuple(facts), notes=tuple(notes))


def _in_full(fact: Fact, source: UserSentences) -> Iterator[Fact]:
    """Yield a fact as whole sentences; those after the first may be about another subject."""
    whole = [(fact.text, None)] if fact.replaces else source.whole(fact.text)
    about = set(significant_terms(fact.subject))
    for position, (text, number) in enumerate(whole):
        is_about = not position or about & set(significant_terms(text))
        subject = fact.subject if is_about else ""
        yield replace(fact, text=text, subject=subject, message=number or fact.message)


def unmentioned(answer: Answer, source: UserSentences) -> list[tuple[int, str]]:
    """Return the statements that an answer doesn't mention, each with its message id."""
    facts = (f"{each.subject} {each.text} {each.replaces}" for each in answer.facts)
    return source.unmentioned((*facts, *answer.notes), _MIN_WORDS)
