"""Names and tokens for https from the helpers that the user's git knows, where git is installed.

Whoever uses git over https has a helper (a keychain, gh, git-credential-manager) that holds the
token, so none has to stand in the address. The helpers are asked as git asks them, but never at
the terminal, which belongs to the app.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from kbtui.text import clean_line

_POLL_SECONDS = 0.2
_SECONDS = 60.0
"""How long a helper may take; one may open a window."""
_OF_A_REPOSITORY = {"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CEILING_DIRECTORIES"}


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """A name and a password or token for one address.

    Attributes:
        user: The name.
        password: The password or token.
        answer: All that git said. Helpers keep more beside a token, such as when it expires and how
            it is renewed, and would lose it if it weren't said again.
    """

    user: str
    password: str
    answer: str

    def report(self, verdict: Literal["approve", "reject"]) -> None:
        """Tell the helpers whether it was let in, so that they keep it or forget it."""
        _ask(verdict, self.answer)


def look_up(url: str, check: Callable[[], None] = lambda: None) -> Credential | None:
    """Ask git's helpers for the credential of an http(s) address; None if none has any.

    A user named in the address is asked for. `check` is called while a helper takes its time, and
    may raise to give it up.
    """
    answer = _ask("fill", _described(url), check)
    found = dict(line.partition("=")[::2] for line in answer.split("\n"))
    if not found.get("password"):
        return None
    return Credential(found.get("username", ""), found["password"], answer)


def _described(url: str) -> str:
    """Return an address in the lines that git's helpers read, or "" if they can't hold it."""
    parts = urlsplit(url)
    lines = {
        "protocol": parts.scheme,
        "host": parts.netloc.rpartition("@")[2],
        "path": unquote(parts.path.lstrip("/")),
        "username": unquote(parts.username or ""),
    }
    if any(clean_line(value) != value for value in lines.values()):
        return ""  # an encoded line feed would name another host (CVE-2020-5260)
    return "".join(f"{key}={value}\n" for key, value in lines.items() if value)


def _ask(action: str, description: str, check: Callable[[], None] = lambda: None) -> str:
    program = shutil.which("git")
    if program is None or not description:
        return ""
    kept = {name: each for name, each in os.environ.items() if name not in _OF_A_REPOSITORY}
    silent = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": ""}
    try:
        with tempfile.TemporaryDirectory() as nowhere:
            # No repository's own settings, not even of one that is above.
            alone = {"GIT_CEILING_DIRECTORIES": os.fspath(Path(nowhere).resolve().parent)}
            process = subprocess.Popen(
                [program, "-c", "core.askPass=", "credential", action],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=nowhere,
                env=kept | silent | alone,
                start_new_session=True,
            )
            with _ended(process):
                return _answer(process, f"{description}\n".encode(), check)
    except OSError:
        return ""


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End git and its helpers after the block, if they are still at it."""
    with process:
        try:
            yield
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _answer(process: subprocess.Popen[bytes], told: bytes, check: Callable[[], None]) -> str:
    deadline = time.monotonic() + _SECONDS
    given: bytes | None = told
    while time.monotonic() < deadline:
        check()
        try:
            answer, _ = process.communicate(given, timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            given = None  # it goes on with what it was given
            continue
        return answer.decode("utf-8", "replace") if process.returncode == 0 else ""
    return ""
