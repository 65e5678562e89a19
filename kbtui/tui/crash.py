"""What is left of a defect: a full report in the log, and one sentence for the person."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


def report_crash(error: BaseException) -> str:
    """Log where it happened, without the values of any variable; returns what to say.

    Values are left out because they may hold what somebody wrote, or a key.
    """
    from kbtui.logs import log_file, start_logging

    start_logging()
    log.critical("internal error", exc_info=error)
    return (
        f"kbtui stopped because of an error of its own ({type(error).__name__}). "
        f"What was saved is safe, and the draft is kept. Details: {log_file()}"
    )
