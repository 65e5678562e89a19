from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kbtui.search.query.reorder import spread
from kbtui.settings import SearchSettings
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import paths

if TYPE_CHECKING:
    from tests.search.helpers import Desk


def settings(*, semantic: bool = False, **options: float) -> SearchSettings:
    return SearchSettings(semantic=semantic, **options)


@pytest.fixture
def repeats(desk: Desk) -> Desk:
    for name in "abc":
        desk.write(f"docs/p/copy-{name}.md", f"Tokens rotate, tokens rotate weekly. {name}\n")
    desk.write("docs/p/other.md", "How tokens and a wombat rotate over a long and sunny day.\n")
    return desk


def test_look_alikes_make_room_for_what_says_something_else(repeats: Desk) -> None:
    plain = repeats.index(settings=settings()).search("tokens rotate")
    assert paths(plain)[3] == "docs/p/other.md"
    assert not plain.hits[0].explain.boosts
    apart = repeats.index(settings=settings(diversity=0.9)).search("tokens rotate")
    assert paths(apart)[:2] == [paths(plain)[0], "docs/p/other.md"]
    assert sorted(paths(apart)) == sorted(paths(plain))
    assert "diversity" not in apart.hits[0].explain.boosts
    assert all(0 < hit.explain.boosts["diversity"] < 1 for hit in apart.hits[1:])
    scores = [hit.score for hit in apart.hits]
    assert scores == sorted(scores, reverse=True)


def test_with_vectors_likeness_goes_by_meaning(desk: Desk) -> None:
    desk.write("docs/p/a.md", "automobile vacation\n")
    desk.write("docs/p/b.md", "car holiday\n")
    desk.write("docs/p/c.md", "car kitchen bread flour\n")
    model = ReadyModel(WordEmbedder())
    index = desk.index(model=model, settings=settings(semantic=True, diversity=1))
    found = index.search("car holiday", wait=True)
    factors = {hit.path[-4]: hit.explain.boosts.get("diversity", 1) for hit in found.hits}
    # a and b share no word, but all of their meaning.
    assert min(factors, key=factors.__getitem__) in {"a", "b"}
    assert factors["c"] > min(factors.values()) + 0.2


def test_a_hit_that_a_good_one_links_with_is_lifted(desk: Desk) -> None:
    desk.write("knowledge/topics/best.md", "# Rotate\n\ntokens rotate, see [[zebra]]\n")
    for i in range(4):
        desk.write(f"knowledge/topics/n{i}.md", f"# Note\n\nAll the tokens we have, {i}.\n")
    desk.write("knowledge/topics/zebra.md", "# Zebra\n\nAll the tokens we have, 5.\n")
    plain = paths(desk.index(settings=settings()).search("tokens rotate"))
    assert plain[-1] == "knowledge/topics/zebra.md"
    hits = desk.index(settings=settings(link_boost=0.5)).search("tokens rotate").hits
    assert [hit.path for hit in hits][:2] == [plain[0], "knowledge/topics/zebra.md"]
    assert hits[1].explain.boosts == {"links": pytest.approx(1.5, abs=0.1)}
    assert not hits[2].explain.boosts
    assert all(0 <= hit.score <= 1 for hit in hits)


def test_a_message_next_to_a_good_one_is_lifted(desk: Desk) -> None:
    said = [
        "Good morning to you all",
        "Any news of the rest of it",
        "When do tokens rotate",
        "Our tokens, every Monday that is",
        "Fine then, thanks for all of that",
        "My tokens, what a long and sunny day it was",
    ]
    records = [
        {"kind": "message", "id": n, "role": "user", "content": c} for n, c in enumerate(said, 1)
    ]
    desk.write("sessions/talk.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    plain = desk.index(settings=settings()).search("tokens rotate", "sessions").hits
    lifting = desk.index(settings=settings(neighbour_boost=1))
    lifted = lifting.search("tokens rotate", "sessions").hits
    assert [hit.messages for hit in lifted][:2] == [(3, 3), (4, 4)]
    assert sorted(hit.messages for hit in plain) == sorted(hit.messages for hit in lifted)
    factors = {hit.messages: hit.explain.boosts.get("neighbours", 1) for hit in lifted}
    assert factors[4, 4] == pytest.approx(2, abs=0.2)
    assert factors[6, 6] < factors[4, 4] - 0.2
    assert all(0 <= hit.score <= 1 for hit in lifted)


@pytest.mark.parametrize(
    "options", [{"diversity": 0.7}, {"link_boost": 2, "diversity": 1, "neighbour_boost": 1}]
)
def test_the_first_hits_do_not_depend_on_the_limit(desk: Desk, options: dict[str, float]) -> None:
    for i in range(70):
        text = f"# Note {i}\n\n{'apple ' * (i % 7)} pear, see [[n{(i * 13) % 70}]]\n"
        desk.write(f"knowledge/topics/n{i}.md", text)
    index = desk.index(settings=settings(**options))
    full = index.search("apple pear", limit=70).hits
    assert len(full) == 70
    for limit in (1, 5, 10, 33, 60):
        assert index.search("apple pear", limit=limit).hits == full[:limit]
    assert len(index.search("path:topics", limit=100).hits) == 70


def test_the_factors_take_the_best_first_and_keep_the_order_of_the_unlike(desk: Desk) -> None:
    desk.write("docs/p/a.md", "one\n")
    index = desk.index()
    index.sync()
    (row,) = index._generations().serving.store.rows([1]).values()
    best = [(n, row) for n in range(3)]
    axes = np.eye(4, dtype=np.float32)
    unlike = spread(np.array([0.9, 0.8, 0.7]), best, 1.0, lambda n: axes[n])
    assert unlike.tolist() == [1, 1, 1]
    same = spread(np.array([0.9, 0.8, 0.7]), best, 1.0, lambda n: axes[0 if n < 2 else 1])
    assert same.tolist() == [1, 0, 1]
