"""A process dies at one call of the many that change the disk: at each of them, one after the other.

A kind of work is staged once; then for each call a copy of the stage is worked on by a child that
is killed as it makes that call, and another child starts again, as a person would, and looks at
what is there. What stands for a restart is a process of its own as well: nothing is remembered.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kbtui.redaction.redact import redact
from tests.faults.world import Place, check_with_git, litter, open_history

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kbtui.history.history import History

SLOW = 2.0
"""Seconds: what a restart after a fault may add."""
_DAY = 86_400
_CHANGES = {
    *("os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir"),
    *("os.truncate", "os.chmod", "os.utime"),
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_REAL_WRITE = os.write


@dataclass
class Case(Place):
    """Where a case plays: a home and workspaces; what it told is acknowledged."""

    told: list[str] = field(default_factory=list)

    def history(self, root: Path | None = None) -> History:
        """Start the program, as far as history is concerned."""
        return open_history(root or self.notes)

    def texts(self) -> dict[str, bytes]:
        """Every file of a person's in the workspace."""
        return {
            str(file.relative_to(self.notes)): file.read_bytes()
            for area in ("knowledge", "memory", "skills", "docs", "sessions")
            for file in sorted((self.notes / area).rglob("*"))
            if file.is_file() and not file.name.startswith(".kbtui-")
        }

    def empty_folders(self) -> set[str]:
        """The folders for entries that hold nothing."""
        folders = (self.notes / "knowledge").rglob("*/")
        return {str(each.relative_to(self.folder)) for each in folders if not any(each.iterdir())}


@dataclass(frozen=True)
class Kind:
    """A kind of work.

    Attributes:
        stage: Makes what it starts from.
        work: Does it, in one go; done again after a kill it ends where it would have ended. What
            it puts into `Case.told` in between is acknowledged.
        purges: Commits are replaced.
        partly: Files may be at any point between before and after, one by one.
        appends: Files may have any beginning of what they have afterwards.
        says: What stands there once afterwards, where the rest isn't the same each time.
        adopts: What lies there already is what is recorded.
    """

    stage: Callable[[Case], None]
    work: Callable[[Case], None]
    purges: bool = False
    partly: bool = False
    appends: bool = False
    says: tuple[str, ...] = ()
    adopts: bool = False


@dataclass
class Tally:
    """What became of the kills."""

    calls: int = 0
    kills: int = 0
    lost: dict[int, list[str]] = field(default_factory=dict)
    by_hand: dict[int, list[str]] = field(default_factory=dict)
    litter: dict[int, list[str]] = field(default_factory=dict)

    @property
    def wrong(self) -> list[dict[int, list[str]]]:
        return [each for each in (self.lost, self.by_hand, self.litter) if each]


class _Death:
    """Counts what this process does to the disk, and ends it at one call."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self._fatal = fatal
        sys.addaudithook(self._audit)
        for name in ("write", "pwrite", "fsync", "fdatasync", "ftruncate"):
            if hasattr(os, name):
                setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if writes or event in _CHANGES:
            self._step()

    def _step(self) -> None:
        self.count += 1
        if self.count == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(file: int, *rest: Any) -> Any:
            if name == "write" and self.count + 1 == self._fatal:
                real(file, rest[0][: len(rest[0]) // 2])  # torn
            self._step()
            return real(file, *rest)

        return call


def in_child(act: Callable[[], Any]) -> tuple[bool, Any]:
    """Do something in a process of its own: was it killed, and what it returned or raised.

    What it raises comes as text, with `AssertionError` for its first word.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            answer = act()
        except BaseException:  # noqa: BLE001 — a child reports whatever happens to it
            answer = AssertionError(traceback.format_exc())
        with suppress(OSError):
            _send(writer, pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        data = told.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True, None
    answer = pickle.loads(data)
    if isinstance(answer, AssertionError):
        raise answer
    return False, answer


def _send(pipe: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[_REAL_WRITE(pipe, rest) :]


def _work(kind: Kind, place: Case, fatal: int, tell: int) -> int:
    death = _Death(fatal)

    class Told(list[str]):
        def append(self, text: str) -> None:
            _REAL_WRITE(tell, f"{text}\n".encode())

    place.told = Told()
    kind.work(place)
    return death.count


def kill_at(kind: Kind, place: Case, fatal: int) -> tuple[bool, int, list[str]]:
    """Work until a call: was it killed, how many calls there were, what was acknowledged."""
    reader, writer = os.pipe()
    killed, count = in_child(lambda: _work(kind, place, fatal, writer))
    os.close(writer)
    with os.fdopen(reader) as told:
        return killed, count or 0, told.read().splitlines()


def kill_everywhere(
    kind: Kind, stage: Path, place: Path, most: int | None = None, *, one_is_enough: bool = False
) -> Tally:
    """Kill a kind of work at each of its calls, or at some of them.

    Args:
        kind: The work.
        stage: A folder for what it starts from.
        place: A folder for the copies; always the same one, as caches are named by it.
        most: How many kills, spread over all calls; None: each of them.
        one_is_enough: Stop at the first that something is wrong after.
    """
    import dulwich.client
    import dulwich.repo  # noqa: F401 — once here, not once in each child

    redact("Its patterns are compiled.")
    os.environ.update(_home(place))
    at = Case(place)
    place.mkdir(parents=True, exist_ok=True)
    in_child(lambda: kind.stage(at))
    shutil.copytree(place, stage, symlinks=True, dirs_exist_ok=True)
    before = at.texts() if at.notes.exists() else {}
    recorded = in_child(lambda: _ids(at))[1]
    _, count, _ = kill_at(kind, at, 0)
    in_child(lambda: kind.work(at))  # once more changes nothing
    after, empty = at.texts(), at.empty_folders()
    tally = Tally(calls=count)
    step = 1 if most is None else max(1, -(-count // most))
    for fatal in range(1 + count % step, count + 1, step):
        shutil.rmtree(place)
        shutil.copytree(stage, place, symlinks=True)
        killed, _, told = kill_at(kind, at, fatal)
        tally.kills += killed
        look = _Look(kind, at, before, after, empty, told, recorded, fsck=fatal % 5 == 0)
        try:
            lost, hand, litter = in_child(look.all)[1]
        except AssertionError as error:
            lost, hand, litter = [], [str(error)], []
        for found, into in ((lost, tally.lost), (hand, tally.by_hand), (litter, tally.litter)):
            if found:
                into[fatal] = found
        if one_is_enough and tally.wrong:
            break
    return tally


def _home(place: Path) -> dict[str, str]:
    home = place / "home"
    return {
        "HOME": str(home),
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "STATE", "CONFIG")},
    }


def _ids(at: Case) -> list[str]:
    return [each.id for each in at.history().log()] if (at.notes / ".kbtui").exists() else []


@dataclass
class _Look:
    """The next start after a kill: all that must hold."""

    kind: Kind
    at: Case
    before: dict[str, bytes]
    after: dict[str, bytes]
    empty: set[str]
    told: list[str]
    recorded: list[str]
    fsck: bool

    def all(self) -> tuple[list[str], list[str], list[str]]:
        """What is lost, what a hand would be needed for, what is left lying about."""
        lost: list[str] = []
        hand: list[str] = []
        begun = time.monotonic()
        if not (self.at.notes / ".kbtui").exists():  # not even begun
            self.kind.work(self.at)
            return self._settled(lost), hand, self._litter()
        history = self.at.history()
        if time.monotonic() - begun > SLOW:
            hand.append("the start takes long")
        lost += self._whole()
        if not (self.kind.adopts or self.kind.partly):
            adopted = history.adopt(settle=0)
            if adopted is not None:
                hand.append(f"recorded as the user's: {[each.path for each in adopted.paths]}")
        if not self.kind.purges:
            missing = set(self.recorded) - {each.id for each in history.log()}
            lost += [f"commit {each[:8]} is gone" for each in missing]
        _age(self.at.folder)
        self.kind.work(self.at)
        lost += self._settled(lost)
        if self.fsck:
            remote = [self.at.remote] if self.at.remote.exists() else []
            hand += check_with_git(self.at.repository, *remote)
        return lost, hand, self._litter()

    def _whole(self) -> list[str]:
        """Files are as before or as after, and hold all that was acknowledged."""
        now = self.at.texts()
        everything = b"\n".join(now.values()).decode()
        lost = [f"acknowledged and gone: {text}" for text in self.told if text not in everything]
        if self.kind.says:
            pass
        elif self.kind.appends:
            lost += [
                f"{path} is no beginning of what it should be"
                for path, data in now.items()
                if not self.after.get(path, b"").startswith(data)
            ]
        elif self.kind.partly:
            lost += [
                f"{path} is neither old nor new"
                for path in now.keys() | self.before.keys()
                if now.get(path) not in {self.before.get(path), self.after.get(path)}
            ]
        elif now not in (self.before, self.after):
            lost.append(f"a mixture: {sorted(_differing(now, self.before))}")
        elif self.told and now != self.after:
            lost.append("it was said to be done, and isn't")
        return lost

    def _settled(self, lost: list[str]) -> list[str]:
        now = self.at.texts()
        if self.kind.says:
            everything = b"".join(now.values()).decode()
            counts = {text: everything.count(text) for text in self.kind.says}
            return [f"{count} times: {text}" for text, count in counts.items() if count != 1]
        if now == self.after or lost:
            return []
        if self.kind.appends:  # a head that was torn is set aside; nobody said it
            kept = b"".join(now.values())
            said = b"".join(self.after.values()).splitlines()
            return [
                f"not there: {line!r}" for line in said if b'"role"' in line and line not in kept
            ]
        return [f"done again it ends elsewhere: {sorted(_differing(now, self.after))}"]

    def _litter(self) -> list[str]:
        left = litter(self.at.notes, self.at.remote)
        return left + sorted(self.at.empty_folders() - self.empty)


def _differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return [path for path in one.keys() | other.keys() if one.get(path) != other.get(path)]


def _age(folder: Path) -> None:
    """Let days pass: what a dead process left is no longer taken for a living one's."""
    then = time.time() - 3 * _DAY
    for place in (folder / "remote.git",):
        for file in place.rglob("*"):
            with suppress(OSError):
                os.utime(file, (then, then), follow_symlinks=False)
