"""Whatever comes in: every line that asks something is answered, and nothing else comes out."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.history.history import History
from kbtui.workspace.opening import open_workspace
from kbtui.workspace.scan import Scanner
from tests.mcp_server.conftest import tool_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.mcp_server.conftest import Raw

PARSE, REQUEST, METHOD, PARAMS, RESOURCE = -32700, -32600, -32601, -32602, -32002
PATIENCE = 120.0
# A line, and the error that it gets: the id of the request, and the code.
BAD_LINES: list[tuple[bytes, Any, int]] = [
    (b"hello", None, PARSE),
    (b"\xff\xfe\x00", None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,', None, PARSE),
    (b"[" * 100_000, None, PARSE),
    (b"[]", None, REQUEST),
    (b"3", None, REQUEST),
    (b'"text"', None, REQUEST),
    (b"{}", None, REQUEST),
    (b'{"jsonrpc":"1.0","id":2,"method":"ping"}', 2, REQUEST),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, REQUEST),
    (b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":[1]}', 3, REQUEST),
    (b'{"jsonrpc":"2.0","id":4,"method":"rm/rf"}', 4, METHOD),
    (b'{"jsonrpc":"2.0","id":5,"method":"tools/call"}', 5, PARAMS),
    (b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"grep","arguments":[1]}}', 6, PARAMS),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x\\u001b[31m"}}', 7, PARAMS),
    (b'{"jsonrpc":"2.0","id":8,"method":"resources/list","params":{"cursor":"!"}}', 8, PARAMS),
    (b'{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"kb://entry/%ff%00"}}', 9, RESOURCE),
    (b"x" * (17 * 2**20), None, REQUEST),
]  # fmt: skip
SILENT = [b"", b"   ", b'{"jsonrpc":"2.0","id":99,"result":{}}', b'{"jsonrpc":"2.0","method":"x"}']


def test_what_is_no_message_gets_an_error_and_what_was_asked_is_answered_to_the_end(
    raw: Callable[..., Raw],
) -> None:
    server = raw()
    server.greet()
    lines = [line for line, _, _ in BAD_LINES]
    write = json.dumps(tool_call(50, "write_entry", type="fact", title="Kept")).encode()
    ping = b'{"jsonrpc":"2.0","id":"last","method":"ping"}'  # the last line has no end
    status, answers, complaints = server.end(b"\n".join([*lines, *SILENT, write, ping]))
    assert status == 0
    assert complaints == ""
    errors = [(each["id"], each["error"]["code"]) for each in answers if "error" in each]
    assert sorted(errors, key=str) == sorted(((of, code) for _, of, code in BAD_LINES), key=str)
    results = {each["id"]: each["result"] for each in answers if "result" in each}
    assert results["last"] == {}
    assert results[50]["structuredContent"]["path"] == "knowledge/facts/kept.md"
    assert len(results) == 2
    told = json.dumps(answers)
    assert "Traceback" not in told
    assert "\\u001b" not in told


def test_a_client_that_is_gone_loses_nothing_of_what_it_asked_for(
    raw: Callable[..., Raw], tmp_path: Path
) -> None:
    server = raw()
    server.greet()
    assert server.process.stdout is not None
    server.process.stdout.close()
    server.send(*(tool_call(n, "write_entry", type="fact", title=f"Late {n}") for n in range(3)))
    assert server.process.wait(PATIENCE) == 0, "it ends by itself when nobody listens"
    assert server.process.stderr is not None
    assert server.process.stderr.read() == b""
    _assert_sound(tmp_path)


SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS if os.environ.get("KBTUI_LONG") else SIGNALS[:1])
def test_a_signal_in_the_middle_of_a_write_leaves_it_whole(
    raw: Callable[..., Raw], tmp_path: Path, number: signal.Signals
) -> None:
    server = raw()
    server.greet()
    server.send(*(tool_call(n, "write_entry", type="fact", title=f"S {n}") for n in range(5)))
    _wait_for(lambda: any((tmp_path / "notes/knowledge").rglob("s-*.md")))
    server.process.send_signal(number)
    status, _, complaints = server.end()
    assert status == 128 + number
    assert complaints == ""
    _assert_sound(tmp_path)


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def _assert_sound(tmp_path: Path) -> None:
    """Each entry that is there is whole and recorded, and nothing else is."""
    workspace = open_workspace(tmp_path / "notes")
    history = History(workspace, Scanner(workspace))
    assert history.open().recovered == "none"
    assert history.diff("HEAD") == ()
    entries = list(workspace.knowledge.rglob("facts/*.md"))
    assert entries
    assert all(entry.read_text().startswith("---\ntype: fact\n") for entry in entries)
