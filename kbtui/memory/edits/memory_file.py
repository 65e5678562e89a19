"""MEMORY.md: what is in every prompt. Facts are added and corrected line by line, never rewritten.

Lines that nobody asked to change stay as they are, byte for byte.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from kbtui.knowledge.format.facts import normalise, plain_fact

MEMORY = "memory/MEMORY.md"
_BULLET = re.compile(r"([ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?(.*)", re.DOTALL)
_BOM = "\ufeff"


def with_facts(
    text: str, facts: Iterable[str], section_of: Callable[[str], str] | None = None
) -> str:
    """Add facts below fitting headings, but for what is there in other words; see `normalise`."""
    memory = _Memory(text)
    for fact in map(plain_fact, facts):
        if (key := normalise(fact)) and not memory.has(key):
            memory.insert((section_of or default_section)(fact), f"- {fact}")
    return memory.text


def with_correction(text: str, old: str, new: str) -> str:
    """Replace a line, or part of one, that is no longer true; with nothing new it goes.

    One that isn't there exactly once stays, and so does the text.
    """
    memory = _Memory(text)
    places = memory.find(plain_fact(old))
    if len(places) == 1:
        memory.replace(*places[0], plain_fact(new))
    return memory.text


class _Memory:
    """MEMORY.md as lines, each with its own end, while it is edited."""

    def __init__(self, text: str) -> None:
        self._mark = _BOM if text.startswith(_BOM) else ""
        self._end = _newline(text)
        self._lines = split_lines(text.removeprefix(_BOM))

    @property
    def text(self) -> str:
        return self._mark + "".join(self._lines)

    def replace(self, number: int, start: int, end: int, new: str) -> None:
        line = self._lines[number]
        changed = line[:start] + new + line[end:]
        if changed == line:
            return
        others = {line_key(each) for at, each in enumerate(self._lines) if at != number}
        if not _content(changed).strip(" .,;:") or line_key(changed) in others:
            del self._lines[number]
        else:
            self._lines[number] = changed

    def find(self, old: str) -> list[tuple[int, int, int]]:
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

    def has(self, key: str) -> bool:
        return any(line_key(line) == key for line in self._lines if is_statement(line))

    def insert(self, section: str, line: str) -> None:
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


_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*\s*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


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
