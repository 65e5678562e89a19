"""Work beside the screen, of which mostly only the latest matters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from textual.css.query import NoMatches
from textual.dom import DOMNode

from kbtui.errors import KbtuiError
from kbtui.tui.messages import tell_error

NodeT = TypeVar("NodeT", bound=DOMNode)
_More = ParamSpec("_More")


def run_latest(
    node: DOMNode,
    group: str,
    work: Callable[..., Coroutine[Any, Any, object]],
    *args: object,
    **kwargs: object,
) -> None:
    """Run ``work(*args, **kwargs)`` on the event loop; what `group` was doing is cancelled.

    The coroutine is made only when it starts: one that is overtaken before leaves nothing behind.
    A `KbtuiError` that ends it is shown.
    """
    job: Any = partial(_while_there, node, partial(work, *args, **kwargs))
    node.run_worker(job, group=group, exclusive=True)


def latest(
    group: str,
) -> Callable[
    [Callable[Concatenate[NodeT, _More], Coroutine[Any, Any, object]]],
    Callable[Concatenate[NodeT, _More], None],
]:
    """Have a method of a node run as `run_latest` does: whoever calls it doesn't wait for it."""

    def begun(
        work: Callable[Concatenate[NodeT, _More], Coroutine[Any, Any, object]],
    ) -> Callable[Concatenate[NodeT, _More], None]:
        @wraps(work)
        def begin(node: NodeT, /, *args: _More.args, **kwargs: _More.kwargs) -> None:
            run_latest(node, group, work, node, *args, **kwargs)

        return begin

    return begun


def call_after(node: DOMNode, seconds: float, work: Callable[[], object]) -> asyncio.TimerHandle:
    """Do something once, as a callback of `node`, some seconds from now; it is never lost.

    Textual's own timer for that skips what is due when it starts: where the process was held up for
    longer than `seconds`, or these are next to none, it never calls back.
    """
    return asyncio.get_running_loop().call_later(max(0.0, seconds), node.call_later, work)


class InTurn:
    """Does one thing after the other while `node` lives; what is asked for meanwhile waits."""

    def __init__(self, node: DOMNode, group: str) -> None:
        self._node = node
        self._group = group
        self._turn = asyncio.Lock()

    def run(self, work: Callable[..., Coroutine[Any, Any, object]], *args: object) -> None:
        """Run ``work(*args)`` on the event loop as soon as all before it is done.

        A `KbtuiError` that ends it is shown.
        """
        job: Any = partial(_while_there, self._node, partial(self._in_turn, partial(work, *args)))
        self._node.run_worker(job, group=self._group)

    async def _in_turn(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        async with self._turn:
            await work()


async def _while_there(node: DOMNode, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    try:
        await work()
    except NoMatches:
        # What was waited for came when the widget had just been closed: nobody needs it.
        if node.is_attached and node.display:
            raise
    except KbtuiError as error:
        tell_error(node, error)
