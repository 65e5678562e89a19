"""``python -m kbtui`` and the console script: picks the app or a command, importing only that."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence

COMPLETION_VARIABLE = "_KBTUI_COMPLETE"
INTERRUPTED = 130


def main() -> int:
    """Start the app when no command is named, else run the command line; gives the exit code."""
    try:
        return _main()
    except KeyboardInterrupt:  # while something is imported, say
        return INTERRUPTED


def _main() -> int:
    _see_to_utf8()
    argv = sys.argv[1:]
    if COMPLETION_VARIABLE not in os.environ and _names_no_command(argv):
        return _app(_named_workspace(argv))
    from kbtui.cli.root import run

    return run(argv)


def _see_to_utf8() -> None:
    """Start again in Python's UTF-8 mode where a locale can't name every note's file.

    What is written stays in the locale's encoding, which is the terminal's.
    """
    if sys.getfilesystemencoding() == "utf-8" or sys.flags.utf8_mode:
        return
    if sys.stdout is not None:
        os.environ.setdefault("PYTHONIOENCODING", f"{sys.stdout.encoding}:replace")
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606


def _names_no_command(argv: Sequence[str]) -> bool:
    """True if there is nothing but, perhaps, a workspace: its path, or the option with it."""
    if not argv:
        return True
    first = argv[0]
    if len(argv) == 1 and _is_path(first):
        return True
    if first in {"-w", "--workspace"}:
        return len(argv) == 2  # the option and its value
    attached = first.startswith("--workspace=") or (first[:2] == "-w" and len(first) > 2)
    return attached and len(argv) == 1


def _is_path(argument: str) -> bool:
    """True of what can only be a path: no command has such a name."""
    return argument in {".", "..", "~"} or (os.sep in argument and not argument.startswith("-"))


def _named_workspace(argv: Sequence[str]) -> str | None:
    if not argv:
        return None
    first = argv[0]
    if len(argv) == 2 or _is_path(first):
        return argv[-1]
    return first.partition("=")[2] if first.startswith("--") else first[2:]


def _app(workspace: str | None) -> int:
    """Show the app; whatever stops it is said in a sentence, on the restored terminal."""
    # A stream is None where a parent process closed it.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        sys.stderr.write(
            "kbtui: The app needs a terminal, and standard input or output is none.\n"
            "  In a script use a command; `kbtui --help` lists them.\n"
        )
        return 2
    from kbtui.tui.terminal import first_keys

    try:
        with first_keys.kept():
            return _run_app(workspace)
    except Exception as error:  # noqa: BLE001  # the last line of defence; it is logged whole
        from kbtui.cli.output import report

        return report(error)


def _run_app(workspace: str | None) -> int:
    gc.disable()  # what is imported stays; `collect_rarely` begins again
    if workspace is None:
        from kbtui.tui.app.app import run_app

        return run_app(None)
    from pathlib import Path

    from kbtui.workspace.opening import NotAnsweringError, find_workspace

    named = Path(workspace).expanduser()
    with contextlib.suppress(NotAnsweringError):  # the app says so, and waits
        find_workspace(named, patience=1.0)
    from kbtui.tui.app.app import run_app

    return run_app(named)


if __name__ == "__main__":
    raise SystemExit(main())
