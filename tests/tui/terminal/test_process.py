from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from pathlib import Path
from queue import SimpleQueue

import pytest

from kbtui.tui.terminal.process import (
    DiskWatch,
    collect_rarely,
    collect_when_idle,
    freeze_objects,
)


@pytest.fixture(autouse=True)
def _usual_collector():
    threshold = gc.get_threshold()
    gc.unfreeze()  # who imported litellm before has frozen it
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_what_stays_is_not_visited_by_collections():
    collect_rarely()
    kept = [[] for _ in range(1_000)]
    imported = gc.get_freeze_count()
    assert imported
    freeze_objects()
    assert gc.get_freeze_count() - imported > len(kept)
    assert not any(thing is kept for thing in gc.get_objects())


def test_a_process_that_did_not_ask_for_it_is_left_alone():
    freeze_objects()
    assert gc.get_freeze_count() == 0


def test_what_is_made_afterwards_is_still_collected():
    collect_rarely()
    freeze_objects()

    class Node:
        pass

    node = Node()
    node.itself = node
    del node
    assert gc.collect() >= 1


@pytest.mark.parametrize(("typed_before", "freed"), [(0.0, False), (10.0, True)])
def test_what_is_gone_is_freed_when_nobody_has_typed_for_a_moment(typed_before, freed):
    collect_rarely()

    class Node:
        pass

    node = Node()
    node.itself = node
    gc.collect(1)
    gc.collect(1)  # as old as a screen is when it is closed
    gone = weakref.ref(node)
    del node
    collect_when_idle(time.monotonic() - typed_before)
    assert (gone() is None) is freed


def test_a_disk_that_does_not_answer_is_told_once_and_so_is_its_return(monkeypatch):
    back = threading.Event()
    monkeypatch.setattr(os, "statvfs", lambda _folder: back.wait())
    told: SimpleQueue[str] = SimpleQueue()
    disk = DiskWatch(lambda: Path("/share"), told.put, patience=0.01)
    assert told.get().startswith("The disk with /share doesn't answer.")
    back.set()
    assert told.get() == "The disk with /share answers again."
    disk.stop()
