"""Setting up: which PyTorch is taken from where, and that nobody waits for what isn't there."""

from __future__ import annotations

import importlib.util
import socket
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement

from tests.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def install() -> Any:
    spec = importlib.util.spec_from_file_location("kbtui_install", ROOT / ".ci" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def needs() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {need.name: need for need in map(Requirement, project["dependencies"])}


class _Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_an_index_that_answers_anything_is_there(install: Any, server: str) -> None:
    assert install.answers(server)


@pytest.mark.slow
def test_an_index_that_refuses_or_keeps_silent_is_given_up_soon(install: Any) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert not install.answers(url)
        listener.listen()
        assert not install.answers(url, seconds=0.3)


def test_without_the_cpu_index_pip_takes_what_the_package_index_has(
    install: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> Any:
        ran.append(command)
        return type("Done", (), {"returncode": 0})

    monkeypatch.setattr(install.subprocess, "run", run)
    monkeypatch.setattr(install.sys, "platform", "linux")
    for there, urls in ((True, 1), (False, 0)):
        monkeypatch.setattr(install, "answers", lambda _url, there=there: there)
        ran.clear()
        assert install.main([]) == 0
        assert sum(install.CPU_INDEX in command for command in ran) == urls
        assert ran[-1][-1] == str(ROOT)
        assert ("can't be reached" in capsys.readouterr().out) == (not there)


def test_the_script_takes_the_pytorch_that_the_project_wants(
    install: Any, needs: dict[str, Requirement]
) -> None:
    assert Requirement(install.TORCH) == needs["torch"]


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8", "1.107.0", "1.109.1"])
def test_a_litellm_that_was_compromised_broken_or_never_tried_is_refused(
    needs: dict[str, Requirement], version: str
) -> None:
    assert not needs["litellm"].specifier.contains(version)
    assert needs["litellm"].specifier.contains("1.106.2")
