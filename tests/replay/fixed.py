"""What would differ between two runs by itself: the clock, made-up ids, names of machines, haste.

All of it is set in a process that was forked for one step, so nothing has to be put back. Times of
files stay real while a step runs; the stage sets them afterwards.
"""

from __future__ import annotations

import asyncio
import ctypes
import datetime as dt
import gc
import hashlib
import itertools
import os
import platform
import random
import secrets
import socket
import threading
import time
import uuid
from collections import Counter
from typing import Any

PATIENCE = 300.0
"""Seconds that everything is waited for which the program gives up after a while, on a busy machine."""

_KEY_BYTES = 32


def hold_still(moment: float, machine: str, seed: str) -> None:
    """Fix time, ids and names for the rest of this process.

    Args:
        moment: The time, in seconds since 1970; it stands still.
        machine: The name of the machine.
        seed: What made-up ids follow from.
    """
    _stop_the_clock(moment)
    _number_ids(machine, seed)
    for module, name in ((platform, "node"), (socket, "gethostname"), (socket, "getfqdn")):
        setattr(module, name, lambda *_: machine)
    _wait_longer()


def _stop_the_clock(moment: float) -> None:
    def now(cls: type[dt.datetime], tz: dt.tzinfo | None = None) -> dt.datetime:
        return cls.fromtimestamp(moment, tz)

    def utcnow(cls: type[dt.datetime]) -> dt.datetime:
        return cls.fromtimestamp(moment, dt.UTC).replace(tzinfo=None)

    # A class written in C takes no new attribute, and a class of our own in its place would be none
    # to what was loaded before; its table of methods can be changed all the same.
    (methods,) = gc.get_referents(dt.datetime.__dict__)
    methods |= {"now": classmethod(now), "utcnow": classmethod(utcnow)}
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(dt.datetime))
    plain = {name: getattr(time, name) for name in ("localtime", "gmtime", "strftime", "ctime")}

    def of_moment(name: str) -> Any:
        return lambda seconds=None: plain[name](moment if seconds is None else seconds)

    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, of_moment(name))
    time.strftime = lambda form, at=None: plain["strftime"](form, at or plain["localtime"](moment))
    time.time = lambda: moment
    time.time_ns = lambda: int(moment * 1_000_000_000)


def _number_ids(machine: str, seed: str) -> None:
    """Let ids of one length follow from the seed and how many of them there were before.

    So one more draft of a file changes no session's id. Long ones are a machine's keys, of which it
    has one, whenever that is made.
    """
    counts: Counter[int] = Counter()
    lock = threading.Lock()

    def made_up(size: int | None = None) -> bytes:
        size = 32 if size is None else size
        with lock:
            counts[size] += 1
            number = counts[size]
        source = machine if size >= _KEY_BYTES else seed
        parts = (
            hashlib.sha256(f"{source} {size} {number} {part}".encode()).digest()
            for part in itertools.count()
        )
        return b"".join(itertools.islice(parts, size // 32 + 1))[:size]

    secrets.token_bytes = made_up
    secrets.token_hex = lambda size=None: made_up(size).hex()
    secrets.token_urlsafe = lambda size=None: made_up(size).hex()
    secrets.randbelow = lambda below: int.from_bytes(made_up(16)) % below
    secrets.choice = lambda of: of[int.from_bytes(made_up(16)) % len(of)]
    uuid.uuid4 = lambda: uuid.UUID(bytes=made_up(16), version=4)
    uuid.uuid1 = lambda *_: uuid.UUID(bytes=made_up(16), version=1)
    random.seed(seed)


def _wait_longer() -> None:
    join, timeout = threading.Thread.join, asyncio.timeout
    threading.Thread.join = lambda self, seconds=None, /, **given: join(
        self, _longer(given.get("timeout", seconds))
    )
    asyncio.timeout = lambda delay: timeout(_longer(delay))


def _longer(seconds: float | None) -> float | None:
    return seconds if not seconds else max(seconds, PATIENCE)


def environment(home: os.PathLike[str], folders: list[str]) -> dict[str, str]:
    """Return the whole environment of a program that finds its code in `folders`."""
    base = os.fspath(home)
    homes = {
        f"XDG_{name}_HOME": f"{base}/{part}"
        for name, part in (
            ("CONFIG", ".config"),
            ("CACHE", ".cache"),
            ("DATA", ".local/share"),
            ("STATE", ".local/state"),
        )
    }
    return {
        **homes,
        "HOME": base,
        "TMPDIR": f"{base}/tmp",
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": os.pathsep.join(folders),
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "CET-1CEST,M3.5.0,M10.5.0/3",
        "COLUMNS": "100",
        "EDITOR": "false",
        "OMP_NUM_THREADS": "1",  # what other threads add up, they add up in another order
        "OPENBLAS_NUM_THREADS": "1",
        "KBTUI_MODEL": "offline",
        "KBTUI_MODELS__SERVERS": "[]",
        "KBTUI_SEARCH__BACKGROUND": "false",
        "KBTUI_SEARCH__SEMANTIC": "false",
        "OLLAMA_HOST": "127.0.0.1:1",
        "HF_HUB_OFFLINE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
