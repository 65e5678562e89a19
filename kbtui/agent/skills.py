"""Skills: how-to documents for the agent, one folder each with a SKILL.md.

A skill marked ``always: true`` is in every prompt in full; the others have one line in it, and the
agent reads them when it needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kbtui.errors import KbtuiError
from kbtui.knowledge.format import frontmatter
from kbtui.shipped.install import SKILLS, shipped_skill
from kbtui.text import clean_line, shorten
from kbtui.views.view import View
from kbtui.workspace.layout import Layout

_FILE = "SKILL.md"
_TRUE = frozenset({"true", "yes", "on", "1"})


@dataclass(frozen=True, slots=True)
class Skill:
    """A how-to document.

    `path` is where ``read`` finds it; "" if it ships with kbtui, in which case it is always shown
    in full. `body` is its text below the frontmatter, `brief` a shorter one for models with a small
    window, if any.
    """

    name: str
    path: str
    description: str
    always: bool
    body: str
    brief: str = ""

    @property
    def line(self) -> str:
        """Its line in the prompt."""
        return f"- {self.name}: {shorten(self.description, 200)} (read {self.path})"


def load_skills(layout: Layout, view: View) -> list[Skill]:
    """Return the skills of a workspace, and those shipped with kbtui that it doesn't override.

    Unreadable and hidden ones are omitted.
    """
    own = {skill.name: skill for name in _folders(layout) if (skill := _read(view, name))}
    shipped = [_parsed(name, "", shipped_skill(name)) for name in SKILLS if name not in own]
    return [*shipped, *(own[name] for name in sorted(own))]


def _folders(layout: Layout) -> list[str]:
    try:
        return sorted(each.name for each in layout.place("skills").iterdir() if each.is_dir())
    except OSError:
        return []


def _read(view: View, name: str) -> Skill | None:
    path = f"skills/{name}/{_FILE}"
    try:
        return _parsed(name, path, view.text(path))
    except KbtuiError:
        return None


def _parsed(name: str, path: str, text: str) -> Skill:
    values = frontmatter.parse(text).values
    body = frontmatter.body_of(text).strip()
    first = next((line for line in body.splitlines() if line.strip() and line[0] != "#"), "")
    return Skill(
        name=clean_line(name),
        path=path,
        description=clean_line(_word(values, "description") or first),
        always=not path or _word(values, "always").lower() in _TRUE,
        body=body,
        brief=_word(values, "brief").strip(),
    )


def _word(values: Mapping[str, Any], key: str) -> str:
    return str(values.get(key) or "")
