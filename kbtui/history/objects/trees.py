"""Git trees as bytes: parse, serialize, update along paths, compare.

Only the trees on the way to a changed path are touched, so a change costs the same in a workspace
of ten entries and (nearly) in one of ten thousand.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kbtui.workspace.files import blob_id

FOLDER = b"40000"
FILE = b"100644"
FILES = frozenset({FILE, b"100755"})
LINK = b"120000"
MODULE = b"160000"
"""The mode of a submodule: a commit of another repository, which this one doesn't hold."""
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
_WHOLE_ENTRY = re.compile(rb"[^\0]+\0.{20}", re.DOTALL)
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


# Name -> (git's mode, raw hash). Plain tuples, since large folders are read often.
TreeEntry = tuple[bytes, bytes]
Tree = dict[bytes, TreeEntry]
GONE: TreeEntry = (b"", b"")
"""The edit that removes an entry, which may be a folder."""


class GitObject(NamedTuple):
    """An object to be stored."""

    id: str
    kind: bytes
    data: bytes


def git_object(kind: bytes, data: bytes) -> GitObject:
    """Compute the id of an object from its content."""
    if kind == b"blob":
        return GitObject(blob_id(data), kind, data)
    header = b"%s %d\0" % (kind, len(data))
    return GitObject(hashlib.sha1(header + data, usedforsecurity=False).hexdigest(), kind, data)


def parse_tree(data: bytes) -> Tree:
    """Parse the content of a tree object."""
    return {name: (mode, sha) for mode, name, sha in _ENTRY.findall(data)}


def serialize_tree(tree: Tree) -> bytes:
    """Serialize a tree object in git's order, in which folders sort as if they ended in ``/``."""
    ordered = sorted(
        [(name + b"/" if mode == FOLDER else name, name) for name, (mode, _) in tree.items()]
    )
    parts: list[bytes] = []
    for _, name in ordered:
        mode, sha = tree[name]
        parts += (mode, b" ", name, b"\0", sha)
    return b"".join(parts)


def update_tree(
    root: str | None, edits: Mapping[str, str | TreeEntry | None], read: Callable[[str], Tree]
) -> tuple[str, dict[GitObject, Tree]]:
    """Apply edits to a tree; return the id of the new tree and the new trees below it.

    Args:
        root: The id of the tree to start from; None is the empty one.
        edits: The new blob id of each path; None removes the file. A `TreeEntry` is stored as is.
        read: Reads a tree by its id.
    """
    new: dict[GitObject, Tree] = {}
    identifier = _update(root, _nest(edits), read, new)
    if identifier is None:
        return EMPTY_TREE, {git_object(b"tree", b""): {}}
    return identifier, new


_Nested = dict[bytes, "str | TreeEntry | _Nested | None"]


def _nest(edits: Mapping[str, str | TreeEntry | None]) -> _Nested:
    top: _Nested = {}
    # Deletions first: one change may replace a file by a folder, or a folder by a file.
    for path, blob in sorted(edits.items(), key=lambda edit: edit[1] is not None):
        *folders, name = path.encode("utf-8", "surrogateescape").split(b"/")
        level = top
        for folder in folders:
            below = level.get(folder)
            if not isinstance(below, dict):
                below = level[folder] = {}
            level = below
        if blob is not None or name not in level:
            level[name] = blob
    return top


def _update(
    identifier: str | None,
    edits: _Nested,
    read: Callable[[str], Tree],
    new: dict[GitObject, Tree],
) -> str | None:
    """Rewrite one tree recursively; return its new id, or None if it becomes empty."""
    tree = dict(read(identifier)) if identifier else {}
    for name, edit in edits.items():
        was = mode, sha = tree.get(name, GONE)
        if isinstance(edit, dict):
            below = _update(sha.hex() if mode == FOLDER else None, edit, read, new)
            now = (FOLDER, bytes.fromhex(below)) if below else GONE if mode == FOLDER else was
        elif isinstance(edit, str):
            now = mode if mode in FILES else FILE, bytes.fromhex(edit)
        else:
            now = edit or (GONE if mode in FILES else was)
        tree[name] = now
        if now == GONE:
            del tree[name]
    if not tree:
        return None
    made = git_object(b"tree", serialize_tree(tree))
    if made.id != identifier:
        new[made] = tree
    return made.id


def walk_files(
    identifier: str, read: Callable[[str], Tree], prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield (path, blob id) of every file below a tree; undecodable bytes are surrogate-escaped."""
    for name, (mode, sha) in read(identifier).items():
        path = prefix + name.decode("utf-8", "surrogateescape")
        if mode == FOLDER:
            yield from walk_files(sha.hex(), read, f"{path}/")
        elif mode in FILES:
            yield path, sha.hex()


def split_tree(data: bytes) -> list[bytes]:
    """Split a tree object into entries without parsing them, which is twice as fast."""
    return _WHOLE_ENTRY.findall(data)


def compare_trees(
    old: str | None, new: str | None, read: Callable[[str], list[bytes]], prefix: str = ""
) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield (path, old blob id, new blob id) where two trees differ, skipping equal folders.

    `read` returns the unparsed entries of a tree: see `split_tree`.
    """
    if old == new:
        return
    gone, made = _different_entries(read(old) if old else [], read(new) if new else [])
    for name in gone.keys() | made.keys():
        path = prefix + name.decode("utf-8", "surrogateescape")
        was_folder, was = _ids(gone.get(name))
        now_folder, now = _ids(made.get(name))
        if was_folder or now_folder:
            yield from compare_trees(was_folder, now_folder, read, f"{path}/")
        if was != now:
            yield path, was, now


def changed_objects(
    old: str | None, new: str, read: Callable[[str], list[bytes]], path: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield (path, id) of every new tree and blob; the path of a tree ends in ``/``.

    Symbolic links count as blobs; submodules are skipped.
    """
    if old == new:
        return
    yield f"{path}/", new
    gone, made = _different_entries(read(old) if old else [], read(new))
    for name, entry in made.items():
        below = f"{path}/{name.decode('utf-8', 'replace')}"
        mode, sha = entry
        if mode == FOLDER:
            yield from changed_objects(_ids(gone.get(name))[0], sha.hex(), read, below)
        elif mode != MODULE:
            yield below, sha.hex()


def _different_entries(old: list[bytes], new: list[bytes]) -> tuple[Tree, Tree]:
    """Return the entries that are only in the old tree, and those only in the new one."""
    if len(old) == len(new):  # the usual case: one entry got new content
        pairs = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        gone, made = {a for a, _ in pairs}, {b for _, b in pairs}
    else:
        gone, made = set(old), set(new)
    return parse_tree(b"".join(gone - made)), parse_tree(b"".join(made - gone))


def _ids(entry: TreeEntry | None) -> tuple[str | None, str | None]:
    """Return the id of an entry as (folder, file), of which at most one is set."""
    mode, sha = entry or GONE
    return sha.hex() if mode == FOLDER else None, sha.hex() if mode in FILES else None


def blob_in_tree(identifier: str, path: str, read: Callable[[str], Tree]) -> str | None:
    """Return the blob id of a path, or None if there is no such file."""
    *folders, name = path.encode().split(b"/")
    for folder in folders:
        below, _ = _ids(read(identifier).get(folder))
        if below is None:
            return None
        identifier = below
    return _ids(read(identifier).get(name))[1]
