"""``python -m kbtui`` and the console script: picks the app or a command, importing only that."""

from __future__ import annotations

import sys


def main() -> int:
    """Start the app when no command is named, else run the command line."""
    from kbtui.cli.root import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
