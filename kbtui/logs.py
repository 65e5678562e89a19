"""The rotating log file in the platform's log directory.

Modules log through ``logging.getLogger(__name__)``; nothing reaches the terminal, which belongs
to the app or to a command's output. Secrets are redacted from every line.
"""

from __future__ import annotations

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

import platformdirs

from kbtui.redaction.redact import redact

_ROOT = logging.getLogger("kbtui")


def log_file() -> Path:
    """Return the path of the log, whether or not it exists yet."""
    return platformdirs.user_log_path("kbtui", appauthor=False) / "kbtui.log"


def start_logging(level: str = "info") -> None:
    """Log to `log_file`; a second call only changes the level.

    If the log can't be written (no space, no permission), logging is disabled silently: it must
    never keep anybody from reading their notes.
    """
    _ROOT.setLevel(level.upper())
    _ROOT.propagate = False
    if _ROOT.handlers:
        return
    try:
        _ROOT.addHandler(_file_handler(log_file()))
    except OSError:
        _ROOT.addHandler(logging.NullHandler())


def _file_handler(file: Path) -> logging.Handler:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handler = _OwnersFileHandler(
        file, maxBytes=2_000_000, backupCount=3, encoding="utf-8", delay=True
    )
    handler.setFormatter(
        _RedactingFormatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    )
    return handler


class _RedactingFormatter(logging.Formatter):
    """Redacts secrets from the formatted text, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record)).text


class _OwnersFileHandler(RotatingFileHandler):
    """Creates its file readable by its owner only, and never raises."""

    def _open(self) -> TextIOWrapper:
        os.close(os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Ignore the error; printing it would corrupt the screen."""
