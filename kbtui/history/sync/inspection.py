"""All that comes from elsewhere is looked through before it is let in.

A remote may be anybody's: names that lead out of the workspace or into a machine's own files,
links, submodules, objects that unpack to gigabytes. Whatever isn't a plain history of notes is
refused whole, and nothing of it is applied. What a remote has beside the notes, such as a README.md
or .github, is let in as well but only kept: no file of it is ever written here.
"""

from __future__ import annotations

import os
import re
import struct
import unicodedata
import zlib
from collections.abc import Callable, Container, Iterable
from typing import BinaryIO

from kbtui.errors import KbtuiError, RefusedHistoryError, UnsafePathError
from kbtui.history.objects.lineage import newer
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import FOLDER, TreeEntry, parse_tree, serialize_tree
from kbtui.history.sync.purge import PurgedTipError
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.layout import RECORDED_AREAS, is_recorded, with_end

MAX_OBJECT = files.READ_LIMIT
MAX_OBJECTS = 20_000_000
_MAX_DEPTH = 200
_MODES = {FOLDER, b"100644", b"100755"}
_PIECE = 1 << 16
# A workspace's own, and for its machine alone.
_PRIVATE = re.compile(r"\.?kbtui.*|sessions", re.IGNORECASE)
# What other systems take for ".git".
_DISGUISED = re.compile(r"git~\d+", re.IGNORECASE)
# What names another stream of a file (git's CVE-2019-1352).
_STREAM = re.compile(r":(?=[:$])[:$]*")
_PERSON = rb"[^\n\0<>]* <[^\n\0<>]*> \d{1,10} [+-]\d{4}\n"
_COMMIT = re.compile(
    rb"tree [0-9a-f]{40}\n(?:parent [0-9a-f]{40}\n)*author %b" % _PERSON
    + rb"committer %b(?:[a-zA-Z][^\n\0]*\n(?: [^\n\0]*\n)*)*\n[^\0]*" % _PERSON,
    re.DOTALL,
)


def check_pack(stream: BinaryIO) -> None:
    """Unpack every object of a pack piece by piece, keeping nothing, and look at the sizes.

    Raises:
        RefusedHistoryError: An object is too large, or isn't what it says.
    """
    stream.seek(0)
    head = stream.read(12)
    if len(head) != 12 or head[:4] != b"PACK":  # the header's length
        raise _refused("what it sent is no git pack")
    count = struct.unpack(">L", head[8:])[0]
    if count > MAX_OBJECTS:
        raise _refused("it has too many objects")
    reader = _PackReader(stream.read)
    try:
        for _ in range(count):
            reader.skip_object()
    except (zlib.error, EOFError, IndexError) as error:
        raise _refused("what it sent is damaged") from error
    stream.seek(0, os.SEEK_END)


class _PackReader:
    """Walks over the objects of a pack."""

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
        if is_delta and (made := _made_size(start)) > MAX_OBJECT:
            raise _too_large(made)

    def _byte(self) -> int:
        if not self._buffer and not self._fill():
            raise EOFError
        byte, self._buffer = self._buffer[0], self._buffer[1:]
        return byte

    def _fill(self) -> bool:
        self._buffer = self._read(_PIECE)
        return bool(self._buffer)


def _made_size(delta: bytes) -> int:
    """How large a delta's result is: the second of the two numbers that it begins with."""
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


class Inspection:
    """Looks through the commits that are new, and all that they hold.

    Args:
        incoming: Where the new objects lie, with the known ones behind them.
        known: The commits that are let in already.
        purged: Commits that must not come back.
    """

    def __init__(
        self, incoming: Repository, known: Container[str], purged: Container[str] = ()
    ) -> None:
        self._incoming = incoming
        self._known = known
        self._purged = purged
        self._trees: set[tuple[str, bool | None]] = set()
        self._names: set[tuple[bytes, bool]] = set()
        self._blobs: set[bytes] = set()

    def check(self, tip: str) -> None:
        """Check everything up to a commit.

        Raises:
            RefusedHistoryError: Something is no note, or is missing.
            PurgedTipError: It is built on a purged commit.
        """
        try:
            for identifier, raw in newer(self._incoming, tip, self._known):
                if identifier in self._purged:
                    raise PurgedTipError(tip)
                kind, data = self._incoming.read_object(identifier)
                if kind != b"commit" or not _COMMIT.fullmatch(data):
                    raise _refused(f"commit {identifier[:10]} is malformed")
                before = self._incoming.read_commit(raw.parents[0]).tree if raw.parents else None
                self._check_tree(raw.tree, before, "")
            for path in self._incoming.files(tip):
                files.checked_path(path)
        except RefusedHistoryError:
            raise
        except UnsafePathError as error:
            raise _refused(f"it holds a name too long: {error.message[:120]}") from error
        except (KbtuiError, ValueError, OverflowError) as error:
            raise _refused("a part of it is missing or damaged") from error

    def _check_tree(self, identifier: str, before: str | None, path: str, depth: int = 0) -> None:
        """Check a folder, leaving out what stood in its first parent, which was checked."""
        mark = (identifier, _lies_beside(path) if path else None)
        if identifier == before or mark in self._trees:
            return
        if depth > _MAX_DEPTH:
            raise _refused("its folders are nested too deeply")
        kind, data = self._incoming.read_object(identifier)
        if kind != b"tree":
            raise _refused(f"{identifier[:10]} is no folder")
        tree = parse_tree(data)
        if serialize_tree(tree) != data:
            raise _refused(f"the folder {path or 'at the top'} is malformed")
        self._trees.add(mark)
        old = self._incoming.read_tree(before) if before else {}
        for name, entry in tree.items():
            if old.get(name) != entry:
                self._check_entry(f"{path}/" if path else "", name, entry, old.get(name), depth)

    def _check_entry(
        self, folder: str, name: bytes, entry: TreeEntry, was: TreeEntry | None, depth: int
    ) -> None:
        mode, sha = entry
        is_beside = _lies_beside(folder + name.decode("utf-8", "replace"))
        if (name, is_beside) not in self._names:
            _check_name(folder, name, is_beside=is_beside)
            self._names.add((name, is_beside))
        path = folder + name.decode()
        if not folder:
            _check_top_name(path, is_folder=mode == FOLDER)
        if mode not in _MODES:
            what = {b"120000": "a link", b"160000": "a submodule"}.get(mode, "no plain file")
            raise _refused(f"{_shown(path)} is {what}")
        if mode == FOLDER:
            below = was[1].hex() if was is not None and was[0] == FOLDER else None
            self._check_tree(sha.hex(), below, path, depth + 1)
        elif sha not in self._blobs:
            if self._incoming.read_object(sha.hex())[0] != b"blob":
                raise _refused(f"{_shown(path)} is no file")
            self._blobs.add(sha)


def new_names(paths: Iterable[str], ours: Container[str]) -> dict[str, str]:
    """The new names of files that not every machine can have beside each other, by the old ones.

    Older versions recorded such names, other git programs do, and two machines may make twins that
    differ only in case. Folders that do become one; a file whose name is taken gets a number.

    Args:
        paths: All files that are to lie beside each other.
        ours: Those that keep their names where others can't as well.
    """
    folders: dict[str, str] = {}  # as they are spelt, by their names without case
    taken: set[str] = set()
    found: dict[str, str] = {}
    for path in sorted(
        paths, key=lambda each: (each not in ours, not files.is_portable(each), each)
    ):
        *parts, last = map(_plain, path.split("/"))
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


def _plain(name: str) -> str:
    """A name as every machine can have it."""
    plain = _STREAM.sub("-", unicodedata.normalize("NFC", name)).rstrip(" .")
    return plain or "unnamed"


def _lies_beside(path: str) -> bool:
    """True if a file or folder isn't a workspace's: it is kept, and never written."""
    return not is_recorded(path) and not is_recorded(f"{path}/-")


def _check_top_name(name: str, *, is_folder: bool) -> None:
    """Check what is at the top: our own areas are what they are called, and nothing looks so."""
    twin = next((each for each in RECORDED_AREAS if each.casefold() == name.casefold()), name)
    if twin != name:
        raise _refused(f"{_shown(name)} and {_shown(twin)} differ only in case")
    is_ours = not _lies_beside(name)
    if _PRIVATE.fullmatch(name) or (is_ours and is_folder == is_recorded(name)):
        raise _refused(f"{_shown(name)} is not a file that a workspace keeps")


def _check_name(folder: str, raw: bytes, *, is_beside: bool) -> None:
    try:
        name = raw.decode()
        seen = "".join(char for char in name if unicodedata.category(char) != "Cf").casefold()
        plain = name.removeprefix(".") if is_beside and seen != ".git" else name
        is_fine = "/" not in name and bool(files.checked_path(plain))
    except (UnicodeDecodeError, KbtuiError):
        is_fine, name = False, raw.decode("utf-8", "replace")
    if not is_fine or _DISGUISED.fullmatch(name):
        raise _refused(f"it holds the name {_shown(folder + name)}")


def _shown(path: str) -> str:
    return repr(clean_line(path)[:120])


def _too_large(size: int) -> RefusedHistoryError:
    return _refused(f"it holds a file of {size / 2**20:,.0f} MB, at most {MAX_OBJECT >> 20} MB")


def _refused(why: str) -> RefusedHistoryError:
    return RefusedHistoryError(
        f"The other history is refused: {why}.",
        "Nothing was taken over. Look at that place with git, and take out what doesn't belong"
        " into a workspace.",
    )
