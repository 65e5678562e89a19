"""Picking up what was edited outside kbtui, as the user's own change.

Adopted bytes are never touched. What is still being written is waited for, and a deletion of many
entries at once (a folder moved away, a disk that isn't mounted) is asked about, not recorded.

While the program runs a file watcher says that something moved; whether that is an edit, and when
it is finished, is decided here.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping

from kbtui.errors import ConflictError, KbtuiError, WorkspaceBusyError
from kbtui.history.door import Door
from kbtui.history.objects.commit import Commit, read_commit
from kbtui.history.objects.repository import Repository
from kbtui.workspace import files
from kbtui.workspace.layout import ENTRIES, RECORDED_AREAS, Workspace, folders_of
from kbtui.workspace.scan import Scanner, is_attachment

_MASS = 0.3
_FEW = 3
_BATCH_BYTES = 32 << 20
_HOW_TOS = "skills/"  # the app writes its own before it has read a vault


class MassDeletionError(ConflictError):
    """Many entries are gone at once, and nobody has said that this is meant."""


class Adoption:
    """Finds and records outside edits of one workspace."""

    def __init__(
        self, workspace: Workspace, scanner: Scanner, repository: Repository, door: Door
    ) -> None:
        self._workspace = workspace
        self._scanner = scanner
        self._repository = repository
        self._door = door
        self._tree: tuple[str | None, dict[str, str]] = (None, {})
        scanner.recorded = self._recorded

    def adopt(
        self, timeout: float, settle: float, *, confirmed: bool, whole: bool = True
    ) -> Commit | None:
        """Record pending edits: see `History.adopt`."""
        if not self._workspace.writable:
            return None
        most = math.inf if whole else _BATCH_BYTES
        pending = self._pending(most)
        self._scanner.sweep()
        if not pending:
            return None
        time.sleep(self._unrest(pending, settle))
        commit = None
        try:
            with self._door.entered(timeout) as events:
                pending = self._pending(most)
                settled = {p: b for p, b in pending.items() if not self._unrest([p], settle)}
                gone = [] if confirmed else self._mass_deletion(pending)
                batches = self._batches({p: settled[p] for p in settled.keys() - {*gone}})
                found = [self._is_found(each, len(batches)) for each in batches]
                commit = self._door.record(batches[0], events, found=found[0])
            for batch, is_found in zip(batches[1:], found[1:], strict=True):
                with self._door.entered(timeout) as events:  # somebody else may write in between
                    commit = self._door.record(batch, events, found=is_found) or commit
        except WorkspaceBusyError:
            return commit
        if gone:
            raise MassDeletionError(
                f"{len(gone)} of {self._count()} files are gone at once.",
                "If that is meant, confirm it; else bring them back, or restore them from the"
                " history.",
                paths=gone,
            )
        return commit

    def _batches(self, pending: Mapping[str, str | None]) -> list[list[str]]:
        """The pending files by commit, at least one: a commit's files are held in memory.

        Notes come first. A file that is elsewhere now goes with the name that it had.
        """
        recorded = self._recorded()
        together: dict[str, list[str]] = {}
        for path in sorted(pending, key=lambda each: (is_attachment(each), each)):
            together.setdefault(pending[path] or recorded[path], []).append(path)
        batches: list[list[str]] = [[]]
        total = 0
        for paths in together.values():
            size = sum(map(self._scanner.size, paths))
            if batches[-1] and total + size > _BATCH_BYTES:
                batches.append([])
                total = 0
            batches[-1] += paths
            total += size
        return batches

    def _is_found(self, batch: list[str], count: int) -> bool:
        """True of what stood there before kbtui came, or is more than anybody puts there at once.

        Where taking that up was cut off, the rest is found as well.
        """
        recorded = self._recorded()
        if not recorded or (
            self._workspace.in_place and all(path.startswith(_HOW_TOS) for path in recorded)
        ):
            return True
        if not all(map(is_attachment, batch)) or not recorded.keys().isdisjoint(batch):
            return False
        if count > 1:
            return True
        head = self._repository.head() or ""
        last = read_commit(head, self._repository.read_commit(head))
        states = [files.file_status(self._workspace, path) for path in batch]
        return last.is_found and all(
            state is not None and state.st_ctime < last.time.timestamp() for state in states
        )

    def _pending(self, attachments: float) -> dict[str, str | None]:
        """Paths whose files differ from the newest commit, with the blob ids that they have."""
        recorded, found = self._recorded(), self.working_tree(attachments)
        pending: dict[str, str | None] = {
            path: blob for path, blob in found.items() if recorded.get(path) != blob
        }
        return pending | dict.fromkeys(recorded.keys() - found.keys())

    def working_tree(self, attachments: float = _BATCH_BYTES) -> dict[str, str]:
        """The blob id of each file that is recorded, or to be; what is stays so by any name.

        A file that can't be looked at, or is to be ignored, counts as what is recorded of it. For
        `attachments` see `Scanner.scan`.
        """
        scanned = self._scanner.scan(*RECORDED_AREAS, attachments=attachments)
        found = {path: state.blob for path, state in scanned.items()}
        recorded = self._recorded()
        missing = recorded.keys() - found.keys()
        folders = {folder for path in found for folder in folders_of(path)} if missing else set()
        for path in missing - folders:  # where files became folders they are gone
            if state := self._scanner.look(path):
                found[path] = state.blob
            elif not self._is_gone(path, found):
                found[path] = recorded[path]
        return found

    def _recorded(self) -> dict[str, str]:
        head = self._repository.head()
        if self._tree[0] != head:
            self._tree = (head, self._repository.files(head))
        return self._tree[1]

    def _is_gone(self, path: str, found: Container[str]) -> bool:
        workspace = self._workspace
        try:
            return not files.in_the_way(workspace, path, found) and (
                files.is_folder(workspace, path) or files.is_gone(workspace, path)
            )
        except KbtuiError:
            return False

    def _unrest(self, paths: Iterable[str], settle: float) -> float:
        """Seconds until all of the files have been left alone for `settle`, at most that long.

        Only the kernel's own time of the last change counts: the other can be set to anything.
        """
        now = time.time()
        longest = 0.0
        for path in paths:
            status = files.file_status(self._workspace, path)
            if status is not None and status.st_ctime <= now:
                longest = max(longest, status.st_ctime + settle - now)
        return min(settle, longest)

    def _count(self) -> int:
        return sum(map(_is_entry, self._recorded()))

    def _mass_deletion(self, pending: Mapping[str, str | None]) -> list[str]:
        """The entries that are gone, if they are too many to be believed; moved ones aren't."""
        recorded = self._recorded()
        moved = set(pending.values())
        gone = [
            path
            for path, blob in pending.items()
            if blob is None and _is_entry(path) and recorded[path] not in moved
        ]
        many = len(gone) >= _FEW and len(gone) > _MASS * self._count()
        return sorted(gone) if many else []


def _is_entry(path: str) -> bool:
    return path.startswith(ENTRIES)


log = logging.getLogger(__name__)
_SETTLE_SECONDS = 1.1
_TRIES = 5
# A watcher needs a moment to start, and may miss something later: look now and then without hints.
_LOOK_SECONDS = 60.0
_FIRST_LOOKS = (_LOOK_SECONDS, 5.0)


class OutsideEdits:
    """Adopts outside edits in a thread of its own, a moment after each hint.

    Args:
        adopt: Records what was edited outside.
        tidy: Packs older objects, until it is told to stop.
        on_problem: Told what a person must decide, such as a deletion of most entries.
    """

    def __init__(
        self,
        adopt: Callable[[], object],
        tidy: Callable[[Callable[[], bool]], object],
        on_problem: Callable[[KbtuiError], None],
    ) -> None:
        self._record = adopt
        self._tidy = tidy
        self._on_problem = on_problem
        self._hinted = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to listen to hints."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outside-edits", daemon=True)
            self._thread.start()

    def hint(self) -> None:
        """Say that files may have changed; returns at once, from any thread."""
        self._hinted.set()

    def close(self) -> None:
        """Stop listening and wait for a running adoption."""
        self._stopped.set()
        self._hinted.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        first_looks = iter(_FIRST_LOOKS)
        while True:
            self._hinted.wait(next(first_looks, _LOOK_SECONDS))
            for _ in range(_TRIES):
                self._hinted.clear()
                if self._stopped.wait(_SETTLE_SECONDS):
                    return
                if not self._hinted.is_set():
                    break
            self._adopt()

    def _adopt(self) -> None:
        try:
            self._record()
            self._tidy(self._stopped.is_set)
        except ConflictError as problem:
            self._on_problem(problem)
        except KbtuiError as problem:
            log.warning("outside edits could not be recorded: %s", problem)
