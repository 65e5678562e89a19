"""Keeps what the user stated: in turns without a model, and where a model wrote nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from kbtui.agent.events import TurnChange
from kbtui.agent.tools.base import ToolContext, ToolResult
from kbtui.agent.tools.toolbox import Outcome
from kbtui.agent.tools.writing import is_reviewed, propose
from kbtui.errors import KbtuiError
from kbtui.history.change import Change
from kbtui.history.objects.commit import describe
from kbtui.knowledge.entries.entry import EntryInfo
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.facts import Fact
from kbtui.memory.edits.editor import Editor
from kbtui.memory.edits.editor import Outcome as FactOutcome
from kbtui.memory.records.dates import absolute_dates
from kbtui.offline import words as w
from kbtui.offline.lines import Line, lines_of
from kbtui.offline.understand import Said, Understood, understand
from kbtui.offline.words import content, words
from kbtui.search.results import Hit
from kbtui.sessions.imported import is_imported
from kbtui.sessions.store import SessionMessage
from kbtui.text import clean_line, fold, shorten
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

_MEMORY = "memory/MEMORY.md"
_RECENT = 40
_HITS = 12
_MOST_HITS = 30
_WIDER = 0.9  # how much a hit of the widened question weighs
_FALL = 0.1  # by how much a hit fits less than the one before it
_ELSEWHERE = 0.85  # how much the other lines of a file fit
_LONGEST_LINE = 600


class Gathering:
    """Finds lines in the workspace of one turn."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._read: dict[str, list[Line]] = {}

    def known(self, text: str, before: Sequence[SessionMessage]) -> list[Line]:
        """Lines that a statement may be about: of entries changed last, named, or found."""
        infos = sorted(
            (
                each
                for each in self._context.library.infos()
                if each.is_entry and each.slug != "INDEX"
            ),
            key=lambda info: -info.mtime_ns,
        )
        told = set(w.content(" ".join([text, *(b.content for b in before[-2:])])))
        paths = dict.fromkeys(info.path for info in infos[:_RECENT])
        named = [info.path for info in infos[_RECENT:] if told & set(w.words(" ".join(info.names)))]
        paths |= dict.fromkeys(named[:30])
        if len(infos) > _RECENT:
            paths |= dict.fromkeys(hit.path for hit in self._hits(text, "knowledge", _HITS))
        titles = {info.path: info for info in infos}
        lines = [line for path in paths if path in titles for line in self._entry(titles[path])]
        return [line for line in (*lines, *self._memory()) if not line.code]

    def candidates(self, question: str, known: Sequence[Line], message: int) -> list[Line]:
        """Lines that may answer a question, and those known, but for the message that asks."""
        found: dict[tuple[str, int, str], Line] = {}
        infos = {info.path: info for info in self._context.library.infos()}
        scope = ",".join(
            ("knowledge", "memory", "sessions", "docs", *self._context.settings.search.roots)
        )
        hits: dict[tuple[object, ...], tuple[Hit, float]] = {}
        for weight, query in ((1.0, question), (_WIDER, " ".join(_widened(question)))):
            for rank, hit in enumerate(self._hits(query, scope, _MOST_HITS)):
                fits = weight * hit.relevance / (1 + _FALL * rank)
                hits.setdefault((hit.path, hit.lines, hit.messages), (hit, fits))
        of_file: dict[str, float] = {}
        for hit, fits in hits.values():
            of_file[hit.path] = max(of_file.get(hit.path, 0.0), _ELSEWHERE * fits)
        for hit, fits in hits.values():
            if hit.session is not None:
                lines: Iterable[Line] = self._spoken(hit, message)
            elif hit.path in infos and infos[hit.path].is_entry:
                lines = self._entry(infos[hit.path])
            else:
                lines = self._note(hit)
            first, last = (0, math.inf) if hit.session is not None else hit.lines
            for line in lines:
                here = fits if first <= line.number <= last else of_file[hit.path]
                before = found.get((line.path, line.number, line.text))
                if before is None or before.relevance < here:
                    found[line.path, line.number, line.text] = replace(line, relevance=here)
        for line in known:
            fits = of_file.get(line.path, 0.0)
            found.setdefault((line.path, line.number, line.text), replace(line, relevance=fits))
        return list(found.values())

    def _hits(self, query: str, scope: str, limit: int) -> Sequence[Hit]:
        if not query.strip():
            return ()
        hits = self._context.search.search(query[:2_000], scope, limit, statements_only=True).hits
        return [hit for hit in hits if not self._context.is_hidden(hit.path)]

    def _entry(self, info: EntryInfo) -> list[Line]:
        if info.path not in self._read:
            self._read[info.path] = list(self._lines(info.path, info.title))
        return self._read[info.path]

    def _memory(self) -> list[Line]:
        return [
            Line(line.path, "MEMORY.md", line.text, line.number, "memory", heading=line.heading)
            for line in self._lines(_MEMORY, "MEMORY.md")
        ]

    def _lines(self, path: str, title: str) -> Iterator[Line]:
        if self._context.is_hidden(path):
            return
        try:
            data = files.read_bytes(self._context.workspace, path)
        except KbtuiError:
            return
        body = frontmatter.split(data).body
        first = data[: len(data) - len(body)].count(b"\n") + 1
        text = body.decode("utf-8", "replace").replace("\r\n", "\n")
        yield from lines_of(path, title, text, "entry", first)

    def _note(self, hit: Hit) -> Iterator[Line]:
        first, last = hit.lines
        try:
            whole = files.read_text(self._context.workspace, hit.path).replace("\r\n", "\n")
            text = "\n".join(whole.split("\n")[first - 1 : last])
        except KbtuiError:
            text = hit.text or hit.snippet
        for line in lines_of(hit.path, hit.title, text, "note", first):
            if len(line.text) <= _LONGEST_LINE:
                yield line

    def _spoken(self, hit: Hit, message: int) -> Iterator[Line]:
        """The words of the messages of a hit: the user's, and an imported assistant's."""
        if hit.session is None or hit.messages is None:
            return
        try:
            messages = self._context.sessions.read(hit.session)
        except KbtuiError:
            return
        first, last = hit.messages
        for each in messages:
            if not first <= each.id <= last:
                continue
            if hit.session == self._context.session and each.id >= message:
                continue
            local = each.time.astimezone()
            day = f"{local.day} {local:%B %Y}"
            if each.role == "user":
                said = [Line(hit.path, hit.title, clean_line(each.content), each.id, "said")]
            elif each.role == "assistant" and is_imported(hit.session):
                said = list(lines_of(hit.path, hit.title, each.content, "told"))
            else:
                said = []
            for line in said:
                if len(line.text) <= _LONGEST_LINE:
                    yield replace(line, number=each.id, day=day)


def before_of(messages: Sequence[SessionMessage]) -> list[Said]:
    """The last things that were said, as `understand` takes them."""
    spoken = [each for each in messages if each.role in ("user", "assistant") and each.content]
    return [Said(each.role, each.content) for each in spoken[-8:]]


def _widened(question: str) -> Iterator[str]:
    """The telling words of a question, with others of the same meaning."""
    told = list(dict.fromkeys(w.content(question)))
    yield from told
    others = [other for word in told for other in w.synonyms(word) if fold(other) not in told]
    yield from others[:40]


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


@dataclass(eq=False)
class Capture:
    """Understands what the user says in a turn, secrets and all, and keeps it by the edit engine.

    `gathering` finds the lines that it may be about.
    """

    editor: Callable[[], Editor]
    now: Callable[[], datetime]
    text: str
    before: Sequence[SessionMessage]
    gathering: Gathering

    def understood(self) -> tuple[Understood, list[Line]]:
        """The facts of the message, and the lines that it was compared with."""
        known = self.gathering.known(self.text, self.before)
        return understand(self.text, before_of(self.before), known), known

    def keep(self, facts: Sequence[Fact], context: ToolContext) -> Kept:
        """Write facts, or propose them where the user reviews every change; nothing is raised."""
        day = self.now().date()
        facts = [
            replace(fact, text=absolute_dates(fact.text, day, verbatim=True)) for fact in facts
        ]
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
        now = self.now()
        said = [(now, self.text)]
        plan = self.editor().plan(facts, actor=context.actor, day=now.date(), said=said)
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
        now = self.now()
        kept = self.editor().keep(
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
            told.update(words(files.read_text(context.workspace, path)))
    return [fact for fact in facts if not _is_told(fact, told)]


def _is_told(fact: Fact, told: set[str]) -> bool:
    mine = set(content(fact.text))
    return bool(mine) and len(mine & told) >= _MOSTLY * len(mine)


def _link(path: str, title: str) -> str:
    if not path.startswith("knowledge/"):
        return title or path
    name = short_name(path)
    return f"[[{name}|{title}]]" if title else f"[[{name}]]"
