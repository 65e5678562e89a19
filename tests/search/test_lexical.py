from __future__ import annotations

import builtins
import json
import os
import pickle
import random
import struct
import subprocess
import sys
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from whoosh import index as whoosh_index
from whoosh import query, scoring
from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC
from whoosh.qparser import QueryParser

from kbtui.search.index import analyser, bm25f
from kbtui.search.index.bm25f import K1, SCORED_FIELDS, B, Corpus, PackedPostings, Packer
from kbtui.search.index.chunker import ChunkLimits
from kbtui.search.index.lexical import LexicalIndex
from kbtui.search.index.rows import LexicalDocument, TreeReader, lexical_document

if TYPE_CHECKING:
    from collections.abc import Callable

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


def whoosh_scores(folder: Path, terms: list[str], limit: int = 1000) -> dict[int, float]:
    weighting = scoring.BM25F(K1=K1, **{f"{field}_B": b for field, b in B.items()})
    with whoosh_index.open_dir(str(folder)).searcher(weighting=weighting) as searcher:
        asked = query.Or(
            [
                query.Term(field, term, boost=boost)
                for term in terms
                for field, boost in SCORED_FIELDS.items()
            ]
        )
        found = searcher.search(asked, limit=limit)
        return {found.docnum(i): found.score(i) for i in range(found.scored_length())}


def ours(corpus: Corpus, terms: list[str]) -> np.ndarray:
    return corpus.scores((term, 1.0) for term in terms)


def test_scores_are_those_of_whoosh(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    index.write(documents(150, seed=1))
    index.write(documents(80, seed=2, first=1000))
    corpus = index.corpus()
    rng = random.Random(3)
    for _ in range(40):
        terms = rng.sample(WORDS, rng.randint(1, 6))
        scores = ours(corpus, terms)
        expected = whoosh_scores(tmp_path, terms)
        assert len(expected) == int((scores > 0).sum()) > 0
        for number, score in expected.items():
            assert scores[number] == pytest.approx(score, rel=1e-5)


def test_a_long_list_of_postings_is_written_in_blocks_that_whoosh_reads(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    index.write(LexicalDocument(i, {"body": "common " * (1 + i % 3)}) for i in range(1, 9001))
    ids, weights = index.corpus().postings("body", "common")
    assert len(ids) == 9000
    assert weights.max() == 3
    assert len(whoosh_scores(tmp_path, ["common"], limit=10_000)) == 9000


def test_whoosh_itself_can_search_the_index(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    index.write([LexicalDocument(7, {"body": "The Decisions we took about Docker"})])
    stock = whoosh_index.open_dir(str(tmp_path))
    asked = QueryParser("body", stock.schema).parse("decision dockers")
    with stock.searcher() as searcher:
        assert len(searcher.search(asked)) == 1


def test_an_edited_index_scores_like_one_built_anew(tmp_path: Path) -> None:
    edited, fresh = LexicalIndex(tmp_path / "edited"), LexicalIndex(tmp_path / "fresh")
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
    index = LexicalIndex(tmp_path)
    index.write(documents(30))
    corpus = index.corpus()
    before = ours(corpus, WORDS[:5]).copy()
    index.write(documents(30, seed=9, first=100), removed=range(1, 20))
    assert np.array_equal(ours(corpus, WORDS[:5]), before)
    assert index.corpus().count == 41


def test_segments_that_are_all_deleted_go(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    index.write(documents(5))
    index.write(documents(5, first=100), removed=range(1, 6))
    assert len(index.corpus().segments) == 1
    assert len(list(tmp_path.glob("*.trm"))) == 1


def test_an_index_in_memory_scores_like_one_on_disk(tmp_path: Path) -> None:
    texts = [f"# {WORDS[i]}\n\n{WORDS[i + 1]} {WORDS[i + 2]} {WORDS[i]}\n" for i in range(20)]
    files = [(f"knowledge/topics/n{i}.md", text.encode()) for i, text in enumerate(texts)]
    tree = TreeReader(ChunkLimits(), lambda _revision: files).at("HEAD")
    index = LexicalIndex(tmp_path)
    index.write(lexical_document(row) for row in tree.rows(range(20)).values())
    for word in WORDS[:20]:
        # Whoosh keeps the length of a long field in a byte; these are short.
        assert ours(tree.corpus, [word]) == pytest.approx(ours(index.corpus(), [word]), rel=1e-5)


def test_beginnings_are_found_in_all_segments(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    index.write([LexicalDocument(1, {"body": "architecture"})])
    index.write([LexicalDocument(2, {"title": "archive"}), LexicalDocument(3, {"body": "other"})])
    assert index.corpus().expand("arch", ("title", "body")) == ["archiv", "architectur"]


@pytest.fixture(params=["read", "mapped"])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How small files of postings are held, and how large ones are."""
    monkeypatch.setattr(bm25f, "_LARGE_FILE", 0 if request.param == "mapped" else 1 << 30)


@pytest.mark.usefixtures("held")
def test_the_postings_beside_a_segment_are_those_of_whoosh(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    often = LexicalDocument(900, {"body": "often " * 70_000, "title": "\ud800 odd"})
    label = LexicalDocument(901, {"label": "Kim, 3 May 2026"})
    index.write([*documents(60), often, label])
    index.write(documents(40, seed=2, first=1000), removed=[1, 2])
    corpus = LexicalIndex(tmp_path).corpus()
    seen = set()
    with whoosh_index.open_dir(str(tmp_path)).reader() as reader:
        for field, term in reader.all_terms():
            matcher, expected = reader.postings(field, term), []
            while matcher.is_active():
                expected.append((matcher.id(), min(matcher.weight(), 65_535)))
                matcher.next()
            ids, counts = corpus.postings(field, term.decode("utf-8", "surrogatepass"))
            assert list(zip(ids.tolist(), counts.tolist(), strict=True)) == expected
            seen.add(field)
    assert seen >= {*SCORED_FIELDS, "scope", "tag", "path"}
    assert not corpus.knows("neverwritten")


READS = """
import sys
from pathlib import Path
from kbtui.search.index.lexical import LexicalIndex
index = LexicalIndex(Path(sys.argv[1]))
corpus = index.corpus()
print(corpus.scores([(word, 1.0) for word in sys.argv[2:]]).tolist(), flush=True)
if sys.stdin.readline():
    index.write([], removed=range(1, 101))
"""


@pytest.mark.usefixtures("held")
def test_processes_share_postings_and_keep_what_one_of_them_deletes(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    index.write(documents(100))
    index.write(documents(20, seed=2, first=1000))
    corpus, asked = index.corpus(), WORDS[20:30]
    before = ours(corpus, asked[:5])
    other = subprocess.run(
        [sys.executable, "-c", READS, str(tmp_path), *asked[:5]],
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)},
        input="delete\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(other.stdout) == before.tolist()
    assert len(list(tmp_path.glob("*.packed"))) == 1  # the other went with its segment
    assert ours(corpus, asked[5:]).any()  # of what wasn't asked before
    assert index.corpus().count == 20


def _cut(data: bytes) -> bytes:
    return data[:-1]


def _cut_in_the_head(data: bytes) -> bytes:
    return data[:7]


def _empty(_data: bytes) -> bytes:
    return b""


def _longer(data: bytes) -> bytes:
    return data + b"\0"


def _of_another_version(data: bytes) -> bytes:
    return data.replace(b"KBPOST1", b"KBPOST9", 1)


def _foreign(data: bytes) -> bytes:
    return random.Random(1).randbytes(len(data))


def _with_another_count(data: bytes) -> bytes:
    return data[:8] + b"\xff\xff\xff\xff" + data[12:]


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    "harm",
    [_cut, _cut_in_the_head, _empty, _longer, _of_another_version, _foreign, _with_another_count],
)
def test_postings_that_are_not_whole_are_not_read(
    tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    LexicalIndex(tmp_path).write(documents(5))
    (file,) = tmp_path.glob("*.packed")
    file.write_bytes(harm(file.read_bytes()))
    with pytest.raises(ValueError, match=r"holds no postings|empty file"):
        LexicalIndex(tmp_path).corpus()


@pytest.mark.usefixtures("held")
def test_made_up_postings_are_read_up_to_their_end_at_most(tmp_path: Path) -> None:
    file, chosen = tmp_path / "made.packed", random.Random(5)
    packer = Packer()
    packer.add("body", {word: array("I", (1, 2, 3, 4)) for word in WORDS})
    file.write_bytes(packer.finish())
    whole = file.read_bytes()
    start = 16 + 8 * len(WORDS)
    for _ in range(50):
        file.write_bytes(whole[:start] + chosen.randbytes(len(whole) - start))
        postings = PackedPostings(file)
        for word in WORDS:
            ids, counts = postings.get("body", word)
            assert len(ids) == len(counts) <= 2 * len(WORDS)


def test_a_segment_without_a_word_has_postings(tmp_path: Path) -> None:
    index = LexicalIndex(tmp_path)
    index.write([LexicalDocument(1, {"body": ""})])
    assert index.corpus().count == 1
    assert not index.corpus().knows("word")


class Boom:
    """Calls a function when it is read as pickles are."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return builtins.boom, ()  # type: ignore[attr-defined]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a cache made run."""
    done: list[str] = []

    def boom() -> list[str]:
        done.append("boom")
        return done

    boom.__module__, boom.__qualname__ = "builtins", "boom"
    monkeypatch.setattr(builtins, "boom", boom, raising=False)
    return done


def _in_schema(index: LexicalIndex, folder: Path) -> None:
    _write_toc(folder, lambda toc: setattr(toc.schema, "more", Boom()))


def _in_segments(index: LexicalIndex, folder: Path) -> None:
    _write_toc(folder, lambda toc: toc.segments.append(Boom()))


def _write_toc(folder: Path, change: Callable[[TOC], None]) -> None:
    storage = FileStorage(str(folder))
    toc = TOC.read(storage, "MAIN")
    change(toc)
    (folder / f"_MAIN_{toc.generation}.toc").unlink()
    toc.write(storage, "MAIN")


def _overwrite(folder: Path, suffix: str, old: bytes) -> None:
    (file,) = folder.glob(f"*{suffix}")
    data, evil = file.read_bytes(), b"cbuiltins\nboom\n)R."
    start = data.index(old)
    file.write_bytes(data[:start] + evil + data[start + len(evil) :])


def _in_terms(index: LexicalIndex, folder: Path) -> None:
    (file,) = folder.glob("*.trm")
    _overwrite(folder, ".trm", file.read_bytes()[file.read_bytes().rindex(b"\x80") :][:4])


def _in_block_info(index: LexicalIndex, folder: Path) -> None:
    _overwrite(folder, ".pst", b"\x80\x02(")


def _in_block(index: LexicalIndex, folder: Path) -> None:
    (file,) = folder.glob("*.pst")
    data = file.read_bytes()
    start = data.index(b"\x80\x02(")
    _overwrite(folder, ".pst", data[data.index(b"\x80\x02", start + 2) :][:40])


def _read_all(folder: Path) -> None:
    LexicalIndex(folder).corpus()
    with whoosh_index.open_dir(str(folder)).reader() as reader:
        for field, term in reader.all_terms():
            list(reader.postings(field, term).items_as("frequency"))


@pytest.mark.filterwarnings("ignore")  # Whoosh leaves open what it can't read
@pytest.mark.parametrize("plant", [_in_schema, _in_segments, _in_terms, _in_block_info, _in_block])
def test_no_part_of_an_index_runs_code(
    tmp_path: Path, ran: list[str], plant: Callable[[LexicalIndex, Path], None]
) -> None:
    index = LexicalIndex(tmp_path)
    index.write(documents(30))
    index.close()
    plant(index, tmp_path)
    with pytest.raises(pickle.UnpicklingError, match="no part of an index"):
        _read_all(tmp_path)
    assert ran == []


@pytest.mark.filterwarnings("ignore")
def test_an_index_of_an_older_format_is_not_read(tmp_path: Path) -> None:
    LexicalIndex(tmp_path).write(documents(3))
    (file,) = tmp_path.glob("_MAIN_1.toc")
    data = bytearray(file.read_bytes())
    data[7:11] = struct.pack("!i", -110)
    file.write_bytes(data)
    with pytest.raises(whoosh_index.IndexVersionError):
        LexicalIndex(tmp_path)
