"""The app's process: signals, a disk that hangs, garbage collection, new files."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

from kbtui.errors import StorageError, UsageError
from kbtui.text import slugify
from kbtui.tui.terminal import modes

_SIGNALS = (
    *(signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU),
)
"""All that end a process unless it handles them, and that it can handle."""
_PATIENCE_SECONDS = 3.0
_POLL_SECONDS = 1
_RESTORING_SECONDS = 1.0
_GC_THRESHOLDS = (10_000, 5, 40)
"""Thresholds of `gc.set_threshold`: new objects per collection of the youngest generation, then
collections of each generation per collection of the next."""
_COLLECT_SECONDS = 1.0
_IDLE_SECONDS = 0.25
_SWITCH_SECONDS = 0.001
"""The interpreter's switch interval. With Python's 5 ms, a key that passes through reader, event
loop and writer waits three times behind whatever thread is indexing or streaming."""


_told_to_end = threading.Event()


def is_told_to_end() -> bool:
    """Return whether a signal has told the app to end, which it does once it gets to it."""
    return _told_to_end.is_set()


class SignalWatch:
    """Signal handlers that save and then exit, plus a watchdog thread for when that hangs.

    The handlers are Python's own, not the event loop's: once its terminal is gone, the loop can be
    stuck in a write. The main thread can be stuck too, on a disk that doesn't respond; then Python
    never calls a handler. And if the terminal goes away without a signal, the key reader would read
    end-of-file for ever. So a thread watches for all three, and ends the process if exiting takes
    too long. `save` is called at once in the main thread, `leave` on the event loop with the exit
    code.
    """

    def __init__(self, save: Callable[[], None], leave: Callable[[int], None]) -> None:
        self._save = save
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._before: dict[int, Any] = {}
        _told_to_end.clear()
        # Only the main thread may set handlers; an app in another thread belongs to a test.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
            self._wakeup_reader, self._wakeup_writer = os.pipe()
            os.set_blocking(self._wakeup_writer, False)
            signal.set_wakeup_fd(self._wakeup_writer, warn_on_full_buffer=False)
            threading.Thread(target=self._watch, name="signals", daemon=True).start()

    def stop(self) -> None:
        """Restore the previous signal handlers."""
        if self._before:
            signal.set_wakeup_fd(-1)
            os.close(self._wakeup_writer)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def leaving(self) -> None:
        """Let Ctrl+Z stop the process no more: once stopped, it would end at no signal."""
        if self._before:
            # No child may inherit that it is ignored; the next app's driver sets its own handler.
            signal.signal(signal.SIGTSTP, lambda *_: None)

    def _on_signal(self, number: int, _frame: FrameType | None = None) -> None:
        _told_to_end.set()
        self.leaving()
        self._save()
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._leave, 128 + number)

    def _watch(self) -> None:
        """Wait for a terminating signal or `stop`; after a signal, kill a process that lingers."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # makes `sigpending` show the process's
        poll = select.poll()
        poll.register(self._wakeup_reader, select.POLLIN)
        if stat.S_ISCHR(os.fstat(0).st_mode):  # `isatty` is already false after a hangup
            poll.register(0, 0)  # POLLHUP is reported without being asked for
        pending: set[int] = set()
        number = 0
        while number not in _SIGNALS:
            events = dict(poll.poll(_POLL_SECONDS * 1000))
            before, pending = pending, {*signal.sigpending()}
            if events.get(0, 0) & select.POLLHUP:
                number = signal.SIGHUP
                with contextlib.suppress(RuntimeError):  # the loop has ended already
                    self._loop.call_soon_threadsafe(self._on_signal, number)
            elif self._wakeup_reader in events:  # one byte, its number, per signal that arrives
                data = os.read(self._wakeup_reader, 1)
                if not data:
                    os.close(self._wakeup_reader)
                    return
                number = data[0]
            else:
                number = min(before & pending, default=0)
        time.sleep(_PATIENCE_SECONDS)
        modes.turn_off()
        modes.say("kbtui: Ended, though a part of it didn't answer. The draft is kept.")
        os._exit(128 + number)


class DiskWatch:
    """A watchdog for an unresponsive disk: warns the user, and doesn't let it block the exit.

    Threads blocked on such a disk can't be ended, and Python joins them on exit. The disk counts as
    unresponsive after `patience` seconds; `tell` is called from the watchdog's thread.
    """

    def __init__(
        self, folder: Callable[[], Path], tell: Callable[[str], None], patience: float = 3.0
    ) -> None:
        self._folder = folder
        self._tell = tell
        self._patience = patience
        self._stopped = threading.Event()
        self._is_leaving = threading.Event()
        threading.Thread(target=self._watch, name="disk", daemon=True).start()

    def leaving(self) -> None:
        """Kill the process from now on if the disk is unresponsive."""
        self._is_leaving.set()

    def stop(self) -> None:
        """Stop the watchdog."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.is_set():
            answered = threading.Event()
            threading.Thread(target=self._probe, args=(answered,), daemon=True).start()
            is_warned = False
            while not answered.wait(self._patience) and not self._stopped.is_set():
                if self._is_leaving.is_set() and not self._stopped.wait(_RESTORING_SECONDS):
                    modes.turn_off()
                    modes.say(f"kbtui: {self._warning} Left without waiting for it.")
                    os._exit(StorageError.exit_code)
                if not is_warned:
                    self._tell(
                        f"{self._warning} What reads or writes there waits; you can still quit."
                    )
                    is_warned = True
            if is_warned:
                self._tell(f"The disk with {self._folder()} answers again.")
            self._is_leaving.wait(self._patience)
            self._stopped.wait(self._patience / 10)

    @property
    def _warning(self) -> str:
        return f"The disk with {self._folder()} doesn't answer."

    def _probe(self, answered: threading.Event) -> None:
        with contextlib.suppress(OSError):  # an error is a response too
            os.statvfs(self._folder())
        answered.set()


def collect_rarely() -> None:
    """Make full garbage collections rare; call once, when the app starts.

    A full collection visits every object. With the app, its libraries and 10,000 entries in memory
    that takes 0.1 to 0.6 s, in whichever thread triggers it, and stops all other threads. What was
    imported so far isn't garbage, and isn't looked at: that alone would take 0.05 s now.
    """
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.enable()


def freeze_objects() -> None:
    """Exclude all existing objects from garbage collection; call after loading something large.

    Nearly all of them live until exit. Cyclic garbage that exists now is leaked, a price paid per
    call, so call it at milestones only. Does nothing unless `collect_rarely` was called: then the
    process isn't ours.
    """
    if gc.get_threshold() == _GC_THRESHOLDS:
        gc.freeze()


def collect_when_idle(typed_at: float) -> float:
    """Run a full collection if it is due and the user is idle; call it repeatedly.

    Textual's drawn lines refer to themselves and the widgets of a screen to each other, so only
    full collections free them. If only the rare automatic ones ran, a million such objects would
    pile up, and the process would keep their memory. A collection after 50,000 new objects takes
    about 0.1 s on a busy machine; collections get at most a twentieth of the time.

    Args:
        typed_at: Time of the last key press, in monotonic seconds.

    Returns:
        Seconds until the next call.
    """
    if gc.get_threshold() != _GC_THRESHOLDS or not gc.get_count()[2]:
        return _COLLECT_SECONDS
    idle_in = typed_at + _IDLE_SECONDS - time.monotonic()
    if idle_in > 0:
        return idle_in
    started = time.thread_time()
    gc.collect()
    return max(_COLLECT_SECONDS, 20 * (time.thread_time() - started))


def release_closed_widgets() -> None:
    """Stop a cache of Textual from keeping removed widgets alive; call once, when the app starts.

    The cache of border colours (`StylesCache.get_inner_outer`) has a widget's style cache, and with
    it every line that the widget drew, in each of its 1,000 keys. Replace it by one that is keyed
    by the two colours only.
    """
    from textual._styles_cache import StylesCache

    table: Any = vars(StylesCache).get("get_inner_outer")
    if hasattr(table, "cache_info"):  # otherwise Textual has fixed it
        by_colours: Any = staticmethod(lru_cache(64)(partial(table.__wrapped__, StylesCache)))
        StylesCache.get_inner_outer = by_colours  # type: ignore[method-assign]


def shorten_switch_interval() -> None:
    """Shorten the interpreter's switch interval; call once, when the app starts."""
    sys.setswitchinterval(_SWITCH_SECONDS)


def new_file(title: str, ending: str, text: str, wanted: str = "") -> Path:
    """Write `text` to a new file, never overwriting one.

    Args:
        title: Names the file in a folder, as a slug, numbered if that is taken.
        ending: The extension, without the dot.
        text: The content.
        wanted: The file, or a folder to put it in; empty for the working directory.

    Returns:
        The absolute path of the file.

    Raises:
        UsageError: The named file exists already.
        StorageError: The file can't be written.
    """
    file = Path(wanted).expanduser().absolute() if wanted else Path.cwd()
    if file.is_dir():
        names = (f"{slugify(title)}{number}.{ending}" for number in ("", *range(2, 1000)))
        file = next(free for name in names if not (free := file / name).exists())
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{file} exists already.", "Name another file.") from None
    except OSError as error:
        raise StorageError(f"{file} can't be written: {error.strerror}.", "Name another.") from None
    return file
