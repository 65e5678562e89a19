"""Servers as they run on people's machines: each lists its models, and their windows, in its way."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MUTE = object()
"""A page that is never answered."""


def listing(*models: Mapping[str, Any]) -> dict[str, Any]:
    """A list of models as OpenAI's protocol has it."""
    return {"object": "list", "data": [{"object": "model", **model} for model in models]}


def llama_cpp(window: int | None = 8192, *, by_props: bool = False) -> dict[str, Any]:
    """The pages of a llama.cpp server, which tells the window of late in its list as well."""
    meta: dict[str, Any] = {"n_ctx_train": 40_960, "size": 5_020_000_000}
    if window and not by_props:
        meta["n_ctx"] = window
    pages: dict[str, Any] = {
        "/v1/models": listing({"id": "/models/qwen3.gguf", "owned_by": "llamacpp", "meta": meta})
    }
    if window and by_props:
        pages["/props"] = {"default_generation_settings": {"n_ctx": window}}
    return pages


def lm_studio(window: int = 4096) -> dict[str, Any]:
    """The pages of LM Studio: its list is plain, and what is loaded stands in its own."""
    own = {"type": "llm", "max_context_length": 131_072}
    plain = ("granite-4", "text-embedding-nomic", "qwen3-8b")
    return {
        "/v1/models": listing(*({"id": i, "owned_by": "organization_owner"} for i in plain)),
        "/api/v0/models": listing(
            {"id": "granite-4", "state": "not-loaded", **own},
            {**own, "id": "text-embedding-nomic", "state": "not-loaded", "type": "embeddings"},
            {"id": "qwen3-8b", "state": "loaded", "loaded_context_length": window, **own},
        ),
    }


def vllm(window: int = 16_384) -> dict[str, Any]:
    """The pages of vLLM."""
    return {
        "/v1/models": listing({"id": "qwen/qwen3-8b", "owned_by": "vllm", "max_model_len": window})
    }


def ollama(
    *names: str,
    longest: int = 40_960,
    chosen: int | None = None,
    running: int | None = None,
    able: Sequence[str] = (),
) -> dict[str, Any]:
    """The pages of an Ollama."""
    models = [{"name": name, "size": 5_200_000_000} for name in names]
    parameters = f'stop "<end>"\nnum_ctx {chosen}\n' if chosen else 'stop "<end>"'
    loaded = [{"name": name, "context_length": running} for name in names if running]
    return {
        "/v1/models": listing(*({"id": name, "owned_by": "library"} for name in names)),
        "/api/tags": {"models": models},
        "/api/ps": {"models": loaded},
        "/api/show": {
            "parameters": parameters,
            "model_info": {"qwen3.context_length": longest},
            "capabilities": list(able),
        },
    }


class LocalServer:
    """Pages by their path; what was asked for, with which key, is in `asked`."""

    def __init__(self, pages: Mapping[str, Any]) -> None:
        self.pages = pages
        self.asked: list[tuple[str, str | None]] = []
        self.closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._http.block_on_close = False

    @property
    def origin(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        """The address to give as an endpoint."""
        return f"{self.origin}/v1"

    @property
    def host(self) -> str:
        """The address as people are told it."""
        return self.origin.removeprefix("http://")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                """Stay quiet."""

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.asked.append((self.path, self.headers.get("Authorization")))
                page = server.pages.get(self.path)
                if page is MUTE:
                    server.closing.wait(300)
                    return
                body = page if isinstance(page, bytes) else json.dumps(page).encode()
                moved = isinstance(page, str)
                self.send_response(404 if page is None else 302 if moved else 200)
                if moved:
                    self.send_header("Location", page)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.do_GET()

        return Handler

    @contextmanager
    def serving(self) -> Iterator[LocalServer]:
        """Answer for the block."""
        thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.closing.set()
            self._http.shutdown()
            self._http.server_close()
            thread.join()


@contextmanager
def serving(*pages: Mapping[str, Any]) -> Iterator[list[LocalServer]]:
    """Several servers at once."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield [stack.enter_context(LocalServer(each).serving()) for each in pages]
