"""What small models leave out of an answer: half of a sentence, or whole messages.

Of "Yusuf is my head baker, on the early shift from 3" they give "Yusuf is the head baker", and of
eight messages the first five. Neither is noticed by who only checks what an answer says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from kbtui.knowledge.format.facts import Fact
from kbtui.memory.consolidation.answer import Answer
from kbtui.memory.consolidation.page import Page
from kbtui.offline.language import begins, of_all, telling_terms
from kbtui.text import clean_line

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_LONGEST = 200
_FEWEST = 3  # telling words of what may be a statement
_HALF = 0.5


def in_whole_sentences(answer: Answer, page: Page) -> Answer:
    """An answer whose facts are the user's own sentences, where they only leave out some of one."""
    said = [
        (number, clean_line(sentence), frozenset(telling_terms(sentence)))
        for number, sentence in _sentences(page)
        if len(sentence) <= _LONGEST
    ]

    def completed(fact: Fact) -> Fact:
        terms = set(telling_terms(fact.text))
        holding = [each for each in said if terms and terms <= each[2]]
        if fact.replaces or not holding:
            return fact
        number, sentence, _ = min(holding, key=lambda each: (each[0] != fact.message, len(each[2])))
        return replace(fact, text=sentence, message=number)

    return replace(answer, facts=tuple(dict.fromkeys(map(completed, answer.facts))))


def passed_over(answer: Answer, page: Page) -> set[int]:
    """The messages that state something of which an answer says nothing, by their numbers."""
    told = [f"{each.subject} {each.text} {each.replaces}" for each in answer.facts]
    lines = [set(telling_terms(each)) for each in (*told, *answer.notes)]
    left = set()
    for number, sentence in _sentences(page):
        terms = set(telling_terms(sentence))
        is_told = any(len(terms & line) >= _HALF * len(terms) for line in lines)
        is_wish = begins(sentence, of_all("work")) is not None
        if len(terms) >= _FEWEST and not is_told and not is_wish:
            left.add(number)
    return left


def _sentences(page: Page) -> Iterator[tuple[int, str]]:
    """The sentences of the user's that ask nothing, with the numbers of their messages."""
    for message in page.spoken:
        if message.role == "user":
            for sentence in filter(str.strip, _SENTENCE.split(message.content)):
                if not sentence.rstrip().endswith("?"):
                    yield message.id, sentence
