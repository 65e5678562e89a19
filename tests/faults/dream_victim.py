"""A process that dreams and is killed while it does; see `memory_victim`."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from tests.faults import memory_victim
from tests.memory.memory_room import START, Clock, open_room
from tests.memory.test_worker import Model

if TYPE_CHECKING:
    from pathlib import Path

READS = "reads"


def work(root: Path, session: str, tell: int) -> None:
    """Dream about all that is new; in a session named `READS` with a model that finds nothing."""
    room = open_room(root, Clock(START), dream={"max_batch_size": 2})
    room.history.adopt(settle=0)
    if session == READS:
        model = Model()
        room.pipeline.models._registry.chat = lambda role="chat": model  # type: ignore[method-assign,assignment]

    async def all_of_it() -> None:
        while (report := await room.pipeline.dream.run()).commit:
            os.write(tell, f"{report.commit}\n".encode())

    asyncio.run(all_of_it())


if __name__ == "__main__":
    memory_victim.work = work
    memory_victim.main()
