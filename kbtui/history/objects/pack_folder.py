"""The packs as files: counted, put in place, taken away, each in an order that a crash can't hurt.

A pack counts from the moment that its index is there, so indexes come last and go first.
"""

from __future__ import annotations

import contextlib
import shutil
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kbtui.workspace.durable import litter, sync_folder, temporary_name

INCOMING = "incoming-"
"""The prefix of folders in which packs wait to be let in; a dead process's are swept."""
_SECOND_VERSION = b"\xfftOc\0\0\0\x02"
_COUNT = 8 + 255 * 4  # where the index says how many objects there are
_NAMES = 8 + 256 * 4
_NAME = 20
_STALE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class PackRecord:
    """An object as it goes into a pack: whole, or as a delta to `base`, which comes before it."""

    id: str
    kind: bytes
    data: bytes
    base: str | None = None


class PackFolder:
    """The folder ``objects/pack`` of a repository."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._folder = repository / "objects" / "pack"

    def counts(self) -> dict[str, int]:
        """How many objects each pack holds that may be replaced, by the name of its files."""
        found: dict[str, int] = {}
        for index in self._folder.glob("*.idx"):
            if index.with_suffix(".pack").exists() and not index.with_suffix(".keep").exists():
                with contextlib.suppress(FileNotFoundError), index.open("rb") as file:
                    head = file.read(_NAMES)
                    if head.startswith(_SECOND_VERSION):
                        found[index.stem] = struct.unpack_from(">I", head, _COUNT)[0]
        return found

    def objects(self, name: str) -> list[str]:
        """The ids of what a pack holds."""
        data = (self._folder / f"{name}.idx").read_bytes()
        count = struct.unpack_from(">I", data, _COUNT)[0]
        end = _NAMES + count * _NAME
        return [data[at : at + _NAME].hex() for at in range(_NAMES, end, _NAME)]

    def doubled(self, counts: Mapping[str, int], now: float) -> dict[str, float]:
        """The packs all of whose objects lie in a larger one, with the seconds since that is there.

        Args:
            counts: The packs to look at, as `counts` gives them.
            now: The time by the clock that the files are dated by.
        """
        smallest_first = sorted(counts, key=lambda name: (counts[name], name))
        held = {name: frozenset(self.objects(name)) for name in smallest_first}
        found: dict[str, float] = {}
        for number, name in enumerate(smallest_first, 1):
            larger = next((one for one in smallest_first[number:] if held[name] <= held[one]), "")
            if larger:
                found[name] = now - (self._folder / f"{larger}.idx").stat().st_mtime
        return found

    def holds(self, name: str) -> bool:
        """True if a pack is there."""
        return (self._folder / f"{name}.idx").exists()

    @contextlib.contextmanager
    def aside(self) -> Iterator[Path]:
        """A folder shaped like ``objects`` whose packs nobody sees, removed afterwards."""
        folder = self._repository / temporary_name(INCOMING)
        (folder / "objects" / "pack").mkdir(mode=0o700, parents=True)
        try:
            yield folder / "objects"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def let_in(self, objects: Path) -> None:
        """Take over the synced packs that lie below another folder like ``objects``."""
        for suffix in ("*.pack", "*.idx"):
            for file in (objects / "pack").glob(suffix):
                if not (self._folder / file.name).exists():
                    file.rename(self._folder / file.name)
            sync_folder(self._folder)

    def remove(self, names: Iterable[str]) -> None:
        """Take away packs; who has one open reads on in it."""
        for name in names:
            (self._folder / f"{name}.idx").unlink(missing_ok=True)
            for file in self._folder.glob(f"{name}.*"):
                file.unlink(missing_ok=True)
        sync_folder(self._folder)

    def litter(self) -> Iterator[Path]:
        """What killed writers left: folders, locks, after a while packs without an index."""
        yield from litter(self._repository, temporary=INCOMING)
        yield from self._folder.glob("pack-*.idx.lock")  # we alone write packs so, under the lock
        for file in (*self._folder.glob("*.pack"), *self._folder.glob("tmp_pack_*")):
            with contextlib.suppress(FileNotFoundError):
                old = time.time() - file.stat().st_ctime > _STALE_SECONDS
                if old and not file.with_suffix(".idx").exists():
                    yield file
