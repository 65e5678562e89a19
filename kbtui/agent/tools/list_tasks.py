"""The tool ``list_tasks``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbtui.agent.newer_lines import bracketed
from kbtui.agent.tools.base import ToolContext, ToolResult, flag, number, spec, text
from kbtui.memory.recall.agenda import GROUPS, AgendaItem, When, agenda_seen
from kbtui.search.results import NewerLine
from kbtui.text import counted, shorten

_LIMIT = 50
_WIDTH = 200


class ListTasks:
    """The tool that lists open tasks, and lines that name a day to come."""

    spec = spec(
        "list_tasks",
        """List the user's open tasks from journal and notes, late ones first, with their dates.
        With coming=true, list what has a date in the next two weeks instead: tasks, appointments
        and other dated lines.""",
        (),
        when=text("only these: late, in the next 7 days, later, undated", enum=list(GROUPS)),
        coming=flag("what is coming, by day, instead of the tasks"),
        limit=number("how many at most (50)"),
        offset=number("how many to pass over (0)"),
    )
    writes = False

    def run(self, context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
        """List the tasks or dated lines, with the number of those not shown."""
        today, agenda = context.now().date(), agenda_seen(context.view)
        when: When | None = arguments.get("when")
        groups = agenda.grouped(today)
        tasks = [(name, item) for name in GROUPS for item in groups[name] if when in (None, name)]
        is_coming = arguments.get("coming", False)
        found = [("coming", item) for item in agenda.coming(today)] if is_coming else tasks
        start = max(0, arguments.get("offset", 0))
        shown = found[start : start + max(1, min(arguments.get("limit", _LIMIT), 4 * _LIMIT))]
        newer = context.view.newer(item.text for _, item in shown)
        lines = [_line(context, name, item, newer.get(item.text)) for name, item in shown]
        if rest := len(found) - start - len(shown):
            lines.append(f"({max(rest, 0)} more: use offset={start + len(shown)})")
        kind = ("dated line", "dated lines") if is_coming else ("open task", "open tasks")
        summary = counted(len(found), *kind)
        data = {
            "total": len(found),
            "tasks": [_as_data(*each, newer.get(each[1].text)) for each in shown],
        }
        head = f"{summary} (today is {today:%A} {today}):"
        return ToolResult("\n".join([head, *lines]), summary, data)


def _line(context: ToolContext, name: str, item: AgendaItem, newer: NewerLine | None) -> str:
    source = context.sources.add(item.path, item.line, item.text, item.title)
    day = "" if item.day is None else f", {_day_of(item)}"
    box = f"[{item.task.mark}] " if item.task is not None else ""
    behind = f" {bracketed(newer, context.now().date())}" if newer is not None else ""
    return f"- {box}{shorten(item.text, _WIDTH)} ({name}{day}) [{source.n}]{behind}"


def _day_of(item: AgendaItem) -> str:
    is_span = item.first is not None and item.first != item.day
    return f"{item.first} to {item.day}" if is_span else f"{item.day}"


def _as_data(name: str, item: AgendaItem, newer: NewerLine | None) -> dict[str, Any]:
    return {
        "path": item.path,
        "line": item.line,
        "title": item.title,
        "text": item.text,
        "when": name,
        "day": str(item.day) if item.day is not None else None,
        "task": item.task is not None,
        "newer": newer and {"text": newer.text, "path": newer.path, "line": newer.line},
    }
