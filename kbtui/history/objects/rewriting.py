"""Writing a history anew without a secret; everything else of it stays as it was.

Commits before the first that holds the secret keep their ids. Of the others only what names the
secret changes, and what names a changed object: trees, parents, the ids that messages mention.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbtui.history.objects.lineage import everything
from kbtui.history.objects.trees import (
    FOLDER,
    changed_objects,
    git_object,
    parse_tree,
    serialize_tree,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbtui.history.objects.commit import RawCommit
    from kbtui.history.objects.repository import Repository
    from kbtui.history.objects.trees import GitObject, TreeEntry
    from kbtui.workspace.secret import Secret

_MENTIONED = re.compile(rb"\b[0-9a-f]{10,40}\b")
_SHORT = 10
_FEW = 64


class Rewriting:
    """Writes the branch and the proposals anew.

    Attributes:
        commits: The new id of each commit that had to change.
        made: How many objects were made.
    """

    def __init__(self, repository: Repository, secret: Secret) -> None:
        self.commits: dict[str, str] = {}
        self.made = 0
        self._repository = repository
        self._secret = secret
        self._trees: dict[str, str] = {}
        self._blobs: dict[bytes, bytes] = {}
        self._prefixes: dict[bytes, bytes] = {}
        self._new: list[GitObject] = []

    def run(self) -> Iterator[list[GitObject]]:
        """Yield what has to be stored, in portions; afterwards `commits` is complete."""
        commits = everything(self._repository)
        self._look_through_blobs(commits)
        for identifier, _ in commits:
            self._rewrite(identifier)
            if len(self._new) >= 1000:  # noqa: PLR2004 — a portion
                yield self._portion()
        yield self._portion()

    def _portion(self) -> list[GitObject]:
        portion, self._new = self._new, []
        self.made += len(portion)
        return portion

    def _look_through_blobs(self, commits: Sequence[tuple[str, RawCommit]]) -> None:
        """Find every version of every file that holds the secret."""
        seen: set[str] = set()
        for _, raw in commits:
            before = self._repository.read_commit(raw.parents[0]).tree if raw.parents else None
            for _, made in changed_objects(before, raw.tree, self._repository.read_entries):
                if made in seen:
                    continue
                seen.add(made)
                kind, data = self._repository.read_object(made)
                if kind == b"blob" and self._secret.is_in(data):
                    new = git_object(b"blob", self._secret.without(data))
                    self._blobs[bytes.fromhex(made)] = bytes.fromhex(new.id)
                    self._new.append(new)

    def _rewrite(self, identifier: str) -> None:
        _, data = self._repository.read_object(identifier)
        head, gap, message = data.partition(b"\n\n")
        lines = []
        for line in head.split(b"\n"):
            key, _, value = line.partition(b" ")
            if key == b"tree":
                lines.append(b"tree " + self._tree(value.decode()).encode())
            elif key == b"parent":
                lines.append(b"parent " + self.commits.get(value.decode(), value.decode()).encode())
            else:
                lines.append(self._secret.without(line))
        message = _MENTIONED.sub(self._renamed, self._secret.without(message))
        new = git_object(b"commit", b"\n".join(lines) + gap + message)
        if new.id == identifier:
            return
        self.commits[identifier] = new.id
        self._prefixes[identifier[:_SHORT].encode()] = identifier.encode()
        self._new.append(new)

    def _renamed(self, found: re.Match[bytes]) -> bytes:
        """The new id where a message mentions a commit that has one, as long as it was."""
        mention = found.group()
        full = self._prefixes.get(mention[:_SHORT])
        if full is None or not full.startswith(mention):
            return mention
        return self.commits[full.decode()].encode()[: len(mention)]

    def _tree(self, identifier: str) -> str:
        if identifier not in self._trees:
            self._trees[identifier] = self._new_tree(identifier)
        return self._trees[identifier]

    def _new_tree(self, identifier: str) -> str:
        data = self._repository.read_object(identifier)[1]
        tree = parse_tree(data)
        changes: dict[bytes, TreeEntry] = {}
        for name, (mode, sha) in tree.items():
            if mode == FOLDER:
                new = bytes.fromhex(self._tree(sha.hex()))
            else:
                new = self._blobs.get(sha, sha)
            if new != sha:
                changes[name] = (mode, new)
        named = [name for name in tree if self._secret.is_in(name)]
        if not changes and not named:
            return identifier
        rewritten = {**tree, **changes}
        for name in named:
            entry = rewritten.pop(name)
            rewritten[_free_name(self._secret.name_without(name), rewritten)] = entry
        made = git_object(b"tree", serialize_tree(rewritten))
        self._new.append(made)
        return made.id


def _free_name(name: bytes, taken: dict[bytes, TreeEntry]) -> bytes:
    stem, dot, suffix = name.rpartition(b".")
    number, free = 1, name
    while free in taken:
        number += 1
        free = b"%s-%d%s%s" % (stem or suffix, number, dot, suffix if stem else b"")
    return free
