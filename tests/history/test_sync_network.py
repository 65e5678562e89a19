"""Sync over real connections on this machine: git's own daemon, and git over HTTP."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import RefusedHistoryError, RemoteError, StoppedError
from kbtui.history.sync import transport
from kbtui.history.sync.credentials import look_up
from kbtui.history.sync.remote import SyncWatcher
from tests.history.sync_room import Machine, fsck, plumb
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

A = "knowledge/topics/a.md"
_EXEC = Path(
    subprocess.run(
        ["git", "--exec-path"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if shutil.which("git")
    else "/nonexistent"
)


def _needs(program: str) -> None:
    if not (_EXEC / program).exists():
        pytest.skip(f"this git has no {program}")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    folder = tmp_path / "served" / "notes.git"
    subprocess.run(["git", "init", "-q", "--bare", folder], check=True)
    plumb(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    plumb(folder, "config", "http.receivepack", "true")
    return folder


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(address: str) -> bool:
    """Whether it is our daemon that listens there, and not who was faster to take the port."""
    command = ["git", "ls-remote", "-q", address]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def daemon(bare: Path) -> Iterator[str]:
    _needs("git-daemon")
    deadline = time.monotonic() + PATIENCE
    command = ["git", "daemon", "--enable=receive-pack", "--export-all", "--reuseaddr"]
    command += [f"--base-path={bare.parent}", "--listen=127.0.0.1"]
    while True:
        port = _free_port()
        address = f"git://127.0.0.1:{port}/{bare.name}"
        with subprocess.Popen(
            [*command, f"--port={port}"], stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            try:
                while not (ours := _answers(address)) and process.poll() is None:
                    assert time.monotonic() < deadline, "the daemon never answered"
                if ours:
                    yield address
                    return
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 15)


class _Git(BaseHTTPRequestHandler):
    """Hands requests to ``git http-backend``, as a web server does; may cut the line."""

    protocol_version = "HTTP/1.0"
    folder: Path
    token = ""
    cut = False

    def _serve(self) -> None:
        if self.token and self.headers.get("Authorization") != self.token:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self._body()
        if self.cut and self.command == "POST":
            self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 9999\r\n\r\n0008NAK\n")
            return
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_USER": "me",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        if encoding := self.headers.get("Content-Encoding"):
            environment["HTTP_CONTENT_ENCODING"] = encoding
        run = subprocess.run(
            [_EXEC / "git-http-backend"],
            env=environment,
            input=body,
            capture_output=True,
            check=False,
        )
        head, _, answer = run.stdout.partition(b"\r\n\r\n")
        status = 200
        lines = [line.decode().split(": ", 1) for line in head.split(b"\r\n")]
        for key, value in lines:
            status = int(value.split()[0]) if key == "Status" else status
        self.send_response(status)
        for key, value in lines:
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(answer)

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body

    do_GET = do_POST = _serve  # noqa: N815 — the names are the base class's

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web(folder: Path, **options: object) -> Iterator[str]:
    _needs("git-http-backend")
    handler = type("Handler", (_Git,), {"folder": folder.parent, **options})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/{folder.name}"
        finally:
            server.shutdown()
            thread.join()


def _both_ways(tmp_path: Path, address: str, bare: Path) -> None:
    here, there = (Machine(tmp_path / name, address) for name in ("here", "there"))
    here.write(A, "one\n\ntwo\n")
    assert here.sync().sent == 1
    assert there.sync().received == 1
    here.write(A, "one here\n\ntwo\n")
    there.write(A, "one\n\ntwo there\n")
    here.sync()
    assert there.sync().merge is not None
    here.sync()
    assert here.text(A) == there.text(A) == "one here\n\ntwo there\n"
    fsck(bare)
    here.check()


def test_two_machines_sync_through_gits_own_daemon(tmp_path: Path, bare: Path, daemon: str) -> None:
    _both_ways(tmp_path, daemon, bare)


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["init", "-q", "--bare", "--object-format=sha256"], "keeps SHA-256 ids"),
        (["clone", "-q", "--bare", "--depth", "1"], "is a shallow copy"),
        (["clone", "-q", "--bare", "--filter=blob:none"], "can't hand out its history"),
    ],
)
@pytest.mark.parametrize("by_http", [False, True])
def test_what_kbtui_cannot_use_is_told_by_a_server_as_well(
    tmp_path: Path, bare: Path, daemon: str, command: list[str], what: str, by_http: bool
) -> None:
    machine = Machine(tmp_path / "here", daemon)
    for text in ("one\n", "two\n"):
        machine.write(A, text)
        machine.sync()
    plumb(bare, "config", "uploadpack.allowFilter", "true")
    other = bare.with_name("other.git")
    source = [bare.as_uri()] if command[0] == "clone" else []
    subprocess.run(["git", *command, *source, other], check=True, capture_output=True)
    with web(other) if by_http else nullcontext(f"{daemon.rpartition('/')[0]}/other.git") as place:
        fresh = Machine(tmp_path / "fresh", place)
        fresh.write(A, "mine\n")
        with pytest.raises((RemoteError, RefusedHistoryError), match=what):
            fresh.sync()


def test_two_machines_sync_over_http(tmp_path: Path, bare: Path) -> None:
    with web(bare) as address:
        _both_ways(tmp_path, address, bare)


def test_a_token_in_the_address_opens_the_door_and_is_never_told(
    tmp_path: Path, bare: Path
) -> None:
    token = "Basic bWU6c2VjcmV0d29yZA=="  # me:secretword
    with web(bare, token=token) as address:
        machine = Machine(tmp_path / "here", address)
        machine.write(A, "one\n")
        with pytest.raises(RemoteError, match="who you are") as caught:
            machine.sync()
        assert "TOKEN" in caught.value.hint
        machine.remote = address.replace("http://", "http://me:secretword@")
        report = machine.sync()
    assert report.sent == 1
    assert "secretword" not in report.remote
    with pytest.raises(RemoteError) as caught:  # nobody listens there any more
        machine.sync()
    assert "secretword" not in str(caught.value)


@pytest.mark.parametrize("word", ["secretword", "wrong"])
def test_the_helpers_of_git_open_the_door(
    tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    token = "Basic bWU6c2VjcmV0d29yZA=="  # me:secretword
    told = tmp_path / "told"
    helper = tmp_path / "helper"
    helper.write_text(
        f'#!/bin/sh\necho "[$1]" >> "{told}"\ncat >> "{told}"\n'
        f'test "$1" != get || printf "username=me\\npassword={word}\\n"\n',
        "utf-8",
    )
    helper.chmod(0o755)
    settings = tmp_path / "settings"
    settings.write_text(f"[credential]\n helper = {helper}\n", "utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    with web(bare, token=token) as address:
        machine = Machine(tmp_path / "here", address)
        machine.write(A, "one\n")
        if word == "wrong":
            with pytest.raises(RemoteError, match="who you are") as caught:
                machine.sync()
            assert "wrong" not in f"{caught.value.message} {caught.value.hint}"
        else:
            assert machine.sync().sent == 1
            fsck(bare)
    asked = told.read_text("utf-8")
    assert f"host={address.split('/')[2]}" in asked
    assert ("[store]" in asked, "[erase]" in asked) == (word != "wrong", word == "wrong")


def test_what_a_helper_keeps_beside_a_token_is_said_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, git = tmp_path / "told", tmp_path / "git"
    answer = "host=example.org\\nusername=me\\npassword=word\\npassword_expiry_utc=1999999999\\n"
    git.write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        f'if test "$last" = fill; then printf "{answer}"; else cat > "{told}"; fi\n',
        "utf-8",
    )
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = look_up("https://example.org/a.git")
    assert found is not None
    found.report("approve")
    assert {"username=me", "password=word", "password_expiry_utc=1999999999"} <= {
        *told.read_text("utf-8").splitlines()
    }


def test_without_room_for_a_folder_no_helper_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    assert look_up("https://example.org/a.git") is None


def test_settings_of_a_repository_above_ask_no_helper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    helper = '!f() { echo "username=me"; echo "password=word"; }; f'
    plumb(tmp_path / ".git", "config", "credential.helper", helper)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert look_up("https://example.org/a.git") is None


def test_a_helper_that_takes_its_time_can_be_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings"
    begun = tmp_path / "begun"
    settings.write_text(
        f'[credential]\n helper = "!f() {{ echo $$ > {begun}; exec sleep 600; }}; f"\n', "utf-8"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def check() -> None:
        if begun.exists() and begun.read_text("utf-8").strip():
            raise StoppedError("The sync was stopped.")

    with pytest.raises(StoppedError):
        look_up("https://example.org/a.git", check)
    helper = Path("/proc", begun.read_text("utf-8").strip())
    deadline = time.monotonic() + PATIENCE
    while (helper / "cmdline").exists() and (helper / "cmdline").read_bytes():
        assert time.monotonic() < deadline, "the helper goes on"


def test_an_address_cannot_ask_for_the_credential_of_another_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("git was asked"))
    assert look_up("https://a%0ahost=other.example@host.example/x.git") is None


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("proxy =", None),
        ("proxy = 127.0.0.1:9", "refused"),
        ("proxy = http://127.0.0.1:9\n proxyAuthMethod = ntlm", "'ntlm' is not supported"),
    ],
)
def test_a_proxy_of_gits_settings_is_taken_as_git_takes_it(
    tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch, setting: str, why: str | None
) -> None:
    settings = tmp_path / "settings"
    settings.write_text(f"[http]\n {setting}\n", "utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    for name in ("https_proxy", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with web(bare) as address:
        machine = Machine(tmp_path / "here", address)
        machine.write(A, "one\n")
        if why is None:
            assert machine.sync().sent == 1
        else:
            with pytest.raises(RemoteError, match=why):
                machine.sync()


def test_a_line_that_is_cut_loses_nothing(tmp_path: Path, bare: Path) -> None:
    with web(bare) as address:
        here = Machine(tmp_path / "here", address)
        here.write(A, "one\n")
        here.sync()
    with web(bare, cut=True) as address:
        there = Machine(tmp_path / "there", address)
        with pytest.raises(RemoteError):
            there.sync()
        assert there.history.head() is None
        here.remote = address
        here.write(A, "two\n")
        with pytest.raises(RemoteError):
            here.sync()
    with web(bare) as address:
        here.remote = there.remote = address
        here.sync()
        there.sync()
    assert there.text(A) == "two\n"


def test_a_server_that_is_no_git_is_a_sentence(tmp_path: Path, bare: Path) -> None:
    with web(bare) as address:
        machine = Machine(tmp_path / "here", f"{address}/nothing")
        machine.write(A, "one\n")
        with pytest.raises(RemoteError, match="no repository"):
            machine.sync()


@contextmanager
def silent(scheme: str) -> Iterator[str]:
    """A server that takes the call and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"{scheme}://127.0.0.1:{server.getsockname()[1]}/notes.git"


@pytest.mark.parametrize("scheme", ["git", "http"])
def test_a_silent_line_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(transport, "SECONDS", 0.3)
    with silent(scheme) as address:
        machine = Machine(tmp_path / "here", address)
        machine.write(A, "one\n")
        with pytest.raises(RemoteError, match="can't be reached: no answer in time"):
            machine.sync()
    assert list(machine.workspace.repository.glob("incoming-*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["git", "http"])
def test_waiting_for_a_silent_line_can_be_stopped(tmp_path: Path, scheme: str) -> None:
    asked = itertools.count()
    with silent(scheme) as address:
        machine = Machine(tmp_path / "here", address)
        machine.write(A, "one\n")
        with pytest.raises(StoppedError, match="stopped"):
            machine.sync(SyncWatcher(stopped=lambda: next(asked) > 5))
    machine.check()


@pytest.mark.parametrize("stop_after", [5, 10**6])
def test_a_silent_ssh_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int
) -> None:
    monkeypatch.setattr(transport, "SECONDS", 0.3)
    monkeypatch.setenv("GIT_SSH_COMMAND", "sh -c 'exec sleep 600'")
    asked = itertools.count()
    machine = Machine(tmp_path / "here", "ssh://host/notes.git")
    machine.write(A, "one\n")
    with pytest.raises((RemoteError, StoppedError), match=r"in time|stopped"):
        machine.sync(SyncWatcher(stopped=lambda: next(asked) > stop_after))
    machine.check()
