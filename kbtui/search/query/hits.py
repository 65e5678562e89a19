"""Turns a ranking into hits: filtered, deduplicated, with snippets and explanations."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kbtui.search.index import analyser
from kbtui.search.index.chunker import is_question
from kbtui.search.index.letters import PUNCTUATION, SENTENCE_END
from kbtui.search.index.markdown import blank_definitions
from kbtui.search.index.segment import WRITTEN
from kbtui.search.query import parser
from kbtui.search.query.fusion import best_first, rank_of
from kbtui.search.query.privacy_filter import PrivacyFilter
from kbtui.search.results import Explain, Hit, OtherPlace
from kbtui.text import clean_line, natural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus
    from kbtui.search.index.chunk_rows import ChunkRow
    from kbtui.search.index.chunker import Chunk
    from kbtui.search.query.parser import Query
    from kbtui.search.query.ranking import Ranking, Scores


# The number of best hits that are deduplicated, whatever the limit.
_DEDUPLICATED = 20
_MIN_WORDS = 4
_MIN_LETTERS = 8
_MIN_OVERLAP = 0.6
_NEGATION_WORDS = """
    no not never nor don't doesn't didn't isn't wasn't won't can't cannot dont nein nicht nie kein
    keine non pas jamais nunca
"""
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
# Candidates that are examined, whatever the limit, so that it doesn't affect which come first.
_EXAMINED = 300
_EXTRA = 4  # fetched beyond the limit, as some are filtered out
_EXAMINED_FOR_PAIRS = 20
_MAX_TITLE = 12  # words
_BELOW = 1e-6
# An entry is shown once; a long document or log may have several hits.
_ONCE = "knowledge"
_OWN_FIELDS = ("title", "headings", "label", "tags", "body", WRITTEN)
_PER_FILE = {_ONCE: 1, "memory": 8, "docs": 5}


class Rows(Protocol):
    """A source of chunks by id."""

    def rows(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        """Return the chunks with these ids; unknown ids are left out."""

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return what the chunks with these ids say, with title, headings, tags and aliases."""


def best_hits(
    corpus: Corpus,
    rows: Rows,
    query: Query,
    ranking: Ranking,
    limit: int,
    *,
    privacy: PrivacyFilter,
    by_chance: bool = False,
) -> tuple[Hit, ...]:
    """Return the best hits, at most `limit`, which doesn't affect which come first.

    Places with the same text are merged, unless `privacy` hides only one of them from remote
    models. If no document is more similar than by chance, hits must contain a word of the query,
    unless `by_chance` is set.
    """
    rows = _CachedRows(rows)
    ranking = _put_title_first(corpus, rows, query, _boost_pairs(corpus, rows, query, ranking))
    groups: list[list[_Match]] = []
    ordered = _ordered(corpus, rows, query, ranking, max(limit, _DEDUPLICATED))
    shown = _filtered(ordered, query, ranking, by_chance=by_chance)
    for count, (number, row) in enumerate(shown):
        if count >= _DEDUPLICATED and len(groups) >= limit:
            break
        match = _Match(number, row, ranking.terms)
        compared = groups if count < _DEDUPLICATED else []
        if not match.rank:  # two entries or documents are never one hit
            compared = [group for group in compared if group[0].rank]
        same = (group for group in compared if _is_duplicate(match, group, privacy))
        if (group := next(same, None)) is not None:
            group.append(match)
        else:
            groups.append([match])
    return tuple(_merged(corpus, group, query, ranking) for group in groups[:limit])


def _filtered(
    found: Iterable[tuple[int, ChunkRow]], query: Query, ranking: Ranking, *, by_chance: bool
) -> Iterator[tuple[int, ChunkRow]]:
    """Drop candidates near by chance only, and too many from one file."""
    of_file: Counter[str] = Counter()
    needs_words = ranking.evidence.is_near_by_chance and not by_chance
    for number, row in found:
        most = 1 if not query.has_words else _PER_FILE.get(row.path.partition("/")[0], _EXAMINED)
        if of_file[row.path] >= most:
            continue
        if needs_words and not ranking.lexical[number]:
            continue
        of_file[row.path] += 1
        yield number, row


@dataclass(frozen=True)
class _Match:
    """A document among the best, with the statement that matches the query."""

    number: int
    row: ChunkRow
    terms: Collection[str]

    @cached_property
    def rank(self) -> int:
        """The rank of the source: entries and documents first (`_source_rank`)."""
        return _source_rank(self.row)

    @cached_property
    def matches(self) -> Sequence[tuple[int, int, str]]:
        """The words of the text that match."""
        return analyser.matches(self.row.chunk.text, self.terms)

    @cached_property
    def statement(self) -> tuple[tuple[str, ...], int]:
        """The words of the sentence or line with the most matching terms, and its line number.

        There are no words if no term matches, or if it is a question.
        """
        whole, lines = self.row.chunk.text, self.row.chunk.lines
        ends = [match.end() for match in SENTENCE_END.finditer(whole)]
        starts = [0, *ends, len(whole)]
        held: dict[int, set[str]] = {}
        for start, _, term in self.matches:
            held.setdefault(bisect_right(starts, start) - 1, set()).add(term)
        if not held:
            return (), lines[0]
        best = min(held, key=lambda place: (-len(held[place]), place))
        text = whole[starts[best] : starts[best + 1]]
        line = min(lines[0] + whole.count("\n", 0, starts[best]), lines[1])
        return (() if is_question(text) else tuple(analyser.words(text))), line


def _merged(corpus: Corpus, group: Sequence[_Match], query: Query, ranking: Ranking) -> Hit:
    """Merge matches with the same text into one hit, preferably an entry, with the other places."""
    first = min(group, key=lambda match: match.rank)
    hit = _hit(corpus, first, query, ranking)
    if len(group) == 1:
        return hit
    also = [
        OtherPlace(
            match.row.path,
            clean_line(match.row.file.title),
            match.statement[1],
            match.row.chunk.session,
            match.row.chunk.messages,
        )
        for match in group
        if match is not first
    ]
    score = round(float(ranking.fused.scores[group[0].number]), 6)
    return replace(hit, score=score, also=tuple(also))


def _is_duplicate(match: _Match, group: Sequence[_Match], privacy: PrivacyFilter) -> bool:
    may_merge = all(_may_merge(match, other, privacy) for other in group)
    return may_merge and _same_statement(group[0].statement[0], match.statement[0])


def _may_merge(one: _Match, other: _Match, privacy: PrivacyFilter) -> bool:
    """Return False if both are entries or documents, or only one is private."""
    if not one.rank and not other.rank:
        return False
    return privacy.hides_file(one.row) == privacy.hides_file(other.row)


def _source_rank(row: ChunkRow) -> int:
    """Rank sources: entries and documents, memory notes, archive, the user, the assistant."""
    if row.path.startswith("sessions/"):
        return 4 if row.chunk.role == "assistant" else 3
    if row.path.startswith("memory/"):
        return 2 if row.path.endswith(".jsonl") else 1
    return 0


def _same_statement(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether one statement is most of the other verbatim, and the rest has no negation."""
    short, long = sorted((one, other), key=len)
    if len(short) < _MIN_WORDS:
        return short == long and sum(map(len, short)) >= _MIN_LETTERS
    if len(short) < _MIN_OVERLAP * len(long):
        return False
    whole, part = f" {' '.join(long)} ", f" {' '.join(short)} "
    before, found, after = whole.partition(part)
    return bool(found) and _NEGATIONS.isdisjoint([*before.split(), *after.split()])


class _CachedRows:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._cache: dict[int, ChunkRow] = {}

    def rows(self, numbers: Sequence[int]) -> dict[int, ChunkRow]:
        missing = [number for number in numbers if number not in self._cache]
        if missing:
            self._cache.update(self._rows.rows(missing))
        return {number: self._cache[number] for number in numbers if number in self._cache}

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        return self._rows.texts(numbers)


def _boost_pairs(corpus: Corpus, rows: Rows, query: Query, ranking: Ranking) -> Ranking:
    """Boost those of the best hits that contain adjacent words of the query as adjacent words."""
    wanted = _pairs(corpus, query)
    if not wanted:
        return ranking
    scores = ranking.fused.scores.copy()
    best = best_first(scores, ranking.fused.candidates, _EXAMINED_FOR_PAIRS)
    # Reading a text costs far more than checking the postings for both words.
    having = {term: _among(best, corpus.impacts(term)[0]) for pair in wanted for term in pair}
    both = [having[one] & having[other] for one, other in wanted]
    worth_reading = best[np.logical_or.reduce(both)].tolist()
    stored = rows.rows([int(corpus.chunks[number]) for number in worth_reading])
    terms = ranking.terms.union(*wanted)
    for number in worth_reading:
        row = stored.get(int(corpus.chunks[number]))
        if row is not None:
            together = analyser.neighbours(row.chunk.text, wanted, terms)
            share = sum(wanted[pair] for pair in sorted(together))
            scores[number] += ranking.fused.unit * share
    scores = np.round(scores / (1 + ranking.fused.unit), 9)
    return replace(ranking, fused=replace(ranking.fused, scores=scores))


def _among(numbers: NDArray[np.int64], ids: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which of some numbers are in ascending ids."""
    if not len(ids):
        return np.zeros(len(numbers), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ids, numbers), len(ids) - 1)
    found: NDArray[np.bool_] = ids[places] == numbers
    return found


def _put_title_first(corpus: Corpus, rows: Rows, query: Query, ranking: Ranking) -> Ranking:
    """Let what is titled as the query come before what has it as an alias."""
    wanted = analyser.words(query.text)
    if query.operators is not None or not 0 < len(wanted) <= _MAX_TITLE:
        return ranking
    scores = ranking.fused.scores
    best = best_first(scores, ranking.fused.candidates, _EXAMINED_FOR_PAIRS)
    for term in query.terms():
        best = best[_among(best, corpus.postings("title", term)[0])]
    if len(best) <= 1:
        return ranking
    stored = rows.rows([int(corpus.chunks[number]) for number in best.tolist()])
    titled: list[int] = []
    aliased: list[int] = []
    for number in best.tolist():
        row = stored.get(int(corpus.chunks[number]))
        if row is None or row.chunk.session:
            continue
        if analyser.words(row.file.title) == wanted:
            titled.append(number)
        elif any(analyser.words(alias) == wanted for alias in row.file.aliases):
            aliased.append(number)
    if not titled or not aliased:
        return ranking
    scores = scores.copy()
    highest = float(scores[titled].max())
    scores[aliased] = np.minimum(scores[aliased], highest - _BELOW)
    return replace(ranking, fused=replace(ranking.fused, scores=scores))


def _pairs(corpus: Corpus, query: Query) -> dict[tuple[str, str], float]:
    """Return adjacent content words of a query, with weights that add up to 1."""
    terms = analyser.content_terms(query.text)[: parser.MAX_TERMS]
    found = {
        (one, other): corpus.rarity(one) + corpus.rarity(other)
        for one, other in pairwise(terms)
        if one != other and corpus.knows(one) and corpus.knows(other)
    }
    whole = sum(found.values())
    return {pair: weight / whole for pair, weight in found.items()}


def _ordered(
    corpus: Corpus, rows: Rows, query: Query, ranking: Ranking, limit: int
) -> Iterator[tuple[int, ChunkRow]]:
    """Yield the candidates, best first, or newest first if there are only filters.

    Ties are sorted by path, to be deterministic. Rows are fetched on demand.
    """
    scores = ranking.fused.scores
    most = _EXAMINED if query.has_words else corpus.size
    numbers = best_first(scores, ranking.fused.candidates, max(most, limit))
    once = _first_of_files(corpus, scores, query, ranking)
    for part in _in_parts(numbers, scores, limit + _EXTRA):
        wanted = [number for number in part if once(number)]
        stored = rows.rows([int(corpus.chunks[number]) for number in wanted])
        found = [(n, stored[chunk]) for n in wanted if (chunk := int(corpus.chunks[n])) in stored]
        for _, tied in groupby(found, key=lambda pair: float(scores[pair[0]])):
            first, *others = tied
            if others:
                same = sorted(
                    [first, *others], key=lambda pair: (natural(pair[1].path), pair[1].ord)
                )
                if not query.has_words:
                    same.sort(key=lambda pair: pair[1].updated, reverse=True)
                yield from same
            else:
                yield first


def _first_of_files(
    corpus: Corpus, scores: Scores, query: Query, ranking: Ranking
) -> Callable[[int], bool]:
    """Return whether a document, asked best first, need be read: it is the first of its file."""
    if not query.has_words or ranking.evidence.is_near_by_chance:
        return lambda _number: True
    alone = corpus.holding("scope", [_ONCE])
    best: dict[int, float] = {}

    def is_first(number: int) -> bool:
        if not alone[number]:
            return True
        score = float(scores[number])
        return best.setdefault(int(corpus.files[number]), score) == score

    return is_first


def _in_parts(numbers: NDArray[np.int64], scores: Scores, size: int) -> Iterator[list[int]]:
    """Yield numbers, best first, in parts of a size; those with the same score together."""
    start = 0
    while start < len(numbers):
        end = min(len(numbers), start + size)
        while end < len(numbers) and scores[numbers[end]] == scores[numbers[end - 1]]:
            end += 1
        yield numbers[start:end].tolist()
        start = end


def _hit(corpus: Corpus, match: _Match, query: Query, ranking: Ranking) -> Hit:
    row, number, semantic = match.row, match.number, ranking.semantic
    chunk = row.chunk
    cosine = float(semantic[number]) if semantic is not None else float("nan")
    word_score = float(ranking.lexical[number])
    text, shown = chunk.text, blank_definitions(chunk.text)
    words = match.matches if shown == text else analyser.matches(shown, ranking.terms)
    if match.matches and not words:
        shown, words = text, match.matches
    snippet = parser.make_snippet(shown, words, parser.patterns(query), _prose_start(text))
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
            in_context=bool(ranking.terms and word_score > 0 and not match.matches)
            and not _has_term(corpus, number, ranking.terms),
        ),
        session=chunk.session,
        messages=chunk.messages,
        line=line,
        text=chunk.text,
        updated=row.updated or None,
        speaker=chunk.role,
        relevance=round(ranking.evidence.relevance(number), 4) if query.has_words else 1.0,
    )


def _has_term(corpus: Corpus, number: int, terms: Iterable[str]) -> bool:
    """Return whether a document has a term in a field of its own, besides its text as shown."""
    wanted = np.array([number])
    return any(
        _among(wanted, corpus.postings(field, term)[0]).any()
        for term in terms
        for field in _OWN_FIELDS
    )


def _boosts(number: int, ranking: Ranking) -> Mapping[str, float]:
    left = 1.0 if ranking.recency is None else float(ranking.recency[number])
    return {"recency": round(left, 6)} if left < 1 else {}


def _prose_start(text: str) -> int:
    """Return the offset of the text after leading headings; 0 if there is none."""
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
_SHORT_WORD = 5  # letters: such words may have one typo, longer ones two
_MAX_SIMILAR = 20
_WRITTEN = ("title", "body")


def suggest(corpus: Corpus, query: Query, words: Callable[[], Sequence[str]]) -> str | None:
    """Return the query with unknown words replaced by similar known ones; None if unchanged.

    `words` returns the words of all texts ever indexed.
    """
    changed = query.text
    for word in query.words:
        bare = word.strip(PUNCTUATION)
        folded = analyser.fold(bare)
        if len(folded) >= _SHORTEST_TYPO and folded.isalpha() and _is_unknown(corpus, folded):
            better = _similar_word(corpus, folded, words())
            changed = changed.replace(bare, better) if better else changed
    return changed if changed != query.text else None


def _is_unknown(corpus: Corpus, folded: str) -> bool:
    if analyser.is_stop_word(folded):
        return False  # stop words aren't searched
    term = analyser.terms(folded)[0]
    return not corpus.knows(term) and not corpus.expand(term, _WRITTEN)


def _similar_word(corpus: Corpus, folded: str, words: Sequence[str]) -> str | None:
    """Return the closest word in use, the most frequent one of equally close ones."""
    from rapidfuzz import process
    from rapidfuzz.distance import DamerauLevenshtein

    near = process.extract(
        folded,
        words,
        scorer=DamerauLevenshtein.distance,
        score_cutoff=1 if len(folded) <= _SHORT_WORD else 2,
        limit=_MAX_SIMILAR,
    )
    frequency = {
        word: len(corpus.impacts(analyser.terms(word)[0], _WRITTEN)[0]) for word, *_ in near
    }
    used = [(distance, -frequency[word], word) for word, distance, _ in near if frequency[word]]
    return min(used)[2] if used else None
