"""Taking one change out of a text that was changed again since.

A three-way merge by line in which lines are followed through every version in between, so two
bullets added one below the other by different changes don't conflict. Frontmatter keys are units
of their own. A conflict is only where the same line or key was changed again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbtui.history.diff import split_lines
from kbtui.history.front_keys import Front, merge_lists, split_front
from kbtui.history.matching import opcodes
from kbtui.history.tracking import Fate, find_moves, follow, keys_of, pair_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

_LATER_WINS = {"updated"}


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place that can't be undone by itself.

    Attributes:
        path: The file.
        line: Where it stands now, 1-based; 0 when nothing is left of it.
        written: What the change that is to be undone had written.
        ours: What stands there now.
        theirs: What undoing would put there.
    """

    path: str
    line: int
    written: str
    ours: str
    theirs: str


@dataclass(slots=True)
class Merge:
    """The text without the change, and the places where that wasn't possible."""

    text: str = ""
    conflicts: list[Conflict] = field(default_factory=list)


def take_out(path: str, versions: Sequence[str], target: str) -> Merge:
    """Undo the step from `target` to the first of `versions` in the last of them.

    Args:
        path: The file, for conflicts.
        versions: What the change wrote, every later version in order, and what stands there now.
        target: What had been there before the change.
    """
    if versions[0] == versions[-1]:
        return Merge(target)
    versions = _without_detours(versions)
    fronts = [split_front(text) for text in versions]
    before = split_front(target)
    if before is None or fronts[0] is None or fronts[-1] is None:
        return _Body(path, [split_lines(text) for text in versions], split_lines(target), 0).merge()
    bodies = [
        front.body if front else split_lines(text)
        for front, text in zip(fronts, versions, strict=True)
    ]
    head = _merge_keys(path, fronts[0], before, fronts[-1])
    offset = len(fronts[-1].lines())
    merge = _Body(path, bodies, before.body, offset).merge()
    return Merge(head.text + merge.text, head.conflicts + merge.conflicts)


def _without_detours(versions: Sequence[str]) -> list[str]:
    """Leave out what led back to where it came from: an undo and its undo move no line."""
    path: list[str] = []
    for version in versions:
        if version in path:
            del path[path.index(version) + 1 :]
        else:
            path.append(version)
    return path


def _merge_keys(path: str, base: Front, target: Front, ours: Front) -> Merge:
    merged = dict(ours.units)
    conflicts = []
    for key in dict.fromkeys([*target.units, *base.units]):
        was, wanted, now = base.units.get(key), target.units.get(key), ours.units.get(key)
        if _same(was, wanted) or _same(now, wanted):
            continue
        if not _same(now, was):
            both = merge_lists(was, wanted, now) if was and wanted and now else None
            if both is not None:
                merged[key] = both
            elif key not in _LATER_WINS:
                line = _line_of(ours, key)
                conflicts.append(Conflict(path, line, _shown(was), _shown(now), _shown(wanted)))
        elif wanted is None:
            merged.pop(key, None)
        elif key in merged:
            merged[key] = wanted
        else:
            merged = _put_after(merged, key, wanted, list(target.units))
    result = Front(ours.opening, merged, ours.closing, [])
    return Merge("".join(result.lines()), conflicts)


def _same(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> bool:
    if a is None or b is None:
        return a is b
    return [line.rstrip() for line in a] == [line.rstrip() for line in b]


def _shown(unit: tuple[str, ...] | None) -> str:
    return "".join(unit or ())


def _line_of(front: Front, key: str) -> int:
    line = 2
    for other, unit in front.units.items():
        if other == key:
            return line
        line += len(unit)
    return 0


def _put_after(
    units: dict[str, tuple[str, ...]], key: str, unit: tuple[str, ...], order: list[str]
) -> dict[str, tuple[str, ...]]:
    """Insert a key where it stood: behind the nearest key before it that is still there."""
    before = next((k for k in reversed(order[: order.index(key)]) if k in units), None)
    result = {} if before is not None else {key: unit}
    for other, lines in units.items():
        result[other] = lines
        if other == before:
            result[key] = unit
    return result


class _Body:
    """The merge of lines."""

    def __init__(
        self, path: str, versions: Sequence[Sequence[str]], target: Sequence[str], offset: int
    ) -> None:
        self._path = path
        self._offset = offset
        self._base = keys_of(versions[0])
        self._target_lines = list(target)
        self._target = keys_of(target)
        self._lines = list(versions[-1])
        self._now = keys_of(versions[-1])
        self._fates = follow([keys_of(lines) for lines in versions])
        self._known = {fate.index for fate in self._fates}
        self._place: dict[int, int] = {}  # target line -> current line
        self._replaced: dict[int, str] = {}
        self._removed: set[int] = set()
        self._inserted: dict[int, list[str]] = {}  # before this current line
        self._conflicts: list[Conflict] = []

    def merge(self) -> Merge:
        """Walk over what the change did, and take each bit of it back where it can be found."""
        blocks = []
        for tag, a1, a2, b1, b2 in opcodes(self._base, self._target):
            if tag == "equal":
                for offset in range(a2 - a1):
                    self._locate(b1 + offset, self._fates[a1 + offset])
            else:
                blocks.append((range(a1, a2), range(b1, b2)))
        removed = [i for block, _ in blocks for i in block]
        inserted = [j for _, block in blocks for j in block]
        moves = find_moves(self._base, self._target, removed, inserted)
        inserts = {j: self._take_along(i) for i, j in moves.items()}
        for left, right in blocks:
            rest = [j for j in right if j not in inserts]
            pairs = _one_to_one(
                pair_lines(self._base, self._target, [i for i in left if i not in moves], rest)
            )
            for i in left:
                if i in pairs:
                    self._change(i, pairs[i])
                elif i not in moves:
                    self._remove(i)
            taken = set(pairs.values())
            inserts |= {j: [self._target_lines[j]] for j in rest if j not in taken}
        self._insert_runs(inserts)
        return Merge(self._text(), self._conflicts)

    def _take_along(self, base: int) -> list[str]:
        """Lift a line that the change had moved, with what was added right below it since."""
        fate = self._fates[base]
        if fate.index < 0:
            return []
        if fate.moved:
            self._conflict(base, fate, self._base[base])
            return []
        end = fate.index + 1
        while end < len(self._lines) and end not in self._known:
            end += 1
        self._removed.update(range(fate.index, end))
        return self._lines[fate.index : end]

    def _locate(self, target: int, fate: Fate) -> None:
        if fate.index >= 0:
            self._place[target] = fate.index

    def _change(self, base: int, target: int) -> None:
        """Give a line that the change had altered its old text again."""
        fate = self._fates[base]
        self._locate(target, fate)
        if fate.state == "same":
            self._replaced[fate.index] = self._target_lines[target]
        elif fate.index < 0 or self._now[fate.index] != self._target[target]:
            self._conflict(base, fate, self._target_lines[target])

    def _remove(self, base: int) -> None:
        """Take away a line that the change had added."""
        fate = self._fates[base]
        if fate.state == "same":
            self._removed.add(fate.index)
        elif fate.state == "changed" and self._base[base].strip():
            self._conflict(base, fate, "")

    def _conflict(self, base: int, fate: Fate, theirs: str) -> None:
        there = fate.index >= 0
        self._conflicts.append(
            Conflict(
                self._path,
                self._offset + fate.index + 1 if there else 0,
                self._base[base],
                self._now[fate.index] if there else "",
                theirs.rstrip("\r\n"),
            )
        )

    def _insert_runs(self, inserts: dict[int, list[str]]) -> None:
        """Bring back the lines that the change had deleted or moved away, run by run."""
        runs: list[list[int]] = []
        for j in sorted(inserts):
            if runs and runs[-1][-1] == j - 1:
                runs[-1].append(j)
            else:
                runs.append([j])
        for run in runs:
            place = self._insertion_point(run)
            lines = [line for j in run for line in inserts[j]]
            there = range(place, place + len(lines))
            # Somebody put exactly these lines back already.
            if self._now[place : there.stop] == keys_of(lines) and self._known.isdisjoint(there):
                continue
            self._inserted.setdefault(place, []).extend(lines)

    def _insertion_point(self, run: list[int]) -> int:
        """Behind the nearest line before the run that is still there, else before the next one."""
        above = [(run[0] - j, j) for j in self._place if j < run[0]]
        below = [(j - run[-1], j) for j in self._place if j > run[-1]]
        nearest_above, nearest_below = min(above, default=None), min(below, default=None)
        if nearest_above and (not nearest_below or nearest_above[0] <= nearest_below[0]):
            return self._place[nearest_above[1]] + 1
        return self._place[nearest_below[1]] if nearest_below else len(self._lines)

    def _text(self) -> str:
        """Put the lines together; whether the last one is finished stays as it was."""
        windows = sum(line.endswith("\r\n") for line in self._lines)
        end = "\r\n" if windows * 2 > len(self._lines) else "\n"
        result: list[str] = []
        for index in range(len(self._lines) + 1):
            result += [_with_end(line, end) for line in self._inserted.get(index, ())]
            if index < len(self._lines) and index not in self._removed:
                line = self._lines[index]
                if index in self._replaced:
                    line = _with_end(self._replaced[index], end)
                result.append(line if line.endswith("\n") else line + end)
        text = "".join(result)
        is_open = bool(self._lines) and not self._lines[-1].endswith("\n")
        return text.removesuffix(end) if is_open else text


def _with_end(line: str, end: str) -> str:
    return line.rstrip("\r\n") + end


def _one_to_one(pairs: dict[int, int]) -> dict[int, int]:
    """Of several lines that pair with the same one only the first does."""
    seen: set[int] = set()
    result = {}
    for i, j in sorted(pairs.items()):
        if j not in seen:
            result[i] = j
            seen.add(j)
    return result
