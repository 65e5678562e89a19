"""Bad input: one clear sentence with the fix, the listed exit code, and nothing lost."""

from __future__ import annotations

import json
import os
import socket
from shutil import which
from typing import TYPE_CHECKING

import pytest

from tests.e2e.program import Done, kbtui, ok

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    ok("init", folder)
    return folder


def _one_sentence(done: Done, status: int, *words: str) -> None:
    assert done.status == status, done
    assert "Traceback" not in done.err
    assert done.err.startswith("kbtui: ")
    assert len(done.err.splitlines()) <= 3, done.err
    for word in words:
        assert word in done.err, done.err


def test_a_workspace_that_is_not_there(tmp_path: Path) -> None:
    _one_sentence(kbtui("list", workspace=tmp_path / "none"), 3, "none", "kbtui init")


def test_a_workspace_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    _one_sentence(kbtui("list", workspace=tmp_path / "file"), 3, "file")
    assert (tmp_path / "file").read_text() == "not a folder"


def test_an_entry_that_is_not_there_names_the_nearest(workspace: Path) -> None:
    ok("new", "person", "Alice Liddell", workspace=workspace)
    _one_sentence(kbtui("show", "alise-lidell", workspace=workspace), 1, "alice-liddell")


def test_a_revision_that_is_not_there(workspace: Path) -> None:
    _one_sentence(kbtui("undo", "deadbeef", workspace=workspace), 1, "deadbeef")


def test_a_path_that_leaves_the_workspace(workspace: Path) -> None:
    for path in ("../outside", "/etc/passwd", ".kbtui/format"):
        assert kbtui("show", path, workspace=workspace).status in (1, 2)
        assert kbtui("restore", path, "--at", "HEAD", workspace=workspace).status in (1, 2)


def test_unparseable_and_binary_entries_are_listed_searched_and_never_rewritten(
    workspace: Path,
) -> None:
    folder = workspace / "knowledge/topics"
    folder.mkdir(parents=True, exist_ok=True)
    odd = {
        "broken.md": b"---\ntags: [unclosed\n---\n# Broken\nfindable walrus\n",
        "binary.md": bytes(range(256)) * 8,
        "utf16.md": "# Wide\nfindable penguin\n".encode("utf-16"),
        "empty.md": b"",
    }
    for name, data in odd.items():
        (folder / name).write_bytes(data)
    listed = {entry["path"] for entry in ok("list", "--json", workspace=workspace).json}
    assert {f"knowledge/topics/{name}" for name in odd} <= listed
    for word in ("walrus", "penguin"):
        assert ok("search", f"findable {word}", "--json", workspace=workspace).json["hits"]
    ok("show", "topics/broken", workspace=workspace)
    for name, data in odd.items():
        assert (folder / name).read_bytes() == data


def test_a_torn_session_line_is_set_aside_and_the_rest_goes_on(workspace: Path) -> None:
    ok("ask", "remember the cake is in the oven", "-s", "kitchen", workspace=workspace)
    (log,) = (workspace / "sessions").glob("*.jsonl")
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"id": 99, "role": "user", "cont')
    done = ok("ask", "where is the cake?", "-s", "kitchen", workspace=workspace)
    assert "oven" in done.out
    assert log.read_bytes().startswith(whole)
    for line in log.read_text().splitlines():
        json.loads(line)
    kept = [
        p for p in (workspace / "sessions").iterdir() if p != log and b'"cont' in p.read_bytes()
    ]
    assert kept, "the torn line is kept somewhere"


def test_an_unreachable_endpoint(workspace: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]  # taken, so that nobody else serves there, and refusing
        env = {
            "KBTUI_MODEL": "openai/test",
            "KBTUI_API_BASE": f"http://127.0.0.1:{port}/v1",
            "KBTUI_API_KEY": "x",
            "KBTUI_MODELS__RETRIES": "0",
        }
        _one_sentence(kbtui("ask", "hello", workspace=workspace, **env), 4, str(port))


def test_a_missing_key(workspace: Path) -> None:
    done = kbtui("ask", "hello", workspace=workspace, KBTUI_MODEL="openai/gpt-4o-mini")
    _one_sentence(done, 4, "OPENAI_API_KEY")


def test_the_app_needs_a_terminal(workspace: Path) -> None:
    _one_sentence(kbtui(workspace=workspace), 2, "terminal")


def test_a_setting_that_does_not_exist(workspace: Path) -> None:
    (workspace / "kbtui.toml").write_text("[search]\nchunk_token = 3\n")
    _one_sentence(kbtui("list", workspace=workspace), 3, "chunk_tokens")


def test_a_damaged_repository_is_named_not_dumped(workspace: Path) -> None:
    ok("new", "fact", "A fact", workspace=workspace)
    for thing in sorted((workspace / ".kbtui/history.git/objects").rglob("*")):
        if thing.is_file():
            thing.chmod(0o644)
            thing.write_bytes(b"garbage")
    known = kbtui("log", workspace=workspace)
    assert "Traceback" not in known.err
    assert "The history has no readable object" in known.err
    done = kbtui("undo", "HEAD", workspace=workspace)
    assert done.status != 0
    _one_sentence(done, done.status, "history")
    assert (workspace / "knowledge/facts/a-fact.md").exists()


@pytest.mark.skipif(os.getuid() == 0 and not which("setpriv"), reason="root writes everywhere")
def test_an_index_that_cannot_be_written_is_searched_all_the_same(
    workspace: Path, tmp_path: Path
) -> None:
    ok("new", "topic", "Zoo", "-b", "Walruses.", workspace=workspace)
    asked, cache = ("search", "--lexical", "walruses"), str(tmp_path / "cache")
    expected = ok(*asked, workspace=workspace, XDG_CACHE_HOME=cache).out
    folders = [place for place in (tmp_path / "cache").rglob("*") if place.is_dir()]
    assert any(list(folder.glob("*.words")) for folder in folders)
    for folder in folders:
        folder.chmod(0o500)
    try:
        found = kbtui(*asked, workspace=workspace, mere_user=True, XDG_CACHE_HOME=cache)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert (found.status, found.out) == (0, expected), found.err


@pytest.mark.skipif(os.getuid() == 0 and not which("setpriv"), reason="root reads everything")
def test_what_cannot_be_read_or_looked_at_is_named_and_stops_nothing(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    ok("init", notes)
    ok("new", "topic", "Zoo", "-b", "Walruses.", workspace=notes)
    topics = notes / "knowledge/topics"
    (topics / "locked.md").write_text("x")
    (topics / "locked.md").chmod(0)
    (topics / "listed").mkdir()
    (topics / "listed/inner.md").write_text("x")
    (topics / "listed").chmod(0o444)
    (notes / "docs").mkdir(exist_ok=True)
    (notes / "docs/locked.txt").write_text("x")
    (notes / "docs/locked.txt").chmod(0)
    try:
        checked = kbtui("check", workspace=notes, mere_user=True)
        examined = kbtui("doctor", workspace=notes, mere_user=True)
        found = kbtui("search", "walruses", workspace=notes, mere_user=True)
    finally:
        (topics / "listed").chmod(0o755)
    told = f"{checked.out}{checked.err}"
    assert "locked.md is left out of the history: it can't be read" in told
    assert "listed/inner.md is left out of the history: it can't be looked at" in told
    assert "docs/locked.txt: it can't be read" in examined.out
    assert "Walruses" in found.out
