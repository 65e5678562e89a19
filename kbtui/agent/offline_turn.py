"""A turn without a model: what is stated is kept, what is asked is answered by quoting.

The same events, session log and commits as a turn with a model; `kbtui.offline` does the reading
and choosing, this gathers the lines that it compares with and says what came of it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from kbtui.agent.events import TextDelta, ToolFinished, ToolStarted, UsageReported
from kbtui.agent.gathering import Gathering, before_of
from kbtui.agent.tools.toolbox import Outcome
from kbtui.agent.turn import Turn
from kbtui.agent.uninterrupted import in_thread
from kbtui.errors import KbtuiError
from kbtui.models.port import Reply, ToolCall, Usage
from kbtui.models.tokens import estimate_tokens
from kbtui.offline.answer import answer
from kbtui.offline.understand import understand
from kbtui.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbtui.agent.capture import Capture, Kept
    from kbtui.offline.answer import Answer
    from kbtui.offline.lines import Line
    from kbtui.offline.understand import Understood

NOTICE = (
    "No model is configured, so I only quote your notes and keep what you tell me. "
    "`/model` adds one."
)
SEARCH = "memory_search"
_PIECE = re.compile(r"(?:\[\[[^\]\n]*\]\]|\S)+\s*|\s+")
_LOOKS_UP = re.compile(
    r"^(?:please\s+)?(?:show|list|find|search|look up|zeig\w*|such\w*|liste|muestra\w*|busca)\b",
    re.IGNORECASE,
)
_FORGETS = re.compile(r"^(?:please\s+)?(?:forget|vergiss|olvida)\b", re.IGNORECASE)
_SMALL_TALK = {
    "greeting": "Hello. Ask about your notes, or tell me what to remember.",
    "thanks": "You're welcome.",
    "chat": "All right.",
    "paste": "Pasted text isn't kept. Say “remember …” with what matters of it.",
    "command": "That takes a model: without one I keep what you tell me, and quote it.",
}
_NOT_KEPT = "Not kept. Say “remember that” to keep it after all."


@dataclass(slots=True)
class OfflineTurn(Turn):
    """A turn that no model answers.

    Attributes:
        capture: Writes what is kept.
        gathering: Finds the lines that matter.
        text: What the user says, secrets and all.
    """

    capture: Capture | None = field(kw_only=True)
    gathering: Gathering = field(kw_only=True)
    text: str = field(kw_only=True)

    async def _ask_until_answered(self) -> None:
        text = self.text
        before = [each for each in self.session.messages if each.id < self.said.id]
        understood, known = await in_thread(partial(self._understood, text, before))
        self.judged = True
        parts: list[str] = []
        if understood.facts and self.capture is not None:
            parts += await self._keep(self.capture, understood)
        question = understood.question
        if (
            not question
            and not understood.facts
            and (_LOOKS_UP.match(text) or _FORGETS.match(text))
        ):
            question = text
        if question:
            parts += await self._answer(question, known)
            if _FORGETS.match(text):
                parts.append(
                    "I don't delete anything by myself: `/forget` shows all places and asks."
                )
        if understood.secret:
            parts.append(
                f"That holds a secret ({understood.secret}): it isn't kept, and it is masked in "
                "the log of this conversation."
            )
        if not parts:
            parts.append(self._small_talk(understood))
        if not any(NOTICE in message.content for message in before):
            parts.append(f"*{NOTICE}*")
        answered = "\n\n".join(parts)
        for piece in _PIECE.findall(answered):
            self._emit(TextDelta(piece))
            self._partial.append(piece)
        usage = Usage(estimate_tokens(text), estimate_tokens(answered), 0.0)
        self._emit(UsageReported(usage.prompt_tokens, usage.completion_tokens, usage.cost_usd))
        await in_thread(partial(self._keep_answer, Reply(answered, (), "stop", usage)), self._emit)

    def _understood(self, text: str, before: Sequence[Any]) -> tuple[Understood, list[Line]]:
        known = self.gathering.known(text, before)
        return understand(text, before_of(before), known), known

    def _small_talk(self, understood: Understood) -> str:
        if understood.not_kept:
            return _NOT_KEPT
        return _SMALL_TALK.get(understood.kind, _SMALL_TALK["chat"])

    # What is kept

    async def _keep(self, capture: Capture, understood: Understood) -> list[str]:
        arguments = {"facts": [fact.text for fact in understood.facts]}
        call = ToolCall("1-keep", "keep", json.dumps(arguments, ensure_ascii=False))
        self._emit(ToolStarted(call.id, call.name, arguments))
        kept = await in_thread(partial(self._write, capture, call, understood))
        return list(_told(kept))

    def _write(self, capture: Capture, call: ToolCall, understood: Understood) -> Kept:
        kept = capture.keep(understood.facts, self.context, self.text)
        self._log(call, kept.outcome)
        return kept

    # What is asked

    async def _answer(self, question: str, known: Sequence[Line]) -> list[str]:
        arguments = {"query": question}
        call = ToolCall("2-search", SEARCH, json.dumps(arguments, ensure_ascii=False))
        self._emit(ToolStarted(call.id, call.name, arguments))
        found = await in_thread(partial(self._search, call, question, known))
        if not found.lines:
            about = f" about {found.about}" if found.about else " about that"
            return [f"I don't know: nothing in your notes{about}."]
        return list(self._quoted(found))

    def _search(self, call: ToolCall, question: str, known: Sequence[Line]) -> Answer:
        try:
            found = answer(question, self.gathering.candidates(question, known, self.said.id))
        except KbtuiError as error:
            self._log(call, Outcome(False, f"Error: {error}", error.message))
            raise
        private = {line.path: None for line in found.lines if self.context.is_private(line.path)}
        count = (
            counted(len(found.lines), "line answers", "lines answer")
            if found.lines
            else "nothing found"
        )
        told = "\n".join(f"{line.title}: {line.text}" for line in found.lines) or "Nothing found."
        self._log(call, Outcome(True, told, count, private=tuple(private)))
        return found

    def _quoted(self, found: Answer) -> Iterator[str]:
        """The lines, each with its number; what was only said after the day on which it was."""
        day = ""
        for line in found.lines:
            if line.source == "said" and line.day != day:
                yield f"You said on {line.day}:" if line.day else "You said:"
                day = line.day
            source = self.context.sources.add(line.path, max(1, line.number), line.text, line.title)
            yield f"> {line.text} [{source.n}]"

    def _log(self, call: ToolCall, outcome: Outcome) -> None:
        """Store a step as a call and its result, and tell it."""
        usage = Usage()
        self._keep_calls(Reply("", (call,), "tool_calls", usage))
        self._keep_result(call, outcome)
        self._emit(
            ToolFinished(
                call.id,
                call.name,
                outcome.ok,
                outcome.summary,
                outcome.output,
                outcome.changes,
                outcome.proposal,
            )
        )


def _told(kept: Kept) -> Iterator[str]:
    """What became of the facts, a sentence for each way."""
    if kept.names("created", "added"):
        yield f"Kept in {_listed(kept.names('created', 'added'))}."
    if kept.names("corrected"):
        yield f"Corrected in {_listed(kept.names('corrected'))}."
    if waiting := [*kept.proposed, *kept.names("proposed")]:
        waits = "waits" if len(waiting) == 1 else "wait"
        where = "in your inbox (F6, or `kbtui inbox`)"
        yield f"Proposed, not written yet: {_listed(waiting)} {waits} {where}."
    if kept.names("known"):
        yield f"{_listed(kept.names('known'))} said so already."
    for why in kept.refused:
        yield f"I couldn't keep that. {why}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
