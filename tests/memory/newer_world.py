"""A workspace whose clock is set by hand, for what is said on different days."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kbtui.agent.events import TurnFinished
from kbtui.knowledge_base import KnowledgeBase
from kbtui.views.view import Audience

BEGIN = datetime(2026, 10, 1, 10, tzinfo=UTC)


class World:
    """A workspace whose clock is set by hand."""

    def __init__(self, root: Path) -> None:
        self.now = BEGIN
        self.kb = KnowledgeBase.open(
            root,
            create=True,
            overrides={"search": {"semantic": False}, "models": {"chat": {"model": "offline"}}},
            clock=lambda: self.now,
        )

    def say(self, text: str, day: int = 0) -> TurnFinished:
        """Say something so many days after the beginning."""
        self.now = BEGIN + timedelta(days=day)

        async def turn() -> TurnFinished:
            with self.kb.sessions.create("test") as session:
                events = [event async for event in self.kb.agent.turn(session, text)]
            return next(event for event in events if isinstance(event, TurnFinished))

        return asyncio.run(turn())

    def newer(self, text: str, audience: Audience = Audience.OWN_MODEL) -> str:
        """Return the newer line of one, or ""."""
        self.kb.newer.update()
        found = self.kb.seen_by(audience).newer([text])
        return found[text].text if found else ""
