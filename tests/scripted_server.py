"""A chat endpoint that speaks the OpenAI protocol on loopback and says what a script tells it.

Used in a test::

    with ScriptedServer([Reply("Hello."), Reply(tool_calls=[call("read_entry", entry="alice")])]) as server:
        ...  # api_base=server.url, model="openai/scripted"
        assert server.requests[0].body["messages"][-1]["content"] == "Hi"

or from a shell, for end-to-end tests: ``python -m tests.scripted_server --port 8123 --script FILE``,
where FILE is a JSON list of objects with the fields of `Reply`. Each request takes the next reply;
when the script has run out, the last one is given again, unless the server is strict.

Besides ``/v1/chat/completions`` it answers ``/v1/models``; as an Ollama would ``/api/tags`` and
``/api/chat``; and as Anthropic would ``/v1/messages``.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from dataclasses import dataclass, field, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

Cut = Literal["", "chunked", "clean", "eof"]
STALL_LIMIT_SECONDS = 30.0


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


@dataclass(frozen=True)
class Request:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the prompt."""
        return list(self.body.get("messages", []))

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were offered."""
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]


def call(name: str, /, call_id: str = "", **arguments: Any) -> dict[str, Any]:
    """Make a tool call for a script."""
    return {"id": call_id, "name": name, "arguments": arguments}


def raw_call(name: str, arguments: str, call_id: str = "") -> dict[str, Any]:
    """Make a tool call whose arguments are sent as they are, broken or not."""
    return {"id": call_id, "name": name, "arguments": arguments}


class ScriptedServer:
    """The server, in a thread of its own; a context manager."""

    def __init__(
        self,
        replies: Iterable[Reply | Callable[[Request], Reply]] = (),
        *,
        port: int = 0,
        strict: bool = False,
        ollama_models: Sequence[str] = (),
        record: Path | None = None,
    ) -> None:
        self.replies: list[Reply | Callable[[Request], Reply]] = list(replies)
        self.requests: list[Request] = []
        self.disconnected = threading.Event()
        self.closing = threading.Event()
        self.strict = strict
        self.ollama_models = tuple(ollama_models)
        self._record = record
        self._given = 0
        self._lock = threading.Lock()
        self._http = _HTTPServer(("127.0.0.1", port), _Handler)
        self._http.scripted = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._http.server_address[1])

    @property
    def origin(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address to give as ``api_base``."""
        return f"{self.origin}/v1"

    @property
    def prompts(self) -> list[Request]:
        """The requests for a chat completion, without those for lists."""
        return [request for request in self.requests if "messages" in request.body]

    def enqueue(self, *replies: Reply | Callable[[Request], Reply]) -> None:
        """Add replies to the end of the script."""
        with self._lock:
            self.replies.extend(replies)

    def next_reply(self, request: Request) -> Reply:
        """Note a request and take the next reply of the script."""
        with self._lock:
            self.requests.append(request)
            self._write_record(request)
            position = self._given
            self._given += 1
            if position >= len(self.replies) and (self.strict or not self.replies):
                return Reply("the script has run out", status=400)
            reply = self.replies[min(position, len(self.replies) - 1)]
        return reply if isinstance(reply, Reply) else reply(request)

    def note(self, request: Request) -> None:
        """Note a request that takes no reply."""
        with self._lock:
            self.requests.append(request)
            self._write_record(request)

    def _write_record(self, request: Request) -> None:
        if self._record is not None:
            line = {"path": request.path, "headers": request.headers, "body": request.body}
            with self._record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def start(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening and let stalled answers go."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    scripted: ScriptedServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of the tests, not a reason to print a traceback."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _HTTPServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay quiet."""

    def do_GET(self) -> None:
        scripted = self.server.scripted
        scripted.note(Request(self.path, dict(self.headers), {}))
        if self.path == "/api/tags":
            if not scripted.ollama_models:
                self._send_json(404, {"error": "not an Ollama"})
                return
            models = [{"name": name, "model": name} for name in scripted.ollama_models]
            self._send_json(200, {"models": models})
        elif self.path.endswith("/models"):
            self._send_json(
                200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
            )
        else:
            self._send_json(404, {"error": {"message": f"no such page: {self.path}"}})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        request = Request(self.path, dict(self.headers), body)
        reply = self.server.scripted.next_reply(request)
        if reply.status != 200:
            error = {"message": reply.text or "scripted failure", "type": "scripted", "code": None}
            self._send_json(reply.status, {"error": error}, reply.headers)
        elif reply.body is not None:
            self._send_pieces("text/event-stream", [reply.body], reply)
        elif self.path == "/api/chat":
            self._send_pieces("application/x-ndjson", list(_ndjson(reply, body)), reply)
        elif self.path.endswith("/messages"):
            self._send_pieces("text/event-stream", list(_anthropic(reply, body)), reply)
        elif body.get("stream"):
            self._send_pieces("text/event-stream", list(_sse(reply, body)), reply)
        else:
            self._send_pieces("application/json", [_whole(reply, body)], reply)

    def _send_json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def _send_pieces(self, content_type: str, pieces: Sequence[bytes], reply: Reply) -> None:
        chunked = not (reply.cut == "eof" and reply.cut_at is not None)
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        try:
            self._send_body(pieces, reply, chunked=chunked)
        except OSError:
            self.server.scripted.disconnected.set()
            self.close_connection = True

    def _send_body(self, pieces: Sequence[bytes], reply: Reply, *, chunked: bool) -> None:
        sent = 0
        for piece in pieces:
            for data, event in _parts(piece, sent, reply):
                if data:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
                    self.wfile.flush()
                sent += len(data)
                if event == "stall":
                    self._stall()
                if event == "cut":
                    self.close_connection = True
                    if chunked and reply.cut == "clean":
                        self.wfile.write(b"0\r\n\r\n")
                    return
            if reply.delay:
                self.server.scripted.closing.wait(reply.delay)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _stall(self) -> None:
        """Wait until the client hangs up, or the test is over."""
        scripted = self.server.scripted
        self.connection.settimeout(0.05)
        deadline = time.monotonic() + STALL_LIMIT_SECONDS
        while time.monotonic() < deadline and not scripted.closing.is_set():
            try:
                if self.connection.recv(1) == b"":
                    raise ConnectionResetError
            except TimeoutError:
                continue
        raise ConnectionResetError


def _parts(piece: bytes, sent: int, reply: Reply) -> Iterable[tuple[bytes, str]]:
    """Split a piece where the script wants something to happen."""
    marks = [
        (at, name)
        for at, name in ((reply.stall_at, "stall"), (reply.cut_at, "cut"))
        if at is not None and sent <= at < sent + len(piece)
    ]
    begin = 0
    for at, name in sorted(marks):
        yield piece[begin : at - sent], name
        begin = at - sent
    yield piece[begin:], ""


def _numbered(reply: Reply) -> Iterable[tuple[int, dict[str, Any], str]]:
    for number, wanted in enumerate(reply.tool_calls):
        arguments = wanted.get("arguments", "")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        identity = wanted.get("id") or f"call_{number + 1}"
        yield number, {"id": identity, "name": wanted["name"]}, text


def _whole(reply: Reply, body: dict[str, Any]) -> bytes:
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
            for _, head, arguments in _numbered(reply)
        ]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    return json.dumps(
        {**_head(body, "chat.completion"), "choices": [choice], "usage": reply.usage}
    ).encode()


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    model = body.get("model", "scripted")
    return {"id": "chatcmpl-scripted", "object": kind, "created": 1, "model": model}


def _sse(reply: Reply, body: dict[str, Any]) -> Iterable[bytes]:
    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        value = {**_head(body, "chat.completion.chunk"), "choices": [choice]}
        return b"data: " + json.dumps(value).encode() + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in _pieces(reply.reasoning, reply.piece):
        yield event({"reasoning_content": piece})
    for piece in _pieces(reply.text, reply.piece):
        yield event({"content": piece})
    for number, head, arguments in _numbered(reply):
        index = 0 if reply.one_index else number
        function = {"name": head["name"], "arguments": ""}
        yield event(
            {
                "tool_calls": [
                    {"index": index, "id": head["id"], "type": "function", "function": function}
                ]
            }
        )
        for piece in _pieces(arguments, reply.piece):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.finish_reason is not None:
        yield event({}, reply.finish_reason)
    if (body.get("stream_options") or {}).get("include_usage"):
        value = {**_head(body, "chat.completion.chunk"), "choices": [], "usage": reply.usage}
        yield b"data: " + json.dumps(value).encode() + b"\n\n"
    if reply.done:
        yield b"data: [DONE]\n\n"


def _ndjson(reply: Reply, body: dict[str, Any]) -> Iterable[bytes]:
    """The same in Ollama's own protocol: a JSON object per line, the last one ``done``."""

    def line(message: dict[str, Any], **more: Any) -> bytes:
        value = {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "message": message}
        return json.dumps({**value, "done": False, **more}).encode() + b"\n"

    for piece in _pieces(reply.reasoning, reply.piece):
        yield line({"role": "assistant", "content": "", "thinking": piece})
    for piece in _pieces(reply.text, reply.piece):
        yield line({"role": "assistant", "content": piece})
    for _, head, arguments in _numbered(reply):
        function = {"name": head["name"], "arguments": json.loads(arguments)}
        yield line({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})
    if reply.finish_reason is not None:
        reason = "length" if reply.finish_reason == "length" else "stop"
        counts = {"prompt_eval_count": 11, "eval_count": reply.usage["completion_tokens"]}
        yield line({"role": "assistant", "content": ""}, done=True, done_reason=reason, **counts)


_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


def _anthropic(reply: Reply, body: dict[str, Any]) -> Iterable[bytes]:
    """The same in Anthropic's protocol: named events for the blocks of a message."""

    def event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()

    usage = {"input_tokens": reply.prompt_tokens, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
    yield event("message_start", message={**message, "content": [], "usage": usage})
    if reply.text:
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in _pieces(reply.text, reply.piece):
            yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=0)
    for number, head, arguments in _numbered(reply):
        block = {"type": "tool_use", **head, "input": {}}
        yield event("content_block_start", index=number + 1, content_block=block)
        for piece in _pieces(arguments, reply.piece):
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


def _pieces(text: str, size: int) -> Iterable[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def stream_length(reply: Reply, **body: Any) -> int:
    """How many bytes the streamed body of a reply has; for cutting at each of them."""
    return sum(map(len, _sse(reply, {"stream_options": {"include_usage": True}, **body})))


def load_script(file: Path) -> list[Reply]:
    """Read replies from a JSON file.

    Raises:
        ValueError: a reply has a field that `Reply` doesn't have.
    """
    known = {entry.name for entry in fields(Reply)}
    replies = []
    for number, value in enumerate(json.loads(file.read_text(encoding="utf-8")), 1):
        if unknown := set(value) - known:
            raise ValueError(f"reply {number} has unknown fields: {', '.join(sorted(unknown))}")
        if isinstance(value.get("body"), str):
            value["body"] = value["body"].encode()
        replies.append(Reply(**value))
    return replies


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a script until interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--record", type=Path, help="append each request to this file (JSON lines)")
    parser.add_argument("--strict", action="store_true", help="400 when the script has run out")
    parser.add_argument("--ollama-model", action="append", default=[], metavar="NAME")
    options = parser.parse_args(arguments)
    server = ScriptedServer(
        load_script(options.script),
        port=options.port,
        strict=options.strict,
        ollama_models=options.ollama_model,
        record=options.record,
    )
    with server:
        print(server.url, flush=True)  # noqa: T201
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
