"""MEMORY.md: what is in every prompt. Facts are added and corrected line by line, never rewritten.

Lines that nobody asked to change stay as they are, byte for byte.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

from kbtui.history.change import Actor
from kbtui.memory.facts import normalise, plain_fact
from kbtui.memory.sections import section_names_like
from kbtui.memory.sections import section_of as default_section_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kbtui.memory.extraction import Correction

MEMORY = "memory/MEMORY.md"
MAX_LOST = 0.25
_SAME_LINE = 60.0
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_BULLET = re.compile(r"^([ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?(.*?)([ \t]*)$")


@dataclass(frozen=True, slots=True)
class Refused:
    """A fact or correction that was not applied, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """The new text, and what became of each fact and correction.

    `added` are facts as they stand there now, `replaced` are (old, new) lines; a removed line has
    an empty new one.
    """

    text: str
    added: tuple[str, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    refused: tuple[Refused, ...] = ()


def apply_facts(
    text: str,
    facts: Iterable[str],
    corrections: Iterable[Correction] = (),
    *,
    section_of: Callable[[str], str] = default_section_of,
    refuse: Callable[[str], bool] = lambda _fact: False,
) -> MemoryEdit:
    """Add facts below fitting headings, and replace lines that are no longer true.

    A fact that is there in other words (see `normalise`) isn't added again. A correction needs
    its old line exactly once; where the line isn't there, what is true now is added as a fact.

    Args:
        text: MEMORY.md as it is.
        facts: What to add.
        corrections: What to replace; an empty new text removes the line.
        section_of: The heading that a fact belongs under.
        refuse: Facts that must not be written, such as buried ones.
    """
    memory = _Memory(text)
    for correction in corrections:
        memory.correct(correction.old, correction.new, section_of, refuse)
    for fact in facts:
        memory.add(fact, section_of, refuse)
    return memory.edit()


def apply_rewrite(
    text: str, rewritten: str, *, refuse: Callable[[str], bool] = lambda _f: False
) -> MemoryEdit:
    """Turn a whole rewritten memory into edits of the lines that really differ.

    Lines that say the same keep their bytes. Whether too much is lost is for `review_reason`.
    """
    newline = _newline(text)
    old = text.removeprefix("\ufeff").splitlines()
    new = rewritten.replace("\r\n", "\n").strip("\n").split("\n")
    refused = [line for line in new if _is_statement(line) and refuse(plain_fact(line))]
    new = [line for line in new if line not in refused]
    lines: list[str] = []
    added: list[str] = []
    gone: list[str] = []
    matcher = SequenceMatcher(None, [*map(_key, old)], [*map(_key, new)], autojunk=False)
    for _, a, b, c, d in matcher.get_opcodes():
        same = [*map(_key, old[a:b])] == [*map(_key, new[c:d])]
        lines += old[a:b] if same else new[c:d]
        if not same:
            gone += [plain_fact(line) for line in old[a:b] if _is_statement(line)]
            added += [plain_fact(line) for line in new[c:d] if _is_statement(line)]
    if not added and not gone:
        return MemoryEdit(text)
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return MemoryEdit(
        mark + newline.join(lines).rstrip() + newline,
        tuple(line for line in added if line not in gone),
        tuple((line, "") for line in gone if line not in added),
        tuple(Refused(plain_fact(line), "it was forgotten by the user") for line in refused),
    )


def lost_share(old: str, new: str) -> float:
    """Which share of the lines of `old` has nothing like it in `new`, from 0 to 1.

    A line that was reworded isn't lost. Blank lines don't count.
    """
    before = [key for line in old.splitlines() if (key := _key(line))]
    rest = Counter(key for line in new.splitlines() if (key := _key(line)))
    missing = []
    for key in before:
        if rest[key]:
            rest[key] -= 1
        else:
            missing.append(key)
    others = list(rest.elements())
    lost = 0
    for key in missing:
        match = max(others, key=lambda other: fuzz.ratio(key, other), default="")
        if match and fuzz.ratio(key, match) >= _SAME_LINE:
            others.remove(match)
        else:
            lost += 1
    return lost / len(before) if before else 0.0


def review_reason(old: str, new: str, authors: Sequence[Actor | None] = ()) -> str | None:
    """Say why a background change must be proposed instead of made; None: it may be made.

    Args:
        old: The text as it is.
        new: The text as it would be.
        authors: Who wrote each line of `old`, see `History.authors`.
    """
    share = lost_share(old, new)
    if share > MAX_LOST:
        return f"it would lose {share:.0%} of the lines"
    kept = Counter(line.rstrip() for line in new.splitlines())
    for line, author in zip(old.splitlines(), authors, strict=False):
        if kept[line.rstrip()] > 0:
            kept[line.rstrip()] -= 1
        elif author is Actor.YOU and line.strip():
            return f"it would change a line that you wrote: {plain_fact(line)!r}"
    return None


class _Memory:
    """MEMORY.md as lines while it is edited."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = _newline(text)
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self._lines = text.removeprefix("\ufeff").splitlines()
        self._added: list[str] = []
        self._replaced: list[tuple[str, str]] = []
        self._refused: list[Refused] = []

    def edit(self) -> MemoryEdit:
        changed = bool(self._added or self._replaced)
        text = self._mark + self._newline.join([*self._lines, ""]) if changed else self._text
        return MemoryEdit(text, tuple(self._added), tuple(self._replaced), tuple(self._refused))

    def add(
        self, fact: str, section_of: Callable[[str], str], refuse: Callable[[str], bool]
    ) -> None:
        fact = plain_fact(fact)
        key = normalise(fact)
        if not key or self._has(key):
            self._refused.append(Refused(fact, "it is known already" if key else "it says nothing"))
        elif refuse(fact):
            self._refused.append(Refused(fact, "it was forgotten by the user"))
        else:
            self._insert(section_of(fact), f"- {fact}")
            self._added.append(fact)

    def correct(
        self, old: str, new: str, section_of: Callable[[str], str], refuse: Callable[[str], bool]
    ) -> None:
        old, new = plain_fact(old), plain_fact(new)
        places = self._find(old)
        if new and refuse(new):
            self._refused.append(Refused(new, "it was forgotten by the user"))
        elif not old or len(places) > 1:
            self._refused.append(Refused(old, f"it stands there {len(places)} times"))
        elif not places:
            self._refused.append(Refused(old, "it doesn't stand there"))
            if new and not self._has(normalise(new)):
                self.add(new, section_of, refuse)
        else:
            self._replace(*places[0], new)

    def _replace(self, number: int, start: int, end: int, new: str) -> None:
        line = self._lines[number]
        changed = line[:start] + new + line[end:]
        if changed == line:
            return
        others = {_key(each) for at, each in enumerate(self._lines) if at != number}
        whole = _split(changed)[1]
        if not whole.strip(" .,;:") or _key(changed) in others:
            del self._lines[number]
            self._replaced.append((_split(line)[1], ""))
        else:
            self._lines[number] = changed
            self._replaced.append((_split(line)[1], whole))

    def _find(self, old: str) -> list[tuple[int, int, int]]:
        """Where a text stands: as a whole line, else as whole words within one."""
        if not old:
            return []
        lines = [(number, line) for number, line in enumerate(self._lines) if _is_statement(line)]
        whole = [
            (number, len(_split(line)[0]), len(line.rstrip()))
            for number, line in lines
            if _split(line)[1] == old
        ]
        if whole:
            return whole
        pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
        return [
            (number, *match.span()) for number, line in lines for match in pattern.finditer(line)
        ]

    def _has(self, key: str) -> bool:
        return any(
            normalise(plain_fact(line)) == key for line in self._lines if _is_statement(line)
        )

    def _insert(self, section: str, line: str) -> None:
        place = self._section(section)
        if place is None:
            gap = [""] if self._lines and self._lines[-1].strip() else []
            self._lines += [*gap, f"{'#' * self._level()} {section}", "", line]
            return
        start, end = place
        last = end
        while last > start and not self._lines[last - 1].strip():
            last -= 1
        gap = [""] if last == start else []
        after = [""] if last == end < len(self._lines) else []
        self._lines[last:last] = [*gap, line, *after]

    def _section(self, name: str) -> tuple[int, int] | None:
        """The lines below the heading that fits best, without those of a deeper heading."""
        wanted = section_names_like(name)
        found = [(n, m) for n, line in enumerate(self._lines) if (m := _HEADING.match(line))]
        for rank in wanted:
            for index, (number, match) in enumerate(found):
                if match[2].strip().casefold() == rank:
                    following = found[index + 1][0] if index + 1 < len(found) else len(self._lines)
                    return number + 1, following
        return None

    def _level(self) -> int:
        """How deep the file's sections are: below a lone title, else as deep as the others."""
        depths = [len(m[1]) for line in self._lines if (m := _HEADING.match(line))]
        if len(depths) == 1 and depths[0] == 1 and not self._has_text_below_title():
            return 2
        inner = depths[1:] if len(depths) > 1 and depths[0] < min(depths[1:]) else depths
        return Counter(inner).most_common(1)[0][0] if inner else 1

    def _has_text_below_title(self) -> bool:
        return any(
            _BULLET.match(line) and line.lstrip()[:1] in "-*+"
            for line in self._lines
            if line.strip()
        )


def _split(line: str) -> tuple[str, str]:
    """A line's bullet and what stands behind it."""
    match = _BULLET.match(line)
    return (match[1] or "", match[2]) if match else ("", line)


def _is_statement(line: str) -> bool:
    return bool(line.strip()) and not _HEADING.match(line)


def _key(line: str) -> str:
    """How lines are compared: bullets, blanks, case and punctuation aside; headings by name."""
    heading = _HEADING.match(line)
    if heading:
        return f"# {normalise(heading[2])}"
    return normalise(plain_fact(line))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
