"""The agent's tools, how they are run, and how they are described to a model.

Models with a small window get shorter descriptions; omitted arguments still work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeVar

from kbtui.agent.events import TurnChange
from kbtui.agent.tools.base import Tool, ToolContext, error_text
from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.change import Commit, describe, is_derived
from kbtui.models.port import ToolCall, ToolSpec
from kbtui.models.schema import ArgumentError, parse_arguments
from kbtui.text import shorten

T = TypeVar("T")
SMALL_WINDOW = 8_192
"""Context windows up to this many tokens count as small: their models get short texts."""

_BRIEF_DESCRIPTIONS: Mapping[str, str] = {
    "search": "Search entries, notes, earlier conversations and documents. Cite results as [n].",
    "list_entries": "List entries with their summaries.",
    "list_tasks": "List open tasks with their dates, and what is coming.",
    "similar_notes": "List the notes that are like one, by meaning.",
    "read": "Read an entry in full, or a file under memory/, docs/ or skills/.",
    "write_entry": "Write a new entry about one subject that has none yet. Search first.",
    "edit_entry": "Change an entry, MEMORY.md or USER.md: replace `old` by `new`, or `append`.",
    "rename_entry": "Rename or move an entry.",
    "grep": "Find lines that contain a text.",
}
_OMITTED_ARGUMENTS: Mapping[str, frozenset[str]] = {
    "search": frozenset({"type", "tag", "since", "until", "project", "limit"}),
    "list_entries": frozenset({"type", "since", "until", "limit", "offset"}),
    "list_tasks": frozenset({"when", "limit", "offset"}),
    "similar_notes": frozenset({"limit"}),
    "read": frozenset({"from_line"}),
    "write_entry": frozenset({"sections", "aliases", "related", "tags", "folder"}),
    "edit_entry": frozenset({"body", "summary", "add_tags", "add_related", "add_aliases"}),
}
_OMITTED_KEYS = frozenset({"description", "maxLength"})


def brief(spec: ToolSpec) -> ToolSpec:
    """Shorten a tool's description, and omit arguments that are seldom needed."""
    parameters = dict(spec.parameters)
    omitted = _OMITTED_ARGUMENTS.get(spec.name, frozenset())
    parameters["properties"] = {
        name: _brief_schema(schema)
        for name, schema in parameters["properties"].items()
        if name not in omitted
    }
    parameters.pop("additionalProperties", None)
    description = _BRIEF_DESCRIPTIONS.get(spec.name, spec.description)
    return replace(spec, description=description, parameters=parameters)


def _brief_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in _OMITTED_KEYS}


log = logging.getLogger(__name__)


@cache
def own_tools() -> tuple[Tool, ...]:
    """Return the agent's own tools; a turn without a model needs none of them."""
    from kbtui.agent.tools.list_entries import ListEntries
    from kbtui.agent.tools.list_tasks import ListTasks
    from kbtui.agent.tools.reading import Grep, Read
    from kbtui.agent.tools.searching import Search
    from kbtui.agent.tools.similar_notes import SimilarNotes
    from kbtui.agent.tools.writing import EditEntry, RenameEntry, WriteEntry

    readers: tuple[Tool, ...] = (Search(), ListEntries(), ListTasks(), SimilarNotes(), Read())
    return (*readers, WriteEntry(), EditEntry(), RenameEntry(), Grep())


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of a tool call; `output` is what the model gets.

    `taint` lists what was shown or written that only models on this machine may see, `proposal` is
    the id of a change waiting in the inbox, `data` is the output for programs.
    """

    ok: bool
    output: str
    summary: str
    changes: tuple[TurnChange, ...] = ()
    taint: tuple[str, ...] = ()
    proposal: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


_INVALID_CALL = "the model asked for it in a form that no tool takes"


class Toolbox:
    """Tools by name, the agent's own if no others are given."""

    def __init__(self, tools: Sequence[Tool] | None = None) -> None:
        self._given = tools

    @cached_property
    def _tools(self) -> dict[str, Tool]:
        tools = own_tools() if self._given is None else self._given
        return {tool.spec.name: tool for tool in tools}

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The descriptions of the tools for a model, always in the same order."""
        return tuple([tool.spec for tool in self._tools.values()])

    def specs_for(self, window: int) -> tuple[ToolSpec, ...]:
        """Return the descriptions for a model with a context window of so many tokens."""
        return self.specs if window > SMALL_WINDOW else tuple(map(brief, self.specs))

    def writes(self, name: str) -> bool:
        """Return whether a tool changes anything."""
        tool = self._tools.get(name)
        return tool is not None and tool.writes

    def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """Run a call; errors become its outcome."""
        try:
            tool = self._named(call.name)
            known = len(context.sources.added)
            result = tool.run(context, _arguments(call, tool.spec))
            cited = context.sources.added[known:]
        except ArgumentError as error:
            return ToolOutcome(False, error_text(error), _INVALID_CALL)
        except KbtuiError as error:
            return ToolOutcome(False, error_text(error), shorten(error.message, 120))
        return ToolOutcome(
            ok=True,
            output=result.output,
            summary=result.summary,
            changes=() if result.commit is None else (_visible_change(result.commit, context),),
            taint=context.view.taint_of(
                [result.data, result.about, cited, _touched(result.commit)]
            ),
            proposal=result.proposal,
            data=result.data,
        )

    def _named(self, name: str) -> Tool:
        try:
            return self._tools[name]
        except KeyError:
            names = ", ".join(self._tools)
            raise NotFoundError(
                f"There is no tool {shorten(name, 60)!r}.", f"Call one of these: {names}."
            ) from None


def _arguments(call: ToolCall, spec: ToolSpec) -> dict[str, Any]:
    """Parse and validate the arguments of a call.

    Raises:
        ArgumentError: they don't match the spec; the hint says how to call it.
    """
    try:
        return parse_arguments(call.arguments, spec.parameters, spec.renamed)
    except ArgumentError as error:
        needed = ", ".join(spec.parameters["required"]) or "none that is needed"
        rest = [each for each in spec.parameters["properties"] if each not in needed.split(", ")]
        free = f"; {', '.join(rest)} may be left out" if rest else ""
        hint = f"Call {spec.name} again, with a JSON object: {needed}{free}."
        raise ArgumentError(error.message, hint) from None


def _visible_change(commit: Commit, context: ToolContext) -> TurnChange:
    """Return the change of a tool, without files that the caller must not know of."""
    visible = tuple(each for each in commit.paths if not context.view.conceals(each.path))
    return TurnChange(commit.id, tuple(change.path for change in visible), describe(visible))


def _touched(commit: Commit | None) -> list[str]:
    changed = () if commit is None else commit.paths
    return [change.path for change in changed if not is_derived(change.path)]


async def in_thread(work: Callable[[], T], done: Callable[[T], None] | None = None) -> T:
    """Run `work` in a thread to its end, even if cancelled; then call `done` at once."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        result = await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if done is not None and running.exception() is None:
            done(running.result())
        raise
    if done is not None:
        done(result)
    return result
