"""The hits that are shown of a ranking: in order, with their texts, and what explains them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.query import parser as query
from kbtui.search.query import snippets
from kbtui.search.query.fusion import best_first, rank_of
from kbtui.search.query.reorder import MOST_REORDERED, beside, linked, spread
from kbtui.search.results import Explain, Hit
from kbtui.text import clean_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.rows import ChunkRow
    from kbtui.search.query.parser import Query
    from kbtui.search.query.ranking import Ranking

# Found and checked whatever the limit is, so that the first ones don't depend on it.
LOOKED_AT = 300
_MORE = 4  # fetched beyond the limit, as some are left out
_CHECKED_FOR_PHRASES = 3000
_LOOKED_AT_FOR_PAIRS = 20
# An entry is one thing and shown once; of a long document or log several places may answer.
_OF_ONE_FILE = {"knowledge": 1, "memory": 3, "docs": 3}
_LIFTING = {"links": linked, "neighbours": beside}
_NUMBER = re.compile(r"([0-9]{1,18})")


class Rows(Protocol):
    """Where the text of chunks is kept."""

    def rows(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """The chunks with these ids that are there."""


def best_hits(
    corpus: Corpus,
    rows: Rows,
    asked: Query,
    ranking: Ranking,
    limit: int,
    *,
    relevant_only: bool = False,
) -> tuple[Hit, ...]:
    """The best hits, at most `limit`; the first ones are the same for any limit."""
    shown: list[Hit] = []
    of_file: Counter[str] = Counter()
    rows = _Fetched(rows)
    ranking = _reordered(corpus, rows, asked, _with_pairs(corpus, rows, asked, ranking))
    for number, row in _in_order(corpus, rows, asked, ranking, limit):
        most = 1 if not asked.has_words else _OF_ONE_FILE.get(row.path.partition("/")[0], LOOKED_AT)
        if of_file[row.path] < most and _has_phrases(row, asked):
            hit = _hit(row, number, asked, ranking)
            if relevant_only and not hit.is_relevant:
                continue
            of_file[row.path] += 1
            shown.append(hit)
            if len(shown) >= limit:
                break
    return tuple(shown)


class _Fetched:
    """Rows that are fetched once."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._known: dict[int, ChunkRow] = {}

    def rows(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """The chunks with these ids that are there."""
        missing = [number for number in numbers if number not in self._known]
        if missing:
            self._known.update(self._rows.rows(missing))
        return {number: self._known[number] for number in numbers if number in self._known}


def _with_pairs(corpus: Corpus, rows: Rows, asked: Query, ranking: Ranking) -> Ranking:
    """Lift those of the best in which words of the query stand together as they do there."""
    wanted = _pairs(corpus, asked)
    if not wanted:
        return ranking
    scores = ranking.fused.scores.copy()
    best = best_first(scores, ranking.fused.candidates, _LOOKED_AT_FOR_PAIRS).tolist()
    stored = rows.rows([int(corpus.chunks[number]) for number in best])
    for number in best:
        row = stored.get(int(corpus.chunks[number]))
        if row is not None:
            said = analyser.telling_terms(row.text)
            together = wanted.keys() & set(pairwise(said))
            share = sum(wanted[pair] for pair in sorted(together))
            scores[number] += ranking.fused.unit * share
    scores = np.round(scores / (1 + ranking.fused.unit), 9)
    return replace(ranking, fused=replace(ranking.fused, scores=scores))


def _reordered(corpus: Corpus, rows: Rows, asked: Query, ranking: Ranking) -> Ranking:
    """Lift those of the best that have to do with others of them, lower those that repeat one."""
    if not asked.has_words:
        return ranking
    boosts: dict[int, dict[str, float]] = {}
    for name, share in ranking.weights.reordering():
        scores = ranking.fused.scores.copy()
        in_order = _in_order(corpus, rows, asked, ranking, MOST_REORDERED)
        best = list(islice((f for f in in_order if _has_phrases(f[1], asked)), MOST_REORDERED))
        if name == "diversity":
            factors = spread(scores, best, share, ranking.direction)
        else:
            factors = _LIFTING[name](scores, best, share)
            scores = scores / (1 + share)
        for (number, _), factor in zip(best, factors.tolist(), strict=True):
            scores[number] *= factor
            if factor != 1:
                boosts.setdefault(number, {})[name] = round(factor, 6)
        fused = replace(ranking.fused, scores=np.round(scores, 9))
        ranking = replace(ranking, fused=fused, boosts=boosts)
    return ranking


def _pairs(corpus: Corpus, asked: Query) -> dict[tuple[str, str], float]:
    """Telling words that stand side by side in a query, with the share of the whole each is."""
    terms = analyser.telling_terms(asked.text)[: query.MOST_TERMS]
    found = {
        (one, other): corpus.rarity(one) + corpus.rarity(other)
        for one, other in pairwise(terms)
        if one != other and corpus.knows(one) and corpus.knows(other)
    }
    whole = sum(found.values())
    return {pair: weight / whole for pair, weight in found.items()}


def _in_order(
    corpus: Corpus, rows: Rows, asked: Query, ranking: Ranking, limit: int
) -> Iterator[tuple[int, ChunkRow]]:
    """The candidates, best first; filters alone list the newest; ties go by path, not by chance.

    Their texts are fetched as they are needed.
    """
    scores = ranking.fused.scores
    most = _CHECKED_FOR_PHRASES if asked.demanded_phrases or asked.excluded_phrases else LOOKED_AT
    if not asked.has_words:
        most = corpus.size
    numbers = best_first(scores, ranking.fused.candidates, max(most, limit))
    start = 0
    while start < len(numbers):
        end = min(len(numbers), start + limit + _MORE)
        while end < len(numbers) and scores[numbers[end]] == scores[numbers[end - 1]]:
            end += 1
        part = numbers[start:end].tolist()
        stored = rows.rows([int(corpus.chunks[number]) for number in part])
        found = [(n, stored[chunk]) for n in part if (chunk := int(corpus.chunks[n])) in stored]
        found.sort(key=lambda pair: (_natural(pair[1].path), pair[1].ord))
        if not asked.has_words:
            found.sort(key=lambda pair: pair[1].updated, reverse=True)
        found.sort(key=lambda pair: -float(scores[pair[0]]))
        yield from found
        start = end


def _natural(path: str) -> list[tuple[int, str]]:
    """Sorts as people do: ``note-9`` before ``note-10``."""
    parts = _NUMBER.split(path)
    return [(int(part), "") if i % 2 else (0, part) for i, part in enumerate(parts)]


def _has_phrases(row: ChunkRow, asked: Query) -> bool:
    if not asked.demanded_phrases and not asked.excluded_phrases:
        return True
    places = [row.title, row.text, *row.tags, *row.aliases, *(path for _, path in row.headings)]
    return all(_says(places, phrase) for phrase in asked.demanded_phrases) and not any(
        _says(places, phrase) for phrase in asked.excluded_phrases
    )


def _says(places: Sequence[str], phrase: str) -> bool:
    wanted = " ".join(analyser.words(phrase))
    if not wanted:
        return True
    if analyser.is_unspaced(phrase):
        bare = analyser.fold("".join(phrase.split()))
        return any(bare in analyser.fold("".join(place.split())) for place in places)
    return any(f" {wanted} " in f" {' '.join(analyser.words(place))} " for place in places)


def _hit(row: ChunkRow, number: int, asked: Query, ranking: Ranking) -> Hit:
    semantic = ranking.semantic
    cosine = float(semantic[number]) if semantic is not None else float("nan")
    word_score = float(ranking.lexical[number])
    snippet = snippets.make_snippet(row.text, ranking.terms, asked.phrases, _first_prose(row))
    line = min(row.lines[0] + snippet.line, row.lines[1])
    return Hit(
        path=row.path,
        title=clean_line(row.title),
        heading=clean_line(_heading_at(row, line)),
        lines=row.lines,
        snippet=snippet.text,
        matches=snippet.matches,
        score=round(float(ranking.fused.scores[number]), 6),
        explain=Explain(
            lexical_rank=rank_of(word_score, ranking.word_scores),
            semantic_rank=rank_of(cosine, ranking.cosines),
            lexical=round(word_score, 6),
            semantic=round(cosine, 6) if np.isfinite(cosine) else 0.0,
            boosts=_boosts(number, ranking),
        ),
        session=row.session,
        messages=row.messages,
        line=line,
        text=row.text,
        updated=row.updated or None,
        speaker=row.role,
        relevance=round(ranking.evidence.relevance(number), 4) if asked.has_words else 1.0,
    )


def _boosts(number: int, ranking: Ranking) -> Mapping[str, float]:
    left = 1.0 if ranking.recency is None else float(ranking.recency[number])
    faded = {"recency": round(left, 6)} if left < 1 else {}
    return {**faded, **ranking.boosts.get(number, {})}


def _first_prose(row: ChunkRow) -> int:
    """Where the text behind a leading heading starts."""
    at = 0
    while row.text.startswith("#", at):
        end = row.text.find("\n", at)
        if end < 0 or not row.text[end:].strip():
            return 0
        at = end + 1
        while at < len(row.text) and row.text[at].isspace():
            at += 1
    return at


def _heading_at(row: ChunkRow, line: int) -> str:
    path = ""
    for first, heading in row.headings:
        if first <= line:
            path = heading
    return path
