"""Conversation from scripts: `kbtui ask` and `kbtui sessions`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from kbtui.cli.context import (
    WorkspaceOption,
    json_option,
    model_option,
    pass_place,
    remote_option,
    use_model,
)
from kbtui.cli.output import (
    INTERRUPTED,
    complain,
    note,
    picked,
    say,
    say_json,
    say_json_line,
    say_line,
    say_styled,
    session_shape,
    to_terminal,
)
from kbtui.cli.text_input import GivenText, TextCommand, text_argument
from kbtui.errors import UsageError
from kbtui.text import clean, clean_line, moment

if TYPE_CHECKING:
    from kbtui.agent.events import Earlier, Event, ToolFinished, TurnFailed, TurnFinished
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session
    from kbtui.workspace.layout import Layout

_MEMORY_SECONDS = 2.0
_WITHOUT_MODEL = (
    "kbtui: Without a model what you tell is kept as you said it, and questions are answered by"
    " quoting it. `kbtui setup` finds or fetches one."
)


@click.command(cls=TextCommand)
@text_argument()
@model_option
@remote_option
@click.option(
    "-s", "--session", "ref", metavar="SESSION", help="Continue this session, or start it."
)
@click.option("--raw", is_flag=True, help="Pass control characters through to a pipe.")
@json_option
@pass_place
def ask(
    place: WorkspaceOption,
    text: GivenText,
    model: str | None,
    remote: bool,
    ref: str | None,
    raw: bool,
    as_json: bool,
) -> int:
    """Tell the agent something or ask it; stdin is appended.

    A pipe or file on standard input is read to its end, with TEXT above it. In a loop that reads
    standard input itself, give it none: kbtui ask TEXT </dev/null
    """
    import asyncio

    message = text.read_appended("ask")
    with place.opened() as kb:
        if model:
            use_model(kb, model, remote=remote)
        is_first = kb.sessions.is_empty
        session = open_session(kb, ref)
        try:
            for notice in session.notices:
                note(f"kbtui: {notice}")
            layout = kb.workspace
            view = (
                _JsonView(layout)
                if as_json
                else TextView(layout, partial(sentence_of, kb), raw=raw)
            )
            status = asyncio.run(show_turn(kb.agent.turn(session, message), view))
            if status == 0:
                condense_if_due(kb, session.id)
            if is_first and not as_json and kb.models.describe().offline:
                note(_WITHOUT_MODEL)
            return status
        finally:
            session.close()


def condense_if_due(kb: KnowledgeBase, session: str) -> None:
    """Consolidate the conversation if it has become long, after flushing the answer.

    If that takes longer than a person should wait, a detached process does it.
    """
    import asyncio

    sys.stdout.flush()
    if not kb.has_due(session):
        return
    outcome = asyncio.run(kb.memory.consolidate_if_due(session, _MEMORY_SECONDS))
    if outcome is None:
        return
    if outcome.kind == "late":
        _condense_detached(kb.workspace.root, session)
    elif outcome.notice:
        note(f"kbtui: {outcome.notice}")


def _condense_detached(root: Path, session: str) -> None:
    from kbtui.child_process import own_paths, own_program, start_detached

    command = own_program("kbtui", "-w", str(root), "consolidate", "--if-due", session)
    with suppress(OSError):  # the next answer tries again
        start_detached(command, {**os.environ, **own_paths()})


def open_session(kb: KnowledgeBase, ref: str | None) -> Session:
    """Open the session of exactly this id or title, or create one with that title.

    Prefixes don't match: a script that uses a name for the first time must not continue some other
    session.
    """
    if ref is None:
        return kb.sessions.create("cli")
    name = ref.strip().removesuffix(".jsonl")
    infos = kb.sessions.list()
    found = [info.id for info in infos if info.id == name] or [
        info.id for info in infos if info.title.casefold() == name.casefold()
    ]
    if len(found) > 1:
        raise UsageError(
            f"{ref!r} is the title of {', '.join(found[:5])}.", "Name one of them by its id."
        )
    return kb.sessions.open(found[0]) if found else kb.sessions.create("cli", title=ref)


def sentence_of(kb: KnowledgeBase, commit: str) -> str:
    """Summarise a commit in a sentence that names notes by their titles."""
    from kbtui.presentation.commit_summary import summarize
    from kbtui.presentation.notes import names_of

    made = kb.history.commit(commit)
    return str(summarize(made, names_of(kb.library, [change.path for change in made.paths])))


class TurnDisplay(Protocol):
    """A consumer of the events of a turn; `status` is the exit code."""

    status: int

    def take(self, event: Event) -> None:
        """Show the next event."""


async def show_turn(events: AsyncIterator[Event], view: TurnDisplay) -> int:
    """Show all events of a turn and return the exit code."""
    async with aclosing(events) as stream:  # type: ignore[type-var]
        async for event in stream:
            view.take(event)
    return view.status


class _JsonView:
    def __init__(self, layout: Layout) -> None:
        self.status = 0
        self._layout = layout

    def take(self, event: Event) -> None:
        from kbtui.agent import events

        shapes: dict[type, tuple[str, str]] = {
            events.TextDelta: ("text_delta", "text"),
            events.TextRevoked: ("text_revoked", ""),
            events.RetryStarted: ("retry_started", "text"),
            events.NoticeGiven: ("notice", "text"),
            events.ToolStarted: ("tool_started", "tool arguments"),
            events.ToolFinished: ("tool_finished", "tool ok summary"),
            events.UsageReported: ("usage", "prompt_tokens completion_tokens cost_usd"),
            events.TurnFailed: ("turn_failed", "error hint session"),
        }
        if isinstance(event, events.TurnFinished):
            say_json_line(_finished_shape(event, self._layout))
        elif type(event) in shapes:
            name, fields = shapes[type(event)]
            is_proposed = isinstance(event, events.ToolFinished) and event.proposal
            shape = picked(event, f"{fields} proposal" if is_proposed else fields)
            say_json_line({"event": name, **shape})
        if isinstance(event, events.TurnFailed):
            self.status = _failed(event)


# A link with a title: only the title is shown, and the citations below the answer.
_TITLED_LINK = re.compile(r"\[\[[^\]|\n]+\|([^\]\n]+)\]\]")


class TextView:
    """Writes the answer as it streams in, its citations and the changes made by tools.

    With `by_lines` only whole lines are written, for screen readers. Else, where no terminal is,
    nothing is written until it is certain to be the answer: a model's thoughts may be known by
    their end only.
    """

    def __init__(
        self,
        layout: Layout,
        sentence_of: Callable[[str], str],
        *,
        raw: bool = False,
        by_lines: bool = False,
    ) -> None:
        self.status = 0
        self._layout = layout
        self._sentence_of = sentence_of
        self._is_raw = raw and not to_terminal()
        self._by_lines = by_lines
        self._incomplete = ""
        self._last = ""
        self._held: list[str] = []

    def take(self, event: Event) -> None:
        """Show the next event."""
        from kbtui.agent import events

        match event:
            case events.TextDelta():
                self._held.append(_TITLED_LINK.sub(r"\1", event.text))
                if self._by_lines or to_terminal():
                    self._release()
            case events.TextRevoked():
                self._revoke()
            case events.RetryStarted() | events.NoticeGiven():
                self._end_line()
                note(f"kbtui: {event.text}")
            case events.ToolFinished():
                self._report_tool(event)
            case events.TurnFinished():
                self._finish(event)
            case events.TurnFailed():
                self._end_line()
                self.status = _failed(event)
            case _:
                pass

    def _release(self) -> None:
        """Write what was held back."""
        text = "".join(self._held)
        self._held.clear()
        self._write(text)

    def _revoke(self) -> None:
        """Take back what was said, or, if that was shown already, say what it was."""
        self._held.clear()
        if self._last:
            self._end_line()
            note("kbtui: That was the model thinking. Its answer:")

    def _report_tool(self, event: ToolFinished) -> None:
        """Report what a tool changed, and on a terminal also what it only looked up."""
        from kbtui.presentation.tools import tool_phrase

        lines = [f"+ {self._sentence_of(change.commit)}" for change in event.changes]
        if event.proposal:
            lines.append(f"? {event.summary} (kbtui inbox show {event.proposal})")
        elif not event.ok:
            lines.append(f"! {tool_phrase(event.tool)}: {event.summary}")
        elif not lines and to_terminal():
            lines.append(f"· {tool_phrase(event.tool)}: {event.summary}")
        if lines:
            self._end_line()
        for line in lines:
            note(clean_line(line))

    def _finish(self, event: TurnFinished) -> None:
        """Write the citations, and say what wasn't kept and which earlier line it may concern."""
        self._release()
        if not self._last:
            self._write(event.text)
        self._end_line()
        for citation in event.citations:
            last = "" if citation.first == citation.last else f"-{citation.last}"
            file = self._layout.file(citation.path)
            place = f"  {citation.place}" if citation.place else ""
            say(f"[{citation.n}] {file}:{citation.first}{last}{place}")
        for each in event.differs:
            source = f"[{each.n}]" if each.n else "your own line"
            place = f"{self._layout.file(each.path)}:{each.line}"
            line = clean_line(each.text)
            say(f"differs from {source} ({each.kind}): {line} ({place})")
        if event.not_kept:
            note("Not kept. With `remember:` before it, it is.")
        if event.earlier is not None:
            file = self._layout.file(event.earlier.path)
            say(f"Before: {event.earlier.text} ({file}:{event.earlier.first})")

    def _write(self, text: str) -> None:
        if text:
            self._last = text[-1]
            visible = text if self._is_raw else clean(text)
            if self._by_lines:
                whole, newline, self._incomplete = f"{self._incomplete}{visible}".rpartition("\n")
                visible = whole + newline
            sys.stdout.write(visible)
            sys.stdout.flush()

    def _end_line(self) -> None:
        self._release()
        if self._last not in {"", "\n"}:
            self._write("\n")


def _differing_shapes(event: TurnFinished, layout: Layout) -> list[dict[str, Any]]:
    return [
        {
            "n": each.n,
            "path": layout.file(each.path),
            "line": each.line,
            "kind": each.kind,
            "said": each.said,
            "text": each.text,
        }
        for each in event.differs
    ]


def _finished_shape(event: TurnFinished, layout: Layout) -> dict[str, Any]:
    return {
        "event": "turn_finished",
        "text": event.text,
        "citations": [
            {
                "n": cited.n,
                "path": layout.file(cited.path),
                "lines": [cited.first, cited.last],
                **({"place": cited.place} if cited.place else {}),
            }
            for cited in event.citations
        ],
        "changes": [
            {
                "commit": change.commit,
                "paths": [layout.file(path) for path in change.paths],
                "summary": change.summary,
            }
            for change in event.changes
        ],
        **({"differs": _differing_shapes(event, layout)} if event.differs else {}),
        **({"not_kept": event.not_kept} if event.not_kept else {}),
        **({"earlier": _earlier_shape(event.earlier, layout)} if event.earlier else {}),
        "session": event.session,
        "turn": event.turn,
    }


def _earlier_shape(earlier: Earlier, layout: Layout) -> dict[str, Any]:
    return {"path": layout.file(earlier.path), "line": earlier.first, "text": earlier.text}


def _failed(event: TurnFailed) -> int:
    if event.cancelled:
        return INTERRUPTED
    complain(event.error, event.hint)
    return event.exit_code


@click.command()
@json_option
@pass_place
def sessions(place: WorkspaceOption, as_json: bool) -> None:
    """List the conversations, latest first."""
    with place.opened() as kb:
        infos = kb.sessions.list()
        for name, why in kb.sessions.unreadable.items():
            note(f"kbtui: {name} can't be read: {why}.")
    if as_json:
        say_json([session_shape(info) for info in infos])
        return
    for info in infos:
        when = moment(info.updated)
        count = f"{info.messages:>5}"
        say_line(say_styled(info.id, fg="cyan"), f"  {when}  {count}  ", say_styled(info.title))
