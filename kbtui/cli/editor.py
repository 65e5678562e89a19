"""The person's own editor, on a copy that outlives a failure."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def edited_copy(text: str, name: str) -> Iterator[str]:
    """Let the person edit `text` in a file called `name`; yields what they made of it.

    When the block ends well the copy goes, otherwise the error says where it is.

    Raises:
        UsageError: The editor can't be started, or ended with a failure.
    """
    copy = Path(tempfile.mkdtemp(prefix="kbtui-")) / name
    copy.write_text(text, "utf-8", newline="")
    try:
        run_editor(copy)
        yield copy.read_bytes().decode("utf-8", "replace")
    except KbtuiError as error:
        error.hint = f"{error.hint} What you wrote is in {copy}.".strip()
        raise
    remove_copy(copy)


def run_editor(file: Path) -> None:
    """Run ``$VISUAL``, ``$EDITOR`` or ``vi`` on a file, and wait for its end.

    Raises:
        UsageError: It can't be started, or ended with a failure.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        done = subprocess.run([*shlex.split(command), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The editor {command!r} can't be started: {error}.",
            "Set EDITOR to the program that you edit text with.",
        ) from error
    if done.returncode != 0:
        raise UsageError(
            f"The editor {command!r} ended with status {done.returncode}; nothing was recorded."
        )


def remove_copy(copy: Path) -> None:
    """Remove a copy and the folder that was made for it."""
    copy.unlink(missing_ok=True)
    copy.parent.rmdir()
