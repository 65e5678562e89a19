"""Background workers on the event loop, mostly those of which only the latest run matters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial, wraps
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar

from textual.css.query import NoMatches
from textual.dom import DOMNode

from kbtui.errors import KbtuiError
from kbtui.tui.messages import tell_error

NodeT = TypeVar("NodeT", bound=DOMNode)
_More = ParamSpec("_More")
StepT = TypeVar("StepT")


def run_latest(
    node: DOMNode,
    group: str,
    work: Callable[..., Coroutine[Any, Any, object]],
    *args: object,
    **kwargs: object,
) -> None:
    """Run ``work(*args, **kwargs)`` on the event loop, cancelling the running work of `group`.

    The coroutine is created only when it starts, so one that is superseded earlier is never left
    unawaited. A `KbtuiError` that it raises is shown to the user.
    """
    job: Any = partial(_run_attached, node, partial(work, *args, **kwargs))
    # Without a description Textual writes one of all arguments, which may be whole notes.
    node.run_worker(job, group=group, description=group, exclusive=True)


def latest(
    group: str,
) -> Callable[
    [Callable[Concatenate[NodeT, _More], Coroutine[Any, Any, object]]],
    Callable[Concatenate[NodeT, _More], None],
]:
    """Decorate an async method of a node to run through `run_latest`; callers don't await it."""

    def decorate(
        work: Callable[Concatenate[NodeT, _More], Coroutine[Any, Any, object]],
    ) -> Callable[Concatenate[NodeT, _More], None]:
        @wraps(work)
        def start(node: NodeT, /, *args: _More.args, **kwargs: _More.kwargs) -> None:
            run_latest(node, group, work, node, *args, **kwargs)

        return start

    return decorate


async def in_threads(steps: Iterator[StepT]) -> AsyncIterator[StepT]:
    """Yield what `steps` yields, each computed in a thread."""
    each = ((step,) for step in steps)
    while (found := await asyncio.to_thread(next, each, None)) is not None:
        yield found[0]


def call_after(node: DOMNode, seconds: float, work: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `work` once, as a callback of `node`, in `seconds`, without ever dropping the call.

    Textual's own one-shot timer skips a tick that is already due when it starts: if the process was
    held up for longer than `seconds`, or `seconds` is close to zero, it never calls back.
    """
    return asyncio.get_running_loop().call_later(max(0.0, seconds), node.call_later, work)


class Debounce:
    """Calls `work` once requests pause, and at the latest some time after the first of them.

    Without the second limit, work that waits for a pause is never done while requests keep coming:
    a draft would be stored only when its writer stops typing.
    """

    def __init__(
        self, node: DOMNode, work: Callable[[], object], *, pause: float, longest: float
    ) -> None:
        """Initialize it.

        Args:
            node: The node that `work` is a callback of.
            work: What is called; new requests wait for the next call.
            pause: Seconds without a request after which it is called.
            longest: Seconds after the first request after which it is called anyway.
        """
        self._node = node
        self._work = work
        self._pause = pause
        self._longest = longest
        self._first_request = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def request(self) -> None:
        """Ask for a call; a pause begins anew."""
        now = monotonic()
        if self._timer is None:
            self._first_request = now
        else:
            self._timer.cancel()
        wait = min(self._pause, self._first_request + self._longest - now)
        self._timer = call_after(self._node, wait, self._call)

    def cancel(self) -> None:
        """Drop the requests."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _call(self) -> None:
        if self._timer is not None:  # it wasn't cancelled while this call was in the queue
            self._timer = None
            self._work()


class SerialQueue:
    """A queue that runs coroutines of `node` one at a time, in the order of the calls."""

    def __init__(self, node: DOMNode, group: str) -> None:
        self._node = node
        self._group = group
        self._lock = asyncio.Lock()

    def run(self, work: Callable[..., Coroutine[Any, Any, object]], *args: object) -> None:
        """Run ``work(*args)`` on the event loop once everything queued before it is done.

        A `KbtuiError` that it raises is shown to the user.
        """
        job: Any = partial(
            _run_attached, self._node, partial(self._run_in_turn, partial(work, *args))
        )
        self._node.run_worker(job, group=self._group, description=self._group)

    async def _run_in_turn(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        async with self._lock:
            await work()


async def _run_attached(node: DOMNode, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    try:
        await work()
    except NoMatches:
        # The result arrived just after the widget was closed: nobody needs it.
        if node.is_attached and node.display:
            raise
    except KbtuiError as error:
        tell_error(node, error)
