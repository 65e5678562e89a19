"""The server as a client meets it: a real process, spoken to by the SDK's own client."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import Implementation

from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from mcp_types import CallToolResult

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "kbtui"]


def environment(home: Path) -> dict[str, str]:
    """What a server is started with: a home of its own, and no embedding model to prepare."""
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "KBTUI_MODEL": "offline",
        "KBTUI_SEARCH__SEMANTIC": "false",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }


class Client:
    """The SDK's client on one server; plain functions instead of coroutines."""

    def __init__(self, session: ClientSession, do: Callable[..., Any]) -> None:
        self._session = session
        self._do = do

    def ask(self, method: str, *arguments: Any) -> Any:
        return self._do(getattr(self._session, method), *arguments)

    def call(self, name: str, **arguments: Any) -> CallToolResult:
        result: CallToolResult = self.ask("call_tool", name, arguments)
        return result

    def ok(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that is to succeed; gives its structured result."""
        result = self.call(name, **arguments)
        assert not result.is_error, result.content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    def error(self, name: str, **arguments: Any) -> str:
        """Call a tool that is to fail; gives what it says."""
        result = self.call(name, **arguments)
        assert result.is_error, result.content
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")


@contextlib.contextmanager
def connected(root: Path, home: Path, *options: str, name: str = "tester") -> Iterator[Client]:
    """Start a server and greet it."""
    parameters = StdioServerParameters(
        command=PROGRAM[0],
        args=[*PROGRAM[1:], "-w", str(root), "mcp", *options],
        env=environment(home),
        cwd=str(home),
    )

    @contextlib.asynccontextmanager
    async def session() -> AsyncIterator[ClientSession]:
        info = Implementation(name=name, version="1")
        async with (
            stdio_client(parameters) as streams,
            ClientSession(*streams, client_info=info) as open_session,
        ):
            await open_session.initialize()
            yield open_session

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(session()) as opened:
        yield Client(opened, portal.call)


@contextlib.contextmanager
def served(root: Path, home: Path) -> Iterator[tuple[str, str]]:
    """Start a server that listens; gives its address and the token."""
    process = subprocess.Popen(
        [*PROGRAM, "-w", str(root), "mcp", "--http", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
        cwd=home,
        text=True,
    )
    try:
        assert process.stderr is not None
        address = process.stderr.readline().strip().rpartition(" ")[2]
        token = Path(process.stderr.readline().split(" token in ")[1].split(": ")[0])
        assert token.stat().st_mode & 0o777 == 0o600
        yield address, token.read_text().strip()
        process.terminate()
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out, err) == (128 + signal.SIGTERM, "", "")
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def connected_over_http(address: str, token: str, name: str = "tester") -> Iterator[Client]:
    """Greet a server that listens."""

    @contextlib.asynccontextmanager
    async def session() -> AsyncIterator[ClientSession]:
        info = Implementation(name=name, version="1")
        shown = {"Authorization": f"Bearer {token}"}
        async with (
            create_mcp_http_client(headers=shown) as http,
            streamable_http_client(address, http_client=http) as streams,
            ClientSession(*streams[:2], client_info=info) as open_session,
        ):
            await open_session.initialize()
            yield open_session

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(session()) as opened:
        yield Client(opened, portal.call)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home and, in ``notes``, a workspace that the module's tests share."""
    folder = tmp_path_factory.mktemp("mcp")
    (folder / "notes" / "knowledge").mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[Client]:
    """One server for all tests of a module."""
    with connected(place / "notes", place) as opened:
        yield opened


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    overrides = {"search": {"semantic": False}}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=overrides) as opened:
        yield opened


@pytest.fixture
def backend(kb: KnowledgeBase) -> Backend:
    """What stands behind a server, without one."""
    return Backend(lambda: kb, "mcp-test")


class Raw:
    """A server that is sent bytes."""

    def __init__(self, root: Path, home: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "-w", str(root), "mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home),
            cwd=home,
        )

    def send(self, *messages: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        assert isinstance(answer, dict)
        return answer

    def greet(self) -> None:
        self.send(HELLO)
        assert self.read()["id"] == "hello"
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self, data: bytes | None = None) -> tuple[int, list[dict[str, Any]], str]:
        """Close the input and wait: exit code, what was answered, what was complained of."""
        out, err = self.process.communicate(data, timeout=120)
        answers = [json.loads(line) for line in out.splitlines()]
        return self.process.returncode, answers, err.decode()


HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


def tool_call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Callable[..., Raw]]:
    """Starts servers on ``notes`` below the test's folder; whatever is left of them is killed."""
    (tmp_path / "notes" / "knowledge").mkdir(parents=True, exist_ok=True)
    started: list[Raw] = []

    def start(*options: str) -> Raw:
        started.append(Raw(tmp_path / "notes", tmp_path, *options))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.communicate()
