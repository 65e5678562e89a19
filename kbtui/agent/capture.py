"""Keeps what the user stated: in turns without a model, and where a model wrote nothing."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbtui.agent.events import TurnChange
from kbtui.agent.gathering import before_of
from kbtui.agent.tools.base import ToolContext, ToolResult
from kbtui.agent.tools.toolbox import Outcome
from kbtui.agent.tools.writing import is_reviewed, propose
from kbtui.errors import KbtuiError
from kbtui.history.objects.commit import describe
from kbtui.memory.records.dates import with_dates
from kbtui.offline.understand import understand
from kbtui.offline.words import content, words
from kbtui.text import shorten
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from kbtui.agent.gathering import Gathering
    from kbtui.history.change import Change
    from kbtui.knowledge.facts import Fact
    from kbtui.memory.edits.editor import Editor
    from kbtui.memory.edits.editor import Outcome as FactOutcome
    from kbtui.offline.lines import Line
    from kbtui.offline.understand import Understood
    from kbtui.sessions.store import SessionMessage

_REASON = "The user said so."
NOTHING_WRITTEN = "*Nothing was written.*"
_SUMMARY_WIDTH = 120
_MOSTLY = 0.6
_CLAIMS = re.compile(
    r"\bI(?:'ve| have| just|'ll| will)? (?:now |also |just )?(?:saved?|noted?|record(?:ed)?"
    r"|stored?|added?|updated?|created?|written|wrote|kept|remember(?:ed)?|logged) (?!that you)"
    r"|\b(?:here(?:'s| is) the (?:\w+ )?(?:entry|note)|(?:noted|saved) (?:in|to|under|as)"
    r"|added (?:it )?to (?:your|the) (?:notes|memory|knowledge)"
    r"|has been (?:saved|noted|recorded|stored|added|updated|created)"
    r"|(?:entry|note) (?:was |is )?(?:created|updated|saved))\b"
    r"|^\W*(?:noted|saved|recorded|got it, saved)\b"
    r"|\bhabe (?:ich )?(?:\w+ ){0,5}(?:gespeichert|notiert|eingetragen|vermerkt|angelegt|gemerkt)\b"
    r"|\b(?:he|ha sido|queda) (?:guardad|anotad|registrad|añadid|apuntad|cread)[oa]\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcome of the facts of a turn; `outcome` is the step as cards show it."""

    outcome: Outcome
    facts: tuple[FactOutcome, ...] = ()
    refused: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()

    def names(self, *kinds: str) -> list[str]:
        """The files with whose facts this became, as links that show their titles."""
        found = {each.path: each.title for each in self.facts if each.kind in kinds and each.path}
        return [_link(path, title) for path, title in found.items()]


class Capture:
    """Understands what the user says in a turn, and keeps it through the one edit engine.

    Args:
        editor: Gives the engine.
        now: The clock.
        text: What the user says, secrets and all.
        before: The messages before it.
        gathering: Finds the lines that it may be about.
    """

    def __init__(
        self,
        editor: Callable[[], Editor],
        now: Callable[[], datetime],
        text: str,
        before: Sequence[SessionMessage],
        gathering: Gathering,
    ) -> None:
        self._editor = editor
        self._now = now
        self.text = text
        self.before = before
        self.gathering = gathering

    def understood(self) -> tuple[Understood, list[Line]]:
        """The facts of the message, and the lines that it was compared with."""
        known = self.gathering.known(self.text, self.before)
        return understand(self.text, before_of(self.before), known), known

    def keep(self, facts: Sequence[Fact], context: ToolContext) -> Kept:
        """Write facts, or propose them where the user reviews every change.

        Returns:
            What became of them, what went wrong included; nothing is raised for that.
        """
        day = self._now().date()
        facts = [replace(fact, text=with_dates(fact.text, day)) for fact in facts]
        found: list[FactOutcome] = []
        changes: list[TurnChange] = []
        try:
            if is_reviewed(context):
                result = self._propose(facts, context, found)
            else:
                result = self._write(facts, context, found, changes)
        except KbtuiError as error:
            summary = shorten(error.message, _SUMMARY_WIDTH)
            failed = Outcome(False, f"Error: {error}", summary, tuple(changes))
            return Kept(failed, refused=(str(error),))
        # A corrected statement repeats the rest of its line, and a title is one of an entry's.
        touched = [path for change in changes for path in change.paths]
        touched += [each.path for each in found if each.path]
        private = tuple(dict.fromkeys(path for path in touched if context.is_private(path)))
        outcome = Outcome(
            True, result.output, result.summary, tuple(changes), private, proposal=result.proposal
        )
        refused = tuple(each.why for each in found if each.kind == "refused")
        waiting = tuple(dict.fromkeys(fact.subject for fact in facts)) if result.proposal else ()
        return Kept(outcome, tuple(found), refused, waiting)

    def _propose(
        self, facts: Sequence[Fact], context: ToolContext, found: list[FactOutcome]
    ) -> ToolResult:
        now = self._now()
        said = [(now, self.text)]
        plan = self._editor().plan(facts, actor=context.actor, day=now.date(), said=said)
        found += [each for each in plan.outcomes if each.kind in ("known", "refused")]
        waiting: list[Change] = []
        with context.history.change(
            context.actor, _REASON, context.origin, sink=waiting.append
        ) as change:
            plan.stage(change)
        if not waiting or not waiting[0].edits:
            return ToolResult("It says so already.", "known already")
        return propose(context, waiting[0])

    def _write(
        self,
        facts: Sequence[Fact],
        context: ToolContext,
        found: list[FactOutcome],
        changes: list[TurnChange],
    ) -> ToolResult:
        now = self._now()
        kept = self._editor().keep(
            facts,
            actor=context.actor,
            origin=context.origin,
            day=now.date(),
            reason=_REASON,
            said=[(now, self.text)],
        )
        found += kept.outcomes
        if kept.commit is not None:
            paths = tuple(each.path for each in kept.commit.paths)
            changes.append(TurnChange(kept.commit.id, paths, describe(kept.commit.paths)))
        told = [f"{each.kind}: {each.fact.text} ({each.title or each.why})" for each in found]
        done = changes[0].summary if changes else "nothing new to keep"
        return ToolResult("\n".join(told), shorten(done, _SUMMARY_WIDTH))


def claims_a_write(answer: str) -> bool:
    """True if an answer says that something was written down."""
    return _CLAIMS.search(answer.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")) is not None


def unwritten(facts: Sequence[Fact], paths: Iterable[str], context: ToolContext) -> list[Fact]:
    """The facts that none of the files says that were written meanwhile."""
    told: set[str] = set()
    for path in paths:
        with suppress(KbtuiError):
            told.update(words(files.read_text(context.workspace.root, path)))
    return [fact for fact in facts if not _is_told(fact, told)]


def _is_told(fact: Fact, told: set[str]) -> bool:
    mine = set(content(fact.text))
    return bool(mine) and len(mine & told) >= _MOSTLY * len(mine)


def _link(path: str, title: str) -> str:
    if not path.startswith("knowledge/"):
        return title or path
    name = short_name(path)
    return f"[[{name}|{title}]]" if title else f"[[{name}]]"
