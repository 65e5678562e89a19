"""What the user's git settings say about connections: shorter addresses, and the ssh program.

A person for whom ``git fetch work:notes.git`` works expects the same of kbtui. Only the user's and
the system's settings are read, with what they include, never those of a repository that happens to
lie in the current folder.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dulwich.config import StackedConfig

log = logging.getLogger(__name__)
_QUIET = "-oBatchMode=yes -oConnectTimeout=20 -oServerAliveInterval=20 -oServerAliveCountMax=3"
_IS_SSH = re.compile(r"(?:\S*/)?ssh(?:\s|\Z)")
_PATHS = (b"sslCAInfo", b"sslCert", b"sslKey")
_FROM = "insteadof"
_PUSHED_FROM = "pushinsteadof"
_REWRITING = re.compile(r"url\.(.*)\.((?:push)?insteadof)", re.IGNORECASE | re.DOTALL)


def read_settings() -> StackedConfig | None:
    """Read git's settings, or return None where they can't be read."""
    from dulwich.config import StackedConfig

    try:
        found = StackedConfig.default()
    except (OSError, ValueError) as error:
        log.warning("git's settings can't be read: %s", error)
        return None
    for file in found.backends:
        for section in file.sections():
            for key in _PATHS if section[0].lower() == b"http" else ():
                with suppress(KeyError):
                    path = os.path.expanduser(file.get(section, key))  # noqa: PTH111 — bytes
                    file.set(section, key, path)
    return found


def rewrite(address: str) -> tuple[str, str]:
    """Return where an address leads, for fetching and for pushing.

    As in git, the longest beginning that ``url.BASE.insteadOf`` names is replaced by the base, and
    ``url.BASE.pushInsteadOf`` comes first for pushing.
    """
    rules = [*_rules()]
    fetched = _replaced(address, rules, _FROM) or address
    return fetched, _replaced(address, rules, _PUSHED_FROM) or fetched


def ssh_command(environment: Mapping[str, str] = os.environ) -> str:
    """Return the command that connects by ssh, in git's order of precedence.

    Unless the environment has one, ssh asks nothing and gives up on a silent host: the terminal
    belongs to the app. What git's settings say stands before that, and what ssh reads first counts.
    """
    if command := environment.get("GIT_SSH_COMMAND"):
        return command
    settings = read_settings()
    try:
        command = settings.get((b"core",), b"sshCommand").decode() if settings else ""
    except KeyError:
        command = ""
    if command := os.path.expandvars(command):  # git has a shell run it
        return f"{command} {_QUIET}" if _IS_SSH.match(command) else command
    program = environment.get("GIT_SSH")  # a path, which may have blanks in it
    return shlex.quote(program) if program else f"ssh {_QUIET}"


def _replaced(address: str, rules: list[tuple[str, str, str]], key: str) -> str | None:
    fitting = [
        (begin, base) for begin, base, which in rules if which == key and address.startswith(begin)
    ]
    if not fitting:
        return None
    begin, base = max(fitting, key=lambda each: len(each[0]))
    return base + address[len(begin) :]


def _rules() -> Iterator[tuple[str, str, str]]:
    """Yield (beginning, what stands for it, the lower-case key) of each rule."""
    if (settings := read_settings()) is not None:
        for section in settings.sections():
            if section[0].lower() == b"url" and len(section) > 1:
                for key in (_FROM, _PUSHED_FROM):
                    for begin in settings.get_multivar(section, key.encode()):
                        yield os.fsdecode(begin), os.fsdecode(section[1]), key
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    for number in range(int(count) if count.isdecimal() else 0):
        named = _REWRITING.fullmatch(os.environ.get(f"GIT_CONFIG_KEY_{number}", ""))
        if named is not None:
            yield os.environ.get(f"GIT_CONFIG_VALUE_{number}", ""), named[1], named[2].lower()
