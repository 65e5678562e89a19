"""A turn without a model: statements are stored as typed, questions answered by quotes.

It has the same events, session log and commits as a turn with a model; `kbtui.offline` classifies
the message and chooses the lines that answer it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import TypeVar

from kbtui.agent.events import Earlier, NoticeGiven, TextDelta, ToolStarted, UsageReported
from kbtui.agent.keeping import Keeping
from kbtui.agent.listing import ListedLine, Listing
from kbtui.agent.quoting import Quoting
from kbtui.agent.tools.toolbox import ToolOutcome, in_thread
from kbtui.agent.turn import Turn
from kbtui.errors import KbtuiError
from kbtui.memory.recall.remembered import said_label
from kbtui.models.port import Reply, ToolCall, Usage, estimate_tokens
from kbtui.offline.answer import Candidate, QuotedAnswer, Tier
from kbtui.offline.asked import ListQuestion, list_question
from kbtui.offline.frames import has_subject, stands_alone
from kbtui.offline.language import begins, of_all, significant_terms
from kbtui.offline.message import Kind, Reading, asks, read_message
from kbtui.offline.orders import Order, read_order
from kbtui.sessions import FROM_NOTES, KEEP, SEARCH
from kbtui.sessions.store import SessionMessage
from kbtui.text import counted, shorten
from kbtui.workspace.layout import entry_path, short_name

_SUMMARY_WIDTH = 120
_SHORT_ANSWER = 6  # words
_PATH_LINK = re.compile(r"\[\[([^\]|#\n]+/[^\]|#\n]+)\]\]")
_STREAM_PIECE = re.compile(r"(?:\[\[[^\]\n]*\]\]|\S)+\s*|\s+")
_REPLIES: dict[Kind, str] = {
    "greeting": "Hello. Ask about your notes, or tell me what to keep.",
    "thanks": "You're welcome.",
    "talk": "All right.",
    "paste": "Not kept: that looks pasted.",
    "work": "Not kept: that takes a model. Without one I keep what you tell me, and quote it.",
}
_ORDERS: dict[str, str] = {
    "forget": "I don't delete anything by myself: `/forget {about}` (in a terminal `kbtui forget`)"
    " shows all places and asks.",
    "delete": "I don't delete anything by myself: `d` on the note [[{about}]] (in a terminal"
    " `kbtui delete`) does, and `kbtui undo` brings it back.",
    "rename": "I don't rename anything by myself: `R` on the note [[{about}]] (in a terminal"
    " `kbtui rename`) does, and leads all links along.",
    "undo": "I don't take anything back by myself: `kbtui undo` does in a terminal, and `u` in the"
    " history (F4).",
}
_NO_SUCH_NOTE = "No note is called “{name}”, so nothing was renamed."
_MASKED = "it isn't kept, and it is masked in the log of this conversation."
_TIERS: dict[Tier, str] = {
    "sure": FROM_NOTES,
    "near": "Not in these words. The nearest:",
    "none": "I don't know: nothing near that in your notes.",
}
_Done = TypeVar("_Done")
_SPEAKER_LABELS = {"user": "you said", "assistant": "you were told"}


@dataclass(slots=True)
class OfflineTurn(Turn):
    """A turn without a model.

    Attributes:
        text: The message as typed, including secrets.
        keeping: The store for it; None if nothing can be written.
    """

    text: str = ""
    keeping: Keeping | None = None

    async def _ask_until_answered(self) -> None:
        """Handle the message, emit the answer and store it."""
        asked = await in_thread(partial(list_question, self.text, self.context.now().date()))
        if asked is not None:
            parts = await self._step(SEARCH, {"query": self.text}, partial(self._list, asked))
        else:
            reading = await in_thread(partial(read_message, self.text))
            before = [each for each in self.session.messages if each.id < self.said.id]
            parts = await self._paragraphs(reading, before)
        answered = "\n\n".join(parts)
        for piece in _STREAM_PIECE.findall(answered):
            self._emit(TextDelta(piece))
            self._partial.append(piece)
        usage = Usage(estimate_tokens(self.text), estimate_tokens(answered), 0.0)
        self._emit(UsageReported(usage.prompt_tokens, usage.completion_tokens, usage.cost_usd))
        await in_thread(partial(self._keep_answer, Reply(answered, (), "stop", usage)), self._emit)
        # Who wrote a line makes it known, so that the next question needn't wait for it.
        with suppress(KbtuiError):
            await in_thread(self.context.view.catch_up)

    async def _paragraphs(self, reading: Reading, before: Sequence[SessionMessage]) -> list[str]:
        if reading.order is not None:
            return await self._take_order(reading.order, reading)
        match reading.kind:
            case "secret":
                return [f"That holds a secret ({reading.secret}): {_MASKED}"]
            case "statement" | "task" | "decision" | "remember":
                return await self._keep_statement(_with_question(reading, before))
            case "question":
                return await self._answer_question(reading)
            case kind:
                self.not_kept = self.text if kind in ("paste", "work") else ""
                return [_REPLIES[kind]]

    async def _keep_statement(self, reading: Reading) -> list[str]:
        if self.keeping is None:
            return ["Nothing can be kept here."]
        answered = await self._answer(reading.question) if reading.question else []
        keep = partial(self._keep, self.keeping, reading)
        return [await self._step(KEEP, {"text": reading.text}, keep), *answered]

    async def _take_order(self, order: Order, reading: Reading) -> list[str]:
        """Say what does what is ordered; the app asks, and does it."""
        quoted: list[str] = []
        if order.kind in ("erase", "delete"):
            path = await in_thread(partial(self._note_called, order.about))
            order = replace(order, kind="delete" if path else "forget")
            is_known = path or reading.kind == "delete" or await self._is_said(order.about)
            if not is_known:
                return await self._keep_statement(replace(reading, kind="statement", order=None))
            order = replace(order, about=path or order.about)
        elif order.kind == "rename":
            found = [
                (path, new)
                for old, new in order.names
                if (path := await in_thread(partial(self._note_called, old)))
            ]
            if not found:
                self.not_kept = self.text
                return [_NO_SUCH_NOTE.format(name=order.names[0][0])]
            order = replace(order, about=found[0][0], names=(found[0],))
        elif order.kind == "forget":
            quoted = await self._answer(order.about)
        self.order = order
        return [*quoted, _ORDERS[order.kind].format(about=short_name(order.about))]

    def _note_called(self, name: str) -> str:
        """Return the note of a name; empty if there is none, or several have it."""
        try:
            return self.context.view.library.find_path(name)
        except KbtuiError:
            return ""

    async def _is_said(self, about: str) -> bool:
        """Return whether a line of the notes has all words of a text."""
        found = await self._step(SEARCH, {"query": about}, partial(self._search, about))
        wanted = {*significant_terms(about)}
        return bool(wanted) and any(
            wanted <= {*significant_terms(line.shown)} for line in found.lines
        )

    async def _answer_question(self, reading: Reading) -> list[str]:
        parts = await self._answer(reading.question)
        is_long = len(reading.text.split()) > _SHORT_ANSWER
        if not reading.is_certain and (is_long or parts[0] != _TIERS["sure"]):
            self.not_kept = self.text
        return parts

    async def _step(
        self, name: str, arguments: dict[str, str], work: Callable[[ToolCall], _Done]
    ) -> _Done:
        """Run `work` as a step that is reported like a tool call."""
        call = ToolCall(f"{self.id}-{name}", name, json.dumps(arguments, ensure_ascii=False))
        self._emit(ToolStarted(call.id, name, arguments))
        return await in_thread(partial(work, call))

    def _keep(self, keeping: Keeping, reading: Reading, call: ToolCall) -> str:
        """Store a statement, and find the earlier line that it may be about."""
        try:
            near = Quoting(self.context).before(reading.text)
            kept = keeping.keep(reading, self.context.origin)
        except KbtuiError as error:
            summary = shorten(error.message, _SUMMARY_WIDTH)
            self._keep_step(call, ToolOutcome(False, f"Error: {error}", summary))
            return f"I couldn't keep that. {error}"
        taint = self.context.view.taint_of([kept.path])
        self._keep_step(call, ToolOutcome(True, kept.message, kept.summary, kept.changes, taint))
        if near is not None and kept.noted is not None and kept.changes:
            newer = (kept.noted.path, kept.noted.line, kept.noted.time)
            self.earlier = Earlier(near.path, near.number, near.text, near.when, *newer)
        if kept.notice:
            self._emit(NoticeGiven(kept.notice))
        return kept.message

    async def _answer(self, question: str) -> list[str]:
        """Return the answer's lead-in and quoted lines, each with its number and date."""
        found = await self._step(SEARCH, {"query": question}, partial(self._search, question))
        return [_TIERS[found.tier], *map(self._quoted, found.lines)]

    def _list(self, asked: ListQuestion, call: ToolCall) -> list[str]:
        """Return the answer to a question for tasks, for what is coming, or for a day."""
        try:
            listed = Listing(self.context.view, self.context.now().date()).of(asked)
        except KbtuiError as error:
            self._keep_step(call, ToolOutcome(False, f"Error: {error}", error.message))
            raise
        taint = self.context.view.taint_of([line.path for line in listed.lines])
        output = "\n".join([listed.head, *(line.text for line in listed.lines)])
        self._keep_step(call, ToolOutcome(True, output, listed.summary, taint=taint))
        # One source a note, at the first of its lines: a list would else end in as many sources.
        first = {line.path: line for line in reversed(listed.lines)}
        lines = "\n".join(self._listed(line, first[line.path]) for line in listed.lines)
        return [part for part in (listed.head, lines, *listed.more) if part]

    def _listed(self, line: ListedLine, first: ListedLine) -> str:
        source = self.context.sources.add(first.path, first.line, first.text, first.title)
        return f"- {line.shown} [{source.n}]" + (f" · *{line.when}*" if line.when else "")

    def _search(self, question: str, call: ToolCall) -> QuotedAnswer:
        try:
            found = Quoting(self.context).answer(question)
        except KbtuiError as error:
            self._keep_step(call, ToolOutcome(False, f"Error: {error}", error.message))
            raise
        lines = found.lines
        taint = self.context.view.taint_of([line.path for line in lines])
        count = counted(len(lines), "line") if lines else "nothing found"
        output = "\n".join(f"{line.title}: {line.shown}" for line in lines) or "Nothing found."
        self._keep_step(call, ToolOutcome(True, output, count, taint=taint))
        return found

    def _quoted(self, line: Candidate) -> str:
        places = ((line.number, line.place),) if line.place else ()
        source = self.context.sources.add(
            line.path, max(1, line.number), line.shown, line.title, places
        )
        today = self.context.now().date()
        day = said_label(line.said, today) if line.said else _day_label(line, today)
        facts = " · ".join(filter(None, (_SPEAKER_LABELS.get(line.speaker), day)))
        shown = _PATH_LINK.sub(self._with_title, line.shown)
        return f"> {shown} [{source.n}]" + (f" · *{facts}*" if facts else "")

    def _with_title(self, link: re.Match[str]) -> str:
        """Return a path-only link labelled with its note's title."""
        info = self.context.view.library.info(entry_path(link[1]))
        return f"[[{link[1]}|{info.title}]]" if info is not None else link[0]


def _open_question(before: Sequence[SessionMessage]) -> str:
    """Return the question of the last turn if no line answered it, else ""."""
    if not before or not before[-1].content.startswith(_TIERS["none"]):
        return ""
    asked = next((each.content for each in reversed(before) if each.role == "user"), "")
    return asked if "\n" not in asked and read_order(asked) is None else ""


def _is_answer(text: str, asked: str) -> bool:
    """Return whether a message answers a question; one on a matter of its own is kept as typed."""
    is_talk = any(begins(text, of_all(kind)) is not None for kind in ("talk", "thanks", "greeting"))
    if len(text.split()) > _SHORT_ANSWER or asks(text) or is_talk:
        return False
    shared = {*significant_terms(asked)}.intersection(significant_terms(text))
    return bool(shared) or not has_subject(text)


def _day_label(line: Candidate, today: date) -> str:
    """Return the day of a line for people, such as "yesterday"."""
    try:
        day = date.fromisoformat(line.when[:10])
    except ValueError:
        return ""
    year = f" {day.year}" if day.year != today.year else ""
    names = {0: "today", 1: "yesterday"}
    label = names.get((today - day).days, f"{day.day} {day:%B}{year}")
    to_come = ", a day to come" if day > today else ""
    return f"{label} {line.time}".strip() + to_come


def _with_question(reading: Reading, before: Sequence[SessionMessage]) -> Reading:
    """Prefix a short answer with the open question, as it says nothing by itself."""
    if reading.kind == "remember":
        asked = "" if stands_alone(reading.text) else _last_question(before)
    else:
        asked = _open_question(before) if reading.kind == "statement" else ""
    if asked and _is_answer(reading.text, asked):
        return replace(reading, text=f"{asked} {reading.text}")
    return reading


def _last_question(before: Sequence[SessionMessage]) -> str:
    """Return what was asked last, if the message before this one asked it."""
    asked = next((each.content.strip() for each in reversed(before) if each.role == "user"), "")
    return asked if asks(asked) and "\n" not in asked else _open_question(before)
