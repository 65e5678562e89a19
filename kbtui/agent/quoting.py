"""Finds the lines that answer a question, and the line that a new statement may be about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile

from kbtui.agent.tools.base import ToolContext
from kbtui.errors import KbtuiError
from kbtui.memory.records.journal import day_of
from kbtui.offline.answer import MOST_SHOWN, Answer, Candidate, choose, nearest
from kbtui.offline.language import begins, of_all, telling_terms, tokens
from kbtui.offline.lines import Line, lines_of
from kbtui.offline.message import asks
from kbtui.search.results import Hit, SearchResult
from kbtui.sessions.imported import is_imported
from kbtui.text import fold, shorten
from kbtui.views import View

MEMORY = "memory/MEMORY.md"
_SCOPE = ("knowledge", "memory", "docs", "sessions")
_HITS = 20
_NEAREST_HITS = 8
_LONGEST_QUERY = 500
_LONGEST_LINE = 700
_MOST_LED_TO = 4
# What memory says a second time: the archive of conversations, and the notes of sessions.
_SECOND_HAND = re.compile(r"memory/(?:history.*\.jsonl|\d{4}-\d\d-\d\d-.+\.md)")


@dataclass(frozen=True, slots=True)
class Quoted:
    """The lines that answer a question; `notice` says what search couldn't look at yet."""

    answer: Answer
    notice: str = ""


class Quoting:
    """Looks for lines in the workspace of one turn."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def answer(self, question: str) -> Quoted:
        """The lines that answer a question: of the journal, entries, documents, conversations.

        Raises:
            KbtuiError: the index can't be read.
        """
        if not telling_terms(question):  # "what do you know about me?"
            return Quoted(Answer("near", tuple(self._newest())))
        found = self._search(self._context.view, question, typed=True)
        return Quoted(choose(question, self._candidates(found.hits)), found.notice)

    def about(self, message: str) -> tuple[Candidate, ...]:
        """The lines that a message is about, the best first; none of its own conversation.

        Nor is one private: what an answer drew on is told by the tools that were used.

        Raises:
            KbtuiError: the index can't be read.
        """
        context = self._context
        if not telling_terms(message):
            return ()
        # A message to a model on this machine may hold what it has read there.
        found = self._search(context.view.unasked, message, typed=False)
        hits = tuple(
            hit for hit in found.hits if hit.is_relevant and hit.session != context.session
        )
        answer = choose(message, self._candidates(hits))
        return answer.lines if answer.tier != "none" else ()

    def _search(self, view: View, question: str, *, typed: bool) -> SearchResult:
        context = self._context
        return view.search.search(
            self._about_me(question)[:_LONGEST_QUERY],
            ",".join((*_SCOPE, *context.settings.search.roots)),
            _HITS,
            statements_only=True,
            by_chance=True,
            before=(context.session, context.message),
            typed=typed,
        )

    def _newest(self) -> list[Candidate]:
        """What every conversation is to know, and what was stated last."""
        view = self._context.view
        with suppress(KbtuiError):
            memory = lines_of(view.text(MEMORY))
            known = [Candidate(MEMORY, each.text, each.first, "MEMORY.md") for each in memory]
            if known:
                return known[-MOST_SHOWN:]
        days = [path for path in view.files("memory") if day_of(path) is not None]
        if not days:
            return []
        day = days[-1]
        lines = [each for each in lines_of(view.text(day)) if each.time]
        return [
            Candidate(day, each.text, each.first, when=str(day_of(day)), time=each.time)
            for each in reversed(lines[-MOST_SHOWN:])
        ]

    def _about_me(self, question: str) -> str:
        """A question without the user's own name: of themselves people write *I*."""
        try:
            about = self._context.view.text("USER.md")
        except KbtuiError:
            return question
        for line in lines_of(about):
            named = begins(line.text, of_all("named")) or ""
            for token in tokens(named):
                rest = re.sub(
                    rf"\b{re.escape(named[token.start : token.end])}\b('s)?", "", question
                )
                question = rest if telling_terms(rest) else question
        return question

    def nearest(self, statement: str) -> Candidate | None:
        """The earlier line that a statement is most likely about; None where none surely is.

        Raises:
            KbtuiError: the index can't be read.
        """
        found = self._context.view.unasked.search.search(
            statement[:_LONGEST_QUERY], "knowledge,memory", _NEAREST_HITS, typed=True
        )
        return nearest(statement, self._candidates(found.hits, leading=False))

    def _candidates(self, hits: tuple[Hit, ...], *, leading: bool = True) -> list[Candidate]:
        found: dict[str, Candidate] = {}
        spoken: list[Candidate] = []
        for hit in hits:
            for each in self._of_hit(hit, leading=leading):
                if hit.path.startswith("sessions/"):
                    spoken.append(each)
                else:
                    found.setdefault(f"{hit.path} {each.number} {each.text}", each)
        # What was kept stands in the conversation as well.
        kept = {fold(each.text) for each in found.values()}
        return [*found.values(), *(each for each in spoken if fold(each.text) not in kept)]

    def _of_hit(self, hit: Hit, *, leading: bool) -> Iterator[Candidate]:
        """The lines of a hit; with `leading` one that leads to a list has items of it behind it."""
        if hit.session is not None:
            if hit.path.startswith("sessions/"):
                yield from self._spoken(hit)
            return
        if _SECOND_HAND.fullmatch(hit.path):
            return
        is_made = self._context.view.is_document(hit.path)
        day = day_of(hit.path)
        said = lines_of(hit.text, hit.lines[0], headings=is_made)
        lines = [piece for each in said for piece in _pieces(each)]
        for number, line in enumerate(lines):
            yield Candidate(
                hit.path,
                _with_what_follows(line, lines[number + 1 :]) if leading else line.text,
                line.first,
                hit.title if is_made else _title(hit, line),
                f"{day or hit.updated or ''} {line.time}".strip(),
                hit.score,
                hit.relevance,
                hit.explain.semantic,
                alone=len(lines) == 1,
                place=hit.heading if is_made else "",
                time=line.time,
            )

    def _spoken(self, hit: Hit) -> Iterator[Candidate]:
        """What the user said, and what an imported assistant told them."""
        if hit.session is None or hit.messages is None:
            return
        role = hit.speaker
        if role == "assistant" and not is_imported(hit.session):
            return
        lines = [each.text for each in lines_of(hit.text)]
        whole = " ".join(lines)
        is_one = role == "user" and len(whole) <= _LONGEST_LINE and not asks(whole)
        texts = [whole] if is_one else lines
        for text in texts:
            if len(text) <= _LONGEST_LINE:
                yield Candidate(
                    hit.path,
                    text,
                    hit.messages[0],
                    hit.title,
                    hit.updated or "",
                    hit.score,
                    hit.relevance,
                    hit.explain.semantic,
                    told=role,
                )


def _pieces(line: Line) -> Iterator[Line]:
    """A line, or the sentences of a long one."""
    if len(line.text) <= _LONGEST_LINE:
        yield line
        return
    for sentence in lines_of(line.text):
        yield replace(line, text=shorten(sentence.text, _LONGEST_LINE))


def _with_what_follows(line: Line, after: Sequence[Line]) -> str:
    """A line; one that only leads to a list with the first items of it."""
    if not line.text.endswith(":"):
        return line.text
    items = takewhile(lambda each: each.item, after[:_MOST_LED_TO])
    return " · ".join([line.text, *(each.text for each in items)])[:_LONGEST_LINE]


def _title(hit: Hit, line: Line) -> str:
    heading = line.heading or hit.heading
    if heading and heading != hit.title and day_of(hit.path) is None:
        return f"{hit.title}: {shorten(heading, 80)}"
    return hit.title
