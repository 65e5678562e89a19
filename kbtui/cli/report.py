"""How an error reaches the person at the command line: a sentence, a hint, an exit code."""

from __future__ import annotations

import logging
import sys

from kbtui.errors import KbtuiError
from kbtui.text import clean, clean_line

INTERRUPTED = 130
UNEXPECTED = 1


def complain(message: str, hint: str = "") -> None:
    """Write ``kbtui: message`` and, on a line of its own, what to do about it."""
    sys.stderr.write(f"kbtui: {clean_line(message)}\n")
    if hint:
        sys.stderr.write(f"  {clean(hint).strip()}\n")
    sys.stderr.flush()


def report(error: Exception) -> int:
    """Say what went wrong and give the exit code; what nobody foresaw goes into the log whole."""
    if isinstance(error, KbtuiError):
        complain(error.message, error.hint)
        return error.exit_code
    from kbtui.logs import log_file, start_logging

    start_logging()
    logging.getLogger("kbtui").error("unexpected", exc_info=error)
    what = clean_line(str(error))[:200]
    complain(
        f"Something unexpected happened: {type(error).__name__}{': ' if what else ''}{what}",
        f"Your notes are as they were. The details are in {log_file()}.",
    )
    return UNEXPECTED
