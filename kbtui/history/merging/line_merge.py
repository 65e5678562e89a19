"""Taking one change out of lines that were changed again since; what can't be, is a conflict.

Lines are followed through every version in between. What the change added is taken away, what it
altered gets its old text, what it deleted or moved comes back to where it was. A conflict is for
somebody to decide about, and what they decided settles it when it comes up again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from kbtui.history.looking.matching import Fate, find_moves, follow, keys_of, opcodes, pair_lines

Kind = Literal["line", "key", "place", "file", "name"]


class Side(Enum):
    """Which side of a conflict is to stand."""

    OURS = "ours"
    THEIRS = "theirs"


Resolution = Side | str
"""A side, or the text that is to stand in that place; an empty one takes it away."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place that can't be undone by itself.

    Attributes:
        path: The file.
        line: Where it stands now, 1-based; 0 when nothing is left of it, or it is the whole file.
        written: What the change that is to be undone had written.
        ours: What stands there now.
        theirs: What undoing would put there.
        kind: What was changed again: a line, a key of the frontmatter, the place of a line, the
            whole file, its name. The last three can't be given another text.
    """

    path: str
    line: int
    written: str
    ours: str
    theirs: str
    kind: Kind = "line"


class Decisions:
    """Settles conflicts as they come up, and gathers those that nobody has decided.

    A decision holds for exactly the conflict that was shown: where a file has changed since, the
    conflict is another one and is asked about again.
    """

    def __init__(self, made: Mapping[Conflict, Resolution] | None = None) -> None:
        self._made = dict(made or {})
        self.open: list[Conflict] = []

    @property
    def kept(self) -> bool:
        """True if what stands there now was chosen anywhere."""
        return Side.OURS in self._made.values()

    def on(self, conflict: Conflict) -> Resolution | None:
        """The decision; None where nothing was, and then the conflict stays open."""
        found = self._made.get(conflict)
        if found is None:
            self.open.append(conflict)
        return found

    def text_of(self, conflict: Conflict) -> str | None:
        """The text that is to stand there; None while that is open."""
        decided = self.on(conflict)
        if decided is Side.OURS:
            return conflict.ours
        if decided is Side.THEIRS:
            return conflict.theirs
        return decided if isinstance(decided, str) else None


_HEADING = re.compile(r"(#{1,6})\s")


class LineMerge:
    """The merge of lines.

    Args:
        path: The file, for conflicts.
        versions: What the change wrote, every later version in order, and what stands there now.
        target: What had been there before the change.
        offset: How many lines of the file stand before these.
        decisions: What was decided about conflicts; takes the open ones.
        returns: The versions that an undo or a restore wrote, by their number.
    """

    def __init__(
        self,
        path: str,
        versions: Sequence[Sequence[str]],
        target: Sequence[str],
        offset: int,
        decisions: Decisions,
        returns: Collection[int] = (),
    ) -> None:
        self._path = path
        self._offset = offset
        self._decisions = decisions
        self._base = keys_of(versions[0])
        self._target_lines = list(target)
        self._target = keys_of(target)
        self._lines = list(versions[-1])
        self._now = keys_of(versions[-1])
        self._versions = [keys_of(lines) for lines in versions]
        self._returns = returns
        self._fates = follow(self._versions, returns)
        self._known = {fate.index for fate in self._fates}
        self._place: dict[int, int] = {}  # target line -> current line
        self._replaced: dict[int, list[str]] = {}
        self._settled: dict[int, list[str]] = {}  # current line -> what was decided for it
        self._removed: set[int] = set()
        self._inserts: dict[int, list[str]] = {}  # instead of this target line
        self._inserted: dict[int, list[str]] = {}  # before this current line

    def merge(self, *, keep_headings: bool = False) -> str:
        """Walk over what the change did, and take each bit of it back where it can be found.

        Args:
            keep_headings: Leave the headings under which something stays.
        """
        blocks = []
        for tag, a1, a2, b1, b2 in opcodes(self._base, self._target):
            if tag == "equal":
                for offset in range(a2 - a1):
                    self._locate(b1 + offset, self._fates[a1 + offset])
            else:
                blocks.append((range(a1, a2), range(b1, b2)))
        self._take_back(blocks)
        if keep_headings:
            self._keep_headings()
        self._insert_runs()
        return self._text()

    def _take_back(self, blocks: list[tuple[range, range]]) -> None:
        removed = [i for block, _ in blocks for i in block]
        inserted = [j for _, block in blocks for j in block]
        moves = find_moves(self._base, self._target, removed, inserted)
        back = self._brought_back() if len(moves) < len(inserted) else {}
        self._inserts = {j: self._take_along(i) for i, j in moves.items()}
        for left, right in blocks:
            rest = [j for j in right if j not in self._inserts]
            gone = [i for i in left if i not in moves]
            pairs = _one_to_one(pair_lines(self._base, self._target, gone, rest))
            for i in gone:
                if i in pairs:
                    self._change(i, pairs[i])
                else:
                    self._remove(i)
            for j in sorted(set(rest) - set(pairs.values())):
                self._bring_back(j, back.get(j))
        self._put_settled()

    def _put_settled(self) -> None:
        """Put in what was decided on; several lines may have become one."""
        for index, texts in self._settled.items():
            kept = list(dict.fromkeys(filter(None, texts)))
            if not kept:
                self._removed.add(index)
            elif kept != [self._now[index]]:
                self._replaced[index] = kept

    def _brought_back(self) -> dict[int, Fate]:
        """The lines of the target that an undo or a restore since has brought back, by number."""
        if not self._returns:
            return {}
        versions = [self._target, *self._versions]
        fates = follow(versions, {number + 1 for number in self._returns})
        return {j: fate for j, fate in enumerate(fates) if fate.index >= 0}

    def _bring_back(self, target: int, there: Fate | None) -> None:
        """Bring back a line that the change had deleted, if it doesn't stand there again."""
        if there is None or there.index in self._known:
            self._inserts[target] = [self._target_lines[target]]
            return
        self._locate(target, there)
        if there.state == "changed":
            self._settle("", there, self._target_lines[target])

    def _take_along(self, base: int) -> list[str]:
        """Lift a line that the change had moved, with what was added right below it since."""
        fate = self._fates[base]
        if fate.index < 0:
            return []
        line = self._base[base]
        if fate.moved and self._decide(line, fate, line, "place") is not Side.THEIRS:
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
            self._replaced[fate.index] = [self._target_lines[target]]
        elif fate.index < 0:
            text = self._decide(self._base[base], fate, self._target_lines[target])
            if isinstance(text, str) and text:
                self._inserts[target] = [text]
        elif self._now[fate.index] != self._target[target]:
            self._settle(self._base[base], fate, self._target_lines[target])

    def _remove(self, base: int) -> None:
        """Take away a line that the change had added."""
        fate = self._fates[base]
        if fate.state == "same":
            self._removed.add(fate.index)
        elif fate.state == "changed" and self._base[base].strip():
            self._settle(self._base[base], fate, "")

    def _settle(self, written: str, fate: Fate, theirs: str) -> None:
        """Put what was decided in the place of a line that still stands there."""
        text = self._decide(written, fate, theirs)
        if isinstance(text, str):
            self._settled.setdefault(fate.index, []).append(text)

    def _decide(
        self, written: str, fate: Fate, theirs: str, kind: Kind = "line"
    ) -> str | Side | None:
        """Decide what is to stand in a conflict's place, or where; None while open."""
        there = fate.index >= 0
        conflict = Conflict(
            self._path,
            self._offset + fate.index + 1 if there else 0,
            written,
            self._now[fate.index] if there else "",
            theirs.rstrip("\r\n"),
            kind,
        )
        decide = self._decisions.on if kind == "place" else self._decisions.text_of
        return decide(conflict)

    def _keep_headings(self) -> None:
        """Leave a heading, and the blank line below it, where something below it stays."""
        levels = [len(found[1]) if (found := _HEADING.match(x)) else 0 for x in self._now]
        for index in sorted(self._removed, reverse=True):
            if not levels[index] or not self._is_needed(index, levels):
                continue
            self._removed.discard(index)
            if index + 1 < len(self._now) and not self._now[index + 1].strip():
                self._removed.discard(index + 1)

    def _is_needed(self, heading: int, levels: list[int]) -> bool:
        for index in range(heading + 1, len(self._now)):
            if 0 < levels[index] <= levels[heading]:
                return False
            if index not in self._removed and self._now[index].strip():
                return True
        return False

    def _leave_what_is_back(self) -> None:
        """Don't bring a line back that somebody has brought back already, wherever it is now."""
        back = {
            line for n, line in enumerate(self._now) if n not in self._known and line.strip()
        } - set(self._base)
        for j in list(self._inserts):
            line = self._target[j]
            if line in back and keys_of(self._inserts[j]) == [line]:
                del self._inserts[j]

    def _insert_runs(self) -> None:
        """Bring back the lines that the change had deleted or moved away, run by run."""
        self._leave_what_is_back()
        runs: list[list[int]] = []
        for j in sorted(self._inserts):
            if runs and runs[-1][-1] == j - 1:
                runs[-1].append(j)
            else:
                runs.append([j])
        located = sorted(self._place)
        for run in runs:
            place = self._insertion_point(run, located)
            lines = [line for j in run for line in self._inserts[j]]
            there = range(place, place + len(lines))
            # Somebody put exactly these lines back already.
            if self._now[place : there.stop] == keys_of(lines) and self._known.isdisjoint(there):
                continue
            self._inserted.setdefault(place, []).extend(lines)

    def _insertion_point(self, run: list[int], located: list[int]) -> int:
        """Behind the nearest line before the run that is still there, else before the next one."""
        above, below = bisect_left(located, run[0]) - 1, bisect_right(located, run[-1])
        is_last = below == len(located)
        if above >= 0 and (is_last or run[0] - located[above] <= located[below] - run[-1]):
            return self._place[located[above]] + 1
        return len(self._lines) if is_last else self._place[located[below]]

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
                    result += [_with_end(text, end) for text in self._replaced[index]]
                else:
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
