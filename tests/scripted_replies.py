"""Scripted answers, well-behaved or hostile, and how each protocol puts them on the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Cut = Literal["", "chunked", "clean", "eof"]


@dataclass(frozen=True)
class Reply:
    """One scripted answer, well-behaved or hostile.

    Attributes:
        text: what the assistant says.
        tool_calls: objects ``{"id", "name", "arguments"}``; arguments are sent as they are when
            they are text (so they may be broken), else as JSON.
        reasoning: sent as ``reasoning_content`` before the text.
        finish: the finish reason; empty: ``tool_calls`` or ``stop``, as fits. ``None``: none sent.
        piece: characters of text and arguments in one streamed piece.
        status: an HTTP status; other than 200 makes it an error with `text` as the message.
        headers: further headers, e.g. ``{"Retry-After": "0"}``.
        body: raw bytes to send in place of what the protocol wants (UTF-8 text in a script file).
        cut_at: close the connection after that many bytes of the body.
        cut: how it is closed. ``chunked``: in the middle of a chunked body (an error for HTTP),
            ``clean``: the chunked body ends as it should, ``eof``: the end of the connection is
            the end of the body, so that nothing on the level of HTTP tells.
        stall_at: send nothing more after that many bytes, and keep the connection open.
        delay: seconds between two pieces.
        prompt_tokens: reported usage.
        done: whether ``data: [DONE]`` closes the stream.
        one_index: give every tool call the index 0, as some servers do.
    """

    text: str = ""
    tool_calls: Sequence[dict[str, Any]] = ()
    reasoning: str = ""
    finish: str | None = ""
    piece: int = 12
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    cut_at: int | None = None
    cut: Cut = "chunked"
    stall_at: int | None = None
    delay: float = 0.0
    prompt_tokens: int = 11
    done: bool = True
    one_index: bool = False

    @property
    def finish_reason(self) -> str | None:
        """The finish reason as sent."""
        return ("tool_calls" if self.tool_calls else "stop") if self.finish == "" else self.finish

    @property
    def usage(self) -> dict[str, int]:
        """The usage as sent."""
        completion = max(1, len(self.text.split()) + 5 * len(self.tool_calls))
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
        }


def call(name: str, /, call_id: str = "", **arguments: Any) -> dict[str, Any]:
    """Make a tool call for a script."""
    return {"id": call_id, "name": name, "arguments": arguments}


def raw_call(name: str, arguments: str, call_id: str = "") -> dict[str, Any]:
    """Make a tool call whose arguments are sent as they are, broken or not."""
    return {"id": call_id, "name": name, "arguments": arguments}


def numbered(reply: Reply) -> Iterable[tuple[int, dict[str, Any], str]]:
    for number, wanted in enumerate(reply.tool_calls):
        arguments = wanted.get("arguments", "")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        identity = wanted.get("id") or f"call_{number + 1}"
        yield number, {"id": identity, "name": wanted["name"]}, text


def whole(reply: Reply, body: dict[str, Any]) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": head["id"],
                "type": "function",
                "function": {"name": head["name"], "arguments": arguments},
            }
            for _, head, arguments in numbered(reply)
        ]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    return json.dumps(
        {**head_of(body, "chat.completion"), "choices": [choice], "usage": reply.usage}
    ).encode()


def head_of(body: dict[str, Any], kind: str) -> dict[str, Any]:
    model = body.get("model", "scripted")
    return {"id": "chatcmpl-scripted", "object": kind, "created": 1, "model": model}


def sse(reply: Reply, body: dict[str, Any]) -> Iterable[bytes]:
    """An answer as OpenAI's protocol streams it."""

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        value = {**head_of(body, "chat.completion.chunk"), "choices": [choice]}
        return b"data: " + json.dumps(value).encode() + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in pieces_of(reply.reasoning, reply.piece):
        yield event({"reasoning_content": piece})
    for piece in pieces_of(reply.text, reply.piece):
        yield event({"content": piece})
    for number, head, arguments in numbered(reply):
        index = 0 if reply.one_index else number
        function = {"name": head["name"], "arguments": ""}
        yield event(
            {
                "tool_calls": [
                    {"index": index, "id": head["id"], "type": "function", "function": function}
                ]
            }
        )
        for piece in pieces_of(arguments, reply.piece):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.finish_reason is not None:
        yield event({}, reply.finish_reason)
    if (body.get("stream_options") or {}).get("include_usage"):
        value = {**head_of(body, "chat.completion.chunk"), "choices": [], "usage": reply.usage}
        yield b"data: " + json.dumps(value).encode() + b"\n\n"
    if reply.done:
        yield b"data: [DONE]\n\n"


def ndjson(reply: Reply, body: dict[str, Any]) -> Iterable[bytes]:
    """The same in Ollama's own protocol: a JSON object per line, the last one ``done``."""

    def line(message: dict[str, Any], **more: Any) -> bytes:
        value = {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message}
        return json.dumps({**value, "done": False, **more}).encode() + b"\n"

    for piece in pieces_of(reply.reasoning, reply.piece):
        yield line({"role": "assistant", "content": "", "thinking": piece})
    for piece in pieces_of(reply.text, reply.piece):
        yield line({"role": "assistant", "content": piece})
    for _, head, arguments in numbered(reply):
        function = {"name": head["name"], "arguments": json.loads(arguments)}
        yield line({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})
    if reply.finish_reason is not None:
        reason = "length" if reply.finish_reason == "length" else "stop"
        counts = {"prompt_eval_count": 11, "eval_count": reply.usage["completion_tokens"]}
        yield line({"role": "assistant", "content": ""}, done=True, done_reason=reason, **counts)


def ollama_whole(reply: Reply, body: dict[str, Any]) -> bytes:
    """The same where Ollama isn't asked to stream."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.tool_calls:
        message["tool_calls"] = [
            {"function": {"name": head["name"], "arguments": json.loads(arguments)}}
            for _, head, arguments in numbered(reply)
        ]
    value = {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message}
    return json.dumps({**value, "done": True, "done_reason": "stop"}).encode()


_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


def anthropic(reply: Reply, body: dict[str, Any]) -> Iterable[bytes]:
    """The same in Anthropic's protocol: named events for the blocks of a message."""

    def event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()

    usage = {"input_tokens": reply.prompt_tokens, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
    yield event("message_start", message={**message, "content": [], "usage": usage})
    if reply.text:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in pieces_of(reply.text, reply.piece):
            yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=0)
    for number, head, arguments in numbered(reply):
        block = {"type": "tool_use", **head, "input": {}}
        yield event("content_block_start", index=number + 1, content_block=block)
        for piece in pieces_of(arguments, reply.piece):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("content_block_delta", index=number + 1, delta=delta)
        yield event("content_block_stop", index=number + 1)
    if reply.finish_reason is not None:
        delta = {"stop_reason": _STOP_REASONS.get(reply.finish_reason, reply.finish_reason)}
        yield event(
            "message_delta", delta=delta, usage={"output_tokens": reply.usage["completion_tokens"]}
        )
    if reply.done:
        yield event("message_stop")


def pieces_of(text: str, size: int) -> Iterable[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def stream_length(reply: Reply, **body: Any) -> int:
    """How many bytes the streamed body of a reply has; for cutting at each of them."""
    return sum(map(len, sse(reply, {"stream_options": {"include_usage": True}, **body})))
