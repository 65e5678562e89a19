"""Waiting for an app: until something is so, and until all that was set going is done.

A key leads to messages, those to work in threads, that to messages again, and they to a drawing;
in what order, and how long it takes, depends on what else the machine is doing. So a test says
what it waits for, and only looks at an app that has come to rest. Nothing here waits for a time.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from textual.app import ScreenStackError
from textual.message_pump import MessagePump

from tests.tui import jitter, painting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.app import App
    from textual.timer import Timer

DEADLINE = 120.0
_POLL = 0.01
_SHORTEST = 0.001
_SOON = 0.6
"""Seconds: who sleeps for less than that gathers keys or lines and will go on by itself."""
_ROUNDS = 4
_here = threading.local()
_jobs: WeakSet[_Job] = WeakSet()


class _Job:
    """Work that an event loop has given to a thread."""

    def __init__(self, work: Callable[..., Any], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[Any] | None = None
        self.busy = False
        self.stands_at_a_door = False

    @property
    def pending(self) -> bool:
        """Whether it runs, or its result is on the way, or it waits for a thread."""
        if self.stands_at_a_door:
            return False
        return self.busy or self.future is None or not self.future.done()

    def __call__(self, *args: Any) -> Any:
        self.busy, _here.job = True, self
        try:
            jitter.in_thread()
            return self.work(*args)
        finally:
            jitter.in_thread()
            self.busy, _here.job = False, None


class Door:
    """Stops work in a thread until a test opens; the app may be at rest meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._waiting: list[_Job] = []

    def wait(self) -> None:
        """Stand here until it is open; called by the work."""
        job = getattr(_here, "job", None)
        with self._lock:
            if job is not None and not self._open.is_set():
                job.stands_at_a_door = True
                self._waiting.append(job)
        assert self._open.wait(DEADLINE), "nobody opened the door"

    def open(self) -> None:
        """Let through whoever waits or comes."""
        with self._lock:
            for job in self._waiting:
                job.stands_at_a_door = False
            self._open.set()


@contextmanager
def jobs_watched() -> Iterator[None]:
    """Know of all work that event loops give to threads."""
    plain = asyncio.BaseEventLoop.run_in_executor

    def run_in_executor(
        self: asyncio.BaseEventLoop, executor: Any, work: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        job = _Job(work, self)
        _jobs.add(job)
        try:
            job.future = plain(self, executor, job, *args)
        except BaseException:
            _jobs.discard(job)
            raise
        return job.future

    asyncio.BaseEventLoop.run_in_executor = run_in_executor  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        asyncio.BaseEventLoop.run_in_executor = plain  # type: ignore[method-assign]


async def until(app: App[Any], condition: Callable[[], object], what: str = "") -> None:
    """Let the app work until something is so, and everything that follows from it is done.

    Args:
        app: Runs in this event loop.
        condition: Asked every few milliseconds; any true value will do.
        what: Said where it never comes to be.
    """
    end = monotonic() + DEADLINE
    while not condition():
        assert monotonic() < end, f"waited in vain until {what or condition}; {picture(app)}"
        await asyncio.sleep(_POLL)
    await rest(app)


async def rest(app: App[Any], *, typing: bool = False) -> None:
    """Wait until keys, messages, drawings and work in threads are done, and all they lead to.

    What happens by itself isn't waited for: services of the workspace, what is looked at every
    few seconds, an answer that is held at its gate, a question that is on the screen; nor who
    sleeps again and again.

    Args:
        app: Runs in this event loop.
        typing: More keys follow at once: what waits for a pause between them goes on waiting.
    """
    end = monotonic() + DEADLINE
    rounds, worked_at = 0, monotonic()
    pause = _SHORTEST
    while rounds < _ROUNDS or (not typing and painting.paint(app)):
        if rounds >= _ROUNDS:
            rounds = 0  # what is painted may set something going
        elif _works(app):
            rounds, worked_at = 0, monotonic()
        elif not _is_still(app):
            rounds = 0
        elif typing or not _will_go_on(app) or monotonic() - worked_at > _SOON:
            rounds += 1
        else:
            rounds = 0
        assert monotonic() < end, f"it never came to rest; {picture(app)}"
        if rounds or _loop_works():
            pause = _SHORTEST
            await asyncio.sleep(0)
        else:  # it waits for threads or timers, which looking on would hold up
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, _POLL)


def picture(app: App[Any]) -> str:
    """What an app shows and does, for the message of a test that fails."""
    try:
        screen = app.screen
    except ScreenStackError:
        return "the app has no screen"
    rows = [strip.text.rstrip() for strip in screen._compositor.render_strips()]
    said = [note.message for note in app._notifications]
    workers = [f"{worker.group}: {worker.state.name}" for worker in app.workers]
    jobs = [repr(job.work) for job in _jobs if job.pending]
    return "\n".join(
        (
            f"{type(screen).__name__}, focus on {app.focused}, said {said}",
            f"workers {workers}, work in threads {jobs}, defect {app._exception!r}",
            *rows,
        )
    )


def _loop_works() -> bool:
    return bool(asyncio.get_running_loop()._ready)  # type: ignore[attr-defined]


def _works(app: App[Any]) -> bool:
    """Whether something is done in a thread, or a key is."""
    if app._exception is not None:
        return False
    loop = asyncio.get_running_loop()
    pending = any(job.loop is loop and job.pending for job in list(_jobs))
    return pending or not getattr(app, "at_rest", True)


def _is_still(app: App[Any]) -> bool:
    """Whether no message is handled, and the screen is drawn."""
    if app._exception is not None:
        return True
    return not (_loop_works() or jitter.holds_back() or _draws(app))


def _draws(app: App[Any]) -> bool:
    if app._exit or not app.is_running:
        return False
    if app._animator._animations or app._animator._scheduled:
        return True
    try:
        timer: Timer | None = app.screen._Screen__update_timer  # type: ignore[attr-defined]
    except ScreenStackError:
        return False
    return timer is not None and timer._task is not None and timer._active.is_set()


def _will_go_on(app: App[Any]) -> bool:
    """Whether something sleeps that goes on in a moment."""
    if app._exception is not None or app._exit or not app.screen_stack:
        return False
    loop: Any = asyncio.get_running_loop()
    soon = loop.time() + _SOON
    due = [each for each in loop._scheduled if not each.cancelled() and each.when() < soon]
    if any(getattr(each._callback, "__func__", None) is MessagePump.call_later for each in due):
        return True
    woken = {id(handle._args[0]) for handle in due if handle._args}
    if any(
        worker._task is not None and id(getattr(worker._task, "_fut_waiter", None)) in woken
        for worker in app.workers
    ):
        return True
    nodes: list[MessagePump] = [app, *app.screen.walk_children(with_self=True)]
    return any(_rings_soon(timer) for node in nodes for timer in node._timers)


def _rings_soon(timer: Timer) -> bool:
    """Whether it is a timer that rings once, and soon."""
    if timer._repeat is None or timer._task is None or timer._task.done():
        return False
    return timer._interval < _SOON
