"""The server on the loopback address: who may ask, and what becomes of those who leave."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from mcp.server import lowlevel

from kbtui.cli.root import run
from kbtui.errors import KbtuiError
from kbtui.mcp_server import http_transport
from kbtui.mcp_server.http_transport import HttpTransport, listen, read_token, token_file
from tests.mcp_server.conftest import HELLO, connected_over_http, served, tool_call
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Server = tuple[str, str]


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    """One server for all tests: its address and token."""
    with served(place / "notes", place) as opened:
        yield opened


def _post(
    server: Server, message: object = HELLO, path: str = "", **headers: str
) -> tuple[int, str]:
    address = urlsplit(server[0])
    connection = http.client.HTTPConnection(address.netloc, timeout=PATIENCE)
    usual = {
        "Authorization": f"Bearer {server[1]}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    sent = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("POST", path or address.path, json.dumps(message), sent)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_who_shows_the_token_is_answered(server: Server) -> None:
    status, told = _post(server)
    assert status == 200
    assert json.loads(told)["result"]["serverInfo"]["name"] == "kbtui"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer guess"}, 401),
        ({"Authorization": "Basic a3RidWk6"}, 401),
        ({"Host": "notes.example:80"}, 421),
        ({"Origin": "http://notes.example"}, 403),
        ({"path": "/elsewhere"}, 404),
        ({"Mcp_Session_Id": "nobody"}, 404),
        ({"Content_Type": "text/plain"}, 400),
    ],
)
def test_who_shows_none_or_comes_from_elsewhere_is_refused(
    server: Server, headers: dict[str, str], status: int
) -> None:
    got, told = _post(server, **headers)
    assert got == status
    assert "kbtui" not in told
    assert "Traceback" not in told


def test_two_clients_are_told_apart(server: Server) -> None:
    with (
        connected_over_http(*server, name="codex") as first,
        connected_over_http(*server, name="claude") as second,
    ):
        made = first.ok("write_entry", type="fact", title="Wet paint")
        assert "Wet paint" in second.ok("read_entry", entry="wet-paint")["text"]
        commit = made["changes"][0]["commit"]
        assert "isn't yours: mcp (codex) made it" in second.error("undo_change", commit=commit)
        assert first.ok("undo_change", commit=commit)


def test_a_client_that_leaves_early_leaves_no_traceback(server: Server, place: Path) -> None:
    address = urlsplit(server[0])
    head = (
        f"POST {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {server[1]}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Length: "
    )
    call = json.dumps({**HELLO, "id": 7})
    modern = json.dumps(tool_call(8, "memory_search", query="paint"))
    for sent in (
        f"{head}{len(call)}\r\n\r\n{call}",
        f"{head}{len(call)}\r\n\r\n{call[:20]}",
        f"{head}{len(modern)}\r\nMCP-Protocol-Version: 2026-07-28\r\n\r\n{modern}",
        head[:40],
        "\x00\x01\x02",
    ):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(sent.encode())
    with connected_over_http(*server) as client:
        client.ok("list_entries")
    assert _post(server)[0] == 200
    logs = [file.read_text() for file in place.rglob("kbtui.log")]
    assert logs
    assert not [line for text in logs for line in text.splitlines() if "Traceback" in line]


def test_a_port_that_somebody_else_has_is_named_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(["-w", str(tmp_path / "notes"), "mcp", "--http", str(port)]) == 2
    told = capsys.readouterr().err
    assert f"Port {port} of 127.0.0.1 can't be used" in told
    assert "Traceback" not in told


def test_a_token_that_is_no_secret_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = read_token()
    assert read_token() == made
    token_file().write_text("short\n")
    with pytest.raises(KbtuiError, match="is no secret"):
        read_token()


async def test_a_session_that_nobody_uses_ends_and_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_transport, "_MAX_SESSIONS", 2)
    listener, token = listen(0), "t" * 20
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", token
    transport = HttpTransport(listener, token, idle=1.0)
    serving = asyncio.create_task(transport.run(lowlevel.Server("idle")))
    try:
        async with asyncio.timeout(PATIENCE):
            while (await asyncio.to_thread(_post, address))[0] == 200:
                pass  # until there is no room
            while (await asyncio.to_thread(_post, address))[0] != 200:  # noqa: ASYNC110 - a server's
                await asyncio.sleep(0.05)  # until one has ended
    finally:
        serving.cancel()
        await asyncio.wait([serving])
