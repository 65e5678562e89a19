"""The person's own programs, started from the app, suspended for those that need the terminal.

What they are and how they are run is in `kbtui.programs`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from textual.app import App, SuspendNotSupported
from textual.content import Content
from textual.style import Style

from kbtui import programs
from kbtui.errors import ConfigurationError, StorageError
from kbtui.text import clean_line, enumerated
from kbtui.tui.terminal.process import is_told_to_end
from kbtui.tui.terminal.state import OUTSIDE_PREFIX, state_folder, write_state
from kbtui.workspace.durable import is_alive

if TYPE_CHECKING:
    from kbtui.programs import Copied, Edited

_Result = TypeVar("_Result")
_LOOK_SECONDS = 0.5
_IN_ADDRESSES = "!#$%&'()*+,/:;=?@[]~"  # what `quote` leaves as it is


def in_terminal(app: App[object], work: Callable[[], _Result]) -> _Result:
    """Suspend the app, call `work`, and resume the app whatever it raises.

    Raises:
        ConfigurationError: This app has no terminal to give, or is told to end.
    """
    # `App.suspend` doesn't resume after an error in its block, so none may leave it.
    result: list[_Result] = []
    raised: BaseException | None = None
    try:
        with app.suspend():
            try:
                result.append(_unless_ending(work))
            except BaseException as error:  # noqa: BLE001 - raised again below
                raised = error
    except SuspendNotSupported:
        raise ConfigurationError("There is no terminal here for another program.") from None
    if raised is not None:
        raise raised
    return result[0]


def _unless_ending(work: Callable[[], _Result]) -> _Result:
    if is_told_to_end():
        raise ConfigurationError("Nothing more is started: kbtui is told to end.")
    return work()


def edit_file(app: App[object], file: Path) -> Edited:
    """Suspend the app and edit a file in the person's editor.

    Raises:
        ConfigurationError: There is no such editor.
        StorageError: The editor can't be started, or the file can't be read.
    """
    command = programs.editor_command()  # asked first: the screen need not flash for a sentence
    return in_terminal(app, lambda: programs.edit(file, command))


class TextCopy:
    """A text in a file of its own, for an editor; it stays until nothing can be saved there.

    An editor with a window may return at once and save later, even after kbtui has ended: then the
    next kbtui takes what is in the file (`take_saved_later`).

    Attributes:
        file: The file, private to the user.
        text: What is known to be in it.
    """

    def __init__(self, folder: Path, text: str) -> None:
        """Write `text` to a new file in `folder`.

        Raises:
            StorageError: It can't be written.
        """
        self.file = folder / f"{OUTSIDE_PREFIX}{os.getpid()}-{secrets.token_hex(4)}.md"
        self.text = text
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "wb") as stream:
                stream.write(text.encode("utf-8", "surrogateescape"))
            self.taken(text)
        except OSError as error:
            raise StorageError(
                f"The text can't be handed to an editor: {error.strerror}."
            ) from None

    def read(self) -> str:
        """Return what is in the file, without line breaks at its end; if it is gone, `text`."""
        return _read(self.file, self.text)

    def taken(self, text: str) -> None:
        """Note that `text`, read from the file, is in kbtui now."""
        self.text = text
        write_state(_taken_file(self.file), _name_of(text))

    def drop(self) -> None:
        """Delete the file."""
        _delete(self.file)

    async def wait_until_saved(self) -> str:
        """Wait until the file differs from `text` and is complete, and return what is in it."""
        before = None
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            state = await asyncio.to_thread(_state_of, self.file)
            if state is not None and state == before:  # nothing was written since the last look
                text = await asyncio.to_thread(self.read)
                if text.rstrip("\n") != self.text.rstrip("\n"):
                    return text
            before = state


def take_saved_later(files: Iterable[Path], keep: Callable[[str], object]) -> str:
    """Return what editors have saved in those files of processes that ended before.

    It is passed to `keep` before the files are deleted.
    """
    texts = {file: _read(file, "") for file in sorted(files) if _is_left(file)}
    saved = "\n\n".join(text for file, text in texts.items() if _is_new(file, text))
    if saved:
        keep(saved)
    for file in texts:
        _delete(file)
    return saved


def _is_left(file: Path) -> bool:
    process = file.name.removeprefix(OUTSIDE_PREFIX).partition("-")[0]
    return process.isdecimal() and not is_alive(int(process))


def _is_new(file: Path, text: str) -> bool:
    """Return whether `text` isn't what kbtui had last written to the file or read from it."""
    with contextlib.suppress(OSError):
        return bool(text.strip()) and _name_of(text) != _taken_file(file).read_text("utf-8")
    return bool(text.strip())


def _taken_file(file: Path) -> Path:
    return file.with_suffix(".taken")


def _name_of(text: str) -> str:
    return hashlib.sha256(text.rstrip("\n").encode("utf-8", "surrogateescape")).hexdigest()


def _read(file: Path, otherwise: str) -> str:
    try:
        return file.read_text("utf-8", "replace").rstrip("\n")
    except OSError:
        return otherwise


def _state_of(file: Path) -> tuple[int, int, int] | None:
    with contextlib.suppress(OSError):
        stat = file.stat()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino
    return None


def _delete(file: Path) -> None:
    for each in (file, _taken_file(file)):
        with contextlib.suppress(OSError):
            each.unlink()


# Links and documents


async def open_outside(app: App[object], target: str) -> str:
    """Open an address or a file in a browser or viewer; return why that isn't possible, or "".

    A text browser, which only BROWSER can name, gets the terminal.
    """
    choices = programs.openers(target)
    if choices and choices[0].in_terminal:
        command = choices[0].command
        try:
            status = in_terminal(app, lambda: programs.run_in_terminal(command))
        except OSError as error:
            return f"{command[0]!r} can't be started: {error.strerror}."
        return f"{command[0]!r} ended with exit code {status}." if status else ""
    return await asyncio.to_thread(programs.open_in_window, choices)


def can_open(target: str) -> bool:
    """Return whether there is a program here that may open an address or a file."""
    return bool(programs.openers(target))


def address(url: str) -> Content:
    """Return an address to show, as a link of the terminal where it has those (OSC 8)."""
    shown = clean_line(url)
    if not programs.has_links(os.environ) or "://" not in shown:
        return Content(shown)
    return Content.styled(shown, Style(link=quote(shown, safe=_IN_ADDRESSES)))


# The clipboard


def copy(text: str) -> tuple[str, str]:
    """Copy a text by all ways that there are; blocks, so call it in a thread.

    Returns:
        What to say: what has the text by its own answer, never what may have it. And the sequence
        that is to be written to the terminal.
    """
    copied = programs.copy(text)
    return _said_of(text, copied), copied.sequence


def _said_of(text: str, copied: Copied) -> str:
    count = f"{len(text):,} characters"
    if copied.reached:
        return f"Copied {count} to {enumerated(copied.reached)}"
    if copied.sequence:
        return f"Sent {count} to the terminal, which may put them into its clipboard"
    file = state_folder() / "clipboard.txt"
    if write_state(file, text):
        return f"Copied {count} into {file}: no clipboard can be reached from here"
    return "Could not copy: no way to a clipboard works here."
