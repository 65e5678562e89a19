"""The hits that are shown of a ranking: in order, with their texts, and what explains them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.index.chunker import is_question
from kbtui.search.index.markdown import blank_definitions
from kbtui.search.query import parser as query
from kbtui.search.query.fusion import best_first, rank_of
from kbtui.search.query.privacy_filter import PrivacyFilter
from kbtui.search.results import Explain, Hit, OtherPlace
from kbtui.text import clean_line, natural

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.chunk_rows import ChunkRow
    from kbtui.search.index.chunker import Chunk
    from kbtui.search.query.parser import Query
    from kbtui.search.query.ranking import Ranking


# Compared with each other, whatever the limit is.
_COMPARED = 20
_LEAST_WORDS = 4
_LEAST_LETTERS = 8
_MOST_OF_IT = 0.6
_DENYING_WORDS = """
    no not never nor don't doesn't didn't isn't wasn't won't can't cannot dont nein nicht nie kein
    keine non pas jamais nunca
"""
_DENYING = frozenset(_DENYING_WORDS.split())
_BETWEEN_STATEMENTS = re.compile("(?<=[.!?])\\s+|\n+|(?<=[\u3002\uff01\uff1f])")
# Found and checked whatever the limit is, so that the first ones don't depend on it.
LOOKED_AT = 300
_MORE = 4  # fetched beyond the limit, as some are left out
_CHECKED_FOR_PHRASES = 3000
_LOOKED_AT_FOR_PAIRS = 20
# An entry is one thing and shown once; of a long document or log several places may answer.
_OF_ONE_FILE = {"knowledge": 1, "memory": 8, "docs": 5}


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
    privacy: PrivacyFilter,
    by_chance: bool = False,
) -> tuple[Hit, ...]:
    """The best hits, at most `limit`; the first ones are the same for any limit.

    Those that say the same are one hit, unless only one of them is `privacy` from models
    elsewhere. Where nothing is nearer by meaning than `by_chance`, only what holds a word of the
    query is shown.
    """
    rows = _Fetched(rows)
    ranking = _with_pairs(corpus, rows, asked, ranking)
    groups: list[list[_Said]] = []
    ordered = _in_order(corpus, rows, asked, ranking, max(limit, _COMPARED))
    shown = _worth_showing(ordered, asked, ranking, by_chance=by_chance)
    for taken, (number, row) in enumerate(shown):
        if taken >= _COMPARED and len(groups) >= limit:
            break
        said = _Said(number, row, ranking.terms)
        compared = groups if taken < _COMPARED else ()
        same = (group for group in compared if _says_the_same(said, group, privacy))
        if (group := next(same, None)) is not None:
            group.append(said)
        else:
            groups.append([said])
    return tuple(_joined(group, asked, ranking) for group in groups[:limit])


def _worth_showing(
    found: Iterable[tuple[int, ChunkRow]], asked: Query, ranking: Ranking, *, by_chance: bool
) -> Iterator[tuple[int, ChunkRow]]:
    """What holds the phrases, isn't near by chance alone, and is not too much of one file."""
    of_file: Counter[str] = Counter()
    needs_words = ranking.evidence.is_near_by_chance and not by_chance
    for number, row in found:
        most = 1 if not asked.has_words else _OF_ONE_FILE.get(row.path.partition("/")[0], LOOKED_AT)
        if of_file[row.path] >= most or not _has_phrases(row, asked):
            continue
        if needs_words and not ranking.lexical[number]:
            continue
        of_file[row.path] += 1
        yield number, row


@dataclass(frozen=True)
class _Said:
    """A document among the best, and what it says of the query."""

    number: int
    row: ChunkRow
    terms: Container[str]

    @cached_property
    def statement(self) -> tuple[tuple[str, ...], int]:
        """The words of the sentence or line that holds the most of the terms, and its line."""
        whole, lines = self.row.chunk.text, self.row.chunk.lines
        ends = [match.end() for match in _BETWEEN_STATEMENTS.finditer(whole)]
        starts = [0, *ends, len(whole)]
        held: dict[int, set[str]] = {}
        for start, _, term in analyser.matches(whole, self.terms):
            held.setdefault(bisect_right(starts, start) - 1, set()).add(term)
        if not held:
            return (), lines[0]
        best = min(held, key=lambda place: (-len(held[place]), place))
        text = whole[starts[best] : starts[best + 1]]
        line = min(lines[0] + whole.count("\n", 0, starts[best]), lines[1])
        return (() if is_question(text) else tuple(analyser.words(text))), line


def _joined(group: Sequence[_Said], asked: Query, ranking: Ranking) -> Hit:
    """One hit for all that say the same: an entry rather than what was said, with its places."""
    first = min(group, key=lambda said: _standing(said.row))
    hit = _hit(first.row, first.number, asked, ranking)
    if len(group) == 1:
        return hit
    also = [
        OtherPlace(
            said.row.path,
            clean_line(said.row.file.title),
            said.statement[1],
            said.row.chunk.session,
            said.row.chunk.messages,
        )
        for said in group
        if said is not first
    ]
    score = round(float(ranking.fused.scores[group[0].number]), 6)
    return replace(hit, score=score, also=tuple(also))


def _says_the_same(said: _Said, group: Sequence[_Said], privacy: PrivacyFilter) -> bool:
    may_join = all(_may_join(said.row, other.row, privacy) for other in group)
    return may_join and _same(group[0].statement[0], said.statement[0])


def _may_join(one: ChunkRow, other: ChunkRow, privacy: PrivacyFilter) -> bool:
    """True unless both are entries or documents, or one is withheld and the other isn't."""
    if not _standing(one) and not _standing(other):
        return False
    return privacy.is_private_file(one) == privacy.is_private_file(other)


def _standing(row: ChunkRow) -> int:
    """Entries and documents before notes, before the archive, before what was said."""
    if row.path.startswith("sessions/"):
        return 4 if row.chunk.role == "assistant" else 3
    if row.path.startswith("memory/"):
        return 2 if row.path.endswith(".jsonl") else 1
    return 0


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    """True if one statement is the other, or most of it, word for word, and nothing is denied."""
    short, long = sorted((one, other), key=len)
    if len(short) < _LEAST_WORDS:
        return short == long and sum(map(len, short)) >= _LEAST_LETTERS
    if len(short) < _MOST_OF_IT * len(long):
        return False
    whole, part = f" {' '.join(long)} ", f" {' '.join(short)} "
    before, found, after = whole.partition(part)
    return bool(found) and _DENYING.isdisjoint([*before.split(), *after.split()])


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
    best = best_first(scores, ranking.fused.candidates, _LOOKED_AT_FOR_PAIRS)
    # Reading a text costs far more than asking the postings whether it holds both words.
    held = {
        pair: np.isin(best, corpus.impacts(pair[0])[0]) & np.isin(best, corpus.impacts(pair[1])[0])
        for pair in wanted
    }
    worth_reading = best[np.logical_or.reduce(list(held.values()))].tolist()
    stored = rows.rows([int(corpus.chunks[number]) for number in worth_reading])
    for number in worth_reading:
        row = stored.get(int(corpus.chunks[number]))
        if row is not None:
            said = analyser.content_terms(row.chunk.text)
            together = wanted.keys() & set(pairwise(said))
            share = sum(wanted[pair] for pair in sorted(together))
            scores[number] += ranking.fused.unit * share
    scores = np.round(scores / (1 + ranking.fused.unit), 9)
    return replace(ranking, fused=replace(ranking.fused, scores=scores))


def _pairs(corpus: Corpus, asked: Query) -> dict[tuple[str, str], float]:
    """Telling words that stand side by side in a query, with the share of the whole each is."""
    terms = analyser.content_terms(asked.text)[: query.MOST_TERMS]
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
        found.sort(key=lambda pair: (natural(pair[1].path), pair[1].ord))
        if not asked.has_words:
            found.sort(key=lambda pair: pair[1].updated, reverse=True)
        found.sort(key=lambda pair: -float(scores[pair[0]]))
        yield from found
        start = end


def _has_phrases(row: ChunkRow, asked: Query) -> bool:
    if not asked.demanded_phrases and not asked.excluded_phrases:
        return True
    places = [
        row.file.title,
        row.chunk.text,
        *row.file.tags,
        *row.file.aliases,
        *(path for _, path in row.chunk.headings),
    ]
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
    chunk, semantic = row.chunk, ranking.semantic
    cosine = float(semantic[number]) if semantic is not None else float("nan")
    word_score = float(ranking.lexical[number])
    shown = blank_definitions(chunk.text)
    snippet = query.make_snippet(shown, ranking.terms, asked.phrases, _first_prose(chunk.text))
    line = min(chunk.lines[0] + snippet.line, chunk.lines[1])
    return Hit(
        path=row.path,
        title=clean_line(row.file.title),
        heading=clean_line(_heading_at(chunk, line)),
        lines=chunk.lines,
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
        session=chunk.session,
        messages=chunk.messages,
        line=line,
        text=chunk.text,
        updated=row.updated or None,
        speaker=chunk.role,
        relevance=round(ranking.evidence.relevance(number), 4) if asked.has_words else 1.0,
    )


def _boosts(number: int, ranking: Ranking) -> Mapping[str, float]:
    left = 1.0 if ranking.recency is None else float(ranking.recency[number])
    return {"recency": round(left, 6)} if left < 1 else {}


def _first_prose(text: str) -> int:
    """Where the text behind a leading heading starts."""
    at = 0
    while text.startswith("#", at):
        end = text.find("\n", at)
        if end < 0 or not text[end:].strip():
            return 0
        at = end + 1
        while at < len(text) and text[at].isspace():
            at += 1
    return at


def _heading_at(chunk: Chunk, line: int) -> str:
    path = ""
    for first, heading in chunk.headings:
        if first <= line:
            path = heading
    return path


_SHORTEST_TYPO = 4
_SHORT = 5  # of a word of so many letters one may be wrong, of longer ones two
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
    if analyser.is_stop_word(folded):
        return False  # no text is asked for it
    term = analyser.terms(folded)[0]
    return not corpus.knows(term) and not corpus.expand(term, _WRITTEN)


def _look_alike(corpus: Corpus, folded: str, words: Sequence[str]) -> str | None:
    """The nearest word that is in use; of equally near ones the most frequent."""
    from rapidfuzz import process
    from rapidfuzz.distance import DamerauLevenshtein

    near = process.extract(
        folded,
        words,
        scorer=DamerauLevenshtein.distance,
        score_cutoff=1 if len(folded) <= _SHORT else 2,
        limit=_LOOK_ALIKES,
    )
    frequency = {
        word: len(corpus.impacts(analyser.terms(word)[0], _WRITTEN)[0]) for word, *_ in near
    }
    used = [(distance, -frequency[word], word) for word, distance, _ in near if frequency[word]]
    return min(used)[2] if used else None
