"""Assembles a streamed answer: text, reasoning and tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kbtui.models.dialects import AnswerScanner, Piece
from kbtui.models.port import ReplyRevoked, ReplyText, ToolCall
from kbtui.models.written_calls import read_written


@dataclass(slots=True)
class _Call:
    id: str
    name: str = ""
    arguments: str = ""
    is_written: bool = False


@dataclass(slots=True)
class ReplyBuilder:
    """Accumulates an answer; the `add_*` methods yield what can be shown now.

    Attributes:
        written_tools: The tools whose calls may be written into the text, as models do behind a
            server that doesn't parse them. What may be a call is buffered until the text is
            complete. If None, text is never buffered.
        is_data: The whole text is JSON that calls no tool, or a call that can't be read; it wasn't
            yielded.
        written: The text that calls were read from, or a call of a tool behind other text that
            can't be read; it is no part of `text` and wasn't yielded.
    """

    written_tools: frozenset[str] | None = None
    is_data: bool = False
    written: str = ""
    _text: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _scanner: AnswerScanner = field(init=False)

    def __post_init__(self) -> None:
        self._scanner = AnswerScanner(self.written_tools)

    @property
    def text(self) -> str:
        """The answer's text so far, excluding reasoning."""
        return "".join(self._text)

    @property
    def has_answer(self) -> bool:
        """Whether there is text or a call."""
        return bool(self.text.strip() or self._calls)

    @property
    def started(self) -> bool:
        """Whether any part of the answer has arrived."""
        return bool(self._text or self._scanner.has_begun or self._calls)

    def add_text(self, piece: str) -> Iterator[Piece]:
        """Add a piece of content, which may contain reasoning and calls in a model's own marks."""
        yield from self._record(self._scanner.feed(piece))

    def finish_text(self) -> Iterator[Piece]:
        """Yield what was buffered because it could have become a mark or a call."""
        yield from self._record(self._scanner.flush())
        if not (held := self._scanner.held):
            return
        found = read_written(held, self.written_tools or ())
        for name, arguments in found.calls:
            call_id = f"call_{len(self._calls) + 1}"
            self._calls.append(_Call(call_id, name, _arguments_text(arguments), is_written=True))
        is_broken = found.is_data and any(each in held for each in self.written_tools or ())
        if found.calls or (is_broken and self.text.strip()):
            self.written = held
            return
        self.is_data = found.is_data and not self._calls and not self.text.strip()
        self._text.append(held)
        if not self.is_data:
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
            calls.append(
                ToolCall(unique, call.name.strip(), call.arguments or "{}", call.is_written)
            )
        return tuple(calls)

    def _record(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            if isinstance(piece, ReplyRevoked):
                self._text.clear()
            elif isinstance(piece, ReplyText):
                self._text.append(piece.text)
            yield piece

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
