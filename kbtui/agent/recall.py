"""Unprompted recall: a search for what is known about a message, run while its turn starts.

The search runs concurrently with the rest of the start, and the request waits for it: a model that
isn't told what is known answers from what it was told before, which may hold no more. If the search
isn't done in time, or fails, both the model and the person are told so.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from time import monotonic

from kbtui.agent.newer_lines import bracketed
from kbtui.agent.quoting import Quoting
from kbtui.agent.sources import heading, quoted
from kbtui.agent.tools.base import ToolContext
from kbtui.memory.recall.remembered import said_label
from kbtui.models.port import estimate_tokens
from kbtui.offline.answer import Candidate
from kbtui.text import clean_line, fold

log = logging.getLogger(__name__)
WAIT_SECONDS = 5.0  # a model's first word takes longer
_END_WAIT_SECONDS = 2.0
_LEAD = "# Found for this message\n\n"
_TO_MODEL = "(Nothing could be looked up for this message yet. Call `search` before you answer.)"


class Recall:
    """A background search for what one message is about, from `begin` to `end`."""

    def __init__(self) -> None:
        self._context: ToolContext | None = None
        self._found: tuple[Candidate, ...] = ()
        self._done = threading.Event()
        self._until = 0.0
        self._failure = ""
        self._thread: threading.Thread | None = None

    def begin(self, context: ToolContext, message: str) -> None:
        """Start the search in a thread, unless it was given up already."""
        if self._done.is_set():
            return
        self._context = context
        self._until = monotonic() + WAIT_SECONDS
        self._thread = threading.Thread(
            target=self._search, args=(context, message), name="recall", daemon=True
        )
        self._thread.start()

    def _search(self, context: ToolContext, message: str) -> None:
        try:
            self._found = Quoting(context).about(message)
        except Exception as error:  # noqa: BLE001 - a damaged index raises what its engines do
            self._failure = "What is known about this couldn't be looked up; kbtui.log says why."
            log.warning("nothing is recalled: %s: %s", type(error).__name__, error)
        finally:
            self._done.set()

    def give_up(self) -> None:
        """Let nobody wait for the search any more."""
        self._until = 0.0
        self._done.set()

    @cached_property
    def problem(self) -> str:
        """What a person should know if nothing could be found, else ``""``.

        Waits for the search until `WAIT_SECONDS` after its begin. What it was then stays, so that
        the model and the person are told the same.
        """
        if self._thread is None or self._done.wait(max(0.0, self._until - monotonic())):
            return self._failure
        log.warning("nothing is recalled: the search took longer than %.0f s", WAIT_SECONDS)
        return (
            f"What is known about this couldn't be looked up within {WAIT_SECONDS:.0f} s, so the"
            " answer may lack it."
        )

    def lines(self) -> Sequence[tuple[str, int, str]] | None:
        """Return what was found of what the user said or noted: file, line and text.

        None if nothing could be looked up.
        """
        if self._thread is None or self.problem:
            return None
        return [
            (each.path, max(1, each.number), each.text)
            for each in self._found
            if each.speaker != "assistant"
        ]

    def text(self, shown: str, budget: int) -> str:
        """Return what was found, numbered for citation, except lines in `shown`; may be empty.

        Waits for the search as `problem` does; the text has at most `budget` tokens.
        """
        if self._context is None:
            return ""
        if self.problem:
            return f"{_LEAD}{_TO_MODEL}"
        lines = "\n".join(self._fitting(self._context, fold(shown), budget))
        return f"{_LEAD}{quoted(lines)}" if lines else ""

    def _fitting(self, context: ToolContext, shown: str, budget: int) -> Iterator[str]:
        budget -= estimate_tokens(_LEAD + quoted(""))
        today = context.now().date()
        newest = context.view.unasked.newer([line.text for line in self._found])
        for line in self._found:
            if fold(line.text) in shown:
                continue
            newer = newest.get(line.text)
            places = ((line.number, line.place),) if line.place else ()
            where = (line.path, max(1, line.number), line.text, line.title, places)
            now = f" {bracketed(newer, today)}" if newer is not None else ""
            cost = estimate_tokens(f"[10] {line.path} (lines ) {line.title}: {line.text}{now}") + 4
            if cost > budget:
                continue
            budget -= cost
            named = heading(context.sources.add(*where))
            said = f" · {said_label(line.said, today)}" if line.said else ""
            yield f"{named} {clean_line(line.title)}: {clean_line(line.text)}{said}{now}"

    def end(self) -> None:
        """Wait briefly for the search to end, so that the index may be closed."""
        if self._thread is not None:
            self._thread.join(_END_WAIT_SECONDS)
