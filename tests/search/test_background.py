from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError
from kbtui.search.background import Watcher
from kbtui.settings import SearchSettings
from tests.patience import PATIENCE
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import Desk, eventually, paths

if TYPE_CHECKING:
    from pathlib import Path

    from kbtui.search.results import IndexStatus

_NO_SWEEP = SearchSettings(semantic=False, sync_interval_seconds=3600)


class LateModel(ReadyModel):
    """A model that finishes loading just as the program closes."""

    def load(self, stop: threading.Event) -> WordEmbedder:
        assert stop.wait(PATIENCE)
        return self.embedder


def test_a_model_that_comes_while_the_program_closes_hurts_no_thread(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurt: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", hurt.append)
    index = desk.index(model=LateModel(WordEmbedder()))
    index.start()
    eventually(lambda: index.status().state == "preparing")
    index.close()
    assert not hurt


def test_a_change_that_was_told_is_found_soon(desk: Desk) -> None:
    index = desk.index()
    index.start()
    eventually(lambda: index.status().state == "lexical-only")
    desk.write("knowledge/topics/new.md", "# Quokka\n")
    index.refresh(["knowledge/topics/new.md"])
    eventually(lambda: index.search("quokka").hits)


def test_an_edit_from_outside_is_found_and_told_once_it_has_settled(desk: Desk) -> None:
    told: list[bool] = []
    index = desk.index()
    index.on_outside_edit = lambda: told.append(bool(index.search("quokka").hits))
    index.start()
    eventually(lambda: index.status().state == "lexical-only")
    eventually(lambda: any(t.name == "kbtui-watch" for t in threading.enumerate()))
    _write_until(desk, lambda: index.search("quokka").hits)
    eventually(lambda: any(told))


def _write_until(desk: Desk, found) -> None:
    """Repeat an edit until `found`, as the watcher may still be starting and miss one."""
    for attempt in range(60):
        desk.write("knowledge/topics/new.md", f"# Quokka\n\n{attempt}\n")
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if found():
                return
            time.sleep(0.02)
    pytest.fail("the edit was never seen")


def test_a_note_in_a_new_folder_of_somebodys_own_is_found_at_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "vault", in_place=True)
    desk.write("a.md", "# A\n")
    index = desk.index(settings=_NO_SWEEP)
    index.start()
    eventually(lambda: index.status().state == "lexical-only")
    _write_until(desk, lambda: index.search("quokka").hits)  # from here on it watches
    (desk.root / "animals").mkdir()
    eventually(lambda: index._background._watcher._watched >= {desk.root / "animals"})
    desk.write("animals/wombat.md", "# Wombat\n")
    eventually(lambda: index.search("wombat").hits)
    desk.close()


def test_an_edit_between_the_first_look_and_the_watch_is_found(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = Watcher.follow

    def late(watcher: Watcher) -> None:
        if not (desk.root / "knowledge/topics/new.md").exists():
            desk.write("knowledge/topics/new.md", "# Quokka\n")
        follow(watcher)

    monkeypatch.setattr(Watcher, "follow", late)
    index = desk.index(settings=_NO_SWEEP)
    index.start()
    eventually(lambda: index.search("quokka").hits)


def test_the_sweep_finds_what_the_watcher_missed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watcher, "follow", lambda self: None)
    index = desk.index(settings=SearchSettings(semantic=False, sync_interval_seconds=0.2))
    index.start()
    eventually(lambda: index.status().state == "lexical-only")
    desk.write("knowledge/topics/new.md", "# Quokka\n")
    eventually(lambda: index.search("quokka").hits)


def test_the_status_goes_from_opening_to_ready(desk: Desk) -> None:
    for i in range(80):
        desk.write(f"knowledge/topics/n{i}.md", f"Note {i}\n")
    index = desk.index(model=ReadyModel(WordEmbedder()))
    assert index.status().state == "opening"
    seen: list[IndexStatus] = []
    unsubscribe = index.subscribe(seen.append)
    index.start()
    last = eventually(lambda: (s := index.status()).state == "ready" and s)
    assert (last.files, last.chunks, last.model) == (80, 80, "words")
    assert last.embedded == 80
    eventually(lambda: seen[-1].state == "ready")
    assert any("80 of 80" in status.message for status in seen)
    unsubscribe()


def test_a_folder_that_vanishes_leaves_the_rest(desk: Desk) -> None:
    desk.write("docs/p/a.md", "quokka\n")
    desk.write("knowledge/topics/b.md", "wombat\n")
    index = desk.index()
    index.start()
    eventually(lambda: index.search("quokka").hits)
    (desk.root / "docs").rename(desk.root / "gone")
    index.sync()
    assert not index.search("quokka").hits
    assert paths(index.search("wombat")) == ["knowledge/topics/b.md"]
    (desk.root / "gone").rename(desk.root / "docs")
    index.sync()
    assert index.search("quokka").hits


def test_closing_ends_every_thread(desk: Desk) -> None:
    gate = threading.Event()
    gate.set()
    before = set(threading.enumerate())
    index = desk.index(model=ReadyModel(WordEmbedder(), gate))
    index.start()
    eventually(lambda: index.status().state == "ready")
    index.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(KbtuiError, match="closed"):
        index.search("anything")


def test_searches_from_many_threads_while_files_change_all_answer(desk: Desk) -> None:
    for i in range(30):
        desk.write(f"knowledge/topics/n{i}.md", f"wombat number{i}\n")
    index = desk.index(model=ReadyModel(WordEmbedder()))
    index.start()
    eventually(lambda: index.status().state == "ready")
    problems: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(40):
                assert index.search("wombat", limit=5).hits
        except BaseException as error:  # noqa: BLE001
            problems.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(20):
        desk.write(f"knowledge/topics/n{i}.md", f"wombat changed{i}\n")
        index.refresh([f"knowledge/topics/n{i}.md"])
    for thread in threads:
        thread.join()
    assert not problems
