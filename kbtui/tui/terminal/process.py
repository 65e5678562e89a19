"""The process of the app and what it asks of others: signals, threads, editor, clipboard."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

from textual.app import App

from kbtui.errors import ConfigurationError, StorageError, UsageError
from kbtui.text import slugify
from kbtui.tui.terminal.state import state_folder, write_state

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PATIENCE_SECONDS = 3.0
_LOOK_SECONDS = 1
_RESTORING_SECONDS = 1.0
_COLLECT_RARELY = (10_000, 5, 40)
"""New objects until the garbage collector visits the youngest, and how many times more for each
older generation."""
_COLLECT_SECONDS = 1.0
_QUIET_SECONDS = 0.25
_SWITCH_SECONDS = 0.001
"""How long a thread may keep the others waiting; with Python's 5 ms, a key that passes the reader,
the event loop and the writer waits three times behind whatever indexes or streams meanwhile."""


class SignalWatch:
    """Saves, then leaves, when the process is told to end; the terminal is restored in any case.

    The handlers are Python's own and not the event loop's: with its terminal gone, the loop can be
    stuck in a write. The main thread can be stuck as well, in a disk that doesn't answer, and then
    no handler is ever called; nor is one where the terminal goes without a signal, and whoever
    reads keys would read its end for ever. So a thread watches, and ends the process where leaving
    takes too long. `save` is called at once, in the main thread, `leave` with an exit code by the
    event loop.
    """

    def __init__(self, save: Callable[[], None], leave: Callable[[int], None]) -> None:
        self._save = save
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._before: dict[int, Any] = {}
        # Signals belong to the main thread; an app that runs in another one is a test's.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._told) for number in _SIGNALS}
            self._told_of, self._tell = os.pipe()
            os.set_blocking(self._tell, False)
            signal.set_wakeup_fd(self._tell, warn_on_full_buffer=False)
            threading.Thread(target=self._watch, name="signals", daemon=True).start()

    def stop(self) -> None:
        """Give the signals back to who had them."""
        if self._before:
            signal.set_wakeup_fd(-1)
            os.close(self._tell)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _told(self, number: int, _frame: FrameType | None = None) -> None:
        self._save()
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._leave, 128 + number)

    def _watch(self) -> None:
        """Wait until the process is told to end, or `stop`; give it a while to do so."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # so that those of the process are seen
        poll = select.poll()
        poll.register(self._told_of, select.POLLIN)
        if stat.S_ISCHR(os.fstat(0).st_mode):  # one that is gone is no terminal any more
            poll.register(0, 0)  # that it is gone is told always
        pending: set[int] = set()
        number = 0
        while number not in _SIGNALS:
            events = dict(poll.poll(_LOOK_SECONDS * 1000))
            untaken, pending = pending, {*signal.sigpending()}
            if events.get(0, 0) & select.POLLHUP:
                number = signal.SIGHUP
                with contextlib.suppress(RuntimeError):  # the loop has ended already
                    self._loop.call_soon_threadsafe(self._told, number)
            elif self._told_of in events:  # the number of each signal that Python takes
                told = os.read(self._told_of, 1)
                if not told:
                    os.close(self._told_of)
                    return
                number = told[0]
            else:
                number = min(untaken & pending, default=0)
        time.sleep(_PATIENCE_SECONDS)
        os._exit(128 + number)


class DiskWatch:
    """Says when the disk of the notes doesn't answer, and lets nobody be kept by it who leaves.

    Threads that wait for such a disk can't be ended, and Python waits for them. An answer may take
    `patience` seconds; `tell` is called in any thread.
    """

    def __init__(
        self, folder: Callable[[], Path], tell: Callable[[str], None], patience: float = 3.0
    ) -> None:
        self._folder = folder
        self._tell = tell
        self._patience = patience
        self._stopped = threading.Event()
        self._leaving = threading.Event()
        threading.Thread(target=self._watch, name="disk", daemon=True).start()

    def leaving(self) -> None:
        """From now on the process ends where the disk doesn't answer."""
        self._leaving.set()

    def stop(self) -> None:
        """Watch no longer."""
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.is_set():
            answered = threading.Event()
            threading.Thread(target=self._ask, args=(answered,), daemon=True).start()
            is_told = False
            while not answered.wait(self._patience) and not self._stopped.is_set():
                if self._leaving.is_set() and not self._stopped.wait(_RESTORING_SECONDS):
                    os.write(2, f"kbtui: {self._silence} Left without waiting for it.\n".encode())
                    os._exit(StorageError.exit_code)
                if not is_told:
                    self._tell(
                        f"{self._silence} What reads or writes there waits; you can still quit."
                    )
                    is_told = True
            if is_told:
                self._tell(f"The disk with {self._folder()} answers again.")
            self._leaving.wait(self._patience)
            self._stopped.wait(self._patience / 10)

    @property
    def _silence(self) -> str:
        return f"The disk with {self._folder()} doesn't answer."

    def _ask(self, answered: threading.Event) -> None:
        with contextlib.suppress(OSError):  # that is an answer
            os.statvfs(self._folder())
        answered.set()


def collect_rarely() -> None:
    """Make full garbage collections rare; called once, when the app starts.

    Each visits every object that there is. With an app, its libraries and 10,000 entries in memory
    that takes 0.1 to 0.6 s, in whichever thread it happens, and no other thread runs meanwhile.
    """
    gc.set_threshold(*_COLLECT_RARELY)
    gc.enable()


def spare_what_stays() -> None:
    """Never again visit what exists now; called after something large was loaded.

    Nearly all of it lives until the end. What is garbage at this moment, and part of a cycle, stays
    in memory: a price paid once for each call, so this is for milestones and not for every day.
    Without `collect_rarely` nothing is done: then the process is somebody else's.
    """
    if gc.get_threshold() == _COLLECT_RARELY:
        gc.freeze()


def collect_in_quiet(typed_at: float) -> float:
    """Make a full collection where it is worth it and nobody waits; called again and again.

    Of what Textual draws each line refers to itself, and all widgets of a screen to each other:
    only full collections free them. Left to the rare ones by themselves a million such objects
    would gather, and the memory that they took stays with the process. One that comes after 50,000
    new objects takes about 0.1 s on a busy machine; they get a twentieth of the time.

    Args:
        typed_at: When the last key came, in monotonic seconds.

    Returns:
        In how many seconds to ask again.
    """
    if gc.get_threshold() != _COLLECT_RARELY or not gc.get_count()[2]:
        return _COLLECT_SECONDS
    quiet_in = typed_at + _QUIET_SECONDS - time.monotonic()
    if quiet_in > 0:
        return quiet_in
    begun = time.thread_time()
    gc.collect()
    return max(_COLLECT_SECONDS, 20 * (time.thread_time() - begun))


def let_go_of_widgets() -> None:
    """Have no table of Textual's keep widgets that are gone; called once, when the app starts.

    The one of the colours around borders has the style cache of a widget in each of its thousand
    keys, and in that are all lines that the widget drew; it goes by the two colours alone.
    """
    from textual._styles_cache import StylesCache

    table: Any = vars(StylesCache).get("get_inner_outer")
    if hasattr(table, "cache_info"):  # else it is mended there
        by_colours: Any = staticmethod(lru_cache(64)(partial(table.__wrapped__, StylesCache)))
        StylesCache.get_inner_outer = by_colours  # type: ignore[method-assign]


def switch_often() -> None:
    """Let no thread keep the others waiting for long; called once, when the app starts."""
    sys.setswitchinterval(_SWITCH_SECONDS)


_FALLBACKS = ("nano", "vim", "vi")


def editor_command() -> list[str]:
    """The editor that VISUAL or EDITOR name, else one that is there.

    Raises:
        ConfigurationError: none is set and none is installed.
    """
    for name in ("VISUAL", "EDITOR"):
        with contextlib.suppress(ValueError):  # a quotation mark without its other half
            words = shlex.split(os.environ.get(name, ""))
            if words:
                return words
    for name in _FALLBACKS:
        if shutil.which(name):
            return [name]
    raise ConfigurationError("No editor is set.", "Set EDITOR, for example: export EDITOR=nano")


def edit_text(app: App[object], text: str) -> str:
    """Let the person edit a text; the app is suspended meanwhile.

    Raises:
        ConfigurationError: there is no such editor.
        StorageError: the text couldn't be handed over.
    """
    try:
        handle, name = tempfile.mkstemp(prefix="kbtui-", suffix=".md")
        file = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            edit_file(app, file)
            return file.read_text("utf-8", "replace").rstrip("\n")
        finally:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"The text couldn't be handed over: {error.strerror}.") from None


def edit_file(app: App[object], file: Path) -> None:
    """Let the person edit a file; the app is suspended meanwhile.

    Raises:
        ConfigurationError: there is no such editor.
        StorageError: it couldn't be started.
    """
    command = editor_command()
    try:
        with app.suspend():
            subprocess.run([*command, str(file)], check=False)
    except FileNotFoundError:
        raise ConfigurationError(
            f"The editor {command[0]!r} is not installed.", "Set EDITOR to one that is."
        ) from None
    except OSError as error:
        raise StorageError(f"The editor could not be started: {error.strerror}.") from None


_TIMEOUT_SECONDS = 2.0
_OSC52_LIMIT_BYTES = 74_000  # bytes before encoding; terminals cut the sequence at about 100,000
_DUMB = frozenset({"dumb", "linux", "unknown", ""})


@dataclass(frozen=True, slots=True)
class Copied:
    """Which way was taken; `osc52` asks the caller to write the terminal's sequence itself."""

    way: str
    osc52: bool = False


def programs(environment: Mapping[str, str], platform: str = sys.platform) -> Iterator[list[str]]:
    """The commands that may reach a clipboard here, the surest first."""
    if environment.get("TMUX"):
        yield ["tmux", "load-buffer", "-w", "-"]
    if environment.get("WAYLAND_DISPLAY"):
        yield ["wl-copy"]
    if environment.get("DISPLAY"):
        yield ["xclip", "-selection", "clipboard", "-in"]
        yield ["xsel", "--clipboard", "--input"]
    if platform == "darwin":
        yield ["pbcopy"]


def copy(text: str, environment: Mapping[str, str] | None = None) -> Copied | None:
    """Copy `text`, for 2 s at most a program; the way that was taken, None: not even a file."""
    environment = os.environ if environment is None else environment
    data = text.encode("utf-8", "replace")
    for command in programs(environment):
        if shutil.which(command[0]) and _feed(command, data):
            return Copied(f"with {command[0]}")
    if environment.get("TERM", "") not in _DUMB and len(data) <= _OSC52_LIMIT_BYTES:
        return Copied("through the terminal", osc52=True)
    file = state_folder() / "clipboard.txt"
    return Copied(f"into {file}") if write_state(file, text) else None


def _feed(command: list[str], data: bytes) -> bool:
    try:
        done = subprocess.run(
            command,
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def new_file(title: str, ending: str, text: str, wanted: str = "") -> Path:
    """Write a file that wasn't there: the one that is `wanted`, in that folder, or in this one.

    Returns:
        The file. Nothing is ever overwritten.

    Raises:
        UsageError: The named file is there already.
        StorageError: It can't be written.
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
