"""Random edits on two machines that sync now and then: one tree in the end, and no line lost.

The model knows nothing of merging: each line is unique, and it only remembers which lines somebody
wrote and which somebody took away. ``KBTUI_LONG`` makes it 200 edits a machine and more seeds.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from kbtui.history.change import Actor
from tests.history.sync_room import Machine, fsck

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LONG = bool(os.environ.get("KBTUI_LONG"))
EDITS = 200 if LONG else 24
SEEDS = range(12) if LONG else range(1)
WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "glade", "haven", "inlet", "jetty")


class Model:
    """Which lines were ever written, and which were taken away on purpose."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0
        self.written: set[str] = set()
        self.removed: set[str] = set()

    def line(self) -> str:
        self.count += 1
        line = f"- {' '.join(self.rng.sample(WORDS, 3))} {self.count}"
        self.written.add(line)
        return line

    def must_be_there(self) -> set[str]:
        return self.written - self.removed


class Editor:
    """Edits one machine's notes at random."""

    def __init__(self, machine: Machine, model: Model, name: str) -> None:
        self.machine = machine
        self.model = model
        self.name = name
        self.rng = model.rng

    def edit(self) -> None:
        root = self.machine.workspace.root
        paths = sorted(
            str(file.relative_to(root))
            for file in root.glob("knowledge/**/*.md")
            if ".conflict-" not in file.name
        )
        acts: list[Callable[[str], None]] = [self.add, self.add, self.add, self.change, self.change]
        acts += [self.delete, self.tag, self.move, self.rename, self.remove]
        if not paths or self.rng.random() < 0.1:
            self.create()
        else:
            self.rng.choice(acts)(self.rng.choice(paths))

    def create(self) -> None:
        path = f"knowledge/topics/{self.rng.choice(WORDS)}-{self.rng.randrange(4)}.md"
        if not self.machine.exists(path):
            body = "\n".join(self.model.line() for _ in range(4))
            front = (
                f"---\ntype: topic\nupdated: 2026-01-0{self.rng.randint(1, 9)}\ntags: [a]\n---\n"
            )
            self.machine.write(path, f"{front}# Title\n\n{body}\n")

    def _lines(self, path: str) -> tuple[list[str], list[int]]:
        lines = self.machine.text(path).splitlines()
        return lines, [n for n, line in enumerate(lines) if line in self.model.written]

    def _put(self, path: str, lines: list[str]) -> None:
        text = "\n".join(lines) + "\n"
        if text != self.machine.text(path):
            self.machine.write(path, text)

    def add(self, path: str) -> None:
        lines, places = self._lines(path)
        lines.insert(self.rng.choice(places) if places else len(lines), self.model.line())
        self._put(path, lines)

    def change(self, path: str) -> None:
        lines, places = self._lines(path)
        if places:
            place = self.rng.choice(places)
            old, new = lines[place], f"{lines[place]} {self.rng.choice(WORDS)} by {self.name}"
            self.model.removed.add(old)
            self.model.written.add(new)
            lines[place] = new
            self._put(path, lines)

    def delete(self, path: str) -> None:
        lines, places = self._lines(path)
        if len(places) > 1:
            self.model.removed.add(lines.pop(self.rng.choice(places)))
            self._put(path, lines)

    def tag(self, path: str) -> None:
        lines, _ = self._lines(path)
        tags = next((n for n, line in enumerate(lines) if line.startswith("tags: [")), None)
        if tags is not None:
            lines[tags] = lines[tags].replace("]", f", {self.name}{self.rng.randrange(99)}]")
            self._put(path, lines)

    def move(self, path: str) -> None:
        lines, places = self._lines(path)
        if len(places) > 2:
            line = lines.pop(self.rng.choice(places))
            lines.insert(self.rng.choice(places), line)
            self._put(path, lines)

    def rename(self, path: str) -> None:
        new = f"knowledge/people/{self.rng.choice(WORDS)}-{self.rng.randrange(9)}.md"
        if not self.machine.exists(new):
            with self.machine.history.change(Actor.YOU, "rename") as change:
                change.rename(path, new)

    def remove(self, path: str) -> None:
        if self.rng.random() < 0.4:
            lines, places = self._lines(path)
            self.model.removed |= {lines[place] for place in places}
            self.machine.write(path, None)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_edits_on_two_machines_end_in_one_tree_and_lose_no_line(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    model = Model(rng)
    remote = tmp_path / "remote.git"
    machines = [Machine(tmp_path / name, remote) for name in ("one", "two")]
    editors = [Editor(machine, model, f"m{n}") for n, machine in enumerate(machines)]
    for _ in range(4):
        editors[0].create()
    for machine in machines:
        machine.sync()
    for _ in range(EDITS * 2):
        rng.choice(editors).edit()
        if rng.random() < 0.08:
            rng.choice(machines).sync()
    for machine in rng.choices(machines, k=2) + machines + machines[:1]:
        machine.sync()
    one, two = (machine.files() for machine in machines)
    assert one == two
    assert machines[0].history.head() == machines[1].history.head()
    kept = {line for text in one.values() for line in text.splitlines()}
    kept |= {
        line
        for machine in machines
        for clash in machine.clashes
        for line in clash.theirs.decode().splitlines()
    }
    assert model.must_be_there() <= kept
    assert len(model.must_be_there()) > EDITS // 2
    for repository in (remote, *(machine.workspace.repository for machine in machines)):
        fsck(repository)
