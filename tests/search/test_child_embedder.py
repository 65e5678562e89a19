"""The embedder in a child process: death, hangs and invalid answers are only errors."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kbtui import child_process
from kbtui.errors import ModelError
from kbtui.search.embedding import child_embedder
from kbtui.search.embedding.child_embedder import ChildEmbedder
from kbtui.search.embedding.embedder import ModelIdentity
from kbtui.search.embedding.prepared import ConfiguredModel
from kbtui.settings import RoleSettings
from tests.search.fakes import ReadyModel
from tests.search.helpers import Desk, eventually, paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbtui.search.embedding.child_embedder import ChildProcess

pytestmark = pytest.mark.faults
MODEL = ModelIdentity("tired", "f" * 24, "", 2, 256, "mean", (), 0, (1.0, 0.0))

ECHO = """
import base64, json, struct, sys
for line in sys.stdin:
    texts = json.loads(line)["texts"]
    if "die" in texts:
        raise SystemExit(1)
    if "fail" in texts:
        print(json.dumps({"error": "it is tired"}), flush=True)
        continue
    packed = b"".join(struct.pack("<2f", 1.0, float(len(text))) for text in texts)
    print(json.dumps({"vectors": base64.b64encode(packed).decode()}), flush=True)
"""


def test_no_module_is_taken_out_of_the_folder_that_somebody_is_in(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text("raise SystemExit('it ran')")
    done = subprocess.run(
        child_embedder.command("--help"),
        env=child_embedder.environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Prepare an embedding model" in done.stdout, done.stderr


@pytest.mark.parametrize("packed", ["AAAA", "AAA", "%%", 7, None])
def test_vectors_that_cannot_be_read_are_a_models_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: object
) -> None:
    answer = json.dumps({"vectors": packed})
    code = f"import sys\nfor _ in sys.stdin:\n    print({answer!r}, flush=True)"
    monkeypatch.setattr(child_process.sys, "executable", _script(tmp_path / "odd", code))
    embedder = ChildEmbedder(MODEL, tmp_path)
    with pytest.raises(ModelError, match="can't be read"):
        embedder.query("four")
    embedder.close()


def test_a_child_reads_no_link_targets_no_table_rules_and_no_half_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One rule for both embedders; the child answers with the length of what it was given."""
    monkeypatch.setattr(child_process.sys, "executable", _script(tmp_path / "echo", ECHO))
    embedder = ChildEmbedder(MODEL, tmp_path)
    marked = "See [it](https://example.org/a/long/address).\n| a | b |\n|-----|-----|\n| c | d |"
    plain = "See [it]().\n| a | b |\n\n| c | d |"
    assert embedder.documents([marked])[0, 1] == len(plain)
    assert embedder.query("a \ud800").tolist() == [1, 3]
    embedder.close()


def test_a_child_that_cannot_be_started_is_a_models_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process.sys, "executable", str(tmp_path / "missing"))
    embedder = ChildEmbedder(MODEL, tmp_path)
    with pytest.raises(ModelError, match="can't be started"):
        embedder.documents(["a"])


STUCK = ECHO.replace(
    "for line in sys.stdin:",
    """
import pathlib, time
pathlib.Path(__file__ + ".runs").touch()
for line in sys.stdin:
    while pathlib.Path(__file__ + ".stuck").exists():
        time.sleep(0.01)""",
)


@dataclass
class Stuck:
    """A child that doesn't answer while the file `mark` exists."""

    embedder: ChildEmbedder
    stop: threading.Event
    mark: Path

    @property
    def child(self) -> ChildProcess:
        assert self.embedder._child is not None
        return self.embedder._child


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    script = _script(tmp_path / "stuck", STUCK)
    monkeypatch.setattr(child_process.sys, "executable", script)
    mark, stop = Path(f"{script}.stuck"), threading.Event()
    mark.touch()
    embedder = ChildEmbedder(MODEL, tmp_path, stop, patience=60)
    yield Stuck(embedder, stop, mark)
    embedder.close()


def test_a_child_that_is_stuck_is_ended_and_started_again(stuck: Stuck) -> None:
    stuck.embedder._patience = 0.3
    with pytest.raises(ModelError, match="got stuck"):
        stuck.embedder.documents(["a"])
    assert stuck.embedder._child is None
    stuck.mark.unlink()
    stuck.embedder._patience = 60
    assert stuck.embedder.query("four").tolist() == [1, 4]


def test_a_query_does_not_wait_long_and_gets_no_other_ones_answer(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.search.embedding.child_embedder._QUERY_SECONDS", 0.1)
    for text in ("a", "bb", "ccc", "dddd", "eeeee", "ffffff"):
        with pytest.raises(ModelError, match="busy"):
            stuck.embedder.query(text)
    running = stuck.child
    stuck.mark.unlink()
    monkeypatch.setattr("kbtui.search.embedding.child_embedder._QUERY_SECONDS", 60)
    assert stuck.embedder.query("seven").tolist() == [1, 5]
    assert stuck.embedder.documents(["four", "to"]).tolist() == [[1, 4], [1, 2]]
    assert stuck.child is running


def test_search_answers_by_words_while_the_child_is_stuck_and_by_meaning_later(
    stuck: Stuck, tmp_path: Path
) -> None:
    desk = Desk(tmp_path / "kb")
    desk.write("knowledge/topics/garage.md", "# Garage\n\nThe automobile needs tyres.\n")
    index = desk.index(model=ReadyModel(stuck.embedder))
    index.sync()
    stuck.embedder._patience = 0.3
    result = index.search("automobile")
    assert paths(result) == ["knowledge/topics/garage.md"]
    assert not result.semantic
    assert result.notice == "The process that runs tired got stuck. Searching by words."
    stuck.mark.unlink()
    stuck.embedder._patience = 60
    eventually(lambda: index.search("automobile").semantic)
    assert index.search("automobile").notice == ""
    desk.close()


@pytest.mark.parametrize("how", ["stop", "close"])
def test_who_waits_for_a_stuck_child_is_let_go_when_the_program_closes(
    stuck: Stuck, how: str
) -> None:
    told: list[BaseException] = []

    def wait() -> None:
        try:
            stuck.embedder.documents(["x" * 500_000])
        except ModelError as error:
            told.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    eventually(lambda: stuck.embedder._child is not None)
    eventually(Path(f"{stuck.mark.with_suffix('')}.runs").exists)
    started = stuck.child
    if how == "stop":
        stuck.stop.set()
    else:
        stuck.embedder.close()
    thread.join(60)
    assert not thread.is_alive()
    assert len(told) == 1
    assert not started.is_alive
    with pytest.raises(ModelError, match="closed"):
        stuck.embedder.query("again")


def test_a_child_that_dies_is_an_error_once_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process.sys, "executable", _script(tmp_path / "echo", ECHO))
    embedder = ChildEmbedder(MODEL, tmp_path)
    assert embedder.query("four").tolist() == [1, 4]
    with pytest.raises(ModelError, match="ended"):
        embedder.query("die")
    assert embedder.query("fives").tolist() == [1, 5]
    with pytest.raises(ModelError, match="tired"):
        embedder.query("fail")
    assert embedder.documents(["a"] * 40).shape == (40, 2)
    embedder.close()


def test_a_processor_that_cannot_run_the_model_is_said_once_and_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    code = (
        f"import os, signal\nopen({str(log)!r}, 'a').write('x')\n"
        "os.kill(os.getpid(), signal.SIGILL)"
    )
    monkeypatch.setattr(child_process.sys, "executable", _script(tmp_path / "old", code))
    desk = Desk(tmp_path / "kb")
    desk.write("knowledge/topics/garage.md", "# Garage\n\nThe automobile needs tyres.\n")
    for model in (
        ReadyModel(ChildEmbedder(MODEL, tmp_path)),
        ConfiguredModel(RoleSettings(model=str(_folder(tmp_path / "model")))),
    ):
        log.unlink(missing_ok=True)
        index = desk.index(model=model)
        for _ in range(3):
            index.load_model()
            result = index.search("automobile", wait=True)
            assert paths(result) == ["knowledge/topics/garage.md"]
            assert "can't run on this processor" in result.notice
            assert "Searching by words." in result.notice
        assert log.read_text() == "x"
        index.close()
    desk.close()


def _folder(folder: Path) -> Path:
    """Create a folder with the files of a model, but no usable content."""
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("{}")
    return folder


def _script(file: Path, code: str) -> str:
    file.write_text(f"#!{sys.executable}\n{code}\n")
    file.chmod(0o755)
    return str(file)
