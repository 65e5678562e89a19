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
from dataclasses import dataclass, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.scripted_replies import (
    Reply,
    anthropic,
    call,
    ndjson,
    ollama_whole,
    raw_call,
    sse,
    stream_length,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

__all__ = ["Reply", "Request", "ScriptedServer", "call", "raw_call", "stream_length"]
STALL_LIMIT_SECONDS = 300.0


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
        self.is_ollama = bool(ollama_models)
        self.shown: dict[str, Any] | None = None  # what an Ollama says of its model
        self.pulling: list[dict[str, Any]] | None = None  # and while it fetches one
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

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""

    def do_GET(self) -> None:
        scripted = self.server.scripted
        scripted.note(Request(self.path, dict(self.headers), {}))
        if self.path == "/api/tags":
            if not scripted.is_ollama:
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
        if self.path == "/api/show":
            scripted = self.server.scripted
            scripted.note(request)
            unknown = {"error": "no such model"}
            self._send_json(200 if scripted.shown else 404, scripted.shown or unknown)
            return
        if self.path == "/api/pull":
            self._pull(request)
            return
        reply = self.server.scripted.next_reply(request)
        if reply.status != 200:
            error = {"message": reply.text or "scripted failure", "type": "scripted", "code": None}
            self._send_json(reply.status, {"error": error}, reply.headers)
        elif reply.body is not None:
            self._send_pieces("text/event-stream", [reply.body], reply)
        elif self.path == "/api/chat" and body.get("stream") is False:
            self._send_pieces("application/json", [ollama_whole(reply, body)], reply)
        elif self.path == "/api/chat":
            self._send_pieces("application/x-ndjson", list(ndjson(reply, body)), reply)
        elif self.path.endswith("/messages"):
            self._send_pieces("text/event-stream", list(anthropic(reply, body)), reply)
        elif body.get("stream"):
            self._send_pieces("text/event-stream", list(sse(reply, body)), reply)
        else:
            self._send_pieces("application/json", [whole(reply, body)], reply)

    def _pull(self, request: Request) -> None:
        """Fetch a model as Ollama does, telling each step; what succeeds is listed from then on."""
        scripted = self.server.scripted
        scripted.note(request)
        if scripted.pulling is None:
            self._send_json(500, {"error": "pull model manifest: file does not exist"})
            return
        lines = [json.dumps(step).encode() + b"\n" for step in scripted.pulling]
        if scripted.pulling[-1].get("status") == "success":
            scripted.ollama_models += (request.body["model"],)
        self._send_pieces("application/x-ndjson", lines, Reply())

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
