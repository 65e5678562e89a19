from __future__ import annotations

import gc

import pytest

from kbtui.tui.terminal.process import collect_rarely, spare_what_stays


@pytest.fixture(autouse=True)
def _usual_collector():
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_what_stays_is_not_visited_by_collections():
    collect_rarely()
    kept = [[] for _ in range(1_000)]
    assert gc.get_freeze_count() == 0
    spare_what_stays()
    assert gc.get_freeze_count() > len(kept)
    assert not any(thing is kept for thing in gc.get_objects())


def test_a_process_that_did_not_ask_for_it_is_left_alone():
    spare_what_stays()
    assert gc.get_freeze_count() == 0


def test_what_is_made_afterwards_is_still_collected():
    collect_rarely()
    spare_what_stays()

    class Node:
        pass

    node = Node()
    node.itself = node
    del node
    assert gc.collect() >= 1
