"""Tools as the agent has them: a description for the model, a function that answers in words.

They may look at entries, notes and how-tos, never at sessions, settings or machine files.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Protocol

from kbtui.agent.sources import Sources as Sources, quoted as quoted
from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.history.change import Actor, Commit, Origin
from kbtui.memory.edits.editor import Editor, Ground
from kbtui.memory.recall.provenance import ShownProvenance
from kbtui.models.port import ToolSpec, cut_to_tokens, estimate_tokens
from kbtui.settings import Settings
from kbtui.text import clean_line, shorten
from kbtui.views.view import View
from kbtui.workspace import files
from kbtui.workspace.layout import BOOTSTRAP_FILES, ENTRIES, Layout

MOST_TOKENS = 4_000
_DAY = re.compile(r"\d{4}(-\d{1,2}){0,2}")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool: `output` for the model, `summary` in one line for people.

    `commit` is what a write made, `proposal` the id of what waits in the inbox instead, `data` the
    output for a program to read. Each file that the output tells of is named in `data` or `about`,
    or has been added to the sources.
    """

    output: str
    summary: str
    data: Mapping[str, Any] = field(default_factory=dict)
    commit: Commit | None = None
    proposal: str = ""
    about: tuple[str, ...] = ()


@dataclass(slots=True)
class ToolContext:
    """All that a tool may use, for one turn.

    Attributes:
        view: The workspace as whoever is answered may see it: all that a tool reads, it asks here.
        layout: Which file a path is.
        settings: Those of the workspace.
        origin: Where changes of this turn come from.
        sources: What may be cited.
        session: The session that the turn belongs to.
        message: The user's message that the turn answers.
        find_editor: Gives the edit engine; without it nothing can be written.
        said: What the user says in this turn; empty where no person speaks.
        said_at: When they said it; None: now.
        actor: Who asks, for what is written.
        now: The clock, in the user's time zone.
        recalls: Earlier conversations may be searched.
        most_tokens: So long a result may be.
        find_ground: Gives what may be written without a person's decision; None: all of it.
        attached: The files that the user's message refers to, and their texts as they are shown.
        find_provenance: Tells where lines come from.
    """

    view: View
    layout: Layout
    settings: Settings
    origin: Origin
    sources: Sources
    session: str = ""
    message: int = 0
    find_editor: Callable[[], Editor] | None = None
    said: str = ""
    actor: Actor = Actor.AGENT
    now: Callable[[], datetime] = lambda: datetime.now().astimezone()
    said_at: datetime | None = None
    recalls: bool = True
    most_tokens: int = MOST_TOKENS
    find_ground: Callable[[], Ground] | None = None
    attached: Sequence[tuple[str, str]] = ()
    find_provenance: Callable[[], ShownProvenance] | None = None


def new_turn_id() -> str:
    """Name a turn, so that its changes can be found and undone together."""
    return f"t{secrets.token_hex(5)}"


class Tool(Protocol):
    """A tool; it runs in a thread."""

    spec: ToolSpec
    writes: bool

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Do the work; a `KbtuiError` says that it can't be done, and the model is told why."""


class RefusedError(UsageError):
    """Raised for a thing that a model may not do."""


def spec(
    name: str,
    description: str,
    required: tuple[str, ...],
    /,
    renamed: Mapping[str, str] = MappingProxyType({}),
    **properties: Any,
) -> ToolSpec:
    """Describe a tool; each property is a JSON Schema, `renamed` as in `ToolSpec`."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name, " ".join(description.split()), schema, renamed=renamed)


def text(description: str, **more: Any) -> dict[str, Any]:
    """An argument that is a text."""
    return {"type": "string", "description": description, **more}


def number(description: str, **more: Any) -> dict[str, Any]:
    """An argument that is a whole number."""
    return {"type": "integer", "description": description, **more}


def texts(description: str) -> dict[str, Any]:
    """An argument that is a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


SINCE = text("only what was updated since: YYYY-MM-DD, YYYY-MM or YYYY")
UNTIL = text("only what was updated until then")


def days(arguments: Mapping[str, Any]) -> str:
    """The days that `since` and `until` ask for, as ``2026-03..2026-05``; empty where neither is.

    Raises:
        RefusedError: one of them is no date.
    """
    since, until = (str(arguments.get(name, "")).strip() for name in ("since", "until"))
    for day in (since, until):
        if day and not _DAY.fullmatch(day):
            raise RefusedError(
                f"{shorten(clean_line(day), 40)!r} is no date.",
                "Write YYYY-MM-DD, YYYY-MM or YYYY.",
            )
    return f"{since}..{until}" if since or until else ""


def flag(description: str) -> dict[str, Any]:
    """An argument that is yes or no."""
    return {"type": "boolean", "description": description}


def error_text(error: KbtuiError) -> str:
    """An error as the model is told it."""
    return f"Error: {error.for_models}"


def not_there(path: str) -> NotFoundError:
    """Say that there is no such file."""
    return NotFoundError(f"There is no {clean_line(path)}.", "See what there is: list_entries.")


def cap(output: str, most_tokens: int = MOST_TOKENS) -> str:
    """Cut what is too long at a line, and say so."""
    head = cut_to_tokens(output, most_tokens) or cut_line(output, most_tokens)
    if head == output:
        return output
    return f"{head.rstrip()}\n(cut: {len(output) - len(head):,} more characters)"


def cut_line(line: str, most_tokens: int) -> str:
    """The beginning of a line that is too long."""
    tokens = estimate_tokens(line)
    return line if tokens <= most_tokens else line[: len(line) * most_tokens // tokens]


AREAS = ("knowledge", "memory", "docs", "skills", *BOOTSTRAP_FILES)


def checked_area(path: str, roots: Sequence[str] = (), layout: Layout | None = None) -> str:
    """Check that the agent may look at a path, of the user's own folders `roots` as well.

    In a `layout` in place it may be as the user sees it, ``Work/The Plan.md``.

    Raises:
        UnsafePathError: it leads outside.
        RefusedError: it lies in no area for the agent.
    """
    path = files.checked_path(path.strip())
    above = {path, *map(str, PurePosixPath(path).parents)} - {"."}
    if above.isdisjoint([*AREAS, *roots]) and layout is not None and layout.in_place:
        inner = files.checked_path(layout.path_of(path))
        if inner.startswith(ENTRIES) and layout.place(inner).exists():
            return inner
    if above.isdisjoint([*AREAS, *roots]):
        raise RefusedError(
            f"{clean_line(path)} is not for the agent to read.",
            f"Look under {', '.join(AREAS[:4])}, or in {', '.join(AREAS[4:])}.",
        )
    return path
