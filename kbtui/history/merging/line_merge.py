"""Reverting one change in lines that were changed again since, or finding conflicts.

Lines are followed through every version in between. Lines that the change added are removed,
altered ones get their old text, and deleted or moved ones return to their place. The caller decides
conflicts, and the decision is applied when the same conflict comes up again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from kbtui.history.queries.matching import Fate, find_moves, follow, keys_of, opcodes, pair_lines

Kind = Literal["line", "key", "place", "file", "name"]


class Side(Enum):
    """The side of a conflict to keep."""

    OURS = "ours"
    THEIRS = "theirs"


Resolution = Side | str
"""A side, or a replacement text for the conflict; an empty one removes it."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place where a change can't be undone automatically.

    Attributes:
        path: The file.
        line: The current line, 1-based; 0 if the line is gone, or the conflict concerns the whole
            file.
        written: The text that the change to be undone had written.
        ours: The current text.
        theirs: The text that undoing would restore.
        kind: What was changed again: a line, a frontmatter key, the position of a line, the whole
            file, or its name. The last three can't be resolved by a replacement text.
    """

    path: str
    line: int
    written: str
    ours: str
    theirs: str
    kind: Kind = "line"


class Decisions:
    """Looks up decisions about conflicts as they come up, and collects undecided ones.

    A decision applies only to exactly the conflict that was shown: if the file has changed since,
    it is a different conflict and is asked about again.
    """

    def __init__(self, made: Mapping[Conflict, Resolution] | None = None) -> None:
        self._by_conflict = dict(made or {})
        self.open: list[Conflict] = []

    @property
    def kept(self) -> bool:
        """Whether any decision was for the current content."""
        return Side.OURS in self._by_conflict.values()

    def on(self, conflict: Conflict) -> Resolution | None:
        """Return the decision, or record the conflict as open and return None."""
        found = self._by_conflict.get(conflict)
        if found is None:
            self.open.append(conflict)
        return found

    def text_of(self, conflict: Conflict) -> str | None:
        """Return the text decided on, or record the conflict as open and return None."""
        decided = self.on(conflict)
        if decided is Side.OURS:
            return conflict.ours
        if decided is Side.THEIRS:
            return conflict.theirs
        return decided if isinstance(decided, str) else None


_HEADING = re.compile(r"(#{1,6})\s")


class LineMerge:
    """Reverts one change in a list of lines.

    Args:
        path: The file, for conflicts.
        versions: The lines after the change, every later version in order, and the current lines.
        target: The lines before the change.
        offset: The number of lines in the file before these.
        decisions: Decisions about conflicts; collects the open ones.
        returns: The indexes of the versions that an undo or a restore wrote.
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
        self._located: dict[int, int] = {}  # target line -> current line
        self._replaced: dict[int, list[str]] = {}
        self._resolved: dict[int, list[str]] = {}  # current line -> texts decided on
        self._removed: set[int] = set()
        self._inserts: dict[int, list[str]] = {}  # target line -> lines to insert for it
        self._inserted: dict[int, list[str]] = {}  # current line -> lines to insert before it

    def merge(self, *, keep_headings: bool = False) -> str:
        """Revert each part of the change that can be located, and return the text.

        Args:
            keep_headings: Keep headings that still have something below them.
        """
        blocks = []
        for tag, a1, a2, b1, b2 in opcodes(self._base, self._target):
            if tag == "equal":
                for offset in range(a2 - a1):
                    self._locate(b1 + offset, self._fates[a1 + offset])
            else:
                blocks.append((range(a1, a2), range(b1, b2)))
        self._revert_blocks(blocks)
        if keep_headings:
            self._keep_headings()
        self._insert_runs()
        return self._text()

    def _revert_blocks(self, blocks: list[tuple[range, range]]) -> None:
        removed = [i for block, _ in blocks for i in block]
        inserted = [j for _, block in blocks for j in block]
        moves = find_moves(self._base, self._target, removed, inserted)
        back = self._restored_lines() if len(moves) < len(inserted) else {}
        self._inserts = {j: self._lift_moved(i) for i, j in moves.items()}
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
                self._restore_line(j, back.get(j))
        self._apply_resolved()

    def _apply_resolved(self) -> None:
        """Apply the decisions, several of which may concern the same line."""
        for index, texts in self._resolved.items():
            kept = list(dict.fromkeys(filter(None, texts)))
            if not kept:
                self._removed.add(index)
            elif kept != [self._now[index]]:
                self._replaced[index] = kept

    def _restored_lines(self) -> dict[int, Fate]:
        """Return the target lines that a later undo or restore brought back, by index."""
        if not self._returns:
            return {}
        versions = [self._target, *self._versions]
        fates = follow(versions, {number + 1 for number in self._returns})
        return {j: fate for j, fate in enumerate(fates) if fate.index >= 0}

    def _restore_line(self, target: int, there: Fate | None) -> None:
        """Restore a line that the change had deleted, unless it is back already."""
        if there is None or there.index in self._known:
            self._inserts[target] = [self._target_lines[target]]
            return
        self._locate(target, there)
        if there.state == "changed":
            self._resolve("", there, self._target_lines[target])

    def _lift_moved(self, base: int) -> list[str]:
        """Remove and return a line that the change had moved, with later additions below it."""
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
            self._located[target] = fate.index

    def _change(self, base: int, target: int) -> None:
        """Restore the old text of a line that the change had altered."""
        fate = self._fates[base]
        self._locate(target, fate)
        if fate.state == "same":
            self._replaced[fate.index] = [self._target_lines[target]]
        elif fate.index < 0:
            text = self._decide(self._base[base], fate, self._target_lines[target])
            if isinstance(text, str) and text:
                self._inserts[target] = [text]
        elif self._now[fate.index] != self._target[target]:
            self._resolve(self._base[base], fate, self._target_lines[target])

    def _remove(self, base: int) -> None:
        """Remove a line that the change had added."""
        fate = self._fates[base]
        if fate.state == "same":
            self._removed.add(fate.index)
        elif fate.state == "changed" and self._base[base].strip():
            self._resolve(self._base[base], fate, "")

    def _resolve(self, written: str, fate: Fate, theirs: str) -> None:
        """Record the text decided on for a line that still exists."""
        text = self._decide(written, fate, theirs)
        if isinstance(text, str):
            self._resolved.setdefault(fate.index, []).append(text)

    def _decide(
        self, written: str, fate: Fate, theirs: str, kind: Kind = "line"
    ) -> str | Side | None:
        """Look up the decision about a line: a text, a side for its position, None while open."""
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
        """Keep headings, and the blank lines below them, that still have something below them."""
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

    def _skip_restored(self) -> None:
        """Don't restore lines that somebody has restored already, wherever they are now."""
        back = {
            line for n, line in enumerate(self._now) if n not in self._known and line.strip()
        } - set(self._base)
        for j in list(self._inserts):
            line = self._target[j]
            if line in back and keys_of(self._inserts[j]) == [line]:
                del self._inserts[j]

    def _insert_runs(self) -> None:
        """Insert the lines to restore, one contiguous run at a time."""
        self._skip_restored()
        runs: list[list[int]] = []
        for j in sorted(self._inserts):
            if runs and runs[-1][-1] == j - 1:
                runs[-1].append(j)
            else:
                runs.append([j])
        located = sorted(self._located)
        for run in runs:
            place = self._insertion_point(run, located)
            lines = [line for j in run for line in self._inserts[j]]
            there = range(place, place + len(lines))
            # Somebody has restored exactly these lines here already.
            if self._now[place : there.stop] == keys_of(lines) and self._known.isdisjoint(there):
                continue
            self._inserted.setdefault(place, []).extend(lines)

    def _insertion_point(self, run: list[int], located: list[int]) -> int:
        """Return the index after the nearest located line above the run, or before the next."""
        above, below = bisect_left(located, run[0]) - 1, bisect_right(located, run[-1])
        is_last = below == len(located)
        if above >= 0 and (is_last or run[0] - located[above] <= located[below] - run[-1]):
            return self._located[located[above]] + 1
        return len(self._lines) if is_last else self._located[located[below]]

    def _text(self) -> str:
        """Join the lines; the last one ends in a newline only if it did before."""
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
    """Keep only the first of several lines paired with the same one."""
    seen: set[int] = set()
    result = {}
    for i, j in sorted(pairs.items()):
        if j not in seen:
            result[i] = j
            seen.add(j)
    return result
