"""Tests on mutants, each in a fork of a process that has collected them all."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.mutants.sites import Mutant, install

if TYPE_CHECKING:
    from collections.abc import Sequence

AT_ONCE = 2
_ROOT = Path(__file__).resolve().parents[2]
_OPTIONS = "--strict-markers --strict-config --import-mode=importlib -p no:cacheprovider"
_ALLOWANCE_SECONDS = 10.0
"""Processor time on top of four times what the tests take; ten times as long by the clock."""


class End(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"  # killed as well: no test would wait for it
    SURVIVED = "survived"
    NOT_INSTALLED = "not installed"


@dataclass
class Job:
    """Tests to be run on a mutant; without one, on the program as it is."""

    mutant: Mutant | None
    tests: Sequence[str]
    seconds: float
    """Of processor time that they take without it."""
    end: End = End.SURVIVED
    killers: list[str] = field(default_factory=list)
    """The tests that failed: the first one; all of them on the program as it is."""


def run(jobs: Sequence[Job]) -> None:
    """Run each job and note its end."""
    files = sorted({test.partition("::")[0] for job in jobs for test in job.tests})
    options = ["-p", "no:xdist", "-p", "no:terminal", "-o", f"addopts={_OPTIONS}"]
    ended = pytest.main([*options, *files], plugins=[_Runner(jobs)])
    if ended != pytest.ExitCode.OK:
        raise SystemExit(f"the tests couldn't be collected: {ended!r}")


class _Runner:
    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        waiting = list(reversed(self._jobs))
        running: list[_Fork] = []
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                job = waiting.pop()
                running.append(
                    _Fork(job, session, [items[each] for each in job.tests if each in items])
                )
            time.sleep(0.02)
            running = [each for each in running if not each.has_ended()]
        return True


class _Fork:
    """A child that runs one job."""

    def __init__(self, job: Job, session: pytest.Session, items: Sequence[pytest.Item]) -> None:
        self._job = job
        self._folder = Path(tempfile.mkdtemp(prefix="kbtui-mutant-"))
        self._said = self._folder / "said"
        self._processor = 4 * job.seconds + _ALLOWANCE_SECONDS
        self._until = time.monotonic() + 10 * self._processor
        self._child = os.fork()
        if not self._child:
            self._be_child(session, items)

    def _be_child(self, session: pytest.Session, items: Sequence[pytest.Item]) -> None:
        status = 1
        try:
            os.setsid()
            most = int(self._processor)
            resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
            os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = str(self._folder)
            tempfile.tempdir = None
            mutant = self._job.mutant
            end = End.SURVIVED
            if mutant is not None:
                file = _ROOT / mutant.file
                if not install(mutant, file, file.read_text("utf-8")):
                    end = End.NOT_INSTALLED
            failed: list[str] = []
            for number, item in enumerate(items if end is not End.NOT_INSTALLED else ()):
                before = session.testsfailed
                following = items[number + 1] if number + 1 < len(items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed > before:
                    failed.append(item.nodeid)
                    end = End.KILLED
                    if mutant is not None:
                        break
            self._said.write_text("\n".join([end, *failed]), "utf-8")
            status = 0
        finally:
            os._exit(status)

    def has_ended(self) -> bool:
        child, _ = os.waitpid(self._child, os.WNOHANG)
        if not child:
            if time.monotonic() < self._until:
                return False
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child, signal.SIGKILL)  # what its tests have left behind
        if self._said.exists():
            end, *self._job.killers = self._said.read_text("utf-8").split("\n")
            self._job.end = End(end)
        else:
            self._job.end = End.TIMED_OUT
        shutil.rmtree(self._folder, ignore_errors=True)
        return True
