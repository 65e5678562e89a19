"""Syncing unversioned files: documents and conversations.

If the user wants them synced, they are stored as they are on a branch of their own. Changes are
detected by comparing with the state at the last sync: if both sides changed a log, the longer one
wins if it continues the other; of anything else both versions are kept, one in a copy (for a
conversation, what was added since). What looks like damage isn't spread (see `file_plan`). The
repository here stores the trees but not the contents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Literal

from kbtui.errors import KbtuiError, NotFoundError, RefusedHistoryError, UnreadableError
from kbtui.history.door import MovedError
from kbtui.history.objects.commit import Actor, author_of, encode_commit
from kbtui.history.objects.pack_folder import PackRecord
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import (
    FOLDER,
    GitObject,
    git_object,
    parse_tree,
    update_tree,
    walk_files,
)
from kbtui.history.sync.file_plan import EMPTY_BLOB, LARGE, FilePlan, LastSync, UnversionedRules
from kbtui.history.sync.purge import LAST_SYNC, SUBJECT, PurgedCommits
from kbtui.history.sync.transport import Transport
from kbtui.text import counted, json_object
from kbtui.workspace import files
from kbtui.workspace.layout import Layout
from kbtui.workspace.removals import Removals
from kbtui.workspace.scan import Scanner


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The result: the numbers of files received and sent, and notes for a person."""

    received: int = 0
    sent: int = 0
    notes: tuple[str, ...] = ()


class UnversionedSync:
    """Syncs documents and conversations with those at one address."""

    def __init__(
        self,
        layout: Layout,
        repository: Repository,
        scanner: Scanner,
        store: Callable[[Sequence[GitObject]], None],
        now: Callable[[], datetime],
    ) -> None:
        self._layout = layout
        self._repository = repository
        self._scanner = scanner
        self._store = store
        self._now = now
        self._purged = PurgedCommits(layout.root)
        self._removals = Removals(layout)

    def run(
        self,
        transport: Transport,
        place: str,
        companions: UnversionedRules,
        *,
        replace_theirs: bool,
    ) -> Exchanged:
        """Sync both sides.

        Raises:
            RemoteError: The connection or the other end doesn't work.
            RefusedHistoryError: Their data isn't valid git data, or a file was changed there since
                a purge here.
            MovedError: A file or the other side was changed meanwhile: retry.
        """
        seen = self._seen(place)
        known = [seen.tip] if seen.tip and seen.tip in self._repository else []
        try:
            return self._exchange(transport, place, companions, seen, known, force=replace_theirs)
        except (NotFoundError, RefusedHistoryError):
            if not known:
                raise
            # They assume we have more than we do: a content that is gone by now, or a commit
            # before the only one that we fetched.
            return self._exchange(transport, place, companions, seen, [], force=replace_theirs)

    def _exchange(
        self,
        transport: Transport,
        place: str,
        companions: UnversionedRules,
        seen: LastSync,
        known: list[str],
        *,
        force: bool,
    ) -> Exchanged:
        is_first = not seen.tip  # then older versions are of no use
        with transport.fetched(known, known, alone=is_first) as (tip, incoming):
            if tip is not None:
                incoming.inspect(tip, contents=False, alone=is_first)
            there = incoming.repository
            tree = there.read_commit(tip).tree if tip else None
            theirs = dict(walk_files(tree, there.read_tree)) if tree else {}
            is_purged = tip is not None and seen.purged
            lineage = "" if is_first else _lineage(there, tip, seen.tip)
            agreed = seen if lineage else LastSync(seen.tip)
            removals = self._removals.all()
            plan = FilePlan(self._layout, self._scanner, companions, theirs, agreed, removals)
            self._scanner.sweep()
            plan.make(
                there.read_blob,
                is_purged=is_purged,
                force=force,
                is_purged_there=lineage == "purged",
            )
            came = self._receive(plan, there, companions)
            if not plan.outgoing and not plan.removals.changes and not is_purged:
                new, made = tip, list[GitObject]()
            else:
                parent = None if is_purged else tip
                subject = SUBJECT if is_purged else counted(len(plan.outgoing), "file")
                new, made = self._send(plan, transport, there, tree, tip, parent, subject)
                if is_purged and tip:
                    self._purged.add([tip])
            if new is not None:
                self._remember(place, {each.id: each for each in made}, there, plan.agreed(new))
            self._removals.drop(plan.removals.unfounded)
        return Exchanged(came, len(plan.outgoing), tuple(plan.notes()))

    def _receive(self, plan: FilePlan, there: Repository, companions: UnversionedRules) -> int:
        """Write the received files and return their number."""
        where = {blob: path for path, blob in plan.ours.items()}
        came = 0
        for path, blob in [*plan.incoming.items()]:
            if plan.is_skipped(path):
                continue
            data = None if blob is None else _content(blob, plan, where, there)
            try:
                with ExitStack() as holding:
                    for each in plan.locked_paths(path):
                        holding.enter_context(companions.hold(each))
                    self._write(path, plan.ours.get(path), data)
            except MovedError:
                raise
            except KbtuiError as error:
                plan.skip(path, error.message.rstrip("."))
                continue
            came += 1
            plan.ours.pop(path, None)
            if data is not None and blob is not None:
                plan.ours[path] = blob
                plan.sizes[blob] = len(data)
        return came

    def _write(self, path: str, before: str | None, data: bytes | None) -> None:
        """Replace or delete a file, if it is unchanged."""
        if files.blob_of(files.read_if_there(self._layout, path)) != before:
            raise MovedError("A file was changed meanwhile.")
        if data is None:
            files.remove(self._layout, path)
            return
        if len(data) > files.READ_LIMIT:
            raise UnreadableError(LARGE)
        if before is None and (twin := files.twin(self._layout, path)):
            raise UnreadableError(f"it differs from {self._layout.file(twin)} only in case")
        written = files.write_atomic(self._layout, path, data)
        self._scanner.note(path, files.blob_id(data), written)

    def _send(
        self,
        plan: FilePlan,
        transport: Transport,
        there: Repository,
        tree: str | None,
        tip: str | None,
        parent: str | None,
        subject: str,
    ) -> tuple[str, list[GitObject]]:
        """Push a commit with what they lack; return its id, and it with its new trees."""
        removals = plan.removals.changes
        root, trees = update_tree(tree, {**plan.outgoing, **removals}, there.read_tree)
        author = author_of(Actor.YOU)
        commit = git_object(b"commit", encode_commit(root, parent, author, self._now(), subject))
        lacking = {*plan.outgoing.values()} - {*plan.theirs.values(), None}
        blobs = {blob: path for path, blob in plan.outgoing.items() if blob in lacking}
        if EMPTY_BLOB in removals.values():
            blobs.setdefault(EMPTY_BLOB, "")
            plan.made[EMPTY_BLOB] = b""

        def pack() -> tuple[int, Iterator[PackRecord]]:
            def records() -> Iterator[PackRecord]:
                for each in (commit, *trees):
                    yield PackRecord(each.id, each.kind, each.data)
                for blob, path in blobs.items():
                    yield PackRecord(blob or "", b"blob", plan.read(path, blob or ""))

            return 1 + len(trees) + len(blobs), records()

        transport.push(commit.id, tip, pack)
        return commit.id, [commit, *trees]

    def _remember(
        self, place: str, made: Mapping[str, GitObject], there: Repository, seen: LastSync
    ) -> None:
        """Record the common state, and store the trees that later fetches are compared with."""

        def below(identifier: str) -> Iterator[GitObject]:
            if identifier in kept or identifier in self._repository:
                return
            each = made.get(identifier) or GitObject(identifier, *there.read_object(identifier))
            kept.add(identifier)
            yield each
            for mode, sha in parse_tree(each.data).values():
                if mode == FOLDER:
                    yield from below(sha.hex())

        kept: set[str] = set()
        commit = made.get(seen.tip) or GitObject(seen.tip, *there.read_object(seen.tip))
        root = commit.data[len(b"tree ") :].partition(b"\n")[0].decode()
        self._store([*below(root), commit])
        every = {**self._all(), place: {**asdict(seen), "removals": sorted(seen.removals)}}
        data = json.dumps(every, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        files.write_machine_file(self._repository.folder, LAST_SYNC, data)

    def _seen(self, place: str) -> LastSync:
        known = self._all().get(place)
        try:
            seen = LastSync(str(known["tip"]), dict(known["blobs"]), bool(known["purged"]))  # type: ignore[index]
        except (TypeError, KeyError, ValueError):
            return LastSync()
        try:  # versions before 0.4 didn't write these
            sizes, removals = dict(known["sizes"]), frozenset(known["removals"])  # type: ignore[index]
        except (TypeError, KeyError, ValueError):
            return seen
        return replace(seen, sizes=sizes, removals=removals)

    def _all(self) -> dict[str, object]:
        try:
            return json_object((self._repository.folder / LAST_SYNC).read_bytes()) or {}
        except OSError:
            return {}


def _content(blob: str, plan: FilePlan, where: Mapping[str, str], there: Repository) -> bytes:
    """Return a received file's content; what was only moved isn't sent, and read from `where`."""
    if blob in plan.made:
        return plan.made[blob]
    is_moved = blob in where and blob not in there
    return plan.read(where[blob], blob) if is_moved else there.read_blob(blob)


def _lineage(there: Repository, tip: str | None, since: str) -> Literal["grown", "purged", ""]:
    """Return whether their branch has grown from a commit, or was restarted by a purge since.

    Otherwise it was deleted or reset to an old state, so what it lacks, or has in an older version,
    isn't an intended change.
    """
    while tip != since:
        if tip is None:
            return ""
        commit = there.read_commit(tip)
        if not commit.parents:
            return "purged" if commit.message.startswith(SUBJECT) else ""
        tip = commit.parents[0]
    return "grown"
