"""The server process: standard streams, signals and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kbtui.clock import local_now
from kbtui.history.change import new_batch_id
from kbtui.logs import start_logging

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.mcp_server.http_transport import HttpTransport

log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SIGNAL_EXIT_CODE = 128
_SHUTDOWN_SECONDS = 15.0


def serve(
    open_workspace: Callable[[], KnowledgeBase],
    *,
    read_only: bool = False,
    http: HttpTransport | None = None,
) -> int:
    """Serve one client on the standard streams until it disconnects, or many over `http`.

    The workspace is opened when first needed, in any thread. Returns the exit code: 0 after the
    client has disconnected, 128 plus the signal's number after a signal.
    """
    if http is not None:
        _log_to_file()
        return asyncio.run(_serve(open_workspace, http.run, read_only=read_only))
    with _claim_streams() as (source, sink):
        _log_to_file()
        run = partial(_serve_streams, source, sink)
        return asyncio.run(_serve(open_workspace, run, read_only=read_only))


async def _serve(
    open_workspace: Callable[[], KnowledgeBase],
    run: Callable[[Server[Any]], Coroutine[Any, Any, None]],
    *,
    read_only: bool,
) -> int:
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, _stop, stopped, number)
    # Imported after the handlers are installed, as it takes most of a second.
    from kbtui.mcp_server.backend import Backend
    from kbtui.mcp_server.server import make_server

    backend = Backend(open_workspace, new_batch_id(local_now(), "mcp"), read_only=read_only)
    try:
        serving = asyncio.create_task(run(make_server(backend)))
        either: list[asyncio.Future[Any]] = [serving, stopped]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        _start_watchdog()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    finally:
        await asyncio.to_thread(backend.close)
    return _SIGNAL_EXIT_CODE + stopped.result() if stopped.done() else 0


async def _serve_streams(source: int, sink: int, server: Server[Any]) -> None:
    import anyio

    from kbtui.mcp_server.stdio_transport import StdioTransport

    try:
        async with StdioTransport(source, sink).open() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
        log.info("The client left in the middle of a message.")


def _stop(stopped: asyncio.Future[int], number: int) -> None:
    if not stopped.done():
        stopped.set_result(number)


def _start_watchdog() -> None:
    """Force an exit if the shutdown hangs; the door leaves no change half-written."""
    watchdog = threading.Timer(_SHUTDOWN_SECONDS, os._exit, args=(1,))
    watchdog.daemon = True
    watchdog.start()


@contextlib.contextmanager
def _claim_streams() -> Iterator[tuple[int, int]]:
    """Reserve the standard streams for the protocol, redirecting other output to stderr."""
    source, sink = os.dup(0), os.dup(1)
    for descriptor in (source, sink):
        os.set_inheritable(descriptor, False)
    devnull = os.open(os.devnull, os.O_RDONLY)
    try:
        sys.stdout.flush()
        os.dup2(devnull, 0)
        os.dup2(2, 1)
        yield source, sink
    finally:
        os.close(devnull)


def _log_to_file() -> None:
    """Log the libraries' messages to our log file instead of stderr."""
    start_logging()
    ours = logging.getLogger("kbtui")
    logging.captureWarnings(capture=True)
    for name in ("mcp", "asyncio", "py.warnings", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = list(ours.handlers)
        logger.propagate = False
