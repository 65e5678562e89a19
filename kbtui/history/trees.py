"""Git's trees as bytes: read, written, changed along a few paths, compared.

Only the trees on the way to a changed path are touched, so a change costs the same in a workspace
of ten entries and (nearly) in one of ten thousand.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FOLDER = b"40000"
FILE = b"100644"
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class TreeEntry(NamedTuple):
    """One name in a tree: git's mode and the raw hash of what it names."""

    mode: bytes
    sha: bytes

    @property
    def is_folder(self) -> bool:
        """Whether it names another tree."""
        return self.mode == FOLDER


Tree = dict[bytes, TreeEntry]


class GitObject(NamedTuple):
    """An object to be stored: its id, its kind, its content."""

    id: str
    kind: bytes
    data: bytes


def git_object(kind: bytes, data: bytes) -> GitObject:
    """Name an object by its content, as git does."""
    header = b"%s %d\0" % (kind, len(data))
    return GitObject(hashlib.sha1(header + data, usedforsecurity=False).hexdigest(), kind, data)


def parse_tree(data: bytes) -> Tree:
    """Read a tree object's content."""
    return {name: TreeEntry(mode, sha) for mode, name, sha in _ENTRY.findall(data)}


def serialize_tree(tree: Tree) -> bytes:
    """Write a tree object's content, in git's order: a folder sorts as if it ended in ``/``."""
    ordered = sorted(
        (name + b"/" if entry.is_folder else name, name, entry) for name, entry in tree.items()
    )
    return b"".join(b"%s %s\0%s" % (entry.mode, name, entry.sha) for _, name, entry in ordered)


def update_tree(
    root: str | None, edits: Mapping[str, str | None], read: Callable[[str], Tree]
) -> tuple[str, list[GitObject]]:
    """Apply edits to a tree and return the new tree's id and the tree objects that it needs.

    Args:
        root: The id of the tree to start from; None is the empty one.
        edits: The blob id that each path gets; None removes the path.
        read: Reads a tree by its id.
    """
    new: list[GitObject] = []
    identifier = _update(root, _nest(edits), read, new)
    if identifier is None:
        new.append(git_object(b"tree", b""))
        return EMPTY_TREE, new
    return identifier, new


_Nested = dict[bytes, "str | _Nested | None"]


def _nest(edits: Mapping[str, str | None]) -> _Nested:
    top: _Nested = {}
    for path, blob in edits.items():
        *folders, name = path.encode().split(b"/")
        level = top
        for folder in folders:
            below = level.get(folder)
            if not isinstance(below, dict):  # a file may become a folder within one change
                below = level[folder] = {}
            level = below
        if blob is not None or name not in level:
            level[name] = blob
    return top


def _update(
    identifier: str | None,
    edits: _Nested,
    read: Callable[[str], Tree],
    new: list[GitObject],
) -> str | None:
    """Rewrite one tree; None when nothing is left in it."""
    tree = dict(read(identifier)) if identifier else {}
    for name, edit in edits.items():
        old = tree.get(name)
        if isinstance(edit, dict):
            below = _update(old.sha.hex() if old and old.is_folder else None, edit, read, new)
            entry = TreeEntry(FOLDER, bytes.fromhex(below)) if below else None
        elif edit is not None:
            mode = old.mode if old and not old.is_folder else FILE
            entry = TreeEntry(mode, bytes.fromhex(edit))
        else:
            entry = None
        if entry is not None:
            tree[name] = entry
        elif old is not None and (isinstance(edit, dict) or not old.is_folder):
            del tree[name]
    if not tree:
        return None
    made = git_object(b"tree", serialize_tree(tree))
    if made.id != identifier:
        new.append(made)
    return made.id


def walk_files(
    identifier: str, read: Callable[[str], Tree], prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield (path, blob id) of every file below a tree."""
    for name, entry in read(identifier).items():
        path = prefix + name.decode("utf-8", "replace")
        if entry.is_folder:
            yield from walk_files(entry.sha.hex(), read, f"{path}/")
        else:
            yield path, entry.sha.hex()


def compare_trees(
    old: str | None, new: str | None, read: Callable[[str], Tree], prefix: str = ""
) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield (path, old blob id, new blob id) where two trees differ, skipping equal folders."""
    if old == new:
        return
    before = read(old) if old else {}
    after = read(new) if new else {}
    for name in {name for name, _ in before.items() ^ after.items()}:
        path = prefix + name.decode("utf-8", "replace")
        was, now = before.get(name), after.get(name)
        if (was and was.is_folder) or (now and now.is_folder):
            yield from compare_trees(_id(was, True), _id(now, True), read, f"{path}/")
        blobs = _id(was, False), _id(now, False)
        if blobs[0] != blobs[1]:
            yield path, *blobs


def _id(entry: TreeEntry | None, folder: bool) -> str | None:  # noqa: FBT001 — two calls above
    """The id of what an entry names, if it is of the wanted sort."""
    return entry.sha.hex() if entry is not None and entry.is_folder == folder else None


def blob_in_tree(identifier: str, path: str, read: Callable[[str], Tree]) -> str | None:
    """The blob id of one path, None where there is no file."""
    *folders, name = path.encode().split(b"/")
    for folder in folders:
        entry = read(identifier).get(folder)
        if entry is None or not entry.is_folder:
            return None
        identifier = entry.sha.hex()
    entry = read(identifier).get(name)
    return None if entry is None or entry.is_folder else entry.sha.hex()
