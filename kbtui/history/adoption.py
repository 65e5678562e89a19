"""Recording edits made outside kbtui as the user's own changes.

Adopted bytes are never modified. Files that are still being written are waited for, and a deletion
of many entries at once (a folder moved away, a disk that isn't mounted) needs confirmation.

While the program runs, a file watcher reports activity; whether it is an edit, and when it is
finished, is decided here.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping

from kbtui.errors import ConflictError, KbtuiError, WorkspaceBusyError, WorkspaceGoneError
from kbtui.history.door import Door
from kbtui.history.objects.commit import Commit, read_commit
from kbtui.history.objects.repository import Repository
from kbtui.workspace import files
from kbtui.workspace.layout import ENTRIES, RECORDED_AREAS, Workspace, folders_of
from kbtui.workspace.scan import Scanner, is_attachment

_MASS_SHARE = 0.3
_MASS_MIN = 3
_BATCH_BYTES = 32 << 20
_FEW_COMMITS = 20
"""The number of commits within which a vault may not have been read completely yet."""
_HOW_TOS = "skills/"  # the app writes its own before it has read a vault


class MassDeletionError(ConflictError):
    """Many entries were deleted at once, and nobody has confirmed it."""


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
        limit = math.inf if whole else _BATCH_BYTES
        pending = self._pending(limit)
        self._scanner.sweep()
        if not pending:
            return None
        time.sleep(self._settling_time(pending, settle))
        commit = None
        try:
            with self._door.entered(timeout) as events:
                pending = self._pending(limit)
                settled = {p: b for p, b in pending.items() if not self._settling_time([p], settle)}
                gone = [] if confirmed else self._mass_deletion(pending)
                batches = self._batches({p: settled[p] for p in settled.keys() - {*gone}})
                found = [self._is_found(each, len(batches)) for each in batches]
                commit = self._door.record(batches[0], events, found=found[0])
            for batch, is_found in zip(batches[1:], found[1:], strict=True):
                with self._door.entered(timeout) as events:  # lets other writers in between
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
        """Split the pending files into batches, as the files of a commit are held in memory.

        There is at least one batch. Notes come first, and a moved file is in the same batch as its
        old path.
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
        """Return whether files existed before kbtui came, or are more than a person adds at once.

        The rest of an interrupted first adoption counts as well.
        """
        recorded = self._recorded()
        if not recorded or (
            self._workspace.in_place and all(path.startswith(_HOW_TOS) for path in recorded)
        ):
            return True
        if not recorded.keys().isdisjoint(batch):
            return False
        last, first = self._newest_and_first()
        if self._workspace.in_place and first is not None and self._are_older(batch, first):
            return True  # a change was recorded before the vault was read completely
        if not all(map(is_attachment, batch)):
            return False
        return count > 1 or (last.is_found and self._are_older(batch, last))

    def _newest_and_first(self) -> tuple[Commit, Commit | None]:
        """Return the newest commit and, unless there are many, the first one."""
        at: str | None = self._repository.head() or ""
        commits: list[Commit] = []
        while at is not None and len(commits) < _FEW_COMMITS:
            commits.append(read_commit(at, self._repository.read_commit(at)))
            at = commits[-1].parent
        return commits[0], commits[-1] if at is None else None

    def _are_older(self, batch: list[str], commit: Commit) -> bool:
        """Return whether no file of a batch was created or changed since a commit."""
        made = commit.time.timestamp()
        states = (files.file_status(self._workspace, path) for path in batch)
        return all(state is not None and state.st_ctime < made for state in states)

    def _pending(self, attachments: float) -> dict[str, str | None]:
        """Return the paths that differ from the newest commit, with their current blob ids."""
        recorded, found = self._recorded(), self.working_tree(attachments)
        pending: dict[str, str | None] = {
            path: blob for path, blob in found.items() if recorded.get(path) != blob
        }
        return pending | dict.fromkeys(recorded.keys() - found.keys())

    def working_tree(self, attachments: float = _BATCH_BYTES) -> dict[str, str]:
        """Return the blob id of each file that is or will be recorded.

        A file that can't be read, or is now ignored, counts as unchanged. For `attachments` see
        `Scanner.scan`.
        """
        scanned = self._scanner.scan(*RECORDED_AREAS, attachments=attachments)
        found = {path: state.blob for path, state in scanned.items()}
        recorded = self._recorded()
        missing = recorded.keys() - found.keys()
        folders = {folder for path in found for folder in folders_of(path)} if missing else set()
        for path in missing - folders:  # a file that became a folder is gone
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
            return not files.is_blocked(workspace, path, found) and (
                files.is_folder(workspace, path) or files.is_gone(workspace, path)
            )
        except KbtuiError:
            return False

    def _settling_time(self, paths: Iterable[str], settle: float) -> float:
        """Return the seconds until all files have been left alone for `settle`, at most that long.

        Uses ctime, since programs can set mtime to anything.
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
        """Return the deleted entries if they are suspiciously many; moved ones don't count."""
        recorded = self._recorded()
        moved = set(pending.values())
        gone = [
            path
            for path, blob in pending.items()
            if blob is None and _is_entry(path) and recorded[path] not in moved
        ]
        many = len(gone) >= _MASS_MIN and len(gone) > _MASS_SHARE * self._count()
        return sorted(gone) if many else []


def _is_entry(path: str) -> bool:
    return path.startswith(ENTRIES)


log = logging.getLogger(__name__)
_SETTLE_SECONDS = 1.1
_DEBOUNCE_ROUNDS = 5
# A watcher needs a moment to start and may miss events, so also look now and then without hints.
_POLL_SECONDS = 60.0
_FIRST_POLLS = (_POLL_SECONDS, 5.0)


class OutsideEdits:
    """Adopts outside edits in a thread of its own, a moment after each hint.

    Args:
        adopt: Records outside edits.
        tidy: Packs older objects; its argument returns whether to stop.
        on_problem: Called with problems that a person must decide on, such as a mass deletion.
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
        """Start the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outside-edits", daemon=True)
            self._thread.start()

    def hint(self) -> None:
        """Report that files may have changed; thread-safe, returns at once."""
        self._hinted.set()

    def close(self) -> None:
        """Stop the thread after a running adoption, waiting up to 10 seconds."""
        self._stopped.set()
        self._hinted.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        first_polls = iter(_FIRST_POLLS)
        while True:
            self._hinted.wait(next(first_polls, _POLL_SECONDS))
            for _ in range(_DEBOUNCE_ROUNDS):
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
        except (ConflictError, WorkspaceGoneError) as problem:
            self._on_problem(problem)
        except KbtuiError as problem:
            log.warning("outside edits could not be recorded: %s", problem)
