"""Commands in processes of their own that needn't import the program again.

Importing takes most of a short command's time. One process does it, once, and forks a child a
command, which goes on as ``python -m kbtui`` would: with its own arguments, environment, folder
and files, and ending as a process ends. What a command imports is looked at elsewhere
(`tests/test_imports.py`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

_ROOT = Path(__file__).resolve().parents[2]
_MOST = 1 << 20  # bytes of a request: arguments and environment
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # others aren't forked
_LOADED = (
    *("kbtui.knowledge_base", "kbtui.importers.engine", "kbtui.history.sync.sync"),
    *("kbtui.agent.agent", "kbtui.agent.offline_turn", "kbtui.memory.background.service"),
    *("kbtui.search.query.hits", "kbtui.search.query.ranking", "kbtui.search.index.generation"),
    *("dulwich.object_store", "dulwich.client", "dulwich.repo", "whoosh.lang.porter2"),
)


def run_forked(
    argv: list[str], stdin: str, env: dict[str, str], timeout: float
) -> tuple[int, str, str]:
    """Run one command: its status, and what it wrote to output and error.

    It is killed where it takes longer than `timeout` seconds, which its status says, as it does in
    `subprocess`.
    """
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        files = [each.fileno() for each in (given, out, err)]
        request = json.dumps([argv, env, str(Path.cwd())]).encode()
        line = _connection()
        socket.send_fds(line, [request], files)
        child = int(line.recv(64))
        if not select.select([line], [], [], timeout)[0]:
            os.kill(child, signal.SIGKILL)
        status = int(line.recv(64))
        out.seek(0)
        err.seek(0)
        return status, out.read().decode(), err.read().decode()


@cache
def _connection() -> socket.socket:
    """The line to the process that forks; with it that process ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST)
    code = f"from tests.e2e.forked import serve; serve({theirs.fileno()})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(_ROOT), **_ONE_THREAD},
    )
    theirs.close()

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return ours


def serve(line_number: int) -> None:
    """Fork a child for each command that is asked for, until nobody asks any more."""
    import kbtui.cli

    for _, name, _ in pkgutil.iter_modules(kbtui.cli.__path__, "kbtui.cli."):
        importlib.import_module(name)
    for name in _LOADED:
        importlib.import_module(name)
    gc.freeze()  # or children would copy all of it as they look for what they may free
    line = socket.socket(fileno=line_number)
    while True:
        request, files, _, _ = socket.recv_fds(line, _MOST, 3)
        if not request:
            return
        if not (child := os.fork()):
            line.close()
            _become(files, *json.loads(request))
            return
        line.send(str(child).encode())
        for each in files:
            os.close(each)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        line.send(str(status).encode())


def _become(files: list[int], argv: list[str], env: dict[str, str], folder: str) -> None:
    """Go on as ``python -m kbtui`` with these arguments."""
    for number, each in enumerate(files):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv[1:] = argv
    runpy.run_module("kbtui", run_name="__main__", alter_sys=True)
