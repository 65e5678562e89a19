"""The model that is always there: it quotes what is known and keeps what is stated.

It goes through the same port as any other. It has no state: each call looks at the conversation,
sees how far the turn has come, and asks for the next tools or says what they found. It adds no
knowledge of its own, and the same conversation always gets the same answer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kbtui.models import offline_dream, offline_memory
from kbtui.models.offline_patterns import Note, Understood, is_question, understand
from kbtui.models.offline_quotes import best_quotes, results_in
from kbtui.models.port import Message, Reply, ReplyText, ToolCall, Usage
from kbtui.models.tokens import estimate_tokens, prompt_tokens
from kbtui.settings import OFFLINE
from kbtui.text import fold, slugify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from kbtui.models.port import ReplyEvent, ToolSpec

NOTICE = (
    "No model is configured, so I only quote your notes and keep what you tell me. "
    "`/model` adds one."
)
FOLDERS = {
    "decision": "decisions",
    "person": "people",
    "fact": "facts",
    "preference": "preferences",
}
_CONTEXT_WINDOW = 1_000_000
_PIECE = re.compile(r"\S+\s*|\s+")
_ATTACHMENTS = re.compile(r"\n+<attachment .*", re.DOTALL)
_CREATED = re.compile(r"^Created (\S.*\.md)$", re.MULTILINE)
_PROPOSED = "Proposed, not written"
_CHANGED = re.compile(r"^Changed (\S.*?\.md) \(", re.MULTILINE)
_EXISTS = re.compile(r"already: (\S.*?\.md)\.")
_GREETING = re.compile(
    r"^(?:hi|hello|hey|good (?:morning|evening|day))\b[\s!.,]*\w*[\s!.]*$", re.IGNORECASE
)
_THANKS = re.compile(
    r"^(?:thanks|thank you|thx|ok|okay|great|cool|nice)\b[\s!.,]*\w*[\s!.]*$", re.IGNORECASE
)
_FORGET = re.compile(r"^(?:please\s+)?forget\b", re.IGNORECASE)
_DATED = re.compile(r"^\d{4}-\d{2}(?:-\d{2})?-")


@dataclass(frozen=True, slots=True)
class _Step:
    """A tool call of this turn with what came back; `job` names what it was for."""

    job: str
    output: str

    @property
    def failed(self) -> bool:
        return self.output.startswith("Error:")


class OfflineModel:
    """See `ChatModel`; `now` gives the day that a change of a decision is dated with."""

    name = OFFLINE
    is_local = True
    context_window = _CONTEXT_WINDOW

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self._now = now or (lambda: datetime.now().astimezone())

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a text."""
        return estimate_tokens(text)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        """Answer word by word, or ask for tools."""
        reply = await self.complete(messages, tools)
        for piece in _PIECE.findall(reply.text):
            yield ReplyText(piece)
        yield reply

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        """Answer at once.

        Raises:
            ModelAnswerError: a tool is forced that takes a real model.
        """
        if force_tool is not None:
            dreaming = force_tool == offline_dream.STUDY
            fill_in = offline_memory.fill_in
            arguments = offline_dream.study(messages) if dreaming else fill_in(force_tool, messages)
            call = ToolCall(f"1-{force_tool}", force_tool, arguments)
            return Reply("", (call,), "tool_calls", _usage(messages, arguments))
        if offline_memory.wants_notes(messages):
            notes = offline_memory.notes_of_the_day(messages)
            return Reply(notes, (), "stop", _usage(messages, notes))
        if offline_dream.is_editing(messages, (tool.name for tool in tools)):
            calls = tuple(offline_dream.next_calls(messages))
            usage = _usage(messages, *(call.arguments for call in calls))
            return Reply("", calls, "tool_calls", usage)
        turn = _Turn(messages, frozenset(tool.name for tool in tools), self._now)
        calls = tuple(turn.next_calls())
        text = "" if calls else turn.answer()
        usage = _usage(messages, text, *(call.arguments for call in calls))
        return Reply(text, calls, "tool_calls" if calls else "stop", usage)


class _Turn:
    """One turn, as far as it has come."""

    def __init__(
        self, messages: Sequence[Message], tools: frozenset[str], now: Callable[[], datetime]
    ) -> None:
        said = [number for number, message in enumerate(messages) if message.role == "user"]
        self._number = len(said)
        last = said[-1] if said else -1
        self._text = _spoken(messages[last]) if said else ""
        before = _spoken(messages[said[-2]]) if len(said) > 1 else ""
        self._tools = tools
        self._now = now
        self._told = any(NOTICE in message.content for message in messages)
        self._steps = list(_steps(messages[last + 1 :]))
        understood = understand(self._text, before)
        if not understood.notes and not understood.question and not self._small_talk():
            understood = Understood((), self._text, understood.asked_to_remember)
        self._understood = understood

    def next_calls(self) -> Iterator[ToolCall]:
        """The tools to run now; none when it is time to answer."""
        done = {step.job for step in self._steps}
        calls = [call for call in self._searches() if call[0] not in done]
        if not calls:
            calls = [call for call in self._writes() if call[0] not in done]
        for job, tool, arguments in calls:
            if tool in self._tools:
                text = json.dumps(arguments, ensure_ascii=False)
                yield ToolCall(f"{self._number}-{job}", tool, text)

    def answer(self) -> str:
        """What there is to say when all tools have run."""
        parts = [*self._kept(), *self._quoted()]
        if not parts:
            parts = [self._small_talk() or "I found nothing in your notes about that."]
        if not self._told:
            parts.append(f"*{NOTICE}*")
        return "\n\n".join(parts)

    # What to look for

    def _searches(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        if question := self._understood.question:
            yield "ask", "memory_search", {"query": question}
            found = self._output("ask")
            if found is not None and not results_in(found):
                yield "ask-docs", "vector_search", {"query": question}
        for number, note in enumerate(self._understood.notes):
            yield f"find{number}", "memory_search", {"query": note.title, "limit": 5}
        for number, note in enumerate(self._understood.notes):
            path = self._existing(number, note)
            if path is not None:
                yield f"read{number}", "read_entry", {"entry": path}

    def _existing(self, number: int, note: Note) -> str | None:
        """The entry that is about this already, by what the search found or a write ran into."""
        refused = _EXISTS.search(self._output(f"write{number}") or "")
        if refused:
            return refused[1]
        folder = f"knowledge/{FOLDERS[note.type]}/"
        wanted = _DATED.sub("", slugify(note.title))
        for result in results_in(self._output(f"find{number}") or ""):
            name = result.path.removesuffix(".md").rpartition("/")[2]
            titled = re.search(
                rf"^# +{re.escape(fold(note.title))}$", fold(result.text), re.MULTILINE
            )
            if result.path.startswith(folder) and (_DATED.sub("", name) == wanted or titled):
                return result.path
        return None

    # What to write

    def _writes(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Write what stands alone first; what refers to it needs the name it was given."""
        notes = list(enumerate(self._understood.notes))
        ready = [(number, note) for number, note in notes if not note.about]
        if all(self._settled(number) for number, _ in ready):
            ready = notes
        for number, note in ready:
            path = self._existing(number, note)
            if path is None:
                yield f"write{number}", "write_entry", self._new(note)
            elif edit := self._edit(number, note, path):
                yield f"edit{number}", "edit_entry", edit

    def _settled(self, number: int) -> bool:
        done = any(step.job in (f"write{number}", f"edit{number}") for step in self._steps)
        return done or self._known(number)

    def _known(self, number: int) -> bool:
        """Whether the entry that was read says it already."""
        note = self._understood.notes[number]
        text = fold(self._output(f"read{number}") or "")
        lines = (note.line, self._linked(note.line, note))
        return any(fold(line.lstrip("- ")) in text for line in lines)

    def _new(self, note: Note) -> dict[str, Any]:
        arguments: dict[str, Any] = {"type": note.type, "title": note.title}
        sections = {name: self._linked(text, note) for name, text in note.sections.items()}
        if set(sections) == {""}:
            arguments["body"] = sections[""]
        else:
            arguments["sections"] = sections
        if note.summary:
            arguments["summary"] = note.summary
        if target := self._target(note):
            arguments["related"] = [target]
        return arguments

    def _edit(self, number: int, note: Note, path: str) -> dict[str, Any] | None:
        """The smallest edit that adds a note to an entry; None if it isn't read yet or says so."""
        current = self._output(f"read{number}")
        if current is None or self._known(number):
            return None
        arguments: dict[str, Any] = {"entry": path}
        line = self._linked(note.line, note)
        old = _line_that_begins(current, note.key) if note.key else None
        if old is not None:
            return {**arguments, "old": old, "new": line}
        if note.type == "decision":
            line = f"- {self._now():%Y-%m-%d}: {line}"
        arguments["append"] = line
        if note.section:
            arguments["section"] = note.section
        if target := self._target(note):
            arguments["add_related"] = [target]
        return arguments

    def _linked(self, text: str, note: Note) -> str:
        target = self._target(note)
        return text.replace(note.about, f"[[{target}|{note.about}]]") if target else text

    def _target(self, note: Note) -> str:
        """The name of the entry that a note refers to, once it has been written."""
        for number, other in enumerate(self._understood.notes):
            if note.about and other.title == note.about:
                path = self._written(number)
                return path.removeprefix("knowledge/").removesuffix(".md") if path else ""
        return ""

    def _written(self, number: int) -> str | None:
        for job, pattern in (("edit", _CHANGED), ("write", _CREATED)):
            match = pattern.search(self._output(f"{job}{number}") or "")
            if match:
                return match[1]
        return self._existing(number, self._understood.notes[number])

    # What to say

    def _kept(self) -> Iterator[str]:
        kept, known, failed, proposed = [], [], [], []
        for number, note in enumerate(self._understood.notes):
            outputs = [
                output for job in ("edit", "write") if (output := self._output(f"{job}{number}"))
            ]
            path = self._written(number) or note.title
            label = f"[[{path.removeprefix('knowledge/').removesuffix('.md')}]]"
            if outputs and outputs[0].startswith(_PROPOSED):
                proposed.append(label)
            elif outputs and outputs[0].startswith("Error:"):
                failed.append(
                    f"I couldn't keep {note.title!r}. {outputs[0].removeprefix('Error: ')}"
                )
            elif outputs:
                kept.append(label)
            elif self._known(number):
                known.append(label)
        if kept:
            yield f"Kept in {_listed(kept)}."
        if proposed:
            waits = "waits" if len(proposed) == 1 else "wait"
            where = "in your inbox (F6, or `kbtui inbox`)"
            yield f"Proposed, not written yet: {_listed(proposed)} {waits} {where}."
        if known:
            yield f"{_listed(known)} already {'says' if len(known) == 1 else 'say'} so."
        yield from failed

    def _quoted(self) -> Iterator[str]:
        question = self._understood.question
        if not question:
            return
        outputs = [self._output("ask") or "", self._output("ask-docs") or ""]
        results = [result for output in outputs for result in results_in(output)]
        errors = [output for output in outputs if output.startswith("Error:")]
        quotes = best_quotes(question, results)
        if quotes and quotes[0].score:
            yield "From your notes:"
        elif quotes:
            yield "Your notes don't say so in these words; the nearest to it:"
        elif errors:
            yield errors[0].removeprefix("Error: ")
        else:
            yield self._nothing_found(question)
        for quote in quotes:
            yield f"> {quote.text} [{quote.n}]"
        if quotes and _FORGET.match(self._text.strip()):
            yield "I don't delete anything by myself: open the entry and edit or delete it there."

    def _nothing_found(self, question: str) -> str:
        if is_question(question) or _FORGET.match(question):
            return "I found nothing in your notes about that." + (
                "" if _FORGET.match(question) else " Tell me, and I'll keep it."
            )
        return (
            "I found nothing in your notes about that, and I didn't store it: "
            "begin with “remember …” to keep something."
        )

    def _small_talk(self) -> str:
        if _GREETING.match(self._text.strip()):
            return "Hello. Ask about your notes, or tell me what to remember."
        if _THANKS.match(self._text.strip()):
            return "You're welcome."
        return ""

    def _output(self, job: str) -> str | None:
        """What came back for a job; None while it hasn't run."""
        return next((step.output for step in self._steps if step.job == job), None)


def _usage(messages: Sequence[Message], *answers: str) -> Usage:
    return Usage(prompt_tokens(messages), sum(map(estimate_tokens, answers)), 0.0)


def _spoken(message: Message) -> str:
    """What the user said, without the files that he attached."""
    return _ATTACHMENTS.sub("", message.content).strip()


def _steps(messages: Sequence[Message]) -> Iterator[_Step]:
    outputs = {each.tool_call_id: each.content for each in messages if each.role == "tool"}
    for message in messages:
        for call in message.tool_calls:
            if call.id in outputs:
                yield _Step(call.id.partition("-")[2], outputs[call.id])


def _line_that_begins(text: str, key: str) -> str | None:
    """The one line of a text that begins with `key`, list marks aside."""
    wanted = fold(key)
    lines = [line for line in text.split("\n") if fold(line.lstrip("-* ")).startswith(f"{wanted} ")]
    return lines[0] if len(lines) == 1 else None


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
