"""``python -m kbtui`` and the console script: picks the app or a command, importing only that."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_WORKSPACE_OPTIONS = ("-w", "--workspace")


def main() -> int:
    """Start the app when no command is named, else run the command line."""
    arguments = sys.argv[1:]
    wanted, workspace = _app_wanted(arguments)
    if wanted and sys.stdin.isatty() and sys.stdout.isatty():
        from kbtui.tui.app import run_app

        return run_app(workspace)
    from kbtui.cli.root import run

    return run(arguments)


def _app_wanted(arguments: list[str]) -> tuple[bool, Path | None]:
    """Whether these arguments name no command, and the workspace that they name."""
    from pathlib import Path

    if not arguments:
        return True, None
    option, _, value = arguments[0].partition("=")
    if len(arguments) == 1 and option == "--workspace" and value:
        return True, Path(value)
    if len(arguments) == 2 and arguments[0] in _WORKSPACE_OPTIONS:  # noqa: PLR2004
        return True, Path(arguments[1])
    return False, None


if __name__ == "__main__":
    raise SystemExit(main())
