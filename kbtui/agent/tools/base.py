"""The interface of the agent's tools: a description for the model, a function returning text.

They may read entries, notes and skills, never sessions, settings or internal files.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from kbtui.agent.sources import Sources as Sources, quoted as quoted
from kbtui.clock import local_now
from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.history.change import Actor, Commit, Origin
from kbtui.models.port import ToolSpec, cut_to_tokens, estimate_tokens
from kbtui.settings import Settings
from kbtui.text import clean_line, shorten
from kbtui.views.view import View
from kbtui.workspace import files
from kbtui.workspace.layout import BOOTSTRAP_FILES, ENTRIES, Layout

if TYPE_CHECKING:
    from kbtui.memory.edits.editor import Editor, Ground
    from kbtui.memory.recall.provenance import ShownProvenance

MAX_TOKENS = 4_000
_DAY = re.compile(r"\d{4}(-\d{1,2}){0,2}")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool: `output` for the model, a one-line `summary` for people.

    `commit` is that of a write, `proposal` the id of a change waiting in the inbox instead, `data`
    the output for programs. Every file the output is based on must be named in `data` or `about`,
    or added to the sources.
    """

    output: str
    summary: str
    data: Mapping[str, Any] = field(default_factory=dict)
    commit: Commit | None = None
    proposal: str = ""
    about: tuple[str, ...] = ()


@dataclass(slots=True)
class ToolContext:
    """Everything a tool may use in one turn.

    Attributes:
        view: The workspace as the caller may see it; tools read only from this.
        layout: The mapping of paths to files.
        settings: The settings of the workspace.
        origin: The origin recorded with changes of this turn.
        sources: The numbered sources that may be cited.
        session: The id of the turn's session.
        message: The id of the user's message that the turn answers.
        find_editor: Returns the edit engine; None if nothing can be written.
        said: What the user says in this turn; empty if the caller isn't a person's chat.
        said_at: When they said it; None: now.
        actor: The actor of writes.
        now: The clock, in the user's time zone.
        recalls: Whether earlier conversations may be searched.
        most_tokens: The maximum length of a result.
        find_ground: Returns what may be written without a person's decision; None: everything.
        attached: The files that the user's message refers to, with their texts as shown.
        find_provenance: Returns where lines come from.
        reviewed: Whether a person decides on all changes, whatever the settings say.
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
    now: Callable[[], datetime] = local_now
    said_at: datetime | None = None
    recalls: bool = True
    most_tokens: int = MAX_TOKENS
    find_ground: Callable[[], Ground] | None = None
    attached: Sequence[tuple[str, str]] = ()
    find_provenance: Callable[[], ShownProvenance] | None = None
    reviewed: bool = False


def new_turn_id() -> str:
    """Return a new turn id, by which its changes can be found and undone together."""
    return f"t{secrets.token_hex(5)}"


class Tool(Protocol):
    """A tool; it runs in a thread."""

    spec: ToolSpec
    writes: bool

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Run the tool; the model gets the message of a raised `KbtuiError`."""


class RefusedError(UsageError):
    """Raised if a model asks for something it may not do."""


def spec(
    name: str,
    description: str,
    required: tuple[str, ...],
    /,
    renamed: Mapping[str, str] = MappingProxyType({}),
    **properties: Any,
) -> ToolSpec:
    """Return a tool's spec; each property is a JSON Schema, `renamed` as in `ToolSpec`."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name, " ".join(description.split()), schema, renamed=renamed)


def text(description: str, **more: Any) -> dict[str, Any]:
    """Return the schema of a text argument."""
    return {"type": "string", "description": description, **more}


def number(description: str, **more: Any) -> dict[str, Any]:
    """Return the schema of an integer argument."""
    return {"type": "integer", "description": description, **more}


def texts(description: str) -> dict[str, Any]:
    """Return the schema of an argument that is a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


SINCE = text("only what was updated since: YYYY-MM-DD, YYYY-MM or YYYY")
UNTIL = text("only what was updated until then")


def days(arguments: Mapping[str, Any]) -> str:
    """Return the range of `since` and `until` as ``2026-03..2026-05``; empty if there is neither.

    Raises:
        RefusedError: one of them isn't a date.
    """
    from kbtui.search.query.parser import date_bounds  # seldom needed

    since, until = (str(arguments.get(name, "")).strip() for name in ("since", "until"))
    for day in (since, until):
        if day and not (_DAY.fullmatch(day) and date_bounds(day)):
            raise RefusedError(
                f"{shorten(clean_line(day), 40)!r} is no date.",
                "Write YYYY-MM-DD, YYYY-MM or YYYY.",
            )
    return f"{since}..{until}" if since or until else ""


def flag(description: str) -> dict[str, Any]:
    """Return the schema of a boolean argument."""
    return {"type": "boolean", "description": description}


def error_text(error: KbtuiError) -> str:
    """Return the text of an error for the model."""
    return f"Error: {error.for_models}"


def missing_file(path: str) -> NotFoundError:
    """Return the error for a missing file."""
    return NotFoundError(f"There is no {clean_line(path)}.", "See what there is: list_entries.")


def cap(output: str, most_tokens: int = MAX_TOKENS) -> str:
    """Cut an output that is too long at a line, with a note."""
    head = cut_to_tokens(output, most_tokens) or cut_line(output, most_tokens)
    if head == output:
        return output
    return f"{head.rstrip()}\n(cut: {len(output) - len(head):,} more characters)"


def cut_line(line: str, most_tokens: int) -> str:
    """Cut a line that is too long."""
    tokens = estimate_tokens(line)
    return line if tokens <= most_tokens else line[: len(line) * most_tokens // tokens]


AREAS = ("knowledge", "memory", "docs", "skills", *BOOTSTRAP_FILES)


def checked_area(path: str, roots: Sequence[str] = (), layout: Layout | None = None) -> str:
    """Check that the agent may read a path in its areas or the further folders `roots`.

    With a `layout` in place the path may be as the user sees it, ``Work/The Plan.md``.

    Raises:
        UnsafePathError: it leads outside the workspace.
        RefusedError: it is in none of the agent's areas.
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
