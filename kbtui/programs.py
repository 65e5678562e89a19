"""The person's own programs: the editor, the browser, a viewer, the clipboard's tools.

All of them are started here, in one of two ways. A program that needs the terminal gets it
(`run_in_terminal`): an editor, a text browser. Every other one gets nothing of it, no session and
no stream (`open_in_window`, `copy`), so that what it starts in turn can't draw over what is there.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

from kbtui.child_process import start_detached
from kbtui.errors import ConfigurationError, StorageError

_NO_TERMINAL = frozenset({"dumb", "linux", "unknown", ""})
"""Values of TERM of terminals that know neither OSC 52 nor OSC 8."""


# The terminal

_ENDING = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU")
"""Signals that end a process, if the system has them, but for Ctrl+C and Ctrl+\\."""


def run_in_terminal(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> int:
    r"""Run a program in the foreground and return its exit code, 128 + N for signal N.

    Ctrl+C and Ctrl+\ are left to the program, which shares them with this process; a signal at
    which this process saves and ends goes on to the program, for which it would wait otherwise. The
    terminal is afterwards as it was, even if the program was killed.

    Raises:
        OSError: It can't be started.
    """
    with (
        _Shared() as shared,
        _terminal_kept(),
        subprocess.Popen(command, env=environment, cwd=folder) as program,
    ):
        shared.begin(program)
        try:
            status = program.wait()
        except BaseException:
            program.kill()
            raise
    return status if status >= 0 else 128 - status


class _Shared:
    """The signals while a program is in front: those of keys are its own, the others go on to it.

    Only the main thread may set handlers; in any other nothing changes.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._pipe = -1
        self._program: subprocess.Popen[bytes] | None = None
        self._arrived: list[int] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        # Handlers, because a child would inherit that a signal is ignored. Whoever is told of
        # signals by a pipe would leave at Ctrl+C, so is told here of the others.
        self._pipe = signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGQUIT):
            self._before[number] = signal.signal(number, lambda *_: None)
        for number in filter(None, (getattr(signal, name, None) for name in _ENDING)):
            if callable(signal.getsignal(number)):
                self._before[number] = signal.signal(number, self._pass_on)
        return self

    def begin(self, program: subprocess.Popen[bytes]) -> None:
        """Pass signals on to a program, and those that came before it had begun."""
        self._program = program
        for number in self._arrived:
            program.send_signal(number)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._arrived.append(number)
        if self._program is not None:
            self._program.send_signal(number)
        if self._pipe >= 0:
            with contextlib.suppress(OSError):  # full, or closed
                os.write(self._pipe, bytes([number]))
        self._before[number](number, frame)

    def __exit__(self, *_: object) -> None:
        if not self._before:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """Restore the attributes of the terminal after the block, unless a pager shares it."""
    import termios

    try:
        attributes = termios.tcgetattr(0) if os.isatty(1) else None
    except termios.error:
        attributes = None
    if attributes is None:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, attributes)


# The editor

_FALLBACKS = ("nano", "vim", "vi")
_AT_ONCE_SECONDS = 2.0


class Edited(NamedTuple):
    """What became of a file in an editor."""

    editor: str
    status: int
    """The exit code; if it isn't 0, what is in the file isn't to be used."""
    changed: bool
    seconds: float

    @property
    def failure(self) -> str:
        """The sentence about an editor that failed; empty if it didn't."""
        if not self.status:
            return ""
        return f"The editor {self.editor!r} ended with exit code {self.status}."

    @property
    def at_once(self) -> str:
        """The sentences about one that returned too soon for a person to have edited, or ""."""
        if self.status or self.changed or self.seconds >= _AT_ONCE_SECONDS:
            return ""
        return (
            f"The editor {self.editor!r} returned at once, and nothing was changed. If it has a"
            " window, set EDITOR to one that waits until you close the file: `code --wait`."
        )


def editor_command() -> list[str]:
    """Return the command line of the editor in VISUAL or EDITOR, or of one that is installed.

    Raises:
        ConfigurationError: It isn't there, or none is.
    """
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(os.environ.get(name, ""))
        except ValueError as error:
            raise ConfigurationError(f"{name} can't be read: {error}.", "Set it anew.") from None
        if words:
            return _found([*map(_expanded, words)], name)
    for name in _FALLBACKS:
        if shutil.which(name):
            return [name]
    raise ConfigurationError("No editor is set.", "Set EDITOR, for example: export EDITOR=nano")


def _expanded(word: str) -> str:
    """Expand ``~`` and variables, as the shell does where it is given an editor."""
    return os.path.expandvars(os.path.expanduser(word))  # noqa: PTH111 - it need not be a path


def _found(command: list[str], setting: str) -> list[str]:
    program = command[0]
    if setting == "VISUAL":
        setting += ", which goes before EDITOR,"
    if shutil.which(program):
        return command
    if Path(program).exists():
        raise ConfigurationError(
            f"The editor {program!r} can't be started: it is no program that you may run.",
            f"Set {setting} to one that is.",
        )
    raise ConfigurationError(
        f"The editor {program!r} is not installed.",
        f"Install it, or set {setting} to one that is.",
    )


def edit(file: Path, command: Sequence[str] | None = None) -> Edited:
    """Run the person's editor on a file in the terminal.

    Args:
        file: The file.
        command: The editor, if `editor_command` was asked before.

    Raises:
        ConfigurationError: There is no such editor.
        StorageError: The editor can't be started, or the file can't be read.
    """
    command = editor_command() if command is None else command
    before, started = _digest(file), time.monotonic()
    try:
        status = run_in_terminal([*command, str(file)])
    except OSError as error:
        raise StorageError(
            f"The editor {command[0]!r} can't be started: {error.strerror}.",
            "Set EDITOR to the program that you edit text with.",
        ) from None
    seconds = time.monotonic() - started
    return Edited(Path(command[0]).name, status, _digest(file) != before, seconds)


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StorageError(f"{file} can't be read: {error.strerror}.") from None


# Windows: the browser, and what the desktop opens a file with

_STARTED_SECONDS = 1.5
"""Seconds after which a program that still runs counts as started."""
_TEXT_BROWSERS = frozenset(
    {"browsh", "carbonyl", "cha", "elinks", "links", "links2", "lynx", "w3m", "www-browser"}
)


class Opener(NamedTuple):
    """A command that opens an address or a file, and whether it needs the terminal."""

    command: list[str]
    in_terminal: bool = False


def openers(
    target: str, environment: Mapping[str, str] | None = None, platform: str = sys.platform
) -> list[Opener]:
    """Return what can open an address or a file here, the person's own choice first.

    Without a display there is nothing, unless BROWSER names a program: `webbrowser` of Python and
    `xdg-open` would start any text browser that is installed, on top of the app.
    """
    environment = os.environ if environment is None else environment
    is_address = "://" in target or target.startswith("mailto:")
    chosen = environment.get("BROWSER", "") if is_address else ""
    found = []
    for each in filter(None, chosen.split(os.pathsep)):
        with contextlib.suppress(ValueError):  # an unbalanced quotation mark
            words = [*map(_expanded, shlex.split(each))]
            takes = any("%s" in word for word in words)
            filled = [word.replace("%s", target) for word in words]
            command = filled if takes else [*filled, target]
            found.append(Opener(command, Path(command[0]).name in _TEXT_BROWSERS))
    found += [Opener([*words, target]) for words in _desktop(environment, platform)]
    return [each for each in found if shutil.which(each.command[0])]


def _desktop(environment: Mapping[str, str], platform: str) -> Iterator[list[str]]:
    if platform == "darwin":
        yield ["open"]
    if environment.get("WSL_DISTRO_NAME"):
        yield ["wslview"]
    if environment.get("TERMUX_VERSION"):
        yield ["termux-open"]
    if has_display(environment):
        yield ["xdg-open"]
        yield ["gio", "open"]


def has_display(environment: Mapping[str, str]) -> bool:
    """Return whether there is a desktop that can show a window."""
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def has_links(environment: Mapping[str, str]) -> bool:
    """Return whether a link in the terminal (OSC 8) does no harm there."""
    return environment.get("TERM", "") not in _NO_TERMINAL


def open_in_window(choices: Sequence[Opener]) -> str:
    """Start the first of some programs that works, without the terminal; takes up to 1.5 s each.

    Returns:
        Why none works, as a sentence; empty if one does.
    """
    why_not = "No program is there that could open it."
    for command in (each.command for each in choices if not each.in_terminal):
        try:
            process = start_detached(command, os.environ)
        except OSError as error:
            why_not = f"{command[0]!r} can't be started: {error.strerror}."
            continue
        try:
            status = process.wait(_STARTED_SECONDS)
        except subprocess.TimeoutExpired:
            threading.Thread(target=process.wait, name="window", daemon=True).start()
            return ""
        if not status:
            return ""
        why_not = f"{Path(command[0]).name!r} ended with exit code {status}."
    return why_not


# The clipboard

_TIMEOUT_SECONDS = 2.0
_OSC52_LIMIT_BYTES = 74_000  # bytes before encoding; terminals cut the sequence at about 100,000
_SCREEN_BYTES = 500  # GNU screen drops longer pieces


class Copied(NamedTuple):
    """Where a text was copied to.

    Attributes:
        reached: What answered that it has the text, in words.
        sequence: What is to be written to the terminal, which never answers; empty if it knows no
            such sequence, or the text is too long for it.
    """

    reached: tuple[str, ...] = ()
    sequence: str = ""


def copy(text: str, environment: Mapping[str, str] | None = None) -> Copied:
    """Copy `text` by all ways that there are here; each program has 2 s.

    The desktop's clipboard, tmux's buffer and the terminal are different places: over SSH the
    desktop is another machine's, and many terminals don't do what tmux passes on to them.
    """
    environment = os.environ if environment is None else environment
    data = text.encode("utf-8", "replace")
    reached = []
    for command in _clipboard_tools(environment):
        if _feed(command, data):
            reached.append(f"the clipboard ({command[0]})")
            break
    passed_on = False
    if environment.get("TMUX"):
        # -w passes it on to the terminal; tmux before 3.2 doesn't know it.
        passed_on = _feed(["tmux", "load-buffer", "-w", "-"], data)
        if passed_on or _feed(["tmux", "load-buffer", "-"], data):
            reached.append("tmux's buffer")
    is_short = len(data) <= _OSC52_LIMIT_BYTES and environment.get("TERM", "") not in _NO_TERMINAL
    sequence = "" if passed_on or not is_short else _osc52(data, environment)
    return Copied(tuple(reached), sequence)


def _clipboard_tools(
    environment: Mapping[str, str], platform: str = sys.platform
) -> Iterator[list[str]]:
    """Yield the commands that may reach the desktop's clipboard, the most reliable first."""
    if environment.get("WAYLAND_DISPLAY"):
        yield ["wl-copy"]
    if environment.get("DISPLAY"):
        yield ["xclip", "-selection", "clipboard", "-in"]
        yield ["xsel", "--clipboard", "--input"]
    if platform == "darwin":
        yield ["pbcopy"]
    if environment.get("TERMUX_VERSION"):
        yield ["termux-clipboard-set"]


def _feed(command: Sequence[str], data: bytes) -> bool:
    if not shutil.which(command[0]):
        return False
    try:
        process = subprocess.run(
            command,
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
            check=False,
            start_new_session=True,  # who serves the clipboard outlives the terminal
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0


def _osc52(data: bytes, environment: Mapping[str, str]) -> str:
    """Return the sequence that asks the terminal to copy, through GNU screen and tmux."""
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    if environment.get("TMUX"):
        # tmux takes it itself, or passes it on, whichever it is set to.
        return f"{sequence}\x1bPtmux;\x1b{sequence}\x1b\\"
    if environment.get("STY"):
        starts = range(0, len(sequence), _SCREEN_BYTES)
        return "".join(f"\x1bP{sequence[at : at + _SCREEN_BYTES]}\x1b\\" for at in starts)
    return sequence
