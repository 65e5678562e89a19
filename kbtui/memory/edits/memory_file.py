"""MEMORY.md: what is in every prompt. Facts are added and corrected line by line, never rewritten.

Lines that nobody asked to change stay as they are, byte for byte. A background change of any file
may be made as long as no line of the user's changes and at most a quarter of the file is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from kbtui.history.change import Actor
from kbtui.knowledge.format.facts import normalise, plain_fact

MEMORY = "memory/MEMORY.md"
_BULLET = re.compile(r"([ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?(.*)", re.DOTALL)
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Correction:
    """A line that is no longer true, and what is; nothing: it goes."""

    old: str
    new: str


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
    section_of: Callable[[str], str] | None = None,
) -> MemoryEdit:
    """Add facts below fitting headings, and replace lines that are no longer true.

    A fact that is there in other words (see `normalise`) isn't added. A correction needs its old
    line exactly once, and an empty new one removes it; where the line isn't there, what is true now
    is added as a fact.
    """
    memory = _Memory(text, section_of or default_section)
    for correction in corrections:
        memory.correct(correction.old, correction.new)
    for fact in facts:
        memory.add(fact)
    return memory.edit()


class _Memory:
    """MEMORY.md as lines, each with its own end, while it is edited."""

    def __init__(self, text: str, section_of: Callable[[str], str]) -> None:
        self._text = text
        self._end = _newline(text)
        self._lines = split_lines(text.removeprefix(_BOM))
        self._section_of = section_of
        self._added: list[str] = []
        self._replaced: list[tuple[str, str]] = []
        self._refused: list[Refused] = []

    def edit(self) -> MemoryEdit:
        mark = _BOM if self._text.startswith(_BOM) else ""
        return MemoryEdit(
            mark + "".join(self._lines),
            tuple(self._added),
            tuple(self._replaced),
            tuple(self._refused),
        )

    def add(self, fact: str) -> None:
        fact = plain_fact(fact)
        key = normalise(fact)
        if not key or self._has(key):
            self._refused.append(Refused(fact, "it is known already" if key else "it says nothing"))
        else:
            self._insert(self._section_of(fact), f"- {fact}")
            self._added.append(fact)

    def correct(self, old: str, new: str) -> None:
        old, new = plain_fact(old), plain_fact(new)
        places = self._find(old)
        if not old or len(places) > 1:
            self._refused.append(Refused(old, f"it stands there {len(places)} times"))
        elif not places:
            self._refused.append(Refused(old, "it doesn't stand there"))
            if new and not self._has(normalise(new)):
                self.add(new)
        else:
            self._replace(*places[0], new)

    def _replace(self, number: int, start: int, end: int, new: str) -> None:
        line = self._lines[number]
        changed = line[:start] + new + line[end:]
        if changed == line:
            return
        others = {line_key(each) for at, each in enumerate(self._lines) if at != number}
        rest = _content(changed)
        if not rest.strip(" .,;:") or line_key(changed) in others:
            del self._lines[number]
            rest = ""
        else:
            self._lines[number] = changed
        self._replaced.append((_content(line), rest))

    def _find(self, old: str) -> list[tuple[int, int, int]]:
        """Where a text stands: as a whole line, else as whole words within one."""
        if not old:
            return []
        lines = [(at, line) for at, line in enumerate(self._lines) if is_statement(line)]
        whole = [
            (at, _start(line), len(line.rstrip())) for at, line in lines if _content(line) == old
        ]
        pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
        return whole or [
            (at, *match.span()) for at, line in lines for match in pattern.finditer(line)
        ]

    def _has(self, key: str) -> bool:
        return any(line_key(line) == key for line in self._lines if is_statement(line))

    def _insert(self, section: str, line: str) -> None:
        line += self._end
        place = self._section(section)
        if place is None:
            heading = f"{'#' * self._level()} {section}{self._end}"
            gap = [self._end] if self._lines and self._lines[-1].strip() else []
            self._put(len(self._lines), [*gap, heading, self._end, line])
            return
        start, end = place
        last = end
        while last > start and not self._lines[last - 1].strip():
            last -= 1
        before = [self._end] if last == start else []
        after = [self._end] if last == end < len(self._lines) else []
        self._put(last, [*before, line, *after])

    def _put(self, at: int, lines: list[str]) -> None:
        if at:
            self._lines[at - 1] = _ended(self._lines[at - 1], self._end)
        self._lines[at:at] = lines

    def _section(self, name: str) -> tuple[int, int] | None:
        """The lines below the heading that fits best, without those of a deeper heading."""
        found = [
            (number, heading)
            for number, line in enumerate(self._lines)
            if (heading := heading_of(line)) is not None
        ]
        for wanted in section_names_like(name):
            for index, (number, heading) in enumerate(found):
                if heading[1].casefold() == wanted:
                    following = found[index + 1][0] if index + 1 < len(found) else len(self._lines)
                    return number + 1, following
        return None

    def _level(self) -> int:
        """How deep the file's sections are: below a lone title, else as deep as the others."""
        depths = [heading[0] for line in self._lines if (heading := heading_of(line))]
        if depths == [1] and not any(_start(line) for line in self._lines):
            return 2
        inner = depths[1:] if len(depths) > 1 and depths[0] < min(depths[1:]) else depths
        return Counter(inner).most_common(1)[0][0] if inner else 1


def _start(line: str) -> int:
    """Where the text of a line starts, behind its bullet; 0 where it has none."""
    match = _BULLET.match(line)
    return match.end(1) if match and match[1] else 0


def _content(line: str) -> str:
    return line[_start(line) :].rstrip()


def _ended(line: str, end: str) -> str:
    return line if line.endswith("\n") else line + end


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# Whether a change may be made ---------------------------------------------------------------------

MAX_LOST = 0.25
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*\s*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def lost_share(old: str, new: str) -> float:
    """Which share of the lines of `old` has nothing like it in `new`, from 0 to 1.

    A line that was reworded isn't lost. Blank lines don't count.
    """
    before = [key for line in split_lines(old) if (key := line_key(line))]
    others = Counter(key for line in split_lines(new) if (key := line_key(line)))
    missing = []
    for key in before:
        if others[key]:
            others[key] -= 1
        else:
            missing.append(key)
    rest = list(others.elements())
    lost = 0
    for key in missing:
        like = process.extractOne(key, rest, scorer=fuzz.ratio, score_cutoff=60.0)
        if like is None:
            lost += 1
        else:
            del rest[like[2]]
    return lost / len(before) if before else 0.0


def review_reason(old: str, new: str, authors: Sequence[Actor | None] = ()) -> str | None:
    """Say why a background change must be proposed instead of made; None: it may be made.

    `authors` says who wrote each line of `old`, see `History.authors`.
    """
    share = lost_share(old, new)
    if share > MAX_LOST:
        return f"it would lose {share:.0%} of the lines"
    kept = Counter(line.rstrip() for line in split_lines(new))
    for line, author in zip(split_lines(old), authors, strict=False):
        if kept[line.rstrip()] > 0:
            kept[line.rstrip()] -= 1
        elif author is not None and author.brings_words_of_people and line.strip():
            return f"it would change a line that you wrote: {plain_fact(line)!r}"
    return None


def split_lines(text: str) -> list[str]:
    """The lines of a text with their ends, as git counts them: only a line feed ends one."""
    return _LINE.findall(text)


def heading_of(line: str) -> tuple[int, str] | None:
    """The level and text of a heading line; None for any other."""
    match = _HEADING.fullmatch(line)
    return (len(match[1]), match[2]) if match else None


def is_statement(line: str) -> bool:
    """True if a line says something: it isn't blank and no heading."""
    return bool(line.strip()) and heading_of(line) is None


def line_key(line: str) -> str:
    """How lines are compared: bullets, blanks, case and punctuation aside; headings by name."""
    heading = heading_of(line)
    return normalise(plain_fact(line)) if heading is None else f"# {normalise(heading[1])}"


# Headings -----------------------------------------------------------------------------------------

PREFERENCES = "User Preferences"
SKILLS = "Skills"
ABOUT = "About the User"
PEOPLE = "People"
PROJECTS = "Projects"
DECISIONS = "Decisions"
FACTS = "Facts"

# The first that is found in a fact decides. \u2019 is the typographic apostrophe.
_SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        DECISIONS,
        (
            r"(?i:\b(?:decided|decision|we (?:chose|agreed))\b)",
            r"(?i:\b(?:chose|switched|migrated) (?:to|from)\b)",
        ),
    ),
    (
        PREFERENCES,
        (
            r"(?i:\b(?:favou?rites?|prefer(?:s|red|ences?)?)\b)",
            r"(?i:\b(?:user|i) (?:really |also )?(?:like|love|hate|dislike|enjoy|avoid)s?\b)",
            r"(?i:^(?:really |also )?(?:likes|loves|hates|dislikes|enjoys|avoids)\b)",
            r"(?i:\b(?:always|never) wants?\b)",
            r"(?i:\b(?:do|does)(?:n['\u2019]t| not) (?:like|want)\b)",
        ),
    ),
    (
        SKILLS,
        (
            r"(?i:\b(?:programming |spoken |foreign )?languages?\b.*(?::|\bare\b|\bknows?\b))",
            r"(?i:\bskills?\b|\bfluent in\b|\bspeaks\b|^(?:the )?(?:user |i )?knows?\b)",
            r"(?i:\b(?:experienced?|expert|proficient|certified) (?:in|with|at)\b)",
        ),
    ),
    (
        ABOUT,
        (
            r"(?i:^(?:the )?(?:user['\u2019]s |my )?(?:full |first |last )?name\b)",
            r"(?i:\bborn (?:on|in)\b|\bbirthday\b|\blives? (?:in|at|near)\b)",
            r"(?i:^(?:the )?(?:user |i )?works? (?:at|for|as|in)\b|\b(?:job|occupation)\b)",
            r"(?i:\btime ?zone\b|\bpronouns?\b|\ballerg(?:y|ies|ic)\b)",
            r"(?i:\bis (?:married|vegan|vegetarian)\b)",
            r"(?i:\b(?:wife|husband|partner|daughter|son|child|cat|dog|pet)(?:['\u2019]s)? name\b)",
        ),
    ),
    (
        PEOPLE,
        (
            r"^[A-Z][\w'-]+(?: [A-Z][\w'-]+)? is (?:the|a|an|our|my)\b",
            r"^[A-Z][\w'-]+(?: [A-Z][\w'-]+)? (?:owns|leads|manages|reports to|joined|maintains)\b",
            r"^[A-Z][\w'-]+(?: [A-Z][\w'-]+)? works (?:on|at|for|as|in|with)\b",
        ),
    ),
    (PROJECTS, (r"(?i:\b(?:projects?|deadline|milestone|repo|repository|release)\b)",)),
)
_SECTION_RULES = tuple((section, re.compile("|".join(parts))) for section, parts in _SECTIONS)
_LIKE: dict[str, tuple[str, ...]] = {
    PREFERENCES: ("preferences", "likes and dislikes", "likes", "user preference"),
    SKILLS: ("skills and knowledge", "technical skills", "technical background", "knowledge"),
    ABOUT: ("user", "about", "about me", "user information", "user profile", "personal"),
    PEOPLE: ("team", "contacts", "people and roles"),
    PROJECTS: ("project", "project context", "current projects", "work"),
    DECISIONS: ("key decisions", "decision", "decisions made"),
    FACTS: ("other facts", "important facts", "notes", "important notes", "other", "general"),
}


def default_section(fact: str) -> str:
    """The heading for a fact; ``Facts`` where no pattern fits."""
    return next((section for section, pattern in _SECTION_RULES if pattern.search(fact)), FACTS)


def section_names_like(section: str) -> tuple[str, ...]:
    """The names under which a file may have this section already, the best first, casefolded."""
    return (section.casefold(), *_LIKE.get(section, ()))
