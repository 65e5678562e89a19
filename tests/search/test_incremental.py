from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.search.search_index import SearchIndex

FRUIT = "apple pear plum fig quince cherry grape lemon melon mango olive peach"
WORDS = FRUIT.split()
QUERIES = (
    "apple pear",
    "fig tag:plum",
    '"grape lemon"',
    "melon -olive",
    "updated:2026 peach",
    "qui*",
)


def note(rng: random.Random) -> str:
    head = f"---\ntags: [{rng.choice(WORDS)}]\nupdated: 202{rng.randint(4, 6)}-01-02\n---\n"
    parts = [
        f"## {rng.choice(WORDS)}\n\n{' '.join(rng.choices(WORDS, k=rng.randint(3, 90)))}."
        for _ in range(rng.randint(1, 6))
    ]
    return (head if rng.random() < 0.6 else "") + "\n\n".join(parts) + "\n"


def edit(desk: Desk, rng: random.Random, names: list[str]) -> str:
    """Make one random change to a file, and return its path."""
    path = rng.choice(names)
    file = desk.root / path
    match rng.randint(0, 5):
        case 0 if file.exists():
            file.unlink()
        case 1 if file.exists():
            desk.write(path, "A new first line\n\n" + file.read_text())
        case 2 if file.exists():
            desk.write(path, file.read_text() + f"\n{rng.choice(WORDS)} at the end\n")
        case 3 if file.exists():
            lines = file.read_text().splitlines()
            del lines[rng.randrange(len(lines))]
            desk.write(path, "\n".join(lines))
        case _:
            desk.write(path, note(rng))
    return path


def answers(index: SearchIndex) -> list[object]:
    return [
        [
            (h.path, h.lines, h.heading, h.snippet, round(h.score, 5))
            for h in index.search(q, limit=20).hits
        ]
        for q in QUERIES
    ]


@pytest.mark.parametrize("seed", range(6))
def test_an_index_that_followed_edits_answers_like_one_built_again(
    tmp_path: Path, seed: int
) -> None:
    desk = Desk(tmp_path / "kb")
    rng = random.Random(seed)
    names = [f"knowledge/topics/n{i}.md" for i in range(12)] + [f"docs/p/d{i}.md" for i in range(6)]
    try:
        index = desk.index(model=ReadyModel(WordEmbedder()))
        for path in names[::2]:
            desk.write(path, note(rng))
        index.sync()
        for _ in range(25):
            index.refresh([edit(desk, rng, names) for _ in range(rng.randint(1, 3))])
            index.refresh_now()
            if rng.random() < 0.1:
                index.tidy()
        followed = [answers(index), index.search("apple", wait=True).semantic]
        index.close()
        shutil.rmtree(desk.workspace.cache)
        again = desk.index(model=ReadyModel(WordEmbedder()))
        assert [answers(again), again.search("apple", wait=True).semantic] == followed
    finally:
        desk.close()


def test_edits_without_an_idle_moment_leave_few_files_open(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "kb")
    try:
        index = desk.index()
        index.sync()
        segments = 0
        for number in range(60):
            path = f"knowledge/topics/n{number}.md"
            desk.write(path, f"# Note {number}\n\napple {number}\n")
            index.refresh([path])
            index.refresh_now()
            folder = desk.workspace.cache
            segments = max(segments, len(list(folder.rglob("*.words"))))
        assert 8 < segments <= 26
        assert len(index.search("apple", limit=100).hits) == 60
    finally:
        desk.close()


def test_joining_what_edits_wrote_leaves_the_large_parts_of_the_index(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "kb")
    try:
        index = desk.index()
        for large, count in (("a", 40), ("b", 44)):
            for number in range(count):
                desk.write(f"knowledge/topics/{large}{number}.md", f"apple {large}{number}\n")
            index.sync()
        large = {file.name for file in desk.generation.rglob("*.words")}
        for number in range(7):
            desk.write(f"knowledge/topics/c{number}.md", f"apple c{number}\n")
            index.sync()
        index.tidy()
        left = {file.name for file in desk.generation.rglob("*.words")}
        assert (len(large), len(left), large <= left) == (2, 3, True)
        assert len(index.search("apple", limit=200).hits) == 91
    finally:
        desk.close()
