"""Purge: a leaked secret out of the whole history.

Each step leaves a sound history, so a purge that was killed is simply run again: new objects are
written beside the old ones, files and branch go over to them as in any change, and only then
everything that isn't reachable any more is thrown away.
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

_NAME = f"{MACHINE}/purged"


class PurgedTipError(Exception):
    """The other side still has commits that a purge has replaced here."""

    def __init__(self, tip: str) -> None:
        super().__init__(tip)
        self.tip = tip


class PurgedCommits:
    """The ids of commits that were rewritten, one a line; ids tell nothing of a secret."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def known(self) -> frozenset[str]:
        """The commits that purges have replaced here."""
        return frozenset(self._read())

    def add(self, commits: Iterable[str]) -> None:
        """Remember commits."""
        known = dict.fromkeys([*self._read(), *commits])
        text = "".join(f"{commit}\n" for commit in known)
        files.write_machine_file(self._root, _NAME, text.encode())

    def are_in(self, repository: Repository) -> bool:
        """True if our own history holds such commits still: a purge was cut off.

        What was recorded since may lie above them; below the end of a purge that was finished
        there are none.
        """
        known = self.known()
        waiting = [head] if known and (head := repository.head()) else []
        seen: set[str] = set()
        while waiting:
            identifier = waiting.pop()
            if identifier in known:
                return True
            seen.add(identifier)
            commit = repository.read_commit(identifier)
            if read_commit(identifier, commit).origin.epoch is None:
                waiting += [each for each in commit.parents if each not in seen]
        return False

    def _read(self) -> list[str]:
        try:
            return (self._root / _NAME).read_text("ascii", "replace").split()
        except OSError:
            return []


_MENTIONED = re.compile(rb"\b[0-9a-f]{10,40}\b")
_MACHINE = re.compile(rb"(?:author|committer) kbtui [a-z-]{1,20} <[a-z-]{1,20}@kbtui\.invalid> ")
_SHORT = 10


def hidden_name(path: str) -> str:
    """What stands for a path that held a secret, so that it is known again at the other side."""
    return files.blob_id(os.fsencode(path))


class Rewriting:
    """Rewrites the branch and the proposals.

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
        self._present = set(repository.files(repository.head()).values())
        self._new: list[GitObject] = []

    def run(self) -> Iterator[list[GitObject]]:
        """Yield what has to be stored, in portions; afterwards `commits` is complete."""
        commits = everything(self._repository)
        self._look_through_blobs(commits)
        for identifier, _ in commits:
            self._rewrite(identifier)
            if len(self._new) >= 1000:  # a portion
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
                if kind == b"blob" and self._secret.is_inside(data):
                    if not is_binary(data):
                        data = self._secret.without(data)
                    elif made in self._present:
                        continue  # the file that holds it is its owner's to change or delete
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
        self._prefixes[identifier[:_SHORT].encode()] = identifier.encode()
        self._new.append(new)

    def renamed(self, data: bytes) -> bytes:
        """A text in which commits are called by their new ids."""
        return _MENTIONED.sub(self._renamed, data) if self._prefixes else data

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
SEEN_BESIDE = "beside"
"""What documents and conversations were like at the last sync with each place; see `beside`."""
_KEPT = {"HEAD", "config", "packed-refs", LARGE, SEEN_BESIDE}
_REASON = (
    "Every version of every file was rewritten without it. Other machines that had the history"
    " from before can't sync with this one; they start from a new workspace."
)


@dataclass(frozen=True, slots=True)
class HistoryPurge:
    """The result of a purge of the history.

    Attributes:
        commits: How many commits were rewritten.
        objects: How many objects held the secret.
        epoch: How many purges the history has seen; None where it didn't hold the secret.
        renamed: Gives a text in which commits are called by their new ids.
    """

    commits: int = 0
    objects: int = 0
    epoch: int | None = None
    renamed: Callable[[bytes], bytes] = bytes


class Purge:
    """Purges one workspace's history; the caller holds the door open."""

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
        """The ids of all objects that hold it, reachable or not."""
        return [
            identifier
            for identifier in self._repository.all_objects()
            if secret.is_inside(self._repository.read_object(identifier)[1])
        ]

    def run(self, secret: Secret, tell: Callable[[str], None]) -> HistoryPurge:
        """Remove it.

        Raises:
            ConflictError: Somebody edited a file meanwhile; run it again.
            StorageError: The file system refused; run it again.
        """
        tell("Looking through the history")
        self._mark_beside(secret)
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

    def _mark_beside(self, secret: Secret) -> None:
        """Have the next sync leave nothing at the other side of what documents were like."""
        try:
            known = json_object((self._repository.folder / SEEN_BESIDE).read_bytes()) or {}
        except OSError:
            return
        for seen in known.values():
            seen["purged"] = True
            for path in [path for path in seen["blobs"] if secret.is_in(os.fsencode(path))]:
                seen["blobs"][hidden_name(path)] = seen["blobs"].pop(path)
        data = json.dumps(known).encode()
        files.write_machine_file(self._repository.folder, SEEN_BESIDE, data)

    def _rewrite(self, secret: Secret, head: str) -> HistoryPurge:
        rewriting = Rewriting(self._repository, secret)
        with storage_errors("Can't rewrite the history"):
            for portion in rewriting.run():
                self._repository.store(portion)
            self._go_over(rewriting.commits)
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

    def _go_over(self, commits: Mapping[str, str]) -> None:
        """Let each proposal point to what its commit was rewritten as."""
        refs = self._repository.proposals
        for name, commit in refs.all().items():
            if commit in commits:
                refs.put(name, commits[commit])

    def _drop_unreachable(self) -> None:
        """Keep what the branch and the proposals need, in one pack, and nothing else."""
        repository = self._repository
        head = repository.head()
        if head is None:
            raise ConflictError("The history has no commit.", "Nothing was thrown away.")
        self._drop_names(head)
        with storage_errors("Can't throw the old history away"):
            count, records = pack_commits(repository, everything(repository))
            pack = repository.write_pack(count, records)
            repository.keep_only(pack)

    def _drop_names(self, head: str) -> None:
        """Whatever else a git program may have left that names old commits."""
        folder = self._repository.folder
        proposals = self._repository.proposals.all()
        with storage_errors("Can't clear the history's folder"):
            for name, commit in proposals.items():
                self._repository.proposals.put(name, commit)  # git may have packed it
            self._repository.branch.rewrite_packed_refs(head)
            for name in ("logs", "worktrees", "rr-cache"):
                shutil.rmtree(folder / name, ignore_errors=True)
            for file in folder.iterdir():
                if file.is_file() and file.name not in _KEPT:
                    file.unlink()
                elif file.is_dir() and file.name.startswith(INCOMING):
                    shutil.rmtree(file, ignore_errors=True)
            kept = {folder / NAME, *(folder / PROPOSALS / name for name in proposals)}
            for file in (folder / "refs").rglob("*"):
                if file.is_file() and file not in kept:
                    file.unlink()
