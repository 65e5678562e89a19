"""Remotes that have notes at their root, as git programs for notes keep them (Obsidian Git, ...).

Our history has the same notes under ``knowledge/``, so each commit from there gets a twin here: the
same tree one folder deeper, with the same people, times and message, created identically on every
machine. Twins are merged like any history. What is sent back is one commit on top of theirs with
the current notes: nothing of kbtui's own, and no intermediate steps. It names our commit, which
serves as its twin where that commit is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from kbtui.errors import RefusedHistoryError
from kbtui.history.objects.commit import Actor, RawCommit, author_of, describe, encode_commit
from kbtui.history.objects.lineage import newer
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import (
    EMPTY_TREE,
    FOLDER,
    GitObject,
    Tree,
    git_object,
    serialize_tree,
    walk_files,
)
from kbtui.history.queries.diff import path_changes
from kbtui.workspace import files
from kbtui.workspace.layout import ENTRIES

_TWINS = "at-root"
_TWIN = re.compile(rb"\nKbtui-Commit: ([0-9a-f]{40})\n*\Z")
_KBTUI_TRAILER = re.compile(r"^Actor: ", re.MULTILINE)
_KEPT_HEADERS = (b"author ", b"committer ", b"encoding ")  # not a signature, which would be invalid
_TOP = ENTRIES[:-1].encode()
# A user's own note that is named like our generated index: see `Layout.listed`.
_GENERATED, _OWNED = b"INDEX.md", b"INDEX.MD"


class NotesAtRoot:
    """The commits of such remotes, and their twins in our history; `store` stores new objects."""

    def __init__(
        self, repository: Repository, store: Callable[[Sequence[GitObject]], None]
    ) -> None:
        self._repository = repository
        self._store = store
        self._trees: dict[tuple[str, bytes], str] = {}
        self._new_objects: dict[str, GitObject] = {}

    def tips(self) -> list[str]:
        """Return their commits that we have synced with, whose ancestors needn't be sent again."""
        return [*self._known()]

    def twin_of(self, tip: str) -> str | None:
        """Return our twin of their newest commit, or None if it isn't such a remote.

        Raises:
            RefusedHistoryError: A file there has a name that is reserved for a renamed one here.
        """
        known = self._known()
        new = newer(self._repository, tip, known)
        is_known = tip in known or any(each in known for _, raw in new for each in raw.parents)
        if not is_known and not self._holds_notes(tip, new):
            return None
        if tip not in known:
            self._check_names(tip)
        twins = dict(known)
        for identifier, raw in new:
            twins[identifier] = self._twin(identifier, raw, [twins[each] for each in raw.parents])
        self._flush()
        return twins[tip]

    def remember(self, theirs: str, ours: str) -> None:
        """Record that a commit of theirs and one of ours are twins."""
        known = {**self._known(), theirs: ours}
        text = "".join(f"{each} {twin}\n" for each, twin in known.items())
        files.write_machine_file(self._repository.folder, _TWINS, text.encode())

    def commit_for(self, head: str, onto: str, when: datetime) -> str:
        """Return a commit with our notes on top of theirs, or `onto` if they have them already."""
        before, tree = self._repository.read_commit(onto).tree, self._notes_of(head)
        if tree == before:
            return onto
        self._flush()
        changed = sorted(self._repository.compare_all(before, tree))
        was, now = ({each[0]: b"" if each[side] else None for each in changed} for side in (1, 2))
        subject = describe(path_changes(was, now))
        message = f"{subject}\n\nKbtui-Commit: {head}\n"
        data = encode_commit(tree, onto, author_of(Actor.YOU), when, message)
        made = git_object(b"commit", data)
        self._new_objects[made.id] = made
        self._flush()
        return made.id

    def _flush(self) -> None:
        self._store(list(self._new_objects.values()))
        self._new_objects.clear()

    def _known(self) -> dict[str, str]:
        """Return their commits and our twins, as far as both exist: a purge removes them."""
        try:
            lines = (self._repository.folder / _TWINS).read_text("ascii", "replace").splitlines()
        except OSError:
            return {}
        pairs = [pair for line in lines if len(pair := line.split()) == 2]
        return {a: b for a, b in pairs if a in self._repository and b in self._repository}

    def _holds_notes(self, tip: str, commits: Iterable[tuple[str, RawCommit]]) -> bool:
        """Return whether notes are outside a workspace's folders, and no commit is kbtui's."""
        tree = self._repository.read_commit(tip).tree
        every = (path for path, _ in walk_files(tree, self._repository.read_tree))
        outside = any(is_note(path) and not self._repository.keeps(path) for path in every)
        return outside and not any(_KBTUI_TRAILER.search(raw.message) for _, raw in commits)

    def _check_names(self, tip: str) -> None:
        tree = self._repository.read_commit(tip).tree
        owned = _OWNED.decode()
        for path, _ in walk_files(tree, self._repository.read_tree):
            if path.rpartition("/")[2] == owned:
                raise RefusedHistoryError(
                    f"The other side has a file called {path}, the name that {_GENERATED.decode()}"
                    " of yours gets in this history.",
                    "Give it another name there, then sync again. Nothing was changed.",
                )

    def _twin(self, identifier: str, raw: RawCommit, parents: Iterable[str]) -> str:
        data = self._repository.read_object(identifier)[1]
        named = _TWIN.search(data)
        ours = named[1].decode() if named else ""
        if ours and ours in self._repository and self._notes_of(ours) == raw.tree:
            return ours
        below = self._with_renamed(raw.tree, _GENERATED, _OWNED)
        top = {} if below == EMPTY_TREE else {_TOP: (FOLDER, bytes.fromhex(below))}
        head, _, message = data.partition(b"\n\n")
        lines = [f"tree {self._add_tree(top)}".encode()]
        lines += [f"parent {each}".encode() for each in parents]
        lines += [line for line in head.split(b"\n") if line.startswith(_KEPT_HEADERS)]
        made = git_object(b"commit", b"\n".join(lines) + b"\n\n" + message)
        self._new_objects[made.id] = made
        return made.id

    def _notes_of(self, commit: str) -> str:
        """Return the tree of notes in one of our commits, as it would be at a root."""
        top = self._repository.read_tree(self._repository.read_commit(commit).tree).get(_TOP)
        if top is None or top[0] != FOLDER:
            return EMPTY_TREE
        return self._with_renamed(top[1].hex(), _OWNED, _GENERATED)

    def _with_renamed(self, identifier: str, name: bytes, other: bytes) -> str:
        """Return a tree with every file `name` renamed to `other`, dropping existing ones."""
        known = self._trees.get((identifier, name))
        if known is not None:
            return known
        tree = self._repository.read_tree(identifier)
        made: Tree = {}
        for each, (mode, sha) in tree.items():
            if mode == FOLDER:
                below = self._with_renamed(sha.hex(), name, other)
                if below != EMPTY_TREE:
                    made[each] = mode, bytes.fromhex(below)
            elif each != other:
                made[other if each == name else each] = mode, sha
        self._trees[identifier, name] = self._add_tree(made) if made != tree else identifier
        return self._trees[identifier, name]

    def _add_tree(self, tree: Tree) -> str:
        made = git_object(b"tree", serialize_tree(tree))
        self._new_objects[made.id] = made
        return made.id


def is_note(path: str) -> bool:
    """Return whether a file is a Markdown note, unlike README.md and the like."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    is_text = bool(dot) and suffix.lower() == "md"
    return is_text and not stem.isupper() and not path.startswith(".")
