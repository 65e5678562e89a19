from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kbtui.errors import ModelAccessError, ModelAnswerError, ModelError, ModelUnreachableError
from kbtui.search.embedding import prepared
from kbtui.search.embedding.prepared import RemoteEmbedder
from kbtui.settings import RoleSettings, SearchSettings
from tests.search.fakes import WordEmbedder
from tests.search.helpers import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.search.helpers import Desk

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::pydantic.PydanticDeprecatedSince20"
)


class Endpoint(ThreadingHTTPServer):
    """A loopback server for the OpenAI embeddings API."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.embedder = WordEmbedder()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.failure = 0
        self.answer: Any = None

    @property
    def role(self) -> RoleSettings:
        base = f"http://127.0.0.1:{self.server_address[1]}/v1"
        return RoleSettings(model="litellm:openai/words", api_base=base, api_key="sk-test")  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(asked)
        self.server.keys.append(self.headers["Authorization"])
        status = self.server.failure or 200
        body = json.dumps(self._answer(asked) if status == 200 else {"error": {"message": "no"}})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def _answer(self, asked: dict[str, Any]) -> Any:
        if self.server.answer is not None:
            return self.server.answer
        vectors = self.server.embedder.documents(asked["input"]) * 3
        data = [
            {"object": "embedding", "index": i, "embedding": vector.tolist()}
            for i, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": data[::-1], "model": asked["model"], "usage": usage}

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _event_loop() -> Iterator[None]:
    """Provide an event loop and close it, as litellm would create one and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(prepared, "_RETRIES", 0)
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_vectors_come_in_order_and_normalised(endpoint: Endpoint) -> None:
    embedder = RemoteEmbedder(endpoint.role)
    texts = [f"text number {i}" for i in range(70)]
    found = embedder.documents(texts)
    assert np.allclose(found, WordEmbedder().documents(texts), atol=1e-5)
    assert np.allclose(embedder.query("text number 3"), found[3], atol=1e-5)
    assert [len(r["input"]) for r in endpoint.requests] == [1, 64, 6, 1]
    assert set(endpoint.keys) == {"Bearer sk-test"}
    assert embedder.is_local
    assert (embedder.name, embedder.dimension) == ("openai/words", 64)


def test_a_search_uses_it(desk: Desk, endpoint: Endpoint) -> None:
    desk.write("knowledge/topics/a.md", "An automobile needs oil.\n")
    index = desk.index(settings=SearchSettings(), embed=endpoint.role)
    result = index.search("car", wait=True)
    assert result.semantic
    assert paths(result) == ["knowledge/topics/a.md"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, ModelAccessError), (404, ModelAccessError), (429, ModelError), (500, ModelError)],
)
def test_a_refusal_says_what_it_is(
    endpoint: Endpoint, status: int, expected: type[ModelError]
) -> None:
    endpoint.failure = status
    with pytest.raises(expected, match="openai/words"):
        RemoteEmbedder(endpoint.role)


@pytest.mark.parametrize("vectors", [[], [[float("nan")]], [[1.0], [2.0]]])
def test_an_answer_that_is_no_answer_is_an_error(endpoint: Endpoint, vectors: list[Any]) -> None:
    data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
    endpoint.answer = {
        "object": "list",
        "data": data,
        "model": "m",
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }
    with pytest.raises(ModelAnswerError):
        RemoteEmbedder(endpoint.role)


@pytest.mark.slow
def test_no_connection_is_a_notice_and_words_go_on(desk: Desk, endpoint: Endpoint) -> None:
    desk.write("knowledge/topics/a.md", "An automobile needs oil.\n")
    role = RoleSettings(model="litellm:openai/words", api_base="http://127.0.0.1:9/v1", api_key="k")  # type: ignore[arg-type]
    with pytest.raises(ModelUnreachableError):
        RemoteEmbedder(role)
    result = desk.index(settings=SearchSettings(), embed=role).search("automobile", wait=True)
    assert result.hits
    assert "openai/words" in result.notice
