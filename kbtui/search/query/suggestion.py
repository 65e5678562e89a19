"""*Did you mean*: a query whose unknown words are replaced by known ones that look alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.search.index import analyser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.query.parser import Query

_SHORTEST_TYPO = 4
_LOOK_ALIKES = 20
_WRITTEN = ("title", "body")


def suggest(corpus: Corpus, asked: Query, words: Callable[[], Sequence[str]]) -> str | None:
    """The query with its unknown words replaced by known ones that look alike.

    `words` gives the words that texts hold, or held once.
    """
    changed = asked.text
    for word in asked.words:
        bare = word.strip(".,;:!?()[]{}\"'")
        folded = analyser.fold(bare)
        if len(folded) >= _SHORTEST_TYPO and folded.isalpha() and _is_unknown(corpus, folded):
            better = _look_alike(corpus, folded, words())
            changed = changed.replace(bare, better) if better else changed
    return changed if changed != asked.text else None


def _is_unknown(corpus: Corpus, folded: str) -> bool:
    term = analyser.terms(folded)[0]
    return not corpus.knows(term) and not corpus.expand(term, _WRITTEN, most=1)


def _look_alike(corpus: Corpus, folded: str, words: Sequence[str]) -> str | None:
    """The nearest word that is in use; of equally near ones the most frequent."""
    from rapidfuzz import process
    from rapidfuzz.distance import DamerauLevenshtein

    near = process.extract(
        folded,
        words,
        scorer=DamerauLevenshtein.distance,
        score_cutoff=1 if len(folded) <= _SHORTEST_TYPO else 2,
        limit=_LOOK_ALIKES,
    )
    frequency = {
        word: len(corpus.impacts(analyser.terms(word)[0], _WRITTEN)[0]) for word, *_ in near
    }
    used = [(distance, -frequency[word], word) for word, distance, _ in near if frequency[word]]
    return min(used)[2] if used else None
