from __future__ import annotations

import fnmatch
import json
import os
import random
import subprocess
import sys
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rapidfuzz.distance import DamerauLevenshtein
from whoosh import query, scoring
from whoosh.analysis import Analyzer, Token
from whoosh.fields import TEXT, Schema
from whoosh.index import create_in

from kbtui.search.index import analyser, segment
from kbtui.search.index.bm25f import K1, SCORED_FIELDS, B, Corpus
from kbtui.search.index.chunk_rows import TreeReader, lexical_document
from kbtui.search.index.chunker import ChunkLimits
from kbtui.search.index.lexical import LexicalIndex
from kbtui.search.index.segment import LexicalDocument, Segment, SegmentBuilder, SegmentFile
from kbtui.search.index.whoosh_reader import (
    ArrayAnd,
    ArrayAndNot,
    ArrayAny,
    ArrayNot,
    ArrayOr,
    CorpusReader,
    CorpusSearcher,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
WORDS = [f"{a}{b}" for a in ("alpha", "beta", "gamma", "delta", "omega") for b in "abcdefghij"]
WORDS = [word for word in WORDS if analyser.terms(word) == [word]]


def documents(count: int, seed: int = 1, first: int = 1) -> list[LexicalDocument]:
    rng = random.Random(seed)

    def some(most: int) -> str:
        return " ".join(
            rng.choices(WORDS, weights=range(1, len(WORDS) + 1), k=rng.randint(0, most))
        )

    return [
        LexicalDocument(
            first + i,
            {
                "title": some(4),
                "headings": some(6),
                "tags": some(3),
                "body": some(400),
                "context": some(20),
            },
            {"scope": ["knowledge"], "tag": rng.sample(WORDS, 2), "path": [f"p{first + i}"]},
        )
        for i in range(count)
    ]


class OurAnalyzer(Analyzer):  # type: ignore[misc]
    """A Whoosh analyzer that uses our tokenizer."""

    def __call__(self, value: str, **_options: Any) -> Iterator[Token]:
        token = Token()
        for term in analyser.terms(value):
            token.text, token.boost, token.stopped = term, 1.0, False
            yield token


def whoosh_index(folder: Path, texts: Iterable[LexicalDocument]) -> Any:
    """The same documents in a Whoosh index."""
    schema = Schema(**{name: TEXT(OurAnalyzer(), phrase=False) for name in SCORED_FIELDS})
    folder.mkdir()
    index = create_in(str(folder), schema)
    with index.writer() as writer:
        for document in texts:
            writer.add_document(**document.texts)
    return index


def whoosh_scores(index: Any, terms: list[str], limit: int = 1000) -> dict[int, float]:
    weighting = scoring.BM25F(K1=K1, **{f"{field}_B": b for field, b in B.items()})
    with index.searcher(weighting=weighting) as searcher:
        asked = query.Or(
            [
                query.Term(field, term, boost=boost)
                for term in terms
                for field, boost in SCORED_FIELDS.items()
            ]
        )
        found = searcher.search(asked, limit=limit)
        return {found.docnum(i): found.score(i) for i in range(found.scored_length())}


class Index:
    """A lexical index that keeps its own list of segments, without a store."""

    def __init__(self, folder: Path, files: Iterable[SegmentFile] = ()) -> None:
        self.index, self.files = LexicalIndex(folder), tuple(files)

    def write(self, added: Iterable[LexicalDocument], removed: Iterable[int] = ()) -> None:
        self.files = self.index.write(self.files, added, removed)
        self.index.sweep(self.files)

    def corpus(self) -> Corpus:
        return self.index.corpus(self.files)


def ours(corpus: Corpus, terms: list[str]) -> np.ndarray:
    return corpus.scores((term, 1.0) for term in terms)


def test_scores_are_those_of_whoosh(tmp_path: Path) -> None:
    index, first, second = Index(tmp_path), documents(150), documents(80, seed=2, first=1000)
    index.write(first)
    index.write(second)
    corpus, theirs = index.corpus(), whoosh_index(tmp_path / "theirs", [*first, *second])
    rng = random.Random(3)
    for _ in range(40):
        terms = rng.sample(WORDS, rng.randint(1, 6))
        scores = ours(corpus, terms)
        expected = whoosh_scores(theirs, terms)
        assert len(expected) == int((scores > 0).sum()) > 0
        for number, score in expected.items():
            assert scores[number] == pytest.approx(score, rel=1e-5)


def test_plain_words_score_as_whoosh_searcher_scores_them_on_our_reader(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write(documents(40))
    index.write(documents(25, seed=2, first=1000), removed=range(1, 9))
    corpus = index.corpus()
    searcher = CorpusSearcher(CorpusReader(corpus))
    rng = random.Random(4)
    for _ in range(2000):
        weights = {
            term: rng.choice((0.3, 0.8, 1.0)) for term in rng.sample(WORDS, rng.randint(1, 4))
        }
        terms = [
            query.Term(field, term, boost=corpus.boosts(field, [term])[0] * weight)
            for term, weight in weights.items()
            for field in rng.sample(list(SCORED_FIELDS), len(SCORED_FIELDS))
        ]
        found = searcher.search(query.Or(terms), limit=None).items()
        scores, in_arrays = corpus.scores(weights.items()), searcher.scores(ArrayOr(terms))
        expected = np.zeros(corpus.size)
        for number, score in found:
            expected[number] = score
        assert np.array_equal(scores > 0, expected > 0)
        assert np.allclose(scores, expected, rtol=1e-5)
        assert np.allclose(in_arrays, expected, rtol=1e-5)


def edited(tmp_path: Path) -> Corpus:
    """Return a corpus of two segments, some documents of which are deleted."""
    index = Index(tmp_path)
    index.write(documents(60))
    index.write(documents(40, seed=2, first=1000), removed=range(1, 16))
    return index.corpus()


def test_conditions_in_brackets_find_what_they_say_with_and_or_and_not(tmp_path: Path) -> None:
    corpus, rng = edited(tmp_path), random.Random(8)
    searcher = CorpusSearcher(CorpusReader(corpus))
    live = {*np.flatnonzero(corpus.live).tolist()}
    of_word = {word: {*corpus.postings("tag", word)[0].tolist()} for word in WORDS}

    def condition(depth: int) -> tuple[query.Query, set[int]]:
        kind = rng.choice(("word", "and", "or", "without", "not") if depth else ("word",))
        if kind == "word":
            words = rng.sample(WORDS, 3)
            terms = [query.Term("tag", word) for word in words]
            return ArrayOr(terms), set().union(*(of_word[word] for word in words))
        parts = [condition(depth - 1) for _ in range(rng.randint(1, 3))]
        asked, found = [part[0] for part in parts], [part[1] for part in parts]
        if kind == "and":
            return ArrayAnd(asked), set.intersection(*found)
        if kind == "or":
            return ArrayAny(asked), set.union(*found)
        other, excluded = condition(depth - 1)
        if kind == "without":
            return ArrayAndNot(asked[0], other), found[0] - excluded
        return ArrayNot(other), live - excluded

    for _ in range(300):
        asked, expected = condition(3)
        assert {*np.flatnonzero(searcher.documents(asked)).tolist()} == expected, asked


def test_many_terms_are_looked_up_at_once_like_one_by_one(tmp_path: Path) -> None:
    index = Index(tmp_path)
    alike = "interstate internet internal interna interim inter in"
    index.write([LexicalDocument(number, {"body": alike}) for number in (1, 2)])
    index.write([LexicalDocument(3, {"body": "internet internment"})], removed=[2])
    corpus = index.corpus()
    stored = [term.decode() for term in corpus.terms_from("body")]
    terms = ["internez", *stored, "internetx", "", "zebra"]
    of_terms, ids, counts = corpus.table("body", terms)
    for place, term in enumerate(terms):
        expected_ids, expected_counts = corpus.postings("body", term)
        assert ids[of_terms == place].tolist() == expected_ids.tolist(), term
        assert counts[of_terms == place].tolist() == expected_counts.tolist()
    assert corpus.rarities(terms) == [corpus.rarity(term) for term in terms]
    assert corpus.holding("body", terms).tolist() == corpus.live.tolist()


def test_words_are_found_by_patterns_and_by_typos_in_all_segments(tmp_path: Path) -> None:
    corpus = edited(tmp_path)
    reader = CorpusReader(corpus)
    terms = [term.decode() for _, term in reader.terms_from("body", b"")]
    assert terms == sorted({*terms})
    assert terms[10:] == [
        term.decode() for _, term in reader.terms_from("body", terms[10].encode())
    ]
    for pattern in ("*a", "*mm*", "?eta?", "*", "b*a?", "*.*"):
        expected = [term for term in terms if fnmatch.fnmatchcase(term, pattern)]
        assert [*reader.terms_like("body", pattern)] == expected, pattern
    for text in ("alphaa", "btea", "omgae", "zzz"):
        for most in (1, 2):
            expected = [term for term in terms if DamerauLevenshtein.distance(text, term) <= most]
            assert [*reader.terms_within("body", text, most)] == expected, text


def test_a_rare_word_of_two_fields_scores_as_whoosh_searcher_scores_it(tmp_path: Path) -> None:
    index = Index(tmp_path)
    rare = LexicalDocument(1000, {"title": "zebra", "body": f"zebra {WORDS[0]} zebra"})
    index.write([*documents(260), rare])
    corpus = index.corpus()
    terms = [query.Term(field, "zebra", boost=boost) for field, boost in SCORED_FIELDS.items()]
    ((number, score),) = CorpusSearcher(CorpusReader(corpus)).search(query.Or(terms)).items()
    scores = corpus.scores([("zebra", 1.0)])
    assert np.flatnonzero(scores).tolist() == [number]
    assert scores[number] == pytest.approx(score, rel=1e-5)


def test_an_edited_index_scores_like_one_built_again(tmp_path: Path) -> None:
    edited, fresh = Index(tmp_path / "edited"), Index(tmp_path / "fresh")
    all_documents = documents(120)
    edited.write(all_documents[:100])
    edited.write(all_documents[100:], removed=range(1, 41))
    edited.write([], removed=[50, 51])
    kept = [d for d in all_documents if d.chunk > 40 and d.chunk not in {50, 51}]
    fresh.write(kept)
    one, other = edited.corpus(), fresh.corpus()
    terms = WORDS[20:26]
    scores = dict(zip(one.chunks.tolist(), ours(one, terms), strict=True))
    for chunk, score in zip(other.chunks.tolist(), ours(other, terms), strict=True):
        assert scores[chunk] == pytest.approx(score, rel=1e-5)
    assert one.count == other.count == len(kept)


def test_a_corpus_stays_what_it_was_while_the_index_goes_on(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write(documents(30))
    corpus = index.corpus()
    before = ours(corpus, WORDS[:5]).copy()
    index.write(documents(30, seed=9, first=100), removed=range(1, 20))
    assert np.array_equal(ours(corpus, WORDS[:5]), before)
    assert index.corpus().count == 41


def test_segments_that_are_all_deleted_go(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write(documents(5))
    index.write(documents(5, first=100), removed=range(1, 6))
    assert len(index.corpus().segments) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_an_index_in_memory_scores_like_one_on_disk(tmp_path: Path) -> None:
    texts = [f"# {WORDS[i]}\n\n{WORDS[i + 1]} {WORDS[i + 2]} {WORDS[i]}\n" for i in range(20)]
    files = [(f"knowledge/topics/n{i}.md", text.encode()) for i, text in enumerate(texts)]
    tree = TreeReader(ChunkLimits(), lambda _revision: files).at("HEAD")
    index = Index(tmp_path)
    index.write(lexical_document(row) for row in tree.rows(range(20)).values())
    for word in WORDS[:20]:
        assert ours(tree.corpus, [word]) == pytest.approx(ours(index.corpus(), [word]), rel=1e-5)


def test_beginnings_are_found_in_all_segments(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write([LexicalDocument(1, {"body": "architecture"})])
    index.write([LexicalDocument(2, {"title": "archive"}), LexicalDocument(3, {"body": "other"})])
    assert index.corpus().expand("arch", ("title", "body")) == ["archiv", "architectur"]


@pytest.fixture(params=["read", "mapped"])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with segments read into memory, and with memory-mapped ones."""
    monkeypatch.setattr(segment, "_LARGE_FILE", 0 if request.param == "mapped" else 1 << 30)


@pytest.mark.usefixtures("held")
def test_postings_are_those_of_whoosh(tmp_path: Path) -> None:
    often = LexicalDocument(900, {"body": "often " * 70_000, "title": "odd"})
    label = LexicalDocument(901, {"label": "Kim, 3 May 2026"})
    given = [*documents(60), often, label, *documents(40, seed=2, first=1000)]
    index = Index(tmp_path)
    index.write(given)
    corpus = Index(tmp_path, index.files).corpus()
    seen = set()
    with whoosh_index(tmp_path / "theirs", given).reader() as reader:
        for field, term in reader.all_terms():
            matcher, expected = reader.postings(field, term), []
            while matcher.is_active():
                expected.append((matcher.id(), min(matcher.weight(), 65_535)))
                matcher.next()
            ids, counts = corpus.postings(field, term.decode())
            assert list(zip(ids.tolist(), counts.tolist(), strict=True)) == expected
            seen.add(field)
    assert seen == {*SCORED_FIELDS}
    assert not corpus.knows("neverwritten")


@pytest.mark.usefixtures("held")
def test_filters_find_what_has_a_value_in_that_field_alone(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write(
        [
            LexicalDocument(1, {"body": "north"}, {"tag": ["north", "n\ud800"], "path": ["a.md"]}),
            LexicalDocument(2, {"body": "other"}, {"tag": ["south"], "path": ["north"]}),
        ]
    )
    corpus = index.corpus()
    assert corpus.holding("tag", ["north"]).tolist() == [True, False]
    assert corpus.holding("path", ["north"]).tolist() == [False, True]
    assert corpus.holding("tag", ["n\ud800"]).tolist() == [True, False]
    assert corpus.holding("tag", ["nort", "northern", "", "a.md"]).sum() == 0
    assert corpus.expand("", ("path",)) == ["a.md", "north"]


READS = """
import json, sys
from pathlib import Path
from kbtui.search.index.lexical import LexicalIndex
from kbtui.search.index.segment import SegmentFile
index = LexicalIndex(Path(sys.argv[1]))
files = [SegmentFile(*file) for file in json.loads(sys.argv[2])]
corpus = index.corpus(files)
print(corpus.scores([(word, 1.0) for word in sys.argv[3:]]).tolist(), flush=True)
if sys.stdin.readline():
    index.sweep(index.write(files, [], removed=range(1, 101)))
"""


@pytest.mark.usefixtures("held")
def test_processes_share_segments_and_keep_what_one_of_them_deletes(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write(documents(100))
    index.write(documents(20, seed=2, first=1000))
    corpus, asked = index.corpus(), WORDS[20:30]
    before = ours(corpus, asked[:5])
    files = json.dumps([astuple(file) for file in index.files])
    other = subprocess.run(
        [sys.executable, "-c", READS, str(tmp_path), files, *asked[:5]],
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)},
        input="delete\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(other.stdout) == before.tolist()
    assert len(list(tmp_path.iterdir())) == 1
    assert ours(corpus, asked[5:]).any()  # of what wasn't asked before


def test_what_was_written_and_never_counted_is_swept(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write(documents(5))
    index.index.write(index.files, documents(5, first=100))  # and then the process was killed
    assert index.corpus().count == 5
    index.write(documents(5, first=200))
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in index.files}


def _cut(data: bytes) -> bytes:
    return data[:-1]


def _cut_in_the_head(data: bytes) -> bytes:
    return data[:7]


def _empty(_data: bytes) -> bytes:
    return b""


def _longer(data: bytes) -> bytes:
    return data + b"\0"


def _of_another_version(data: bytes) -> bytes:
    return data.replace(b"KBWORDS3", b"KBWORDS1", 1)


def _foreign(data: bytes) -> bytes:
    return random.Random(1).randbytes(len(data))


def _with_another_count(data: bytes) -> bytes:
    return data[:8] + b"\xff\xff\xff\xff" + data[12:]


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    "harm",
    [_cut, _cut_in_the_head, _empty, _longer, _of_another_version, _foreign, _with_another_count],
)
def test_a_segment_that_is_not_whole_is_not_read(
    tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    index = Index(tmp_path)
    index.write(documents(5))
    (file,) = tmp_path.iterdir()
    harmed = harm(file.read_bytes())
    file.write_bytes(harmed)
    with pytest.raises(ValueError, match="has changed"):
        Index(tmp_path, index.files).corpus()
    with pytest.raises(ValueError, match="no segment"):
        Segment(harmed)


def test_made_up_arrays_lead_no_further_than_their_segment() -> None:
    builder = SegmentBuilder()
    for document in documents(20):
        builder.add(document)
    whole, chosen = builder.finish(), random.Random(5)
    for _ in range(50):
        start = chosen.randrange(24, len(whole))
        made_up = whole[:start] + chosen.randbytes(len(whole) - start)
        with suppress(ValueError, IndexError, OverflowError):
            found = Segment(made_up)
            for word in WORDS:
                for _, (ids, counts) in found.postings(word, ["body"]):
                    assert len(ids) == len(counts) <= len(whole)


def test_a_segment_without_a_word_has_postings(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.write([LexicalDocument(1, {"body": ""})])
    assert index.corpus().count == 1
    assert not index.corpus().knows("word")
