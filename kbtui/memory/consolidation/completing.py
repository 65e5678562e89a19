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
_LIKE = 0.4  # of a line's telling words; it may be said in another language


def in_whole_sentences(answer: Answer, page: Page) -> Answer:
    """An answer whose lines are the user's own sentences, as far as any is like a line."""
    said = [
        (clean_line(sentence), number, set(telling_terms(sentence)))
        for number, sentence in _sentences(page)
        if len(sentence) <= _LONGEST
    ]

    def whole(line: str) -> tuple[str, int | None]:
        """The sentence that is most like a line, and the number of its message; else the line."""
        terms = set(telling_terms(line))
        most = max((len(terms & each) for _, _, each in said), default=0)
        if not terms or most < _LIKE * len(terms):
            return line, None
        near = (each for each in said if len(terms & each[2]) == most)
        return min(near, key=lambda each: len(each[2]))[:2]

    def completed(fact: Fact) -> Fact:
        text, number = (fact.text, None) if fact.replaces else whole(fact.text)
        return replace(fact, text=text, message=number or fact.message)

    facts = dict.fromkeys(map(completed, answer.facts))
    notes = dict.fromkeys(whole(note)[0] for note in answer.notes)
    return replace(answer, facts=tuple(facts), notes=tuple(notes))


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
