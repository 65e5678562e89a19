"""What a question asks for besides its topic: what somebody said, and when something was.

Documents that fit are raised, what only asks is lowered, and none is left out. Of the turns of
LoCoMo's conversations that answer a question with the name of one speaker, 97 % are that speaker's
own, while half of the others' address them by name. Of those that answer *when*, 82 % have a word
for a time, of all 14 %. Of those that answer anything, 0.5 % are more than half questions, of all
9 %.
"""

from __future__ import annotations

import re
from calendar import month_name
from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.index.chunk_rows import ASKING, ASSISTANT, TIMED, USER
from kbtui.search.index.time_words import asks_when

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus

    Scores = NDArray[np.float64]


# By how many standard deviations of the best scores.
_SPOKEN = 1.5
_TIMED = 0.6
_ASKING = -1.5
# What the name of who speaks, or is spoken to, still counts for in the text of a message.
_NAME_IN_MESSAGE = 0.3
# Labels have roles where there are no names.
_ROLES = frozenset(analyser.terms(f"{USER} {ASSISTANT}"))
_MONTH = re.compile(rf"\b(?:{'|'.join(month_name[1:])})\b")


def raised(
    corpus: Corpus,
    text: str,
    names: Collection[str],
    lexical: Scores,
    weights: Mapping[str, float],
) -> Scores | None:
    """Return by how many deviations documents are raised that fit a question; None if none is.

    Args:
        corpus: The documents.
        text: The question.
        names: Those of its words that are probably names.
        lexical: The score of each document by words; a speaker's name is made to count less there.
        weights: The weights of the terms of those scores.
    """
    result: Scores | None = None
    labels = [*names, *_MONTH.findall(text)]
    for term in dict.fromkeys(term for label in labels for term in analyser.terms(label)[:1]):
        own, _ = corpus.postings("label", term)
        if not len(own) or term in _ROLES or term not in weights:
            continue
        result = np.zeros(corpus.size) if result is None else result
        holding, impact = corpus.impacts(term)
        is_message = corpus.lengths("label")[holding] > 0
        spent = np.float32((1 - _NAME_IN_MESSAGE) * weights[term]) * impact[is_message]
        lexical[holding[is_message]] -= spent
        # What isn't a message, and has the name, is about that person.
        result[own] = result[holding[~is_message]] = _SPOKEN
    if asks_when(text):
        result = np.zeros(corpus.size) if result is None else result
        result[corpus.holding("said", (TIMED,))] += _TIMED
    asking = corpus.holding("said", (ASKING,))
    if asking.any():
        result = np.zeros(corpus.size) if result is None else result
        result[asking] += _ASKING
    return result
