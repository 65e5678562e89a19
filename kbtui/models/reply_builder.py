"""Puts the pieces of a streamed answer together: text, reasoning and tool calls."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kbtui.models.port import ReplyReasoning, ReplyText, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(slots=True)
class _Call:
    id: str
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class ThinkSplitter:
    """Tells reasoning in ``<think>`` tags at the beginning of an answer from the answer.

    Served without a reasoning parser, open models write it into their text.
    """

    _state: str = "start"
    _held: str = ""

    def feed(self, piece: str) -> Iterator[ReplyText | ReplyReasoning]:
        """Take the next piece and give out what is certain."""
        self._held += piece
        if self._state == "start":
            self._start()
        if self._state == "thinking":
            yield from self._thinking()
        if self._state == "gap" and self._held.strip():
            self._state, self._held = "answer", self._held.lstrip()
        if self._state == "answer" and self._held:
            text, self._held = self._held, ""
            yield ReplyText(text)

    def flush(self) -> Iterator[ReplyText | ReplyReasoning]:
        """Give out the rest."""
        rest, self._held = self._held, ""
        if rest and self._state != "gap":
            yield ReplyReasoning(rest) if self._state == "thinking" else ReplyText(rest)

    def _start(self) -> None:
        begin = self._held.lstrip()
        if begin.startswith(_OPEN):
            self._state, self._held = "thinking", begin[len(_OPEN) :]
        elif not _OPEN.startswith(begin):
            self._state = "answer"

    def _thinking(self) -> Iterator[ReplyReasoning]:
        thought, tag, rest = self._held.partition(_CLOSE)
        if tag:
            self._state, self._held = "gap", rest
        else:
            keep = _possible_tag(thought)
            thought, self._held = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if thought:
            yield ReplyReasoning(thought)


@dataclass(slots=True)
class ReplyBuilder:
    """Collects an answer; `add_*` return what is to be shown now."""

    _text: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _split: ThinkSplitter = field(default_factory=ThinkSplitter)

    @property
    def text(self) -> str:
        """The answer's text so far, without reasoning."""
        return "".join(self._text)

    @property
    def started(self) -> bool:
        """True if anything of the answer has come in."""
        return bool(self._text or self._calls)

    def add_text(self, piece: str) -> Iterator[ReplyText | ReplyReasoning]:
        """Add a piece of content, which may hold reasoning in think tags."""
        yield from self._noted(self._split.feed(piece))

    def finish_text(self) -> Iterator[ReplyText | ReplyReasoning]:
        """Give out what was held back because it could have been a tag."""
        yield from self._noted(self._split.flush())

    def add_call_piece(
        self, index: int | None, call_id: str | None, name: str | None, arguments: Any
    ) -> None:
        """Add a piece of a tool call.

        Pieces belong together by index. Some servers give every call the index 0, or none at
        all, and send each call whole: there, a new id or a second name begins a new call.
        """
        key = 0 if index is None else index
        call = self._by_index.get(key)
        if call is None or self._begins_anew(call, call_id, name):
            call = _Call(call_id or f"call_{len(self._calls) + 1}")
            self._calls.append(call)
            self._by_index[key] = call
        call.name += name or ""
        call.arguments += _as_text(arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        """All tool calls, with ids that differ from each other."""
        seen: set[str] = set()
        calls = []
        for number, call in enumerate(self._calls, 1):
            unique = call.id if call.id not in seen else f"{call.id}_{number}"
            seen.add(unique)
            calls.append(ToolCall(unique, call.name.strip(), call.arguments or "{}"))
        return tuple(calls)

    def _noted(
        self, pieces: Iterator[ReplyText | ReplyReasoning]
    ) -> Iterator[ReplyText | ReplyReasoning]:
        for piece in pieces:
            if isinstance(piece, ReplyText):
                self._text.append(piece.text)
            yield piece

    @staticmethod
    def _begins_anew(call: _Call, call_id: str | None, name: str | None) -> bool:
        if not name:
            return False
        return bool(call.name) and (call_id not in (None, "", call.id) or bool(call.arguments))


def _as_text(arguments: Any) -> str:
    """Give arguments as JSON text; Ollama and some proxies send an object."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _possible_tag(text: str) -> int:
    """How many characters at the end could be the beginning of the closing tag."""
    longest = min(len(text), len(_CLOSE) - 1)
    return next((n for n in range(longest, 0, -1) if _CLOSE.startswith(text[-n:])), 0)
