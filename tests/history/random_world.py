"""Entries that four actors change at random, and what undoing one change must do to them.

The model knows nothing of diffs: every line has a text that no other line ever has, so each text
belongs to one unit for good, and so does each key and each tag of an entry. A change touched the
units whose values differ before and after it; undoing it is in the way of a later change exactly
where such a unit has a third value now.
"""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbtui.history.change import Actor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "glade", "haven", "inlet", "jetty")
ACTORS = (Actor.YOU, Actor.AGENT, Actor.DREAM, Actor.MCP)
FOLLOWS = "updated"


@dataclass
class Entry:
    """A file: keys, tags and lines."""

    path: str
    keys: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        front = [f"{key}: {value}" for key, value in self.keys.items()]
        front.append(f"tags: [{', '.join(self.tags)}]")
        return "\n".join(["---", *front, "---", *self.lines]) + "\n"

    @classmethod
    def read(cls, path: str, text: str) -> Entry:
        _, front, body = text.split("---\n", 2)
        keys = dict(line.split(": ", 1) for line in front.splitlines())
        tags = [tag for tag in keys.pop("tags")[1:-1].split(", ") if tag]
        return cls(path, keys, tags, body.splitlines())


State = dict[str, Entry]  # by what an entry's key `id` says


@dataclass(frozen=True)
class Step:
    """A change: all entries before and after it."""

    before: State
    after: State
    kind: str


@dataclass
class Verdict:
    """What undoing must do."""

    conflict: bool = False
    unsure: bool = False
    nothing: bool = False


class World:
    """The entries as they are, and how they are changed."""

    def __init__(self, seed: int, entries: int = 4) -> None:
        self.rng = random.Random(seed)
        self.state: State = {}
        self.units: dict[str, str] = {}  # every text that a line ever had -> its unit
        self._count = 0
        self._first = entries

    # Changing

    def step(self) -> Step:
        """Change something; at first every entry is made."""
        before = deepcopy(self.state)
        if len(self.state) < self._first:
            self._make()
            return Step(before, deepcopy(self.state), "make")
        kind = self.rng.choices(
            ["add", "edit", "delete", "two", "section", "move", "key", "tag", "rename", "remove"],
            [22, 20, 10, 8, 4, 6, 14, 8, 4, 1],
        )[0]
        getattr(self, f"_{kind}")(self.rng.choice(list(self.state.values())))
        return Step(before, deepcopy(self.state), kind)

    def know(self, files: Mapping[str, str]) -> None:
        """Take the files as they are now for the state, as after an undo."""
        read = [Entry.read(path, text) for path, text in files.items()]
        self.state = {entry.keys["id"]: entry for entry in read}

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _phrase(self) -> str:
        return f"{' '.join(self.rng.sample(WORDS, 3))} {self._number()}"

    def _line(self, text: str, unit: str | None = None) -> str:
        self.units[text] = unit or f"u{self._number()}"
        return text

    def _bullet(self) -> str:
        return self._line(f"- {self._phrase()}")

    def _make(self) -> None:
        name = f"e{self._number()}"
        entry = Entry(f"knowledge/topics/{name}.md", {"id": name, "status": "open", FOLLOWS: "0"})
        entry.tags = [f"t{self._number()}", f"t{self._number()}"]
        entry.lines = [self._line(f"# {self._phrase()}"), self._bullet(), self._bullet()]
        self.state[name] = entry

    def _bullets(self, entry: Entry) -> list[int]:
        return [n for n, line in enumerate(entry.lines) if line.startswith("- ")]

    def _add(self, entry: Entry) -> None:
        at = self.rng.randint(1, len(entry.lines)) if entry.lines else 0
        entry.lines.insert(at, self._bullet())
        entry.keys[FOLLOWS] = str(self._number())

    def _edit(self, entry: Entry) -> None:
        if not entry.lines:
            self._add(entry)
            return
        at = self.rng.randrange(len(entry.lines))
        old = entry.lines[at]
        mark = old.split(" ", 1)[0]
        # Some words more, or another sentence.
        new = f"{old} {self._phrase()}" if self.rng.random() < 0.7 else f"{mark} {self._phrase()}"
        entry.lines[at] = self._line(new, self.units[old])
        entry.keys[FOLLOWS] = str(self._number())

    def _delete(self, entry: Entry) -> None:
        bullets = self._bullets(entry)
        if bullets:
            del entry.lines[self.rng.choice(bullets)]

    def _two(self, entry: Entry) -> None:
        """Two entries at once."""
        self._edit(entry)
        self._add(self.rng.choice([e for e in self.state.values() if e is not entry] or [entry]))

    def _section(self, entry: Entry) -> None:
        entry.lines.append(self._line(f"## {self._phrase()}"))
        entry.lines += [self._bullet() for _ in range(self.rng.randint(1, 3))]

    def _move(self, entry: Entry) -> None:
        starts = [n for n, line in enumerate(entry.lines) if line.startswith("## ")]
        if len(starts) < 2:
            self._section(entry)
            return
        start = self.rng.choice(starts)
        end = next((n for n in starts if n > start), len(entry.lines))
        block = entry.lines[start:end]
        del entry.lines[start:end]
        entry.lines[starts[0] : starts[0]] = block
        if start == starts[0]:
            del entry.lines[starts[0] : starts[0] + len(block)]
            entry.lines += block

    def _key(self, entry: Entry) -> None:
        key = self.rng.choice(["status", "owner", "due"])
        if key in entry.keys and key != "status" and self.rng.random() < 0.3:
            del entry.keys[key]
        else:
            entry.keys[key] = self._phrase()

    def _tag(self, entry: Entry) -> None:
        if entry.tags and self.rng.random() < 0.4:
            entry.tags.remove(self.rng.choice(entry.tags))
        else:
            entry.tags.insert(self.rng.randint(0, len(entry.tags)), f"t{self._number()}")

    def _rename(self, entry: Entry) -> None:
        entry.path = f"knowledge/topics/{self.rng.choice(WORDS)}-{self._number()}.md"

    def _remove(self, entry: Entry) -> None:
        del self.state[entry.keys["id"]]
        self._make()

    # Judging

    def verdict(self, step: Step, later: Sequence[Step] = ()) -> Verdict:
        """What undoing a step must lead to now.

        Where a block was moved again it can't be told which of two blocks moved past the other:
        then a refusal is as right as an undo.
        """
        verdict = Verdict(nothing=True)
        for name in step.before.keys() | step.after.keys():
            old, new, now = (s.get(name) for s in (step.before, step.after, self.state))
            self._judge(verdict, old, new, now)
            if _order(old, new):
                verdict.nothing = now is None or not _order(old, now)
                verdict.unsure |= any(_order(s.before.get(name), s.after.get(name)) for s in later)
        return verdict

    def _judge(
        self, verdict: Verdict, old: Entry | None, new: Entry | None, now: Entry | None
    ) -> None:
        if old == new or (old is None and now is None):
            return
        before, after, here = (self.values(entry) for entry in (old, new, now))
        touched = {u for u in before | after if before.get(u) != after.get(u)} - {f"k {FOLLOWS}"}
        if old is None:
            if new is not None and now is not None and _left_of_creation(new, now) != now.lines:
                verdict.nothing = False
            self._judge_creation(verdict, after, here, now)
            return
        third = {u for u in touched if here.get(u) not in {before.get(u), after.get(u)}}
        if new is None:
            third = (
                {u for u in third | here.keys() if here.get(u) != before.get(u)} if now else set()
            )
        elif now is None:
            touched.discard("path")  # of a file that is gone the name is gone, whatever it was
            third = {u for u in touched if before.get(u) is not None}
        if third:
            verdict.conflict = True
        if any(here.get(u) != before.get(u) for u in touched):
            verdict.nothing = False

    def _judge_creation(
        self, verdict: Verdict, made: dict[str, str], here: dict[str, str], now: Entry | None
    ) -> None:
        lines = {u for u in made if u.startswith("u")}
        if any(here.get(u, made[u]) != made[u] for u in lines):
            verdict.conflict = True
        if any(u.startswith("u") and u not in lines for u in here):
            return
        keys = {u for u in made if u.startswith("k ")} - {f"k {FOLLOWS}"}
        tags = [{u for u in values if u.startswith("t ")} for values in (made, here)]
        changed = any(here.get(u, made[u]) != made[u] for u in keys) or (
            bool(now) and tags[0] != tags[1]
        )
        if changed and not any(u.startswith("k ") and u not in made for u in here):
            verdict.conflict = True

    def values(self, entry: Entry | None) -> dict[str, str]:
        """Every unit of an entry with its value."""
        if entry is None:
            return {}
        found = {f"k {key}": value for key, value in entry.keys.items()}
        found |= {f"t {tag}": "there" for tag in entry.tags}
        found |= {self.units[line]: line for line in entry.lines}
        return found | {"path": entry.path}

    def faults(self, step: Step, was: State) -> list[str]:
        """What is wrong with the state after an undo of a step; `was` is the state before it."""
        found = []
        for name in was.keys() | self.state.keys():
            entry, now = was.get(name), self.state.get(name)
            old, new = step.before.get(name), step.after.get(name)
            if old == new:
                if entry != now:
                    found.append(f"{name}, which it hadn't touched, is different")
            elif old is None and new is not None and entry is not None:
                found += self._creation_faults(new, entry, now)
            elif old is not None and now is None:
                found.append(f"{name} is gone")
            else:
                found += self._entry_faults(old, new, entry, now)
        return found

    def _entry_faults(
        self, old: Entry | None, new: Entry | None, entry: Entry | None, now: Entry | None
    ) -> list[str]:
        before, after, was, here = (self.values(e) for e in (old, new, entry, now))
        touched = {u for u in before | after if before.get(u) != after.get(u)} - {f"k {FOLLOWS}"}
        expected = {u: value for u, value in was.items() if u not in touched}
        expected |= {u: before[u] for u in touched if u in before}
        expected[f"k {FOLLOWS}"] = here.get(f"k {FOLLOWS}", "")
        found = [] if expected == here else [f"{expected.items() ^ here.items()}"]
        if entry is not None and now is not None and not _order(old, new):
            kept = [line for line in entry.lines if line in now.lines]
            if kept != [line for line in now.lines if line in entry.lines]:
                found.append("lines were put in another order")
        return found

    def _creation_faults(self, made: Entry, entry: Entry, now: Entry | None) -> list[str]:
        """Of a file that had grown all but its first lines stays."""
        lines = _left_of_creation(made, entry)
        if now is None:
            return [f"{lines} was lost"] if lines else []
        kept = (entry.path, entry.keys, entry.tags, lines)
        return [] if kept == (now.path, now.keys, now.tags, now.lines) else [f"{kept} {now}"]


def _left_of_creation(made: Entry, entry: Entry) -> list[str]:
    """What stays of a file that had grown: all but its first lines, with the headings above it."""
    lines: list[str] = []
    for line in reversed(entry.lines):
        level = len(line.split(" ", 1)[0]) if line.startswith("#") else 9
        below = [x for x in lines if not x.startswith("#") or len(x.split(" ", 1)[0]) > level]
        nested = lines[: next((n for n, x in enumerate(lines) if x not in below), len(lines))]
        if line not in made.lines or (level < 9 and nested):
            lines.insert(0, line)
    return lines


def _shared(a: Entry, b: Entry) -> list[str]:
    return [line for line in a.lines if line in b.lines]


def _order(a: Entry | None, b: Entry | None) -> bool:
    """Whether lines that two versions share stand in another order."""
    return a is not None and b is not None and _shared(a, b) != _shared(b, a)
