"""The detached process that prepares the model and embeds passages after a command."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kbtui import child_process
from kbtui.errors import ModelError
from kbtui.search.detached import DetachedWorker, main, prepare_and_embed
from kbtui.search.embedding import attempts
from kbtui.search.embedding.prepared import ConfiguredModel, locate, models_folder
from kbtui.search.results import Preparation
from kbtui.settings import RoleSettings, SearchSettings
from tests.search.fakes import ReadyModel, SlowEmbedder, WordEmbedder
from tests.search.helpers import eventually, paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.search.helpers import Desk

# Stands in for Python: records how it was started, and waits on a FIFO.
PROGRAM = """
import json, os, pathlib, sys
here = pathlib.Path({folder!r})
told = {{
    "arguments": sys.argv[1:],
    "leads": os.getsid(0) == os.getpid(),
    "streams": sorted({{os.readlink(f"/dev/fd/{{number}}") for number in range(3)}}),
}}
(here / "told.new").write_text(json.dumps(told))
(here / "told.new").rename(here / f"told.{{os.getpid()}}")
(here / "gate").open().read()
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the processes' records; writing to its FIFO `gate` ends them."""
    folder = tmp_path / "program"
    folder.mkdir()
    os.mkfifo(folder / "gate")
    file = folder / "python"
    file.write_text(f"#!{sys.executable}\n{PROGRAM.format(folder=str(folder))}")
    file.chmod(0o755)
    monkeypatch.setattr(child_process.sys, "executable", str(file))
    return folder


@pytest.fixture
def worker(desk: Desk) -> Iterator[DetachedWorker]:
    worker = DetachedWorker(desk.workspace, SearchSettings(), RoleSettings())
    yield worker
    if worker.child is not None:
        worker.child.kill()
        worker.child.wait()


def _started(program: Path) -> list[Path]:
    return list(program.glob("told.[0-9]*"))


def test_one_process_is_started_that_belongs_to_nobody(
    desk: Desk, worker: DetachedWorker, program: Path
) -> None:
    assert worker.start() == Preparation("preparing")
    (told,) = eventually(lambda: _started(program))
    assert json.loads(told.read_text()) == {
        "arguments": ["-P", "-m", "kbtui.search.detached", str(desk.root)],
        "leads": True,
        "streams": ["/dev/null"],
    }
    assert worker.child is not None
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, worker.child.pid) == min(19, mine + 10)
    another = DetachedWorker(desk.workspace, SearchSettings(), RoleSettings())
    assert another.start() == worker.start() == another.prepare() == Preparation("preparing")
    assert another.child is None
    assert attempts.claim(models_folder()) is None
    (program / "gate").write_text("")
    assert worker.child.wait() == 0
    assert len(_started(program)) == 1


@pytest.mark.faults
def test_one_that_was_killed_does_not_keep_the_next_from_starting(
    worker: DetachedWorker, program: Path
) -> None:
    for count in (1, 2):
        assert worker.start() == Preparation("preparing")
        eventually(lambda count=count: len(_started(program)) == count)
        assert worker.child is not None
        worker.child.kill()
        worker.child.wait()
        assert ConfiguredModel(RoleSettings()).preparation() == Preparation("waiting")


@pytest.mark.parametrize(
    ("search", "embed", "writable", "why"),
    [
        (SearchSettings(semantic=False), RoleSettings(), True, "switched off"),
        (SearchSettings(background=False), RoleSettings(), True, "search.background is off"),
        (SearchSettings(), RoleSettings(), False, "read-only"),
        (SearchSettings(), RoleSettings(model="litellm:x/y"), True, "behind an API"),
        (SearchSettings(), RoleSettings(model="BAAI/bge-m3"), True, "not on this machine"),
    ],
)
def test_where_it_may_not_be_none_is_started(
    desk: Desk,
    program: Path,
    search: SearchSettings,
    embed: RoleSettings,
    writable: bool,
    why: str,
) -> None:
    worker = DetachedWorker(replace(desk.workspace, writable=writable), search, embed)
    assert why in worker.start().why
    assert worker.child is None
    assert not _started(program)


def _failed() -> None:
    models_folder().mkdir(parents=True)
    fingerprint = locate("").fingerprint
    attempts.remember_failure(models_folder(), fingerprint, ModelError("It was out of memory."))


def _open_to_all() -> None:
    models_folder().mkdir(parents=True)
    models_folder().chmod(0o777)


@pytest.mark.parametrize(
    ("arrange", "why"), [(_failed, "out of memory"), (_open_to_all, "written by others")]
)
def test_where_it_would_fail_again_none_is_started(
    worker: DetachedWorker, program: Path, arrange: Callable[[], None], why: str
) -> None:
    arrange()
    assert why in worker.start().why
    assert worker.child is None


def test_what_cannot_be_started_is_said(
    desk: Desk, worker: DetachedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process.sys, "executable", str(desk.root / "gone"))
    found = worker.start()
    assert found.state == "waiting"
    assert "No such file" in found.why
    lock = attempts.claim(models_folder())
    assert lock is not None, "it is free again"
    os.close(lock)


# What a search delegates


class Asked:
    """A fake for `start_detached` that counts its calls."""

    def __init__(self, *answer: str) -> None:
        self.times = 0
        self._answer = answer

    def __call__(self) -> Preparation:
        self.times += 1
        return Preparation(*self._answer)  # type: ignore[arg-type]


def test_a_search_that_finds_no_model_answers_by_words_and_has_one_prepared(desk: Desk) -> None:
    desk.write("knowledge/topics/vehicle.md", "An automobile needs oil.\n")
    gate, asked = threading.Event(), Asked("preparing")
    index = desk.index(model=ReadyModel(WordEmbedder(), gate), start_detached=asked)
    result = index.search("automobile")
    assert (result.semantic, paths(result)) == (False, ["knowledge/topics/vehicle.md"])
    assert "in the background" in result.notice
    assert asked.times == 1
    gate.set()
    result = index.search("car")
    assert (result.semantic, result.notice, asked.times) == (True, "", 1)


def test_a_search_of_a_revision_has_a_model_prepared_as_well(desk: Desk) -> None:
    asked = Asked("preparing")
    index = desk.index(
        model=ReadyModel(WordEmbedder(), threading.Event()),
        tree_at=lambda _: [("knowledge/topics/a.md", b"An automobile.\n")],
        start_detached=asked,
    )
    result = index.search("automobile", at="then")
    assert len(result.hits) == 1
    assert "in the background" in result.notice
    assert asked.times == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (("failed", "The machine was out of memory."), "The machine was out of memory. Searching"),
        (("waiting", "search.background is off."), "search.background is off. Searching"),
        (("waiting",), "isn't prepared. Searching"),
    ],
)
def test_why_no_model_is_prepared_is_said(desk: Desk, answer: tuple[str, ...], said: str) -> None:
    desk.write("knowledge/topics/vehicle.md", "An automobile needs oil.\n")
    model = ReadyModel(WordEmbedder(), threading.Event())
    notice = desk.index(model=model, start_detached=Asked(*answer)).search("automobile").notice
    assert said in notice
    assert "reparing" not in notice


def test_what_a_search_has_no_time_to_embed_is_left_to_it(desk: Desk) -> None:
    for number in range(40):
        desk.write(f"knowledge/topics/n{number:02}.md", f"# Note\n\nThe word of n{number:02}.\n")
    asked, embedder = Asked("prepared"), WordEmbedder()
    notice = desk.index(model=ReadyModel(embedder), start_detached=asked).search("car").notice
    assert notice == "Reading for meaning: 0 %."
    refused = Asked("prepared", "search.background is off.")
    notice = desk.index(model=ReadyModel(embedder), start_detached=refused).search("car").notice
    assert notice == "0 % is read for meaning. search.background is off."
    assert (asked.times, refused.times, embedder.seen) == (1, 1, [])


def test_nothing_is_left_to_it_where_meaning_is_not_asked_for_or_somebody_sees_to_it(
    desk: Desk,
) -> None:
    desk.write("knowledge/topics/vehicle.md", "An automobile needs oil.\n")
    asked, embedder = Asked("preparing"), SlowEmbedder(rougher=False)
    index = desk.index(model=ReadyModel(embedder, threading.Event()), start_detached=asked)
    assert not index.search("automobile", semantic=False).notice
    embedder.let.release()
    ready = desk.index(model=ReadyModel(embedder), start_detached=asked)
    assert ready.search("automobile", wait=True).semantic
    gate = threading.Event()
    running = desk.index(model=ReadyModel(WordEmbedder(), gate), start_detached=asked)
    running.start()
    eventually(lambda: running.status().state == "preparing")
    assert "Preparing" in running.search("automobile").notice
    gate.set()
    eventually(lambda: running.status().state == "ready")
    assert asked.times == 0


# The process itself


def _use(model: ReadyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbtui.search.embedding.prepared.ConfiguredModel", lambda _role: model)


def test_it_embeds_what_the_index_holds_while_there_is_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        desk.write(f"knowledge/topics/n{number:02}.md", f"# Note\n\nThe word of n{number:02}.\n")
    desk.index().sync()
    desk.write("knowledge/topics/later.md", "# Later\n\nNobody has searched since.\n")
    embedder = WordEmbedder()
    _use(ReadyModel(embedder), monkeypatch)
    assert prepare_and_embed(desk.root, seconds=0.0) == 0
    assert prepare_and_embed(desk.root) == len(embedder.seen) == 40
    result = desk.index(model=ReadyModel(embedder)).search("n07 word")
    assert (result.semantic, result.notice) == (True, "")


def test_what_is_indexed_while_it_embeds_is_embedded_as_well(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("knowledge/topics/first.md", "# First\n\nAn automobile.\n")
    index = desk.index()
    index.sync()

    class Busy(WordEmbedder):
        def documents(self, texts: list[str]) -> object:
            if not self.seen:
                desk.write("knowledge/topics/second.md", "# Second\n\nA holiday.\n")
                index.sync()
            return super().documents(texts)

    _use(ReadyModel(Busy()), monkeypatch)
    assert prepare_and_embed(desk.root) == 2


def test_a_model_behind_an_api_is_sent_nothing_by_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("knowledge/topics/vehicle.md", "An automobile needs oil.\n")
    desk.index().sync()
    embedder = WordEmbedder(is_local=False)
    _use(ReadyModel(embedder), monkeypatch)
    monkeypatch.setenv("KBTUI_MODELS__EMBED__MODEL", "litellm:openai/any")
    assert prepare_and_embed(desk.root) == 0
    assert not embedder.seen


@pytest.mark.faults
def test_what_goes_wrong_in_it_is_remembered_and_ends_it_quietly(
    desk: Desk, worker: DetachedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = desk.root / "log"
    dying = desk.root / "dying"
    code = f"open({str(log)!r}, 'a').write('x'); raise SystemExit('out of memory, perhaps')"
    dying.write_text(f"#!{sys.executable}\n{code}\n")
    dying.chmod(0o755)
    models_folder().mkdir(parents=True)
    monkeypatch.setattr(child_process.sys, "executable", str(dying))
    assert main([str(desk.root)]) == ModelError.exit_code
    assert log.read_text() == "xx"
    assert "out of memory, perhaps" in worker.start().why
    assert worker.child is None
