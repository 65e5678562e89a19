"""Unprompted recall: a search for what is known about a message, run while its turn starts.

The search runs concurrently with the rest of the start. If it isn't done in time, or fails, the
model can still search by itself: no turn waits for an index, or fails because of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from kbtui.agent.quoting import Quoting
from kbtui.agent.sources import heading, quoted
from kbtui.agent.tools.base import ToolContext
from kbtui.models.port import estimate_tokens
from kbtui.offline.answer import Candidate
from kbtui.text import clean_line, fold

log = logging.getLogger(__name__)
WAIT_SECONDS = 0.3
_END_WAIT_SECONDS = 2.0
_LEAD = "# Found for this message\n\n"


class Recall:
    """A background search for what one message is about, from `begin` to `end`."""

    def __init__(self) -> None:
        self._context: ToolContext | None = None
        self._found: tuple[Candidate, ...] = ()
        self._thread: threading.Thread | None = None

    def begin(self, context: ToolContext, message: str) -> None:
        """Start the search in a thread."""
        self._context = context
        self._thread = threading.Thread(
            target=self._search, args=(context, message), name="recall", daemon=True
        )
        self._thread.start()

    def _search(self, context: ToolContext, message: str) -> None:
        try:
            self._found = Quoting(context).about(message)
        except Exception as error:  # noqa: BLE001 - a damaged index raises what its engines do
            log.info("nothing is recalled: %s: %s", type(error).__name__, error)

    def text(self, shown: str, budget: int) -> str:
        """Return what was found, numbered for citation, except lines in `shown`; may be empty.

        Waits at most `WAIT_SECONDS`; the text has at most `budget` tokens.
        """
        if self._context is None or self._thread is None:
            return ""
        self._thread.join(WAIT_SECONDS)
        lines = "\n".join(self._fitting(self._context, fold(shown), budget))
        return f"{_LEAD}{quoted(lines)}" if lines else ""

    def _fitting(self, context: ToolContext, shown: str, budget: int) -> Iterator[str]:
        budget -= estimate_tokens(_LEAD + quoted(""))
        for line in self._found:
            if fold(line.text) in shown:
                continue
            places = ((line.number, line.place),) if line.place else ()
            where = (line.path, max(1, line.number), line.text, line.title, places)
            cost = estimate_tokens(f"[10] {line.path} (lines ) {line.title}: {line.text}") + 4
            if cost > budget:
                continue
            budget -= cost
            named = heading(context.sources.add(*where))
            yield f"{named} {clean_line(line.title)}: {clean_line(line.text)}"

    def end(self) -> None:
        """Wait briefly for the search to end, so that the index may be closed."""
        if self._thread is not None:
            self._thread.join(_END_WAIT_SECONDS)
