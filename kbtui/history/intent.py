"""A write-ahead record of the current change, which makes changes atomic.

After a crash, an intent is replayed if all its objects are intact, and rolled back otherwise, so
that files and branch agree again before anybody reads them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kbtui.errors import KbtuiError
from kbtui.history.objects.commit import read_commit
from kbtui.history.objects.repository import Repository
from kbtui.workspace import files
from kbtui.workspace.durable import SYNC_TOGETHER, FileBatch, remove_folder, storage_errors, sweep
from kbtui.workspace.layout import MACHINE, Layout, folders_of, is_recorded

log = logging.getLogger(__name__)
NAME = "intent.json"
_FOLDERS = f"{MACHINE}/folders.json"
_ID = re.compile(r"[0-9a-f]{40}")
Outcome = Literal["none", "replayed", "rolled back"]


@dataclass(frozen=True, slots=True)
class Intent:
    """The branch moves from `parent` to `commit`, and each path from one blob id to another."""

    commit: str
    parent: str | None
    paths: Mapping[str, tuple[str | None, str | None]]


class IntentLog:
    """Writes and recovers the intent of one workspace, always under the workspace lock."""

    def __init__(self, layout: Layout, repository: Repository) -> None:
        self._layout = layout
        self._file = layout.root / MACHINE / NAME
        self._repository = repository

    def write(self, intent: Intent) -> None:
        """Write the intent durably."""
        record = {
            "commit": intent.commit,
            "parent": intent.parent,
            "paths": {path: list(pair) for path, pair in intent.paths.items()},
        }
        files.write_machine_file(self._layout, f"{MACHINE}/{NAME}", json.dumps(record).encode())

    def clear(self) -> None:
        """Remove the intent; if that fails, `recover` will recognise it as done."""
        try:
            self._file.unlink(missing_ok=True)
        except OSError:
            log.exception("the intent of a finished change could not be removed")

    def pending(self) -> bool:
        """Return whether a change is being written or was interrupted."""
        return self._file.exists()

    def recover(self) -> Outcome:
        """Complete or roll back an interrupted change.

        Raises:
            StorageError: The file system refused; the intent stays for the next attempt.
        """
        if not self.pending():
            return "none"
        intent = self._read()
        if intent is None:
            return "none"
        with storage_errors("Can't finish an interrupted change"):
            outcome = self._complete(intent)
            self.sweep(intent)
            self.remove_empty_folders(intent, done=outcome == "replayed")
            self.clear()
        log.warning("an interrupted change was %s: %s", outcome, intent.commit)
        return outcome

    def roll_back(self, intent: Intent) -> None:
        """Restore the previous content of the files."""
        back = {
            path: old
            for path, (old, new) in intent.paths.items()
            if self._current(path) == new != old
        }
        self._write_blobs(back)

    def note_folders(self, intent: Intent) -> None:
        """Record which missing folders the intent's files need, with its commit."""
        new = (path for path, (old, new) in intent.paths.items() if old is None and new)
        folders = {folder for path in new for folder in folders_of(path)}
        missing = [folder for folder in folders if not self._layout.place(folder).is_dir()]
        if missing:
            made = {
                f: by for f, by in self._folder_commits().items() if self._layout.place(f).is_dir()
            }
            made |= dict.fromkeys(missing, intent.commit)
            files.write_machine_file(self._layout, _FOLDERS, json.dumps(made).encode())

    def remove_empty_folders(self, intent: Intent, *, done: bool) -> None:
        """Remove empty folders that were created only for the files that are removed.

        These are the folders created by a commit that the intent's commit undoes, or, if it isn't
        done, by the intent's commit itself.
        """
        gone = [path for path, pair in intent.paths.items() if pair[1 if done else 0] is None]
        made = self._folder_commits() if gone else {}
        if not made:
            return
        ids = {intent.commit}
        if done:
            commit = read_commit(intent.commit, self._repository.read_commit(intent.commit))
            ids = set((commit.origin.undoes or "").split())
        folders = {folder for path in gone for folder in folders_of(path)}
        for folder in sorted(folders, reverse=True):  # the inner ones first
            if made.get(folder) in ids:
                with contextlib.suppress(OSError):  # not empty, or already gone
                    remove_folder(self._layout, folder)

    def _folder_commits(self) -> dict[str, str]:
        """Return the commit that created each folder, as far as recorded."""
        try:
            made = json.loads((self._layout.root / _FOLDERS).read_bytes())
            return {files.checked_path(folder): str(by) for folder, by in made.items()}
        except (OSError, ValueError, AttributeError, KbtuiError):
            return {}

    def _read(self) -> Intent | None:
        try:
            record = json.loads(self._file.read_bytes())
            return _parse(record)
        except (ValueError, KeyError, TypeError, AttributeError, KbtuiError):
            # Never written by kbtui like this: the file is replaced atomically.
            aside = self._file.with_name(f"{NAME}.bad-{time.strftime('%Y%m%dT%H%M%S')}")
            self._file.rename(aside)
            log.exception("an unreadable intent was set aside as %s", aside)
            return None

    def _complete(self, intent: Intent) -> Outcome:
        self._repository.branch.clear_lock(intent.commit)
        head = self._repository.head()
        if head == intent.commit or self._is_ancestor(intent.commit, head):
            return "replayed"
        if head == intent.parent and self._is_intact(intent):
            self._replay(intent)
            self._repository.branch.move(intent.parent, intent.commit)
            return "replayed"
        self.roll_back(intent)
        return "rolled back"

    def _is_ancestor(self, commit: str, head: str | None) -> bool:
        """Return whether `commit` is among the first parents of `head`."""
        seen = 0
        while head is not None and seen < 1000:  # far more commits than between two crashes
            if head == commit:
                return True
            parents = self._repository.read_commit(head).parents
            head = parents[0] if parents else None
            seen += 1
        return False

    def _is_intact(self, intent: Intent) -> bool:
        """Return whether the commit and all new objects that it refers to are intact."""
        if not self._repository.is_intact(intent.commit):
            return False
        try:
            wanted = {new for _, new in intent.paths.values()}
            changed = {new for _, _, new in self._repository.compare(intent.parent, intent.commit)}
        except KbtuiError:
            return False
        blobs = {blob for blob in wanted | changed if blob is not None}
        return all(self._repository.is_intact(blob) for blob in blobs)

    def _replay(self, intent: Intent) -> None:
        self.note_folders(intent)
        coming: dict[str, str | None] = {}
        for path, (old, new) in intent.paths.items():
            current = self._current(path)
            if current == old:
                coming[path] = new
            elif current != new and new is not None:
                # Edited between the crash and now: keep that edit, and write ours beside it.
                stamp = time.strftime("%Y%m%dT%H%M%S")
                coming[files.free_conflict_copy(self._layout, path, stamp, new)] = new
        self._write_blobs(coming)

    def _write_blobs(self, blobs: dict[str, str | None]) -> None:
        with FileBatch(self._layout) as batch:
            for path in (path for path, blob in blobs.items() if blob is None):
                batch.remove(path)
            kept = ((path, blob) for path, blob in blobs.items() if blob is not None)
            while some := list(itertools.islice(kept, SYNC_TOGETHER)):
                read = self._repository.read_blob
                batch.write_together({path: read(blob) for path, blob in some})
            batch.sync()

    def _current(self, path: str) -> str | None:
        return files.blob_of(files.read_if_there(self._layout, path))

    def sweep(self, intent: Intent) -> None:
        """Remove temporary files that the crash left in the folders it was writing to."""
        for folder in {self._layout.place(path).parent for path in intent.paths}:
            sweep(folder, everybody=True)


def _parse(record: dict[str, Any]) -> Intent:
    """Validate a record, which may come with a shared folder: it may name only recorded files."""
    paths = {path: (old, new) for path, (old, new) in record["paths"].items()}
    ids = [record["commit"], record["parent"], *(blob for pair in paths.values() for blob in pair)]
    if not all(blob is None or _ID.fullmatch(blob) for blob in ids) or record["commit"] is None:
        raise ValueError("an intent with wrong ids")
    if not all(files.checked_path(path) == path and is_recorded(path) for path in paths):
        raise ValueError("an intent about files that are not recorded")
    return Intent(record["commit"], record["parent"], paths)
