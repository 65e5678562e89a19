"""Commands run in this process; `Command` keeps what they wrote and how they ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from kbtui.cli.root import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Command:
    """Runs commands on one workspace."""

    root: Path
    _run: Callable[[list[str], str], Done]

    def __call__(self, *argv: str, stdin: str = "") -> Done:
        return self._run(["-w", str(self.root), *argv], stdin)

    def ok(self, *argv: str, stdin: str = "") -> Done:
        done = self(*argv, stdin=stdin)
        assert done.status == 0, done
        return done

    def bare(self, *argv: str, stdin: str = "") -> Done:
        return self._run(list(argv), stdin)

    def file(self, path: str) -> Path:
        return self.root / path


@pytest.fixture
def kbtui(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    given = tmp_path / "standard-input"

    def execute(argv: list[str], stdin: str) -> Done:
        given.write_text(stdin)
        capsys.readouterr()
        with given.open() as stream, monkeypatch.context() as patched:
            patched.setattr("sys.stdin", stream)
            status = run(argv)
        captured = capsys.readouterr()
        return Done(status, captured.out, captured.err)

    monkeypatch.chdir(tmp_path)
    command = Command(tmp_path / "notes", execute)
    assert command.bare("init", str(command.root)).status == 0
    return command
