from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import KbtuiError
from tests.search.fakes import ReadyModel, WordEmbedder
from tests.search.helpers import eventually, paths

if TYPE_CHECKING:
    from kbtui.search.results import IndexStatus
    from tests.search.helpers import Desk


def test_a_change_that_was_told_is_found_soon(desk: Desk) -> None:
    index = desk.index()
    index.start()
    eventually(lambda: index.status().state == "lexical-only")
    desk.write("knowledge/topics/new.md", "# Quokka\n")
    index.refresh(["knowledge/topics/new.md"])
    eventually(lambda: index.search("quokka").hits)


def test_an_edit_from_outside_is_found_and_told_once_it_has_settled(desk: Desk) -> None:
    told: list[frozenset[str]] = []
    index = desk.index()
    index.on_outside_edit = told.append
    index.start()
    eventually(lambda: index.status().state == "lexical-only")
    eventually(lambda: any(t.name == "kbtui-watch" for t in threading.enumerate()))
    _write_until(desk, lambda: index.search("quokka").hits)
    eventually(lambda: any("knowledge/topics/new.md" in paths for paths in told))


def _write_until(desk: Desk, found) -> None:
    """The watcher may still be starting: an edit that it missed is made again."""
    for attempt in range(60):
        desk.write("knowledge/topics/new.md", f"# Quokka\n\n{attempt}\n")
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if found():
                return
            time.sleep(0.02)
    pytest.fail("the edit was never seen")


def test_the_sweep_finds_what_the_watcher_missed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbtui.search.background import Watcher
    from kbtui.settings import SearchSettings

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


def test_it_reads_ahead_what_questions_will_need(desk: Desk) -> None:
    desk.write("knowledge/topics/a.md", "# A\n\nSome words that nobody asked for yet.")
    index = desk.index()
    index.start()
    cache = index._generations().serving._lexical._cache
    eventually(lambda: cache.size > 0)
    desk.write("knowledge/topics/b.md", "# B\n\nA quagga came later.")
    index.refresh(["knowledge/topics/b.md"])
    eventually(lambda: paths(index.search("quagga", semantic=False)))
