"""Writing in the person's own editor, with the app out of the way."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import App

_FALLBACKS = ("nano", "vim", "vi")


def editor_command(environment: Mapping[str, str] | None = None) -> list[str]:
    """The editor that VISUAL or EDITOR name, else one that is there.

    Raises:
        ConfigurationError: none is set and none is installed.
    """
    environment = os.environ if environment is None else environment
    for name in ("VISUAL", "EDITOR"):
        with contextlib.suppress(ValueError):  # a quotation mark without its other half
            words = shlex.split(environment.get(name, ""))
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
