from __future__ import annotations

import threading

from kbtui.search.background import Pause
from tests.patience import PATIENCE


def test_work_rests_until_it_is_let_go_on() -> None:
    pause, end, went_on = Pause(), threading.Event(), threading.Event()
    pause.stopped = True

    def work() -> None:
        pause.wait(end)
        went_on.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert not went_on.wait(0.12)
    pause.stopped = False
    assert went_on.wait(PATIENCE)
    thread.join()


def test_the_end_of_the_program_ends_a_pause() -> None:
    pause, end = Pause(), threading.Event()
    pause.stopped = True
    end.set()
    pause.wait(end)


def test_somebody_who_types_without_end_holds_nothing_up_for_ever() -> None:
    pause, end = Pause(), threading.Event()
    done = threading.Event()

    def work() -> None:
        pause.wait(end)
        done.set()

    pause.step_aside()
    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.02):
        pause.step_aside()
    thread.join()
