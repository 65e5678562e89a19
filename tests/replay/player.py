"""The process that plays lives on one build: it imports the program once, and forks for each life.

    python -m tests.replay.player CODE

with the folder of that code first on the path. It reads a request a line, and answers each with a
line once it is done, in whatever order that is.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.replay import asked
from tests.replay.lives import LIVES
from tests.replay.stage import MissingDataError, Stage


def main(code: str) -> None:
    """Play what is asked for, until nobody asks any more."""
    import kbtui

    if not Path(kbtui.__file__).is_relative_to(code):
        raise SystemExit(f"kbtui was to be that of {code}, and is {kbtui.__file__}.")
    asked.load(Path(code))
    gc.collect()
    gc.freeze()  # or children would copy all of it as they look for what they may free
    for line in sys.stdin:
        if not os.fork():
            _watch(json.loads(line))
        _reap(os.WNOHANG)
    _reap(0)


def _reap(options: int) -> None:
    """Take leave of children that have ended, so that their time is counted."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _watch(request: dict[str, Any]) -> None:
    """Let a child play, and say that it has ended, however it did."""
    child = os.fork()
    if not child:
        status = 1
        try:
            _play(**request)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    answer = json.dumps({"life": request["life"], "status": status})
    os.write(1, f"{answer}\n".encode())
    os._exit(0)


def _play(life: str, folder: str, data: str | None, model: str, record: str) -> None:
    os.close(0)
    os.open(os.devnull, os.O_RDONLY)
    os.dup2(2, 1)  # what answers requests is the watching process's alone
    code = os.environ["PYTHONPATH"].split(os.pathsep)
    stage = Stage(Path(folder), code, Path(data) if data else None, Path(model))
    try:
        stage.play(LIVES[life].play)
    except MissingDataError as missing:
        stage.recording.missing = str(missing)
    except Exception as error:  # noqa: BLE001  # a life that ends early is compared as well
        lines = [
            each for each in traceback.extract_tb(error.__traceback__) if "lives" in each.filename
        ]
        where = f" ({Path(lines[-1].filename).name}:{lines[-1].lineno})" if lines else ""
        stage.recording.failed = f"{type(error).__name__}: {error}{where}"
    stage.recording.save(Path(record))


if __name__ == "__main__":
    main(sys.argv[1])
