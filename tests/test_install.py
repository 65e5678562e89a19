"""Setting up: which PyTorch is taken from where, and that nobody waits for what isn't needed."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
import tomllib
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer, SimpleHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement

from tests.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@pytest.fixture
def install() -> Any:
    spec = importlib.util.spec_from_file_location("kbtui_install", ROOT / ".ci" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def needs(project: dict[str, Any]) -> dict[str, Requirement]:
    return {need.name: need for need in map(Requirement, project["project"]["dependencies"])}


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


class Recorded:
    """What the script would run, with uv on the PATH or not; its commands end with `codes`."""

    def __init__(self, install: Any, monkeypatch: pytest.MonkeyPatch, *, uv: bool) -> None:
        self.commands: list[list[str]] = []
        self.codes: list[int] = []
        self._monkeypatch = monkeypatch
        self._install = install
        monkeypatch.setattr(install.subprocess, "run", self._run)
        monkeypatch.setattr(install.sys, "platform", "linux")
        monkeypatch.setattr(install.shutil, "which", lambda _: "/usr/bin/uv" if uv else None)

    def main(self, *, answers: bool, codes: Sequence[int] = ()) -> list[list[str]]:
        self.commands, self.codes = [], list(codes)
        self._monkeypatch.setattr(self._install, "answers", lambda _url: answers)
        self._monkeypatch.setattr(self._install, "_make", lambda *_: 0)
        assert self._install.main([]) == 0
        *commands, first_frame = self.commands
        assert first_frame[1:] == ["-c", self._install.FIRST_FRAME]
        return commands

    def _run(self, command: list[str], **_: object) -> Any:
        self.commands.append(command)
        return type("Done", (), {"returncode": self.codes.pop(0) if self.codes else 0})


def test_without_the_cpu_index_pip_takes_what_the_package_index_has(
    install: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = Recorded(install, monkeypatch, uv=False)
    for answers, codes, urls in ((True, (), 1), (True, (1,), 1), (False, (), 0)):
        commands = recorded.main(answers=answers, codes=codes)
        assert sum(install.CPU_INDEX in command for command in commands) == urls
        assert commands[-1][-1] == str(ROOT)
        assert all("--no-compile" in command for command in commands)
        assert ("can't be reached" in capsys.readouterr().out) == (not answers or 1 in codes)


def test_where_uv_is_it_installs_and_leaves_out_a_cpu_index_that_cannot_be_reached(
    install: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = Recorded(install, monkeypatch, uv=True)
    for answers, codes, flags in ((True, (), [0]), (True, (2,), [0, 1]), (False, (), [1])):
        commands = recorded.main(answers=answers, codes=codes)
        assert [command.count("--no-sources") for command in commands] == flags
        assert all(command[:3] == ["/usr/bin/uv", "pip", "install"] for command in commands)
        assert all(command[-1] == str(ROOT) for command in commands)
        assert ("can't be reached" in capsys.readouterr().out) == (1 in flags)


def test_uv_is_told_of_the_index_that_the_script_takes_the_cpu_build_from(
    install: Any, project: dict[str, Any]
) -> None:
    (index,) = project["tool"]["uv"]["index"]
    assert index["url"] == install.CPU_INDEX
    assert index["explicit"]  # or everything else would be looked for there, too
    source = project["tool"]["uv"]["sources"]["torch"]
    assert source == {"index": index["name"], "marker": "sys_platform == 'linux'"}


@pytest.mark.slow
def test_pip_really_takes_the_cpu_build_and_compiles_only_what_the_first_frame_shows(
    install: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served, project = tmp_path / "served", tmp_path / "project"
    _wheel(served / "torch", "torch", "2.7.0+cpu")
    _wheel(project, "tiny", "1.0", "other")
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (project / "backend.py").write_text(
        "import shutil\n"
        "def build_wheel(folder, *_):\n"
        '    return shutil.copy("tiny-1.0-py3-none-any.whl", folder).rpartition("/")[2]\n'
    )
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(install.shutil, "which", lambda _: None)
    monkeypatch.setattr(install.sys, "platform", "linux")
    monkeypatch.setattr(install, "HERE", project)
    monkeypatch.setattr(install, "FIRST_FRAME", "import tiny")
    handler = partial(_Quiet, directory=str(served))
    with HTTPServer(("127.0.0.1", 0), handler) as index:
        threading.Thread(target=index.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{index.server_port}"
        monkeypatch.setattr(install, "CPU_INDEX", address)
        monkeypatch.setenv("PIP_INDEX_URL", address)
        assert install.main([]) == 0
        index.shutdown()
    (packages,) = (project / ".venv" / "lib").glob("python*/site-packages")
    assert (packages / "torch-2.7.0+cpu.dist-info").is_dir()
    assert (packages / "other.py").is_file()
    compiled = {file.name.partition(".")[0] for file in (packages / "__pycache__").iterdir()}
    assert compiled == {"tiny"}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _wheel(folder: Path, name: str, version: str, *more: str) -> None:
    folder.mkdir(parents=True)
    info = f"{name}-{version}.dist-info"
    about = f"Name: {name}\nVersion: {version}\n"
    tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for module in (name, *more):
            archive.writestr(f"{module}.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\n{about}")
        archive.writestr(f"{info}/WHEEL", tag)
        archive.writestr(f"{info}/RECORD", "")


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
