"""A process that makes memory and is killed while it does.

``python -m tests.faults.memory_victim WORKSPACE SESSION [ADDRESS]`` imports everything once and then
forks a child for each line on its standard input, which does all the work there is; a scripted
server at ADDRESS is the model::

    event 57      the child kills itself at its 57th look at the file system
    time 0.04     it is killed after that many seconds
    whole         it may finish

For each it answers with a line of JSON: whether the child was killed, how many events it had, and
the commits that it had told about by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kbtui.errors import WorkspaceBusyError
from kbtui.models import litellm_model
from tests.memory.memory_room import START, Clock, open_room, scripted_at

WATCHED = ("open", "os.", "fcntl.", "sqlite3.")
WINDOW = 6000  # tokens


def work(root: Path, session: str, tell: int) -> None:
    """Do what the worker does about a session that is over."""
    room = open_room(root, Clock(START), **scripted_at(sys.argv[3], context_window=WINDOW))
    room.history.adopt(settle=0)
    pipeline = room.pipeline

    async def all_of_it() -> None:
        outcome = await pipeline.consolidator.run(session, everything=True)
        if outcome.commit:
            os.write(tell, f"{outcome.commit}\n".encode())
        with contextlib.suppress(WorkspaceBusyError):  # another process is at it
            notes = await pipeline.session_notes.write_session_memory(session)
            if notes is not None:
                os.write(tell, f"{notes.commit}\n".encode())

    asyncio.run(all_of_it())


def _count_events(fatal: int) -> dict[str, int]:
    counted = {"events": 0}

    def hook(event: str, _args: Any) -> None:
        if event.startswith(WATCHED):
            counted["events"] += 1
            if counted["events"] == fatal:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return counted


def _child(root: Path, session: str, fatal: int, tell: int) -> None:
    counted = _count_events(fatal)
    work(root, session, tell)
    os.write(tell, f"events {counted['events']}\n".encode())


def _one(root: Path, session: str, how: str, value: float) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            _child(root, session, int(value) if how == "event" else 0, writer)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    if how == "time":
        threading.Timer(value, _kill, [child]).start()
    with os.fdopen(reader) as told:
        lines = told.read().split("\n")
    _, status = os.waitpid(child, 0)
    events = next((int(line[7:]) for line in lines if line.startswith("events ")), 0)
    acks = [line for line in lines if len(line) == 40]
    return {
        "killed": os.WIFSIGNALED(status),
        "failed": os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0,
        "events": events,
        "acks": acks,
    }


def _kill(child: int) -> None:
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        time.sleep(0)  # it had finished


def main() -> None:
    root, session = Path(sys.argv[1]), sys.argv[2]
    if len(sys.argv) > 3:
        litellm_model._load()  # else each child would
    _say("ready")
    for line in sys.stdin:
        how, _, value = line.strip().partition(" ")
        _say(json.dumps(_one(root, session, how, float(value or 0))))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
