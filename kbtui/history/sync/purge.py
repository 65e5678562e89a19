"""Purge: removes a leaked secret from the whole history.

Each step leaves a valid history, so an interrupted purge is simply run again: new objects are
written beside the old ones, files and branch move to them as in any change, and only then is
everything unreachable deleted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from kbtui.errors import ConflictError
from kbtui.history.door import Door
from kbtui.history.objects.branch import NAME, PROPOSALS
from kbtui.history.objects.commit import (
    Actor,
    Origin,
    RawCommit,
    author_of,
    encode_commit,
    read_commit,
    write_message,
)
from kbtui.history.objects.lineage import everything, newer
from kbtui.history.objects.pack_folder import INCOMING
from kbtui.history.objects.packing import pack_commits
from kbtui.history.objects.repository import LARGE, Repository
from kbtui.history.objects.trees import (
    FOLDER,
    GitObject,
    TreeEntry,
    changed_objects,
    git_object,
    parse_tree,
    serialize_tree,
)
from kbtui.redaction.secret import MARKER, Secret, is_binary
from kbtui.text import json_object
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import MACHINE
from kbtui.workspace.removals import hidden_name

_NAME = f"{MACHINE}/purged"


class PurgedTipError(Exception):
    """The other side still has commits that a purge has replaced here."""

    def __init__(self, tip: str) -> None:
        super().__init__(tip)
        self.tip = tip


class PurgedCommits:
    """The ids of rewritten commits, one a line; ids reveal nothing about a secret."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def known(self) -> frozenset[str]:
        """Return the commits that purges have replaced here."""
        return frozenset(self._read())

    def add(self, commits: Iterable[str]) -> None:
        """Record commits as replaced."""
        known = dict.fromkeys([*self._read(), *commits])
        text = "".join(f"{commit}\n" for commit in known)
        files.write_machine_file(self._root, _NAME, text.encode())

    def are_in(self, repository: Repository) -> bool:
        """Return whether our history still contains such commits after an interrupted purge.

        New commits may be above them, but there are none below the commit that ends a completed
        purge.
        """
        known = self.known()
        queue = [head] if known and (head := repository.head()) else []
        seen: set[str] = set()
        while queue:
            identifier = queue.pop()
            if identifier in known:
                return True
            seen.add(identifier)
            commit = repository.read_commit(identifier)
            if read_commit(identifier, commit).origin.epoch is None:
                queue += [each for each in commit.parents if each not in seen]
        return False

    def _read(self) -> list[str]:
        try:
            return (self._root / _NAME).read_text("ascii", "replace").split()
        except OSError:
            return []


_COMMIT_ID = re.compile(rb"\b[0-9a-f]{10,40}\b")
_MACHINE = re.compile(rb"(?:author|committer) kbtui [a-z-]{1,20} <[a-z-]{1,20}@kbtui\.invalid> ")
_SHORT_ID = 10


class Rewriting:
    """Rewrites the branch and the proposals.

    Attributes:
        commits: The new id of each rewritten commit.
        made: The number of objects created.
    """

    def __init__(self, repository: Repository, secret: Secret) -> None:
        self.commits: dict[str, str] = {}
        self.made = 0
        self._repository = repository
        self._secret = secret
        self._trees: dict[str, str] = {}
        self._blobs: dict[bytes, bytes] = {}
        self._prefixes: dict[bytes, bytes] = {}
        self._present = set(repository.files(repository.head()).values())
        self._new: list[GitObject] = []

    def run(self) -> Iterator[list[GitObject]]:
        """Yield the new objects in batches to store; afterwards `commits` is complete."""
        commits = everything(self._repository)
        self._rewrite_blobs(commits)
        for identifier, _ in commits:
            self._rewrite(identifier)
            if len(self._new) >= 1000:
                yield self._take_batch()
        yield self._take_batch()

    def _take_batch(self) -> list[GitObject]:
        batch, self._new = self._new, []
        self.made += len(batch)
        return batch

    def _rewrite_blobs(self, commits: Sequence[tuple[str, RawCommit]]) -> None:
        """Find and rewrite every version of every file that contains the secret."""
        seen: set[str] = set()
        for _, raw in commits:
            before = self._repository.read_commit(raw.parents[0]).tree if raw.parents else None
            for _, made in changed_objects(before, raw.tree, self._repository.read_entries):
                if made in seen:
                    continue
                seen.add(made)
                kind, data = self._repository.read_object(made)
                if kind == b"blob" and self._secret.is_inside(data):
                    if not is_binary(data):
                        data = self._secret.without(data)
                    elif made in self._present:
                        continue  # the current file is its owner's to change or delete
                    else:
                        data = MARKER.encode()
                    new = git_object(b"blob", data)
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
            elif _MACHINE.match(line):
                lines.append(line)
            else:
                who, end, moment = line.rpartition(b"> ")
                lines.append(self._secret.without(who) + end + moment)
        message = self.renamed(self._secret.message_without(message))
        new = git_object(b"commit", b"\n".join(lines) + gap + message)
        if new.id == identifier:
            return
        self.commits[identifier] = new.id
        self._prefixes[identifier[:_SHORT_ID].encode()] = identifier.encode()
        self._new.append(new)

    def renamed(self, data: bytes) -> bytes:
        """Replace the ids of rewritten commits in a text by the new ones."""
        return _COMMIT_ID.sub(self._renamed, data) if self._prefixes else data

    def _renamed(self, found: re.Match[bytes]) -> bytes:
        """Return the new id, as short as the old one, for the id of a rewritten commit."""
        mention = found.group()
        full = self._prefixes.get(mention[:_SHORT_ID])
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
        names = {name: self._secret.name_without(name) for name in tree}
        named = [name for name, new in names.items() if new != name]
        if not changes and not named:
            return identifier
        rewritten = {**tree, **changes}
        for name in named:
            entry = rewritten.pop(name)
            rewritten[_free_name(names[name], rewritten)] = entry
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


SUBJECT = "A secret was removed from the whole history"
LAST_SYNC = "beside"
"""The file with the state of unversioned files at the last sync with each place."""
_KEPT_FILES = {"HEAD", "config", "packed-refs", LARGE, LAST_SYNC}
_REASON = (
    "Every version of every file was rewritten without it. Other machines that had the history"
    " from before can't sync with this one; they start from a new workspace."
)


@dataclass(frozen=True, slots=True)
class HistoryPurge:
    """The result of a purge of the history.

    Attributes:
        commits: The number of commits rewritten.
        objects: The number of objects that contained the secret.
        epoch: The number of purges so far; None if the history didn't contain the secret.
        renamed: Replaces the ids of rewritten commits in a text by the new ones.
    """

    commits: int = 0
    objects: int = 0
    epoch: int | None = None
    renamed: Callable[[bytes], bytes] = bytes


class Purge:
    """Purges one workspace's history; the caller holds the lock."""

    def __init__(
        self,
        root: Path,
        repository: Repository,
        door: Door,
        clock: Callable[[], datetime],
    ) -> None:
        self._root = root
        self._repository = repository
        self._door = door
        self._clock = clock

    def find(self, secret: Secret) -> list[str]:
        """Return the ids of all objects that contain the secret, reachable or not."""
        return [
            identifier
            for identifier in self._repository.all_objects()
            if secret.is_inside(self._repository.read_object(identifier)[1])
        ]

    def run(self, secret: Secret, tell: Callable[[str], None]) -> HistoryPurge:
        """Remove the secret.

        Raises:
            ConflictError: Somebody edited a file meanwhile; run it again.
            StorageError: The file system refused; run it again.
        """
        tell("Looking through the history")
        self._mark_unversioned(secret)
        found = self.find(secret)
        head = self._repository.head()
        if not found:
            return HistoryPurge()
        done = HistoryPurge(objects=len(found))
        if head is not None:
            tell("Rewriting the history")
            done = replace(self._rewrite(secret, head), objects=len(found))
        tell("Throwing away what was")
        self._drop_unreachable()
        return done

    def _mark_unversioned(self, secret: Secret) -> None:
        """Make the next sync remove old versions of unversioned files from the other side."""
        try:
            known = json_object((self._repository.folder / LAST_SYNC).read_bytes()) or {}
        except OSError:
            return
        for seen in known.values():
            seen["purged"] = True
            for path in [path for path in seen["blobs"] if secret.is_in(os.fsencode(path))]:
                seen["blobs"][hidden_name(path)] = seen["blobs"].pop(path)
        data = json.dumps(known).encode()
        files.write_machine_file(self._repository.folder, LAST_SYNC, data)

    def _rewrite(self, secret: Secret, head: str) -> HistoryPurge:
        rewriting = Rewriting(self._repository, secret)
        with storage_errors("Can't rewrite the history"):
            for batch in rewriting.run():
                self._repository.store(batch)
            self._update_proposals(rewriting.commits)
        if head not in rewriting.commits:
            return HistoryPurge(renamed=rewriting.renamed)
        history = newer(self._repository, head)
        epoch = 1 + max((read_commit(*each).origin.epoch or 0 for each in history), default=0)
        last = rewriting.commits[head]
        tree = self._repository.read_commit(last).tree
        message = write_message(SUBJECT, _REASON, Actor.YOU, Origin(epoch=epoch))
        data = encode_commit(tree, last, author_of(Actor.YOU), self._clock(), message)
        end = git_object(b"commit", data)
        self._repository.store([end])
        PurgedCommits(self._root).add(rewriting.commits)
        self._door.forward(head, end.id, actor=Actor.YOU)
        return HistoryPurge(len(rewriting.commits), 0, epoch, rewriting.renamed)

    def _update_proposals(self, commits: Mapping[str, str]) -> None:
        """Point each proposal at its rewritten commit."""
        refs = self._repository.proposals
        for name, commit in refs.all().items():
            if commit in commits:
                refs.put(name, commits[commit])

    def _drop_unreachable(self) -> None:
        """Keep only what is reachable from the branch and the proposals, in one pack."""
        repository = self._repository
        head = repository.head()
        if head is None:
            raise ConflictError("The history has no commit.", "Nothing was thrown away.")
        self._drop_references(head)
        with storage_errors("Can't throw the old history away"):
            count, records = pack_commits(repository, everything(repository))
            pack = repository.write_pack(count, records)
            repository.keep_only(pack)

    def _drop_references(self, head: str) -> None:
        """Delete anything else that a git program may have left that refers to old commits."""
        folder = self._repository.folder
        proposals = self._repository.proposals.all()
        with storage_errors("Can't clear the history's folder"):
            for name, commit in proposals.items():
                self._repository.proposals.put(name, commit)  # unpacked, if git had packed it
            self._repository.branch.rewrite_packed_refs(head)
            for name in ("logs", "worktrees", "rr-cache"):
                shutil.rmtree(folder / name, ignore_errors=True)
            for file in folder.iterdir():
                if file.is_file() and file.name not in _KEPT_FILES:
                    file.unlink()
                elif file.is_dir() and file.name.startswith(INCOMING):
                    shutil.rmtree(file, ignore_errors=True)
            kept = {folder / NAME, *(folder / PROPOSALS / name for name in proposals)}
            for file in (folder / "refs").rglob("*"):
                if file.is_file() and file not in kept:
                    file.unlink()
