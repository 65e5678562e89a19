"""Crash-safe management of pack files: counting, installing, removing.

A pack takes effect once its index exists, so indexes are written last and removed first.
"""

from __future__ import annotations

import contextlib
import shutil
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kbtui.workspace.durable import litter, make_folder, sync_folder, temporary_name

INCOMING = "incoming-"
"""The prefix of staging folders for new packs; those of dead processes are removed."""
_VERSION_2_HEADER = b"\xfftOc\0\0\0\x02"
_COUNT_OFFSET = 8 + 255 * 4  # offset of the number of objects in an index
_IDS_OFFSET = 8 + 256 * 4
_ID_SIZE = 20
_STALE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class PackRecord:
    """An object to be packed: whole, or as a delta against `base`, which precedes it."""

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
        """Return the number of objects in each replaceable pack, by the stem of its files."""
        found: dict[str, int] = {}
        for index in self._folder.glob("*.idx"):
            if index.with_suffix(".pack").exists() and not index.with_suffix(".keep").exists():
                with contextlib.suppress(FileNotFoundError), index.open("rb") as file:
                    head = file.read(_IDS_OFFSET)
                    if head.startswith(_VERSION_2_HEADER):
                        found[index.stem] = struct.unpack_from(">I", head, _COUNT_OFFSET)[0]
        return found

    def objects(self, name: str) -> list[str]:
        """Return the ids of the objects in a pack."""
        data = (self._folder / f"{name}.idx").read_bytes()
        count = struct.unpack_from(">I", data, _COUNT_OFFSET)[0]
        end = _IDS_OFFSET + count * _ID_SIZE
        return [data[at : at + _ID_SIZE].hex() for at in range(_IDS_OFFSET, end, _ID_SIZE)]

    def doubled(self, counts: Mapping[str, int], now: float) -> dict[str, float]:
        """Find packs whose objects are all in a larger one, with that one's age in seconds.

        Args:
            counts: The packs to look at, as returned by `counts`.
            now: The current time by the clock of the files' timestamps.
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
        """Return whether a pack exists."""
        return (self._folder / f"{name}.idx").exists()

    @contextlib.contextmanager
    def aside(self) -> Iterator[Path]:
        """Create a staging folder shaped like ``objects``, and remove it afterwards."""
        folder = self._repository / temporary_name(INCOMING)
        make_folder(self._repository, f"{folder.name}/objects/pack")
        try:
            yield folder / "objects"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def install(self, objects: Path) -> None:
        """Install the packs of a staging folder, which must be synced to disk."""
        for suffix in ("*.pack", "*.idx"):
            for file in (objects / "pack").glob(suffix):
                if not (self._folder / file.name).exists():
                    file.rename(self._folder / file.name)
            sync_folder(self._folder)

    def remove(self, names: Iterable[str]) -> None:
        """Remove packs; processes that have one open can go on reading it."""
        for name in names:
            (self._folder / f"{name}.idx").unlink(missing_ok=True)
            for file in self._folder.glob(f"{name}.*"):
                file.unlink(missing_ok=True)
        sync_folder(self._folder)

    def litter(self) -> Iterator[Path]:
        """Yield leftovers of killed writers: folders, locks, and old packs without an index."""
        yield from litter(self._repository, temporary=INCOMING)
        yield from self._folder.glob("pack-*.idx.lock")  # only kbtui makes these, under its lock
        for file in (*self._folder.glob("*.pack"), *self._folder.glob("tmp_pack_*")):
            with contextlib.suppress(FileNotFoundError):
                old = time.time() - file.stat().st_ctime > _STALE_SECONDS
                if old and not file.with_suffix(".idx").exists():
                    yield file
