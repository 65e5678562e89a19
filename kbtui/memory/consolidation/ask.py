"""Asks a model for what a conversation leaves behind, and takes nothing but a usable answer.

An answer in words, of the wrong tool, with wrong types, cut short, empty, or echoing the prompt is
asked for once more, with what was wrong about it. Calls don't stream (decision 18).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from kbtui.errors import (
    ModelAccessError,
    ModelAnswerError,
    ModelError,
    ModelOverloadedError,
    ModelUnreachableError,
)
from kbtui.memory.consolidation.prompts import consolidation_prompt
from kbtui.memory.edits.memory_file import MEMORY, apply_rewrite
from kbtui.memory.records.extraction import SAVE_MEMORY, Extraction, parse_extraction
from kbtui.models.port import Message
from kbtui.models.tokens import cut_to_tokens
from kbtui.sessions.slices import split_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kbtui.knowledge.library import Library
    from kbtui.memory.consolidation.live_edits import Written
    from kbtui.memory.consolidation.page import Page
    from kbtui.models.port import ChatModel, Reply, ToolSpec

T = TypeVar("T")
log = logging.getLogger(__name__)
TRANSIENT = (ModelAccessError, ModelUnreachableError, ModelOverloadedError)
"""Failures that say nothing about the conversation: it is tried again later."""

TRIES = 2
LONGEST_CALL_SECONDS = 600.0
_LONGEST_PAGE = 16_000
_SHORTEST_PAGE = 200
_LONGEST_ANSWER = 4_096
_SAFETY = 0.8  # tokens are estimated
_ECHO_CHARACTERS = 40
_DONE = frozenset({"stop", "tool_calls"})
_SENTENCE = re.compile(r"[^.!?\n]+")


def _widened(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of ``save_memory`` with the seeds' older forms of it.

    There `memory_update` is a text, and there are no entries; both are read, but not asked for.
    """
    properties = dict(parameters["properties"])
    update = properties["memory_update"]
    properties["memory_update"] = {"properties": update["properties"]}
    return {"type": "object", "properties": properties, "required": ["history_entry"]}


ASKED_FOR = replace(SAVE_MEMORY, accepted=_widened(SAVE_MEMORY.parameters))


async def ask_tool(
    model: ChatModel, prompt: Sequence[Message], tool: ToolSpec, accept: Callable[[str], T]
) -> T:
    """Have a model call one tool, and take its arguments.

    Args:
        model: Which one.
        prompt: What it is told.
        tool: What it must call.
        accept: Reads the arguments; raises `ModelAnswerError` where they can't be used.

    Raises:
        ModelError: no usable answer in `TRIES` tries, or the model can't be reached.
    """

    def read(reply: Reply, prompt: Sequence[Message]) -> T:
        calls = [call for call in reply.tool_calls if call.name == tool.name]
        if reply.finish not in _DONE or not calls:
            raise ModelAnswerError(_instead(reply, tool))
        _check_echo(calls[0].arguments, prompt)
        return accept(calls[0].arguments)

    return await _ask(model, list(prompt), (tool,), read)


async def ask_text(model: ChatModel, prompt: Sequence[Message], accept: Callable[[str], T]) -> T:
    """Have a model answer in words; see `ask_tool`."""

    def read(reply: Reply, prompt: Sequence[Message]) -> T:
        if reply.finish != "stop" or reply.tool_calls:
            raise ModelAnswerError(_instead(reply, None))
        _check_echo(reply.text, prompt)
        return accept(reply.text)

    return await _ask(model, list(prompt), (), read)


async def _ask(
    model: ChatModel,
    prompt: list[Message],
    tools: tuple[ToolSpec, ...],
    read: Callable[[Reply, Sequence[Message]], T],
) -> T:
    forced = tools[0].name if tools else None
    failure: ModelError = ModelAnswerError(f"{model.name} was not asked.")
    for _ in range(TRIES):
        try:
            async with asyncio.timeout(LONGEST_CALL_SECONDS):
                reply = await model.complete(prompt, tools, force_tool=forced)
            return read(reply, prompt)
        except TimeoutError:
            raise ModelUnreachableError(
                f"{model.name} took longer than {LONGEST_CALL_SECONDS / 60:.0f} minutes.",
                "Choose a faster model with models.consolidate.model.",
            ) from None
        except TRANSIENT:
            raise
        except ModelError as error:
            log.info("%s gave no usable answer: %s", model.name, error.message)
            failure = error
        # Said once, after the original: a conversation about failures confuses small models.
        prompt = [*prompt[:2], Message("user", f"Your last answer could not be used: {failure}")]
    raise failure


class Condenser:
    """Gets an `Extraction` of a page out of a model."""

    def __init__(self, model: ChatModel, library: Library, index_tokens: int) -> None:
        self._model = model
        self._library = library
        self._window = int(model.context_window * _SAFETY)
        self._index_tokens = min(index_tokens, self._window // 8)

    def page_limit(self, memory: str) -> int:
        """How many tokens of conversation fit into one prompt beside everything else."""
        answer = min(_LONGEST_ANSWER, self._window // 4)
        known = min(self._model.count_tokens(memory), self._window // 4) + self._index_tokens
        free = self._window - answer - known - self._model.count_tokens(self._instructions())
        return max(_SHORTEST_PAGE, min(_LONGEST_PAGE, free))

    async def extract(self, page: Page, memory: str, written: Sequence[Written]) -> Extraction:
        """Condense a page; one message that is too long for a prompt goes in parts.

        Args:
            page: What was said.
            memory: MEMORY.md as it is.
            written: What the agent wrote down itself while it was said.

        Raises:
            ModelError: no usable answer, for at least one part.
        """
        told = [line for each in written for line in each.lines(tell=self._may_tell(each.path))]
        catalogue = self._library.prompt_index(
            page.text,
            self._index_tokens,
            self._model.count_tokens,
            show_private=self._model.is_local,
        )
        known = memory if self._may_tell(MEMORY) else ""
        parts = [page.text]
        if len(page.units) == 1:
            parts = split_text(page.text, self.page_limit(known), self._model.count_tokens)
        found = []
        for number, text in enumerate(parts, 1):
            prompt = consolidation_prompt(
                text,
                memory=cut_to_tokens(known, self._window // 4),
                catalogue=catalogue,
                written=told,
                part=f"{number} of {len(parts)}" if len(parts) > 1 else "",
            )
            found.append(await ask_tool(self._model, prompt, ASKED_FOR, parse_extraction))
        return found[0] if len(found) == 1 else _joined(found, memory)

    def _may_tell(self, path: str) -> bool:
        return self._model.is_local or not self._library.is_private(path)

    @staticmethod
    def _instructions() -> str:
        prompt = consolidation_prompt("", memory="", catalogue="", written=())
        schema = json.dumps(SAVE_MEMORY.parameters)
        return "\n".join([*(message.content for message in prompt), schema])


def _joined(parts: Sequence[Extraction], memory: str) -> Extraction:
    """The extractions of the parts of one message as one.

    A rewritten memory knows only its own part, so nothing but what it adds is taken of it.
    """
    facts = [fact for part in parts for fact in part.facts]
    for part in parts:
        if part.full_memory is not None:
            facts += apply_rewrite(memory, part.full_memory).added
    return replace(
        parts[0],
        history_entry="\n".join(part.history_entry for part in parts),
        facts=tuple(dict.fromkeys(facts)),
        corrections=tuple(each for part in parts for each in part.corrections),
        drafts=tuple(each for part in parts for each in part.drafts),
        full_memory=None,
    )


def _instead(reply: Reply, tool: ToolSpec | None) -> str:
    """Say what came in place of an answer."""
    if reply.finish == "length":
        return "The answer was cut off at its longest length."
    if reply.finish not in _DONE:
        return f"The answer ended with {reply.finish!r}."
    called = ", ".join(dict.fromkeys(call.name for call in reply.tool_calls[:5]))
    if called:
        return f"The tool {called} was called, and {tool.name if tool else 'none'} was wanted."
    wanted = f"the tool {tool.name} was to be called" if tool else "something was to be said"
    return f"There was no tool call, and {wanted}." if tool else f"Nothing was said, and {wanted}."


def _check_echo(answer: str, prompt: Sequence[Message]) -> None:
    """Refuse an answer that holds a sentence of what it was told to do, or had done wrong.

    The conversation itself may be quoted; it is the second message.
    """
    flat = " ".join(answer.split())
    for message in (*prompt[:1], *prompt[2:]):
        for sentence in _SENTENCE.findall(message.content.replace("\n", " ")):
            told = " ".join(sentence.split())
            if len(told) >= _ECHO_CHARACTERS and told in flat:
                raise ModelAnswerError("The answer repeats its instructions.")
