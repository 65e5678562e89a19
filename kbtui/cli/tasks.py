"""`kbtui tasks`: the open tasks of journal and notes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kbtui.cli.context import WorkspaceOption, json_option, pass_place
from kbtui.cli.output import note, say_json, say_line, say_styled
from kbtui.errors import UsageError
from kbtui.text import counted, fold

if TYPE_CHECKING:
    from datetime import date

    from kbtui.knowledge.format.tasks import Field
    from kbtui.memory.recall.agenda import AgendaItem, NewerDay, When
    from kbtui.workspace.layout import Layout

_HEADINGS: dict[str, str] = {
    "late": "Late",
    "week": "In the next seven days",
    "later": "Later",
    "undated": "Without a date",
}


@click.command()
@click.argument("words", nargs=-1, metavar="[WORDS]")
@json_option
@click.option("--ics", is_flag=True, help="As a calendar (iCalendar); private ones aren't in it.")
@pass_place
def tasks(place: WorkspaceOption, words: tuple[str, ...], as_json: bool, ics: bool) -> int:
    """List the open tasks, late ones first.

    Only those with all WORDS, of journal and notes. Tasks are list items with an empty checkbox.
    Their dates may be Obsidian Tasks' signs, Dataview's fields, or words.
    """
    if ics and as_json:
        raise UsageError("--ics and --json are two forms.", "Choose one of them.")
    from kbtui.clock import local_now
    from kbtui.memory.recall.agenda import GROUPS, newer_days
    from kbtui.views.view import Audience

    now = local_now()
    with place.opened() as kb:
        agenda = kb.agenda()
        groups = agenda.grouped(now.date())
        wanted = [fold(word) for word in words]
        found = [
            (name, item)
            for name in GROUPS
            for item in groups[name]
            if all(word in fold(f"{item.text} {item.title}") for word in wanted)
        ]
        if ics:
            shown = [item for _, item in found if not kb.library.is_private(item.path)]
            _say_calendar(shown, len(found) - len(shown))
        else:
            view = kb.seen_by(Audience.OWN_MODEL)
            newer = newer_days([item for _, item in found], agenda, view, now.date())
            if as_json:
                rows = zip(found, newer, strict=True)
                say_json([_shape(*pair, instead, kb.workspace) for pair, instead in rows])
            else:
                _say(found, newer, now.date(), kb.workspace)
    return 0 if found or not words else 1


def _say_calendar(items: list[AgendaItem], hidden: int) -> None:
    from kbtui.clock import local_now
    from kbtui.presentation.ics import calendar_of

    sys.stdout.write(calendar_of(items, local_now()))
    if hidden:
        note(f"kbtui: {counted(hidden, 'private task')} left out.")


def _say(
    found: list[tuple[When, AgendaItem]], newer: list[NewerDay | None], today: date, layout: Layout
) -> None:
    from kbtui.memory.recall.agenda import due_text

    above = ""
    for (name, item), instead in zip(found, newer, strict=True):
        if name != above:
            say_line(*([] if not above else ["\n"]), say_styled(_HEADINGS[name], bold=True))
            above = name
        when = due_text(item, today)
        place = f"{layout.file(item.path)}:{item.line}"
        about = " · ".join(filter(None, (when, str(instead or ""), place)))
        say_line("  [ ] ", say_styled(item.text), "  ", say_styled(about, dim=True))
    if not found:
        note("kbtui: No task is open.")


def _shape(name: str, item: AgendaItem, newer: NewerDay | None, layout: Layout) -> dict[str, Any]:
    fields = item.fields
    names: list[Field] = ["scheduled", "start", "created"]
    names = [name for name in names if name in fields.dates]
    return {
        "text": item.text,
        "when": name,
        "day": item.day,
        "first_day": item.first,
        "unit": item.unit if item.day is not None else None,
        "time": item.time or None,
        "path": layout.file(item.path),
        "line": item.line,
        "title": item.title or None,
        "mark": item.task.mark if item.task is not None else " ",
        "priority": fields.priority,
        "recurs": fields.recurrence or None,
        "wrong": item.wrong or None,
        "newer": newer
        and {"text": newer.text, "path": layout.file(newer.path), "line": newer.line},
        **{name: fields.dates[name] for name in names},
    }
