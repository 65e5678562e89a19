"""Reading commands while another process writes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.patience import be_like_users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Command

READING = (
    ("log",),
    ("log", "docker"),
    ("list",),
    ("search", "containers"),
    ("show", "docker"),
    ("show", "docker", "--at", "HEAD"),
    ("links", "docker"),
    ("why", "docker:1"),
)
WRITER = """
import sys, pathlib
from kbtui.history.objects.packing import Packing
from kbtui.knowledge_base import KnowledgeBase
kb = KnowledgeBase.open(pathlib.Path(sys.argv[1]), overrides={"search": {"semantic": False}})
for number in range(10_000):
    made = kb.library.create("topic", f"Note {number}", body="About containers. [[docker]]")
    kb.library.rename(made.path, f"topics/renamed-{number}")
    kb.library.delete(f"topics/renamed-{number}")
    Packing(kb.history._repository, 1, alone=kb.history._door.entered, whole=True).run()
    print(number, flush=True)
"""


@pytest.fixture
def docker(kbtui: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    be_like_users(monkeypatch)
    kbtui.ok("new", "topic", "Docker", "--body", "Runs containers.")
    return kbtui


@contextmanager
def locked(kbtui: Command) -> Iterator[None]:
    """Hold the lock as another process would: the kernel tells open files apart."""
    file = os.open(kbtui.file(".kbtui/lock"), os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_goes_on_while_somebody_holds_the_lock(
    docker: Command, command: tuple[str, ...]
) -> None:
    docker.file("knowledge/topics/outside.md").write_text("# Outside\n")
    with locked(docker):
        assert docker(*command).status == 0


@pytest.mark.slow
def test_writing_says_who_holds_the_lock(docker: Command) -> None:
    with locked(docker):
        done = docker("new", "topic", "Podman")
    assert done.status == 5
    assert "is being written by" in done.err


def test_reading_goes_on_while_files_and_packs_are_replaced(docker: Command) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(docker.root)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        try:
            writer.stdout.readline()
            for command in READING * 3:
                docker.ok(*command)
            assert writer.poll() is None
        finally:
            writer.kill()
