"""A process that dreams and is killed while it does; see `memory_victim`."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from tests.faults import memory_victim
from tests.memory.memory_room import START, Clock, open_room

if TYPE_CHECKING:
    from pathlib import Path


def work(root: Path, session: str, tell: int) -> None:
    """Dream about all that is new."""
    room = open_room(root, Clock(START), dream={"max_batch_size": 2})
    room.history.adopt(settle=0)

    async def all_of_it() -> None:
        while (report := await room.pipeline.dream.run()).commit:
            os.write(tell, f"{report.commit}\n".encode())

    asyncio.run(all_of_it())


if __name__ == "__main__":
    memory_victim.work = work
    memory_victim.main()
