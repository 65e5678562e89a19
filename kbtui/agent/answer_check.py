"""Checking an answer while it streams: in a thread, so that nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from kbtui.agent.tools.toolbox import in_thread

if TYPE_CHECKING:
    from kbtui.agent.sources import SourceLines
    from kbtui.memory.recall.differing import AnswerCheck, Difference

log = logging.getLogger(__name__)


class StreamedCheck:
    """The check of one reply, from its first piece to `finish`."""

    def __init__(
        self,
        sources: Iterable[SourceLines],
        question: str,
        known: Iterable[tuple[str, int, str]],
        found: Callable[[Difference], None],
    ) -> None:
        """Create it.

        Args:
            sources: What the model was shown.
            question: The user's message.
            known: What the user said before or noted, without a number: file, line and text.
            found: Is called with each difference, on the event loop.
        """
        self._sources = tuple(sources)
        self._question = question
        self._known = tuple(known)
        self._found = found
        self._differences: list[Difference] = []
        self._pieces: list[str] = []
        self._running: asyncio.Task[None] | None = None

    @cached_property
    def _check(self) -> AnswerCheck:
        from kbtui.memory.recall.differing import AnswerCheck, Shown

        shown = [
            Shown(each.n, each.path, each.first, each.text, each.title) for each in self._sources
        ]
        numbered = {text for each in shown for text in each.text.split("\n")}
        shown += [Shown(0, *each) for each in self._known if each[2] not in numbered]
        said = [text for path, _, text in self._known if path.startswith("sessions/")]
        return AnswerCheck(shown, self._question, said)

    def feed(self, text: str) -> None:
        """Add a piece of the answer."""
        self._pieces.append(text)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._read())

    async def finish(self) -> tuple[Difference, ...]:
        """Check what is left, and return all differences."""
        if self._running is not None:
            await self._running
        await self._compare(self._finish)
        return tuple(self._differences)

    @property
    def is_unfounded(self) -> bool:
        """Whether nothing of the answer stands in what the model was shown."""
        return self._check.is_unfounded

    def stop(self) -> None:
        """End the check: the answer is given up."""
        if self._running is not None:
            self._running.cancel()

    async def _read(self) -> None:
        while self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            await self._compare(partial(self._feed, text))

    def _finish(self) -> list[Difference]:
        return self._check.finish()

    def _feed(self, text: str) -> list[Difference]:
        return self._check.feed(text)

    async def _compare(self, compare: Callable[[], list[Difference]]) -> None:
        try:
            found = await in_thread(compare)
        except Exception:  # an answer is never lost by its check
            log.exception("An answer couldn't be checked")
            return
        for each in found:
            self._differences.append(each)
            self._found(each)
