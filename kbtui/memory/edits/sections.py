"""Under which heading of MEMORY.md a fact belongs, by explicit English patterns."""

from __future__ import annotations

import re

PREFERENCES = "User Preferences"
SKILLS = "Skills"
ABOUT = "About the User"
PEOPLE = "People"
PROJECTS = "Projects"
DECISIONS = "Decisions"
FACTS = "Facts"

# The first that is found in a fact decides. \u2019 is the typographic apostrophe.
_PATTERNS: tuple[tuple[str, tuple[str, ...]], ...] = (
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
    (
        PROJECTS,
        (r"(?i:\b(?:projects?|deadline|milestone|repo|repository|release)\b)",),
    ),
)
_RULES = tuple((section, re.compile("|".join(parts))) for section, parts in _PATTERNS)
_LIKE: dict[str, tuple[str, ...]] = {
    PREFERENCES: ("preferences", "likes and dislikes", "likes", "user preference"),
    SKILLS: ("skills and knowledge", "technical skills", "technical background", "knowledge"),
    ABOUT: ("user", "about", "about me", "user information", "user profile", "personal"),
    PEOPLE: ("team", "contacts", "people and roles"),
    PROJECTS: ("project", "project context", "current projects", "work"),
    DECISIONS: ("key decisions", "decision", "decisions made"),
    FACTS: ("other facts", "important facts", "notes", "important notes", "other", "general"),
}


def section_of(fact: str) -> str:
    """The heading for a fact; ``Facts`` where no pattern fits."""
    return next((section for section, pattern in _RULES if pattern.search(fact)), FACTS)


def section_names_like(section: str) -> tuple[str, ...]:
    """The names under which a file may have this section already, the best first, casefolded."""
    return (section.casefold(), *_LIKE.get(section, ()))
