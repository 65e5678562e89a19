"""A disk that fails, dies or forgets: everything the program asks of it goes through here.

`Disk` stands in front of the calls that change files below one folder, numbers them, and lets a
test act before or after each. `Recording` writes them down, and works out what a disk may hold
after the power is cut: what wasn't synced is there, cut short, zeroed, or not there at all.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

CALLS = ("open", "write", "fsync", "rename", "link", "unlink", "mkdir", "ftruncate")


@dataclass
class Call:
    """One call: its number, its name, and what it is about."""

    number: int
    name: str
    path: str
    target: str = ""
    data: bytes = b""
    descriptor: int = -1


class Disk:
    """Numbers the calls that change files below `root`; `before` and `after` may act on each."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.count = 0
        self.before: Callable[[Call], None] = lambda _: None
        self.after: Callable[[Call], None] = lambda _: None
        self._paths: dict[int, str] = {}
        self._real = {name: getattr(os, name) for name in (*CALLS, "close", "fdopen")}

    @contextmanager
    def installed(self) -> Iterator[Disk]:
        """Stand between the program and the disk for the block."""
        for name in (*CALLS, "close"):
            setattr(os, name, getattr(self, f"_{name}"))
        try:
            yield self
        finally:
            for name in (*CALLS, "close"):
                setattr(os, name, self._real[name])

    def _full(self, path: Any, folder: int | None) -> str:
        text = os.fspath(path)
        if not isinstance(text, str) or text.startswith("/"):
            return str(text)
        return f"{self._paths[folder]}/{text}" if folder in self._paths else text

    def _do(self, name: str, call: Callable[[], Any], path: str, **more: Any) -> Any:
        if not path.startswith(self.root):
            return call()
        self.count += 1
        event = Call(self.count, name, path, **more)
        self.before(event)
        result = call()
        if name == "open":
            event.descriptor = result
        self.after(event)
        return result

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        full = self._full(path, dir_fd)
        call = lambda: self._real["open"](path, flags, mode, dir_fd=dir_fd)  # noqa: E731
        makes = flags & os.O_CREAT and not os.path.lexists(full)
        descriptor: int = self._do("open", call, full) if makes else call()
        self._paths[descriptor] = full
        return descriptor

    def _close(self, descriptor: int) -> None:
        self._paths.pop(descriptor, None)
        self._real["close"](descriptor)

    def _write(self, descriptor: int, data: Any) -> int:
        def call() -> int:
            written: int = self._real["write"](descriptor, data)
            return written

        path = self._paths.get(descriptor, "")
        result: int = self._do("write", call, path, data=bytes(data), descriptor=descriptor)
        return result

    def _fsync(self, descriptor: int) -> None:
        path = self._paths.get(descriptor, "")
        self._do("fsync", lambda: self._real["fsync"](descriptor), path, descriptor=descriptor)

    def _ftruncate(self, descriptor: int, length: int) -> None:
        path = self._paths.get(descriptor, "")
        self._do("ftruncate", lambda: self._real["ftruncate"](descriptor, length), path)

    def _rename(self, old: Any, new: Any, **folders: Any) -> None:
        target = self._full(new, folders.get("dst_dir_fd"))
        path = self._full(old, folders.get("src_dir_fd"))
        self._do("rename", lambda: self._real["rename"](old, new, **folders), path, target=target)

    def _link(self, old: Any, new: Any, **folders: Any) -> None:
        target = self._full(new, None)
        self._do(
            "link",
            lambda: self._real["link"](old, new, **folders),
            self._full(old, None),
            target=target,
        )

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        full = self._full(path, dir_fd)
        call = lambda: self._real["unlink"](path, dir_fd=dir_fd)  # noqa: E731
        if os.path.lexists(full):
            self._do("unlink", call, full)
        else:
            call()

    def _mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        full = self._full(path, dir_fd)
        call = lambda: self._real["mkdir"](path, mode, dir_fd=dir_fd)  # noqa: E731
        if os.path.lexists(full):
            call()
        else:
            self._do("mkdir", call, full)


@dataclass
class _File:
    """What was ever in a file: (time, content), and when it was synced."""

    contents: list[tuple[int, bytes]] = field(default_factory=list)
    synced: list[int] = field(default_factory=list)


class Recording:
    """What a program did to the files below `root`, and what may be left of it.

    Two promises are all that is believed: a file's content is safe once the file was synced, and
    what happened in a folder is safe, in order, once the folder was synced.
    """

    def __init__(self, root: Path) -> None:
        self.disk = Disk(root)
        self.disk.after = self._note
        self._root = root
        self._names: dict[str, _File | None] = {}  # now; None is a folder
        self._steps: dict[str, list[tuple[int, str, _File | None, str]]] = defaultdict(list)
        self._synced: dict[str, list[int]] = defaultdict(list)
        self._by_descriptor: dict[int, _File] = {}
        for path in sorted(root.rglob("*")):
            kept = None if path.is_dir() else _File([(0, path.read_bytes())], [0])
            self._names[str(path)] = kept
        self._first = dict(self._names)

    @property
    def now(self) -> int:
        """The number of the last call."""
        return self.disk.count

    def _note(self, call: Call) -> None:
        folder, _, name = call.path.rpartition("/")
        if call.name == "open":
            made = _File([(call.number, b"")])
            self._names[call.path] = self._by_descriptor[call.descriptor] = made
            self._steps[folder].append((call.number, "set", made, name))
        elif call.name == "mkdir":
            self._names[call.path] = None
            self._steps[folder].append((call.number, "set", None, name))
        elif call.name == "write":
            file = self._by_descriptor.get(call.descriptor)
            if file is not None and self._names.get(call.path) is file:
                file.contents.append((call.number, file.contents[-1][1] + call.data))
        elif call.name == "fsync":
            known = self._names.get(call.path)
            (known.synced if known is not None else self._synced[call.path]).append(call.number)
        elif call.name == "unlink":
            self._names.pop(call.path, None)
            self._steps[folder].append((call.number, "drop", None, name))
        elif call.name in {"rename", "link"}:
            moved = self._names[call.path]
            new_folder, _, new_name = call.target.rpartition("/")
            assert new_folder == folder, "the model knows only moves within a folder"
            if call.name == "rename":
                del self._names[call.path]
                self._steps[folder].append((call.number, f"move {name}", moved, new_name))
            else:
                self._steps[folder].append((call.number, "set", moved, new_name))
            self._names[call.target] = moved

    def cut_power(self, when: int, place: Path, rng: random.Random) -> None:
        """Write to `place` what the disk may hold when the power is cut after call `when`."""
        names = dict(self._first)
        for folder, steps in self._steps.items():
            done = [step for step in steps if step[0] <= when]
            synced = max((n for n in self._synced[folder] if n <= when), default=0)
            safe = sum(step[0] <= synced for step in done)
            for _, what, file, name in done[: rng.randint(safe, len(done))]:
                if what.startswith("move "):
                    names.pop(f"{folder}/{what[5:]}", None)
                if what == "drop":
                    names.pop(f"{folder}/{name}", None)
                else:
                    names[f"{folder}/{name}"] = file
        chosen: dict[int, bytes] = {}
        for path, file in sorted(names.items()):
            target = place / Path(path).relative_to(self._root)
            if not target.parent.is_dir():
                continue  # its folder was lost
            if file is None:
                target.mkdir()
            else:
                target.write_bytes(chosen.setdefault(id(file), _left_of(file, when, rng)))


def _left_of(file: _File, when: int, rng: random.Random) -> bytes:
    contents = [content for number, content in file.contents if number <= when]
    synced = max((number for number in file.synced if number <= when), default=-1)
    safe = next((c for n, c in reversed(file.contents) if n <= synced), b"")
    last = contents[-1] if contents else b""
    if last == safe:
        return last
    return rng.choice([safe, last, last[: rng.randint(0, len(last))], bytes(len(last))])
