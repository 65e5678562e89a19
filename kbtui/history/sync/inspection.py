"""Inspection of everything fetched from elsewhere before it is installed.

A remote may be hostile: names that lead into git's own files, objects that unpack to gigabytes or
have false types. What no git program would create is refused completely. Anything else that isn't a
workspace's, such as a README.md, .obsidian, a link or a video, is accepted but only stored: no such
file is ever written here.
"""

from __future__ import annotations

import os
import re
import struct
import unicodedata
import zlib
from collections.abc import Callable, Container, Iterable
from typing import BinaryIO

from kbtui.errors import KbtuiError, NotFoundError, RefusedHistoryError
from kbtui.history.objects.lineage import newer
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import (
    FILES,
    FOLDER,
    LINK,
    MODULE,
    TreeEntry,
    parse_tree,
    serialize_tree,
)
from kbtui.history.sync.purge import PurgedTipError
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.layout import with_end

MAX_OBJECT = 4 * files.READ_LIMIT
"""The size limit of one object in bytes; files above `files.READ_LIMIT` are only stored."""
MAX_OBJECTS = 20_000_000
_MAX_DEPTH = 200
_MODES = {FOLDER, LINK, MODULE, *FILES}
_PIECE = 1 << 16
# 8.3 file names that Windows resolves to ".git".
_SHORT_NAME = re.compile(r"git~\d+", re.IGNORECASE)
# NTFS syntax for another stream of a file (git's CVE-2019-1352).
_STREAM = re.compile(r":(?=[:$])[:$]*")
_PERSON = rb"[^\n\0<>]* <[^\n\0<>]*> \d{1,10} [+-]\d{4}\n"
_COMMIT = re.compile(
    rb"tree [0-9a-f]{40}\n(?:parent [0-9a-f]{40}\n)*author %b" % _PERSON
    + rb"committer %b(?:[a-zA-Z][^\n\0]*\n(?: [^\n\0]*\n)*)*\n[^\0]*" % _PERSON,
    re.DOTALL,
)


Watch = Callable[[int, int], None]
_PROGRESS_STEP = 500


def _ignore_progress(_done: int, _total: int) -> None:
    return


def check_pack(stream: BinaryIO, watch: Watch = _ignore_progress) -> None:
    """Unpack every object of a pack in pieces, storing nothing, and check the sizes.

    `watch` receives the number of objects done, of how many, and may cancel.

    Raises:
        RefusedHistoryError: An object is too large, or isn't what it claims to be.
    """
    stream.seek(0)
    head = stream.read(12)
    if len(head) != 12 or head[:4] != b"PACK":
        raise _refused("what it sent is no git pack")
    count = struct.unpack(">L", head[8:])[0]
    if count > MAX_OBJECTS:
        raise _refused("it has too many objects")
    reader = _PackReader(stream.read)
    try:
        for number in range(count):
            if number % _PROGRESS_STEP == 0:
                watch(number, count)
            reader.skip_object()
    except (zlib.error, EOFError, IndexError) as error:
        raise _refused("what it sent is damaged") from error
    stream.seek(0, os.SEEK_END)


class _PackReader:
    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._buffer = b""

    def skip_object(self) -> None:
        byte = self._byte()
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 0x80:
            byte = self._byte()
            size |= (byte & 0x7F) << shift
            shift += 7
        if size > MAX_OBJECT:
            raise _too_large(size)
        if kind == 6:  # a delta to an object at an offset
            while self._byte() & 0x80:
                pass
        elif kind == 7:  # a delta to a named object
            for _ in range(20):
                self._byte()
        self._inflate(size, is_delta=kind in {6, 7})

    def _inflate(self, size: int, *, is_delta: bool) -> None:
        inflater = zlib.decompressobj()
        done, start = 0, b""
        while True:
            if not self._buffer and not self._fill():
                raise EOFError
            piece = inflater.decompress(self._buffer, _PIECE)
            self._buffer = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            done += len(piece)
            start = (start + piece)[:24] if len(start) < 24 else start
            if done > size:
                raise _refused("an object is larger than it says")
            if inflater.eof:
                break
        if done != size:
            raise _refused("an object is smaller than it says")
        if is_delta and (made := _result_size(start)) > MAX_OBJECT:
            raise _too_large(made)

    def _byte(self) -> int:
        if not self._buffer and not self._fill():
            raise EOFError
        byte, self._buffer = self._buffer[0], self._buffer[1:]
        return byte

    def _fill(self) -> bool:
        self._buffer = self._read(_PIECE)
        return bool(self._buffer)


def _result_size(delta: bytes) -> int:
    """Return the size of a delta's result, the second of the two numbers that it begins with."""
    size = place = 0
    for _ in range(2):
        size = shift = 0
        while True:
            byte = delta[place]
            place += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
    return size


class MissingPartError(RefusedHistoryError):
    """An object of the history wasn't sent, nor is it here, or it is damaged."""


class Inspection:
    """Inspects the new commits and everything they contain.

    Args:
        incoming: The repository with the new objects and access to the known ones.
        known: The commits that are installed already.
        purged: Commits that must not come back.
        contents: Whether to inspect the contents of files as well.
    """

    def __init__(
        self,
        incoming: Repository,
        known: Container[str],
        purged: Container[str] = (),
        *,
        contents: bool = True,
    ) -> None:
        self._incoming = incoming
        self._known = known
        self._purged = purged
        self._contents = contents
        self._trees: set[str] = set()
        self._names: set[bytes] = set()
        self._blobs: set[bytes] = set()
        self.large: set[str] = set()
        """The blobs found to be too large for a workspace's files."""

    def check(self, tip: str, watch: Watch = _ignore_progress, *, alone: bool = False) -> None:
        """Check everything up to a commit, or only that commit with `alone`.

        `watch` receives the number of commits done, of how many, and may cancel.

        Raises:
            MissingPartError: Something is missing.
            RefusedHistoryError: Something isn't valid git data.
            PurgedTipError: It is based on a purged commit.
        """
        try:
            before: str | None = None
            known = self._incoming.read_commit(tip).parents if alone else self._known
            commits = [*newer(self._incoming, tip, known)]
            for number, (identifier, raw) in enumerate(commits):
                watch(number, len(commits))
                if identifier in self._purged:
                    raise PurgedTipError(tip)
                kind, data = self._incoming.read_object(identifier)
                if kind != b"commit" or not _COMMIT.fullmatch(data):
                    raise _refused(f"commit {identifier[:10]} is malformed")
                if raw.parents and not alone:
                    before = self._incoming.read_commit(raw.parents[0]).tree
                self._check_tree(raw.tree, before if raw.parents else None, "")
        except RefusedHistoryError:
            raise
        except NotFoundError as error:
            refusal = _refused("a part of it is missing or damaged")
            raise MissingPartError(refusal.message, refusal.hint) from error
        except (KbtuiError, ValueError, OverflowError) as error:
            raise _refused("a part of it is missing or damaged") from error

    def _check_tree(self, identifier: str, before: str | None, path: str, depth: int = 0) -> None:
        """Check a folder, skipping what is the same in the first parent, which was checked."""
        if identifier == before or identifier in self._trees:
            return
        if depth > _MAX_DEPTH:
            raise _refused("its folders are nested too deeply")
        kind, data = self._incoming.read_object(identifier)
        if kind != b"tree":
            raise _refused(f"{identifier[:10]} is no folder")
        tree = parse_tree(data)
        if serialize_tree(tree) != data:
            raise _refused(f"the folder {path or 'at the top'} is malformed")
        self._trees.add(identifier)
        old = self._incoming.read_tree(before) if before else {}
        for name, entry in tree.items():
            if old.get(name) != entry:
                self._check_entry(f"{path}/" if path else "", name, entry, old.get(name), depth)

    def _check_entry(
        self, folder: str, name: bytes, entry: TreeEntry, was: TreeEntry | None, depth: int
    ) -> None:
        mode, sha = entry
        path = folder + name.decode("utf-8", "replace")
        if name not in self._names:
            if _is_forbidden(name):
                raise _refused(f"it holds the name {_shown(path)}")
            self._names.add(name)
        if mode not in _MODES:
            raise _refused(f"{_shown(path)} is no plain file")
        if mode == FOLDER:
            below = was[1].hex() if was is not None and was[0] == FOLDER else None
            self._check_tree(sha.hex(), below, path, depth + 1)
        elif self._contents and mode != MODULE and sha not in self._blobs:
            kind, data = self._incoming.read_object(sha.hex())
            if kind != b"blob":
                raise _refused(f"{_shown(path)} is no file")
            if len(data) > files.READ_LIMIT:
                self.large.add(sha.hex())
            self._blobs.add(sha)


def portable_names(paths: Iterable[str], ours: Container[str]) -> dict[str, str]:
    """Return new names, by the old ones, for files whose names can't coexist on every system.

    Older versions recorded such names, other git programs do, and two machines may create names
    that differ only in case. Folders that do are merged; a file whose name is taken gets a number.

    Args:
        paths: All paths that are to coexist.
        ours: Paths that keep their names in preference to others.
    """
    folders: dict[str, str] = {}  # the spelling by the casefolded name
    taken: set[str] = set()
    found: dict[str, str] = {}
    for path in sorted(
        paths, key=lambda each: (each not in ours, not files.is_portable(each), each)
    ):
        *parts, last = map(_portable, path.split("/"))
        folder = ""
        for part in parts[: files.MAX_DEPTH - 1]:
            below = f"{folder}{part}"
            while below.casefold() in taken:
                below += "-2"
            folder = folders.setdefault(below.casefold(), f"{below}/")
        name, number = folder + last, 1
        while name.casefold() in taken or name.casefold() in folders:
            number += 1
            name = folder + with_end(last, f"-{number}")
        taken.add(name.casefold())
        if name != path:
            found[path] = name
    return found


def _portable(name: str) -> str:
    """Make a name storable on every system."""
    plain = _STREAM.sub("-", unicodedata.normalize("NFC", name)).rstrip(" .")
    return plain or "unnamed"


def _is_forbidden(raw: bytes) -> bool:
    """Return whether a name leads elsewhere, or some system resolves it to git's own folder."""
    name = raw.decode("utf-8", "replace")
    seen = "".join(char for char in name if unicodedata.category(char) != "Cf").casefold()
    is_own = seen.rstrip(" .") == ".git" or _SHORT_NAME.fullmatch(name) is not None
    return is_own or name in {".", ".."} or "/" in name


def _shown(path: str) -> str:
    return repr(clean_line(path)[:120])


def _too_large(size: int) -> RefusedHistoryError:
    return _refused(f"it holds a file of {size / 2**20:,.0f} MB, at most {MAX_OBJECT >> 20} MB")


def _refused(why: str) -> RefusedHistoryError:
    return RefusedHistoryError(
        f"The other history is refused: {why}.",
        "Nothing was taken over. Look at that place with git: `git fsck --strict` there says more.",
    )
