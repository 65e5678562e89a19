"""The entry point: starts the app or a command, importing only what that needs."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence

COMPLETION_VARIABLE = "_KBTUI_COMPLETE"
INTERRUPTED = 130
_DUMB_TERMINALS = ("dumb", "unknown")


def main() -> int:
    """Run the app, or a command if one is given, and return the exit code."""
    try:
        return _main()
    except KeyboardInterrupt:  # during an import, for example
        return INTERRUPTED


def _main() -> int:
    _ensure_utf8()
    argv = sys.argv[1:]
    if COMPLETION_VARIABLE not in os.environ and _is_for_app(argv):
        return _app(_workspace_argument(argv))
    from kbtui.cli.root import run

    return run(argv)


def _ensure_utf8() -> None:
    """Restart in Python's UTF-8 mode if the locale can't encode every file name.

    Output stays in the locale's encoding, which is the terminal's.
    """
    if sys.getfilesystemencoding() == "utf-8" or sys.flags.utf8_mode:
        return
    if sys.stdout is not None:
        os.environ.setdefault("PYTHONIOENCODING", f"{sys.stdout.encoding}:replace")
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606


def _is_for_app(argv: Sequence[str]) -> bool:
    """Return whether the arguments are empty or only name a workspace, by path or option."""
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
    """Return whether an argument is certainly a path, not the name of a command."""
    return argument in {".", "..", "~"} or (os.sep in argument and not argument.startswith("-"))


def _workspace_argument(argv: Sequence[str]) -> str | None:
    if not argv:
        return None
    first = argv[0]
    if len(argv) == 2 or _is_path(first):
        return argv[-1]
    return first.partition("=")[2] if first.startswith("--") else first[2:]


def _app(workspace: str | None) -> int:
    """Run the app; an error is reported in a sentence after the terminal is restored."""
    # A stream is None if the parent process closed it.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        sys.stderr.write(
            "kbtui: The app needs a terminal, and standard input or output is none.\n"
            "  In a script use a command; `kbtui --help` lists them.\n"
        )
        return 2
    if (terminal := os.environ.get("TERM", "")) in _DUMB_TERMINALS:
        sys.stderr.write(
            f"kbtui: The app can't draw on this terminal: TERM is {terminal}.\n"
            "  `kbtui chat --plain` is a conversation line by line, and `kbtui --help` lists the"
            " other commands.\n  If it can do more, say so: TERM=xterm-256color kbtui\n"
        )
        return 2
    from kbtui.tui.terminal import first_keys

    try:
        with first_keys.raw_terminal():
            return _run_app(workspace)
    except Exception as error:  # noqa: BLE001 - the last resort; `report` logs the traceback
        from kbtui.cli.output import report

        return report(error)


def _run_app(workspace: str | None) -> int:
    gc.disable()  # imports create no garbage; `collect_rarely` enables it again
    if workspace is None:
        from kbtui.tui.app.app import run_app

        return run_app(None)
    from pathlib import Path

    from kbtui.workspace.opening import NotAnsweringError, find_workspace

    named = Path(workspace).expanduser()
    with contextlib.suppress(NotAnsweringError):  # the app shows a message and waits
        find_workspace(named, patience=1.0)
    from kbtui.tui.app.app import run_app

    return run_app(named)


if __name__ == "__main__":
    raise SystemExit(main())
