"""What small models leave out of an answer: half of a sentence, or whole messages.

Of "Yusuf is my head baker, on the early shift from 3" they give "Yusuf is the head baker", and of
eight messages the first five; or they join the names of two. Neither is noticed by who only checks
what an answer says. So what they give only chooses among the user's own sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kbtui.knowledge.format.facts import Fact
from kbtui.memory.consolidation.answer import Answer
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.sentences import Told
from kbtui.memory.records.dates import local
from kbtui.models.port import ChatModel
from kbtui.offline.language import telling_terms
from kbtui.offline.lines import sentences
from kbtui.sessions.store import SessionMessage

_SMALL_WINDOW = 8_192
_FEWEST = 3  # telling words of what may be a statement


def is_small(model: ChatModel) -> bool:
    """True for a model that repeats what it is told besides, and leaves out the rest."""
    return model.context_window <= _SMALL_WINDOW


def told_in(messages: Iterable[SessionMessage]) -> Told:
    """What the user told in a conversation."""
    said = (each for each in messages if each.role == "user")
    return Told((each.content, local(each.time).date(), each.id) for each in said)


def in_whole_sentences(answer: Answer, told: Told, ground: Ground) -> Answer:
    """An answer whose lines are the user's own sentences, as far as any is like a line.

    Of the summary these are the sentences that have no `ground`.
    """
    facts = dict.fromkeys(each for fact in answer.facts for each in _whole(fact, told))
    notes = dict.fromkeys(text for note in answer.notes for text, _ in told.whole(note))
    summed = dict.fromkeys(
        text
        for line in sentences(answer.summary)
        for text, _ in (told.whole(line) if ground.lacks(line) else [(line, None)])
    )
    summary = " ".join(each if each[-1] in ".!?" else f"{each}." for each in summed)
    return replace(answer, summary=summary, facts=tuple(facts), notes=tuple(notes))


def _whole(fact: Fact, told: Told) -> Iterator[Fact]:
    """A fact in whole sentences; those behind the first may be about somebody else."""
    whole = [(fact.text, None)] if fact.replaces else told.whole(fact.text)
    about = set(telling_terms(fact.subject))
    for position, (text, number) in enumerate(whole):
        is_about = not position or about & set(telling_terms(text))
        subject = fact.subject if is_about else ""
        yield replace(fact, text=text, subject=subject, message=number or fact.message)


def passed_over(answer: Answer, told: Told) -> list[tuple[int, str]]:
    """What was stated and an answer says nothing of, with the numbers of its messages."""
    facts = (f"{each.subject} {each.text} {each.replaces}" for each in answer.facts)
    return told.passed_over((*facts, *answer.notes), _FEWEST)
