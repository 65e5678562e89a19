"""Processes of the replay: a step's own, forked where the program is loaded already, and a model's."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self

from tests.replay import asked
from tests.replay.fixed import hold_still
from tests.scripted_server import Reply, Request, ScriptedServer

_LIMIT_SECONDS = 600
"""After that a step is taken for stuck, and killed."""


class Forked:
    """A child of this process that does one step: like a program that was started for it."""

    def __init__(
        self, work: Callable[[], int], env: Mapping[str, str], *, folder: str, talks: bool = False
    ) -> None:
        """Start it.

        Args:
            work: What it does; the result is its exit status.
            env: Its environment.
            folder: Where it is.
            talks: Whether its output is read while it runs, by `read_line`.
        """
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `wait`
        self._err = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `wait`
        self._answers: BinaryIO | None = None
        source, self._input = os.pipe()
        sink = self._out.fileno()
        if talks:
            reading, sink = os.pipe()
            self._answers = os.fdopen(reading, "rb")
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            _become((source, sink, self._err.fileno()), work, env, folder)
        os.close(source)
        if talks:
            os.close(sink)

    @classmethod
    def kbtui(
        cls,
        words: list[str],
        env: Mapping[str, str],
        folder: Path,
        *,
        talks: bool = False,
        **still: Any,
    ) -> Self:
        """Run a command; `still` is what `hold_still` takes."""
        return cls(_held(still, asked.run_command, words), env, folder=str(folder), talks=talks)

    @classmethod
    def function(
        cls,
        function: Callable[..., int],
        arguments: Sequence[Any],
        env: Mapping[str, str],
        **still: Any,
    ) -> Self:
        """Call a function; `still` is what `hold_still` takes."""
        return cls(_held(still, function, *arguments), env, folder=env["HOME"])

    def write(self, text: str, *, more: bool = False) -> None:
        """Let it read a text, the last one unless there is `more`."""
        data = text.encode()
        while data:
            data = data[os.write(self._input, data) :]
        if not more:
            self._close_input()

    def read_line(self) -> bytes:
        """Return its next line; empty at the end."""
        if self._answers is None or not select.select([self._answers], [], [], _LIMIT_SECONDS)[0]:
            return b""
        return self._answers.readline()

    def wait(self) -> tuple[int, str, str]:
        """Wait for its end: its status, and what it wrote to output and error."""
        self._close_input()
        status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        told = []
        for file in (self._out, self._err):
            file.seek(0)
            told.append(file.read().decode("utf-8", "replace"))
            file.close()
        if self._answers is not None:
            self._answers.close()
        return status, *told

    def _close_input(self) -> None:
        if self._input >= 0:
            os.close(self._input)
            self._input = -1


def _held(still: Mapping[str, Any], work: Callable[..., int], *arguments: Any) -> Callable[[], int]:
    def do() -> int:
        hold_still(**still)
        return work(*arguments)

    return do


def _become(
    files: Sequence[int], work: Callable[[], int], env: Mapping[str, str], folder: str
) -> NoReturn:
    """Go on as a process of its own, which ends with the work."""
    status = 1
    try:
        signal.alarm(_LIMIT_SECONDS)
        os.setsid()  # what it leaves behind can be told from the stage's own
        for number, each in enumerate(files):
            os.dup2(each, number)
        os.closerange(3, max(files) + 64)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  # for good
            for number, mode in enumerate(("r", "w", "w"))
        )
        os.environ.clear()
        os.environ.update(env)
        os.chdir(folder)
        status = work()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  # nothing goes on above it
        traceback.print_exc()
    finally:
        # As an interpreter ends, without the frames of the stage that are still below this one.
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        os._exit(status)


@dataclass
class Served:
    """A model for one step: how it is reached, and then what the tools told it."""

    environment: dict[str, str] = field(default_factory=dict)
    tool_answers: list[str] = field(default_factory=list)


@contextmanager
def serve_replies(
    replies: Sequence[Reply | Callable[[Request], Reply]] | None,
) -> Iterator[Served]:
    """Serve a model that gives these replies in a process of its own; None: there is none."""
    served = Served()
    if replies is None:
        yield served
        return
    told, tell = os.pipe()
    ended, end = os.pipe()
    child = os.fork()
    if not child:
        os.close(end)
        os.close(told)
        _serve(replies, tell, ended)
    os.close(tell)
    os.close(ended)
    with os.fdopen(told, "r") as answers:
        served.environment = {
            "KBTUI_MODEL": "openai/scripted",
            "KBTUI_API_BASE": answers.readline().strip(),
            "KBTUI_API_KEY": "not-a-real-key",
        }
        yield served
        os.close(end)
        served.tool_answers = json.loads(answers.read())
    os.waitpid(child, 0)


def _serve(
    replies: Sequence[Reply | Callable[[Request], Reply]], tell: int, ended: int
) -> NoReturn:
    status = 1
    try:
        with ScriptedServer(replies, strict=True) as server, os.fdopen(tell, "w") as out:
            out.write(f"{server.url}\n")
            out.flush()
            os.read(ended, 1)
            out.write(json.dumps(_answers_of_tools(server)))
        status = 0
    except BaseException:  # noqa: BLE001  # nothing goes on above it
        traceback.print_exc()
    finally:
        os._exit(status)


def _answers_of_tools(server: ScriptedServer) -> list[str]:
    """What tools answered, in the order in which the model was told, and how often it was asked."""
    told: dict[tuple[int, str], str] = {}
    for request in server.prompts:
        calls = [message for message in request.messages if message["role"] == "tool"]
        for number, message in enumerate(calls):
            named = f"{message.get('name', '')} {message.get('tool_call_id', '')}".strip()
            told.setdefault((number, named), f"{named}\n{message['content']}")
    count = len(server.prompts)
    left = len(server.replies) - count
    used = f"(the model was asked {count} times" + (f", {left} replies are left)" if left else ")")
    return [*told.values(), used]
