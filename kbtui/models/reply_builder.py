"""Assembles a streamed answer: text, reasoning and tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kbtui.models.port import ReplyReasoning, ReplyText, ToolCall
from kbtui.models.written_calls import may_be_data, read_written

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(slots=True)
class _Call:
    id: str
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class ThinkSplitter:
    """Splits leading reasoning in ``<think>`` tags from the answer.

    Open models served without a reasoning parser write their reasoning into the text.
    """

    _state: str = "start"
    _held: str = ""

    def feed(self, piece: str) -> Iterator[ReplyText | ReplyReasoning]:
        """Process the next piece and yield what can be classified."""
        self._held += piece
        if self._state == "start":
            self._detect_tag()
        if self._state == "thinking":
            yield from self._split_reasoning()
        if self._state == "gap" and self._held.strip():
            self._state, self._held = "answer", self._held.lstrip()
        if self._state == "answer" and self._held:
            text, self._held = self._held, ""
            yield ReplyText(text)

    def flush(self) -> Iterator[ReplyText | ReplyReasoning]:
        """Yield what is still buffered."""
        rest, self._held = self._held, ""
        if rest and self._state != "gap":
            yield ReplyReasoning(rest) if self._state == "thinking" else ReplyText(rest)

    def _detect_tag(self) -> None:
        begin = self._held.lstrip()
        if begin.startswith(_OPEN):
            self._state, self._held = "thinking", begin[len(_OPEN) :]
        elif not _OPEN.startswith(begin):
            self._state = "answer"

    def _split_reasoning(self) -> Iterator[ReplyReasoning]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._state, self._held = "gap", rest
        else:
            keep = _partial_tag_length(thought)
            thought, self._held = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if thought:
            yield ReplyReasoning(thought)


@dataclass(slots=True)
class ReplyBuilder:
    """Accumulates an answer; the `add_*` methods yield what can be shown now.

    Attributes:
        written_tools: Tools whose calls may be written into the text, as small models do behind a
            server that doesn't parse them. An answer that begins like JSON is buffered until it is
            complete. If None, text is never buffered.
        is_data: The whole text is JSON that calls no tool; it wasn't yielded.
    """

    written_tools: frozenset[str] | None = None
    is_data: bool = False
    _held: str | None = ""
    _text: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _split: ThinkSplitter = field(default_factory=ThinkSplitter)

    @property
    def text(self) -> str:
        """The answer's text so far, excluding reasoning."""
        return "".join(self._text)

    @property
    def started(self) -> bool:
        """Whether any part of the answer has arrived."""
        return bool(self._text or self._held or self._calls)

    def add_text(self, piece: str) -> Iterator[ReplyText | ReplyReasoning]:
        """Add a piece of content, which may contain reasoning in think tags."""
        yield from self._record(self._split.feed(piece))

    def finish_text(self) -> Iterator[ReplyText | ReplyReasoning]:
        """Yield what was buffered because it could have become a tag or a call."""
        yield from self._record(self._split.flush())
        held, self._held = self._held, None
        if not held:
            return
        written = read_written(held, self.written_tools or ())
        for name, arguments in written.calls:
            self._calls.append(
                _Call(f"call_{len(self._calls) + 1}", name, _arguments_text(arguments))
            )
        self.is_data = written.is_data and not self._calls
        if not written.calls:
            self._text.append(held)
        if not (written.calls or self.is_data):
            yield ReplyText(held)

    def add_call_piece(
        self, index: int | None, call_id: str | None, name: str | None, arguments: Any
    ) -> None:
        """Add a fragment of a tool call.

        Fragments are joined by index. Some servers give every call the index 0 or none, and send
        each call whole; for them a new id or a second name begins a new call.
        """
        key = 0 if index is None else index
        call = self._by_index.get(key)
        if call is None or self._starts_new_call(call, call_id, name):
            call = _Call(call_id or f"call_{len(self._calls) + 1}")
            self._calls.append(call)
            self._by_index[key] = call
        call.name += name or ""
        call.arguments += _arguments_text(arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        """Return all tool calls, with ids made unique."""
        seen: set[str] = set()
        calls = []
        for number, call in enumerate(self._calls, 1):
            unique = call.id if call.id not in seen else f"{call.id}_{number}"
            seen.add(unique)
            calls.append(ToolCall(unique, call.name.strip(), call.arguments or "{}"))
        return tuple(calls)

    def _record(
        self, pieces: Iterator[ReplyText | ReplyReasoning]
    ) -> Iterator[ReplyText | ReplyReasoning]:
        for piece in pieces:
            if isinstance(piece, ReplyReasoning):
                yield piece
            elif text := self._release(piece.text):
                self._text.append(text)
                yield ReplyText(text)

    def _release(self, text: str) -> str:
        """Return the text to show now; buffer it while it may become a call."""
        if self._held is None:
            return text
        self._held += text
        if self.written_tools is not None and may_be_data(self._held):
            return ""
        text, self._held = self._held, None
        return text

    @staticmethod
    def _starts_new_call(call: _Call, call_id: str | None, name: str | None) -> bool:
        if not name:
            return False
        return bool(call.name) and (call_id not in (None, "", call.id) or bool(call.arguments))


def _arguments_text(arguments: Any) -> str:
    """Serialize arguments to JSON text; Ollama and some proxies send an object."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _partial_tag_length(text: str) -> int:
    """Return the length of the longest suffix that could begin the closing tag."""
    longest = min(len(text), len(_CLOSE) - 1)
    return next((n for n in range(longest, 0, -1) if _CLOSE.startswith(text[-n:])), 0)
