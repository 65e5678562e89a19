"""Which documents of a corpus meet what a query demands, as masks over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.index.bm25f import SCORED_FIELDS
from kbtui.search.query import parser as query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.query.parser import Condition, Query


def demanded(corpus: Corpus, asked: Query, scope: Sequence[str]) -> Mask:
    """The documents of some folders that meet all conditions, words and phrases of a query.

    Of a phrase only the words are looked at here, not whether they stand together.
    """
    mask = corpus.live & corpus.holding("scope", scope)
    for condition in asked.conditions:
        mask &= _meets(corpus, condition)
    for text in (*asked.required, *asked.demanded_phrases):
        mask &= _holds(corpus, text)
    for word in asked.excluded:
        mask &= ~_holds(corpus, word)
    return mask


def _holds(corpus: Corpus, text: str, fields: Sequence[str] = tuple(SCORED_FIELDS)) -> Mask:
    """Which documents hold all words of a text, anywhere in the fields."""
    mask: Mask = np.ones(corpus.size, dtype=np.bool_)
    for _, _, terms in analyser.spans(text):
        if len(terms) and len(terms[0]) == 1 and analyser.is_unspaced(terms[0]):
            # A single letter of such a script is only indexed as part of pairs.
            pairs = corpus.expand(terms[0], fields) or terms
            mask &= np.any([_holding(corpus, term, fields) for term in pairs], axis=0)
        elif terms:
            mask &= _holding(corpus, terms[0], fields)
    return mask


def _holding(corpus: Corpus, term: str, fields: Sequence[str]) -> Mask:
    mask: Mask = np.zeros(corpus.size, dtype=np.bool_)
    for name in fields:
        mask[corpus.postings(name, term)[0]] = True
    return mask


def _meets(corpus: Corpus, condition: Condition) -> Mask:
    value = analyser.fold(condition.value)
    match condition.field:
        case "title":
            mask = _holds(corpus, condition.value, ("title",))
        case "heading":
            mask = _holds(corpus, condition.value, ("headings",))
        case "created" | "updated":
            since, until = query.days(condition.value) or ("", "")
            known = corpus.expand("", (condition.field,), most=1_000_000)
            mask = corpus.holding(condition.field, [d for d in known if since <= d <= until])
        case "path":
            known = corpus.expand("", ("path",), most=10_000_000)
            mask = corpus.holding("path", [p for p in known if value in analyser.fold(p)])
        case _:
            mask = corpus.holding(condition.field, [value])
    return ~mask if condition.negated else mask
