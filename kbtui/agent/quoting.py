"""Finding the lines that answer a question, and the one that a new statement replaces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cached_property
from itertools import takewhile

from kbtui.agent.tools.base import ToolContext
from kbtui.errors import KbtuiError
from kbtui.memory.recall.newer import SOON_SECONDS, corrects, is_newer, standing
from kbtui.memory.recall.remembered import said_days
from kbtui.memory.records.journal import day_of, local, without_dates
from kbtui.offline.answer import MAX_LINES, Candidate, QuotedAnswer, choose
from kbtui.offline.language import begins, of_all, significant_terms
from kbtui.offline.lines import TextLine, lines_of
from kbtui.offline.message import asks
from kbtui.offline.times import times_in
from kbtui.search.results import Hit, SearchResult
from kbtui.sessions.imported import is_imported
from kbtui.text import fold, shorten
from kbtui.views.view import View
from kbtui.workspace.layout import MEMORY

_SCOPE = ("knowledge", "memory", "docs", "sessions")
_HITS = 20
_NEAREST_HITS = 8
_MAX_QUERY = 500
_MAX_LINE = 700
_MAX_PARAGRAPH = 320
_MAX_LIST_ITEMS = 4
# Files that repeat what is said elsewhere: the archive of conversations, and session notes.
_DERIVED_FILES = re.compile(r"memory/(?:history.*\.jsonl|\d{4}-\d\d-\d\d-.+\.md)")


class Quoting:
    """A finder of lines in the workspace, as seen by one turn."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def answer(self, question: str) -> QuotedAnswer:
        """Return the lines that answer a question, from notes, documents and conversations.

        Raises:
            KbtuiError: the index can't be read.
        """
        if not significant_terms(question):  # "what do you know about me?"
            newest = tuple(self._newest())
            return QuotedAnswer("near" if newest else "none", newest)
        now = local(self._context.now())
        days = (
            period.first.isoformat()
            for each in times_in(question, now)
            for period in each.periods
            if period.unit == "day"
        )
        query = " ".join([question, *days])
        view = self._context.view
        found = self._search(view, query, typed=True)
        view.catch_up(found.hits)
        order = _Order(view)
        answer = choose(question, self._candidates(found.hits), now, order)
        lines = _with_newest(view, answer.lines)
        return replace(answer, lines=tuple(map(order.dated, lines)))

    def about(self, message: str) -> tuple[Candidate, ...]:
        """Return the lines that a message is about, best first, from other conversations and notes.

        Private ones are excluded, as the sources of an answer are tracked by its tools.

        Raises:
            KbtuiError: the index can't be read.
        """
        context = self._context
        if not significant_terms(message):
            return ()
        # A message to a model on this machine may repeat private text.
        view = context.view.unasked
        found = self._search(view, message, typed=False)
        view.catch_up(found.hits)
        hits = tuple(
            hit for hit in found.hits if hit.is_relevant and hit.session != context.session
        )
        asked = local(context.now()) if asks(message) else None
        order = _Order(view)
        lines = choose(message, self._candidates(hits), asked, order).lines
        return tuple(_with_newest(view, lines))

    def _search(self, view: View, question: str, *, typed: bool) -> SearchResult:
        context = self._context
        return view.search.search(
            self._without_own_name(question)[:_MAX_QUERY],
            ",".join((*_SCOPE, *context.settings.search.roots)),
            _HITS,
            statements_only=True,
            by_chance=True,
            before=(context.session, context.message),
            typed=typed,
        )

    def _newest(self) -> list[Candidate]:
        """Return the lines of MEMORY.md, then the latest journal lines."""
        view = self._context.view
        days = [path for path in view.files("memory") if day_of(path) is not None]
        found: list[Candidate] = []
        for path in (MEMORY, *reversed(days)):
            with suppress(KbtuiError):
                found += _lines_in_memory(path, view.text(path), self._said_days)
            if len(found) >= MAX_LINES:
                break
        return found[:MAX_LINES]

    def _without_own_name(self, question: str) -> str:
        """Remove the user's own name from a question, as people write *I* of themselves."""
        with suppress(KbtuiError):
            for line in lines_of(self._context.view.text("USER.md")):
                named = begins(line.text, of_all("named")) or ""
                for name in re.findall(r"\w+", named):
                    rest = re.sub(rf"\b{name}\b('s)?", "", question)
                    question = rest if significant_terms(rest) else question
        return question

    def before(self, statement: str) -> Candidate | None:
        """Return the latest line that says otherwise of the same thing; None if none does.

        Raises:
            KbtuiError: the index can't be read.
        """
        view = self._context.view.unasked
        found = view.search.search(
            statement[:_MAX_QUERY], "knowledge,memory", _NEAREST_HITS, typed=True
        )
        candidates = self._candidates(found.hits, with_lists=False)
        order = _Order(view)
        about = [each for each in candidates if is_newer(statement, each.text)]
        if not about:
            soon = self._context.now().timestamp() - SOON_SECONDS
            short = (each for each in candidates if corrects(statement, each.text))
            about = [each for each in short if order.moment(each) >= soon]
        best = max(about, key=order.moment, default=None)
        return order.dated(best) if best is not None else None

    def _candidates(self, hits: tuple[Hit, ...], *, with_lists: bool = True) -> list[Candidate]:
        """Return the lines of hits; `with_lists` appends list items to their lead-in line."""
        found: dict[tuple[str, int, str], Candidate] = {}
        originals = (hit for hit in hits if not _DERIVED_FILES.fullmatch(hit.path))
        for hit in sorted(originals, key=lambda each: each.path.startswith("sessions/")):
            for each in (
                self._from_session(hit)
                if hit.session
                else self._from_file(hit, with_lists=with_lists)
            ):
                found.setdefault((each.path, each.number, each.text), each)
        return _without_kept(found.values())

    def _from_file(self, hit: Hit, *, with_lists: bool) -> Iterator[Candidate]:
        is_made = self._context.view.is_document(hit.path)
        day = day_of(hit.path)
        text_lines = lines_of(hit.text, hit.lines[0], headings=is_made)
        lines = [piece for each in text_lines for piece in _pieces(each)]
        paragraphs: defaultdict[int, list[str]] = defaultdict(list)
        for line in lines:
            paragraphs[line.block].append(line.text)
        for number, line in enumerate(lines):
            yield replace(
                _candidate(hit, line.text, line.first),
                text=_with_list_items(line, lines[number + 1 :]) if with_lists else line.text,
                title=hit.title if is_made else _title(hit, line),
                when=f"{day or hit.updated or ''} {line.time}".strip(),
                place=hit.heading if is_made else "",
                time=line.time,
                paragraph=_paragraph(paragraphs[line.block]) if with_lists else "",
                said=self._said_days.get(line.first) if hit.path == MEMORY else None,
            )

    @cached_property
    def _said_days(self) -> dict[int, date]:
        """When the lines of MEMORY.md were said that have words that count from it."""
        try:
            return said_days(self._context.view, self._context.view.text(MEMORY))
        except KbtuiError:
            return {}

    def _from_session(self, hit: Hit) -> Iterator[Candidate]:
        """Yield what the user said, and what an imported assistant answered."""
        if hit.messages is None or not _is_statement(hit):
            return
        texts = [each.text for each in lines_of(hit.text)]
        whole = " ".join(texts)
        is_one = hit.speaker == "user" and len(whole) <= _MAX_LINE and not asks(whole)
        for text in [whole] if is_one else texts:
            if len(text) <= _MAX_LINE:
                yield _candidate(hit, text, hit.messages[0])


class _Order:
    """When lines were said, as a view tells it, and which of two holds."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[tuple[str, int], tuple[float, str]] = {}

    def moment(self, line: Candidate) -> float:
        """Return when a line was said, to order it by; 0 if that isn't known."""
        return self._said(line)[0]

    def is_newer(self, line: Candidate, other: Candidate) -> bool:
        """Return whether a line holds instead of another one."""
        if not 0 < self.moment(other) < self.moment(line):
            return False
        if is_newer(line.text, other.text):
            return True
        if not corrects(line.text, other.text):
            return False
        newest = self._view.newer([other.text]).get(other.text)
        return newest is not None and fold(newest.text) == fold(line.text)

    def standing(self, question: str, line: Candidate) -> float:
        """Return how well a line stands as an answer, apart from its time; less is better."""
        return standing(question, line.text)

    def dated(self, line: Candidate) -> Candidate:
        """Return a line with the day on which it was said; with none where that isn't known."""
        day = self._said(line)[1]
        return replace(line, when=f"{day} {line.time}".strip() if day else "")

    def _said(self, line: Candidate) -> tuple[float, str]:
        place = line.path, line.number
        if place not in self._known:
            self._known[place] = self._find(line)
        return self._known[place]

    def _find(self, line: Candidate) -> tuple[float, str]:
        if line.moment:
            return line.moment, line.when
        if line.speaker:
            return self._of_message(line)
        said = self._view.said_in(line.path, [line.number]).get(line.number)
        return (said.moment, said.day.isoformat()) if said is not None else (0.0, "")

    def _of_message(self, line: Candidate) -> tuple[float, str]:
        session = line.path.removeprefix("sessions/").removesuffix(".jsonl")
        try:
            messages = self._view.sessions.messages(session)
        except KbtuiError:
            return 0.0, line.when
        time = next((each.time for each in messages if each.id == line.number), None)
        return (time.timestamp(), local(time).date().isoformat()) if time else (0.0, line.when)


def _with_newest(view: View, lines: Sequence[Candidate]) -> list[Candidate]:
    """Return lines with the newest of each that is an older one above it; at most so many."""
    newest = view.newer([each.text for each in lines])
    found: list[Candidate] = []
    for each in lines:
        newer = newest.get(each.text)
        if newer is not None and all(
            fold(newer.text) != fold(one.text) for one in (*lines, *found)
        ):
            day = newer.day.isoformat()
            speaker = "user" if newer.session else ""
            found.append(
                Candidate(
                    newer.path,
                    newer.text,
                    newer.line,
                    each.title,
                    day,
                    each.score,
                    each.relevance,
                    speaker=speaker,
                    moment=newer.moment,
                )
            )
        found.append(each)
    return found[: max(MAX_LINES, len(lines))]


def _without_kept(found: Iterable[Candidate]) -> list[Candidate]:
    """Drop messages that were stored as notes, perhaps after a "remember" phrase."""
    texts = {each: fold(without_dates(each.text)) for each in found}
    stored = tuple({text for each, text in texts.items() if not each.speaker and text})
    return [each for each, text in texts.items() if not (each.speaker and text.endswith(stored))]


def _is_statement(hit: Hit) -> bool:
    """Return whether a hit was said by the user or by an imported assistant."""
    by_other = hit.speaker == "assistant" and is_imported(hit.session or "")
    return hit.path.startswith("sessions/") and (hit.speaker == "user" or by_other)


def _lines_in_memory(path: str, text: str, said: Mapping[int, date]) -> Iterator[Candidate]:
    """Yield the lines of MEMORY.md, or the journal lines of a daily note, newest first."""
    day = str(day_of(path) or "")
    for line in reversed([*lines_of(text)]):
        if line.time or not day:
            title = "" if day else "MEMORY.md"
            on = None if day else said.get(line.first)
            yield Candidate(path, line.text, line.first, title, when=day, time=line.time, said=on)


def _candidate(hit: Hit, text: str, number: int) -> Candidate:
    return Candidate(
        hit.path,
        text,
        number,
        hit.title,
        hit.updated or "",
        hit.score,
        hit.relevance,
        hit.explain.semantic,
        speaker=hit.speaker if hit.session else "",
    )


def _pieces(line: TextLine) -> Iterator[TextLine]:
    """Yield a line, or the sentences of a long one."""
    if len(line.text) <= _MAX_LINE:
        yield line
        return
    for sentence in lines_of(line.text):
        yield replace(line, text=shorten(sentence.text, _MAX_LINE))


def _paragraph(sentences: Sequence[str]) -> str:
    """Join several sentences; empty if there is only one, or the text is long."""
    whole = " ".join(sentences)
    return whole if len(sentences) > 1 and len(whole) <= _MAX_PARAGRAPH else ""


def _with_list_items(line: TextLine, after: Sequence[TextLine]) -> str:
    """Return a line, with the first list items if it ends in a colon."""
    if not line.text.endswith(":"):
        return line.text
    items = takewhile(lambda each: each.item, after[:_MAX_LIST_ITEMS])
    return " · ".join([line.text, *(each.text for each in items)])[:_MAX_LINE]


def _title(hit: Hit, line: TextLine) -> str:
    heading = line.heading or hit.heading
    if hit.path == MEMORY:
        return "MEMORY.md"
    is_part = heading and heading != hit.title and day_of(hit.path) is None
    return f"{hit.title}: {shorten(heading, 80)}" if is_part else hit.title
