"""A turn without a model: what is stated is kept, what is asked is answered by quoting.

The same events, session log and commits as a turn with a model; `kbtui.offline` does the reading
and choosing, this gathers the lines that it compares with and says what came of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from kbtui.agent.capture import Capture, Kept
from kbtui.agent.events import TextDelta, ToolStarted, UsageReported
from kbtui.agent.tool_rounds import in_thread
from kbtui.agent.tools.toolbox import Outcome
from kbtui.agent.turn import Turn
from kbtui.errors import KbtuiError
from kbtui.models.port import Reply, ToolCall, Usage, estimate_tokens
from kbtui.offline.answer import Answer, answer
from kbtui.offline.lines import Line
from kbtui.offline.understand import Understood
from kbtui.text import counted

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
_SPOKEN = {"said": "You said", "told": "You were told"}
_NOT_KEPT = "Not kept. Say “remember that” to keep it after all."


class OfflineTurn(Turn):
    """A turn that no model answers."""

    async def _ask_until_answered(self) -> None:
        capture = self.capture
        if capture is None:
            raise KbtuiError("Nothing is configured that could answer.")
        text, before = capture.text, capture.before
        understood, known = await in_thread(capture.understood)
        self.judged = True
        self.not_kept = understood.not_kept
        parts: list[str] = []
        if understood.facts:
            kept = await self._keep_facts(capture, understood.facts)
            parts += _told(kept)
        question = understood.question
        if (
            not question
            and not understood.facts
            and (_LOOKS_UP.match(text) or _FORGETS.match(text))
        ):
            question = text
        if question:
            parts += await self._answer(capture, question, known)
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

    def _small_talk(self, understood: Understood) -> str:
        if understood.not_kept:
            return _NOT_KEPT
        return _SMALL_TALK.get(understood.kind, _SMALL_TALK["chat"])

    # What is asked

    async def _answer(self, capture: Capture, question: str, known: Sequence[Line]) -> list[str]:
        arguments = {"query": question}
        call = ToolCall("2-search", SEARCH, json.dumps(arguments, ensure_ascii=False))
        self._emit(ToolStarted(call.id, call.name, arguments))
        found = await in_thread(partial(self._search, capture, call, question, known))
        if not found.lines:
            about = f" about {found.about}" if found.about else " about that"
            return [f"I don't know: nothing in your notes{about}."]
        return list(self._quoted(found))

    def _search(
        self, capture: Capture, call: ToolCall, question: str, known: Sequence[Line]
    ) -> Answer:
        try:
            found = answer(question, capture.gathering.candidates(question, known, self.said.id))
        except KbtuiError as error:
            self._keep_step(call, Outcome(False, f"Error: {error}", error.message))
            raise
        private = {line.path: None for line in found.lines if self.context.is_private(line.path)}
        count = (
            counted(len(found.lines), "line answers", "lines answer")
            if found.lines
            else "nothing found"
        )
        told = "\n".join(f"{line.title}: {line.text}" for line in found.lines) or "Nothing found."
        self._keep_step(call, Outcome(True, told, count, private=tuple(private)))
        return found

    def _quoted(self, found: Answer) -> Iterator[str]:
        """The lines, each with its number; what was only said after the day on which it was."""
        day = ""
        if found.lines[0].source not in _SPOKEN:
            yield "From your notes:"
        for code, lines in groupby(found.lines, lambda line: line.code):
            if code:
                yield "\n".join(["```", *(line.text for line in lines), "```"])
                continue
            for line in lines:
                if line.source in _SPOKEN and line.day != day:
                    day = line.day
                    on = f" on {day}" if day else ""
                    yield f"{_SPOKEN[line.source]}{on}:"
                source = self.context.sources.add(
                    line.path, max(1, line.number), line.text, line.title
                )
                yield f"> {line.text} [{source.n}]"


def _told(kept: Kept) -> Iterator[str]:
    """The outcome of the facts, a sentence for each way."""
    corrected = kept.names("corrected")
    if new := [name for name in kept.names("created", "added") if name not in corrected]:
        yield f"Kept in {_listed(new)}."
    if corrected:
        yield f"Corrected in {_listed(corrected)}."
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
