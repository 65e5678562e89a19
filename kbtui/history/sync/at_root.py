"""A remote that holds notes at its root, as git programs for notes keep them (Obsidian Git, ...).

Our history names the same notes ``knowledge/...``, so each commit from there gets a twin here: the
same tree one folder deeper, the same people, times and words, made alike on every machine. Twins
are merged as any history is. What goes back is one commit on top of theirs, with the notes as they
are now: nothing of kbtui's own, and none of the steps that led to it. It names our commit, which is
its twin where that is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from kbtui.errors import RefusedHistoryError
from kbtui.history.looking.diff import path_changes
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
from kbtui.workspace import files
from kbtui.workspace.layout import ENTRIES

_FILE = "at-root"
_TWIN = re.compile(rb"\nKbtui-Commit: ([0-9a-f]{40})\n*\Z")
_OURS = re.compile(r"^Actor: ", re.MULTILINE)
_KEPT = (b"author ", b"committer ", b"encoding ")  # a signature is about what was signed
_TOP = ENTRIES[:-1].encode()
# A note of the owner's that is called as our generated index is: see `Layout.listed`.
_GENERATED, _OWNED = b"INDEX.md", b"INDEX.MD"


class NotesAtRoot:
    """The commits of such remotes, and their twins in our history; `store` keeps new objects."""

    def __init__(
        self, repository: Repository, store: Callable[[Sequence[GitObject]], None]
    ) -> None:
        self._repository = repository
        self._store = store
        self._trees: dict[tuple[str, bytes], str] = {}
        self._made: dict[str, GitObject] = {}

    def tips(self) -> list[str]:
        """Their commits that we were at: what leads to them needn't be sent again."""
        return [*self._known()]

    def twin_of(self, tip: str) -> str | None:
        """Our twin of their newest commit; None: it is no such remote.

        Raises:
            RefusedHistoryError: A file there has the name that another gets here.
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
        """Note that a commit of theirs and one of ours are twins."""
        known = {**self._known(), theirs: ours}
        text = "".join(f"{each} {twin}\n" for each, twin in known.items())
        files.write_machine_file(self._repository.folder, _FILE, text.encode())

    def commit_for(self, head: str, onto: str, when: datetime) -> str:
        """The commit that has our notes on top of theirs: `onto` where they have them already."""
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
        self._made[made.id] = made
        self._flush()
        return made.id

    def _flush(self) -> None:
        self._store(list(self._made.values()))
        self._made.clear()

    def _known(self) -> dict[str, str]:
        """Their commits and our twins, as far as both are there: a purge takes them away."""
        try:
            lines = (self._repository.folder / _FILE).read_text("ascii", "replace").splitlines()
        except OSError:
            return {}
        pairs = [pair for line in lines if len(pair := line.split()) == 2]
        return {a: b for a, b in pairs if a in self._repository and b in self._repository}

    def _holds_notes(self, tip: str, commits: Iterable[tuple[str, RawCommit]]) -> bool:
        """True if there are notes where a workspace has none, and nothing that kbtui wrote."""
        tree = self._repository.read_commit(tip).tree
        every = (path for path, _ in walk_files(tree, self._repository.read_tree))
        outside = any(is_note(path) and not self._repository.keeps(path) for path in every)
        return outside and not any(_OURS.search(raw.message) for _, raw in commits)

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
        below = self._named(raw.tree, _GENERATED, _OWNED)
        top = {} if below == EMPTY_TREE else {_TOP: (FOLDER, bytes.fromhex(below))}
        head, _, message = data.partition(b"\n\n")
        lines = [f"tree {self._keep(top)}".encode()]
        lines += [f"parent {each}".encode() for each in parents]
        lines += [line for line in head.split(b"\n") if line.startswith(_KEPT)]
        made = git_object(b"commit", b"\n".join(lines) + b"\n\n" + message)
        self._made[made.id] = made
        return made.id

    def _notes_of(self, commit: str) -> str:
        """The tree of the notes of a commit of ours, as they lie at a root."""
        top = self._repository.read_tree(self._repository.read_commit(commit).tree).get(_TOP)
        if top is None or top[0] != FOLDER:
            return EMPTY_TREE
        return self._named(top[1].hex(), _OWNED, _GENERATED)

    def _named(self, identifier: str, name: bytes, other: bytes) -> str:
        """A tree in which each file called `name` is called `other`, and none was before."""
        known = self._trees.get((identifier, name))
        if known is not None:
            return known
        tree = self._repository.read_tree(identifier)
        made: Tree = {}
        for each, (mode, sha) in tree.items():
            if mode == FOLDER:
                below = self._named(sha.hex(), name, other)
                if below != EMPTY_TREE:
                    made[each] = mode, bytes.fromhex(below)
            elif each != other:
                made[other if each == name else each] = mode, sha
        self._trees[identifier, name] = self._keep(made) if made != tree else identifier
        return self._trees[identifier, name]

    def _keep(self, tree: Tree) -> str:
        made = git_object(b"tree", serialize_tree(tree))
        self._made[made.id] = made
        return made.id


def is_note(path: str) -> bool:
    """True for a Markdown file that isn't about the repository itself, as README.md is."""
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    is_text = bool(dot) and suffix.lower() == "md"
    return is_text and not stem.isupper() and not path.startswith(".")
