"""Syncing a knowledge base: the merge rules of its files, and conflicts that a person decides.

The history package merges the histories; this module tells it which files are generated or records
of the memory, and puts conflicting changes into the inbox.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

from kbtui.errors import UsageError
from kbtui.history.change import Actor, is_derived
from kbtui.history.history import History
from kbtui.history.merging.tree_merge import Clash, Resolver, merge_three
from kbtui.history.sync.sync import (
    Address,
    SyncReport,
    SyncRules,
    SyncWatcher,
    UnversionedRules,
    parse_address,
)
from kbtui.knowledge.catalog.catalog import without_block
from kbtui.knowledge.library.library import Library
from kbtui.memory.background.service import Inbox
from kbtui.memory.records.archive import Archive, resolver_of
from kbtui.sessions.imported import forgotten_in
from kbtui.sessions.log_records import SessionLog
from kbtui.sessions.store import Claim
from kbtui.settings import SyncSettings
from kbtui.shipped.install import SKILLS
from kbtui.text import counted, enumerated, json_object
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.jsonl import parse_records
from kbtui.workspace.layout import Workspace, short_name
from kbtui.workspace.opening import former_paths
from kbtui.workspace.scan import LARGER, describe_large

_INDEX = re.compile(r"knowledge/(?:.*/)?INDEX\.md")
_REMOTES = "remotes.json"
_SHIPPED = frozenset(f"skills/{name}/SKILL.md" for name in SKILLS)


@dataclass(frozen=True, slots=True)
class Synced:
    """The outcome of a sync, with the ids of proposals for conflicts that a person decides."""

    report: SyncReport
    proposals: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        report = self.report
        if report.replaced:
            return f"The history at {report.remote} is replaced by yours: {report.sent:,} commits."
        parts = [
            f"{counted(count, thing)} {what}"
            for count, thing, what in (
                (report.received, "change", "received"),
                (report.sent, "change", "sent"),
                (report.files_received, "other file", "received"),
                (report.files_sent, "other file", "sent"),
            )
            if count
        ]
        if not parts:
            return f"Up to date with {report.remote}."
        return f"{enumerated(parts)}: in step with {report.remote}."


class Syncing:
    """The sync of one workspace with its remembered remote."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        library: Library,
        inbox: Callable[[], Inbox],
        too_large: Callable[[], Mapping[str, str]],
        wanted: SyncSettings,
        archive: Archive,
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._library = library
        self._inbox = inbox
        self._too_large = too_large
        self._archive = archive
        self._areas = (*["docs"] * wanted.documents, *["sessions"] * wanted.conversations)
        self._remotes = Remotes(workspace)

    @property
    def remembered(self) -> Address | None:
        """The remembered remote of the last sync, if any."""
        text = self._remotes.get()
        return replace(parse_address(text), known=True) if text else None

    def run(
        self,
        remote: str | None = None,
        *,
        tell: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] | None = None,
        count: Callable[[str, int, int], None] | None = None,
        replace_theirs: bool = False,
    ) -> Synced:
        """Sync with an address, or the remembered one, and remember it.

        Args:
            remote: The address; None: the remembered one.
            tell: Called with a description of each step.
            stopped: Returns whether to cancel.
            count: Called with a step, the amount done and the total.
            replace_theirs: Drop what only the other side has, after a purge.

        Raises:
            UsageError: No address is known.
            RemoteError: The connection or the remote failed; nothing is lost.
            RefusedHistoryError: The histories can't be merged; nothing was changed.
        """
        address = parse_address(remote) if remote else self.remembered
        if address is None:
            raise UsageError(
                "There is no place to sync with yet.",
                "Name one: kbtui sync /media/stick/notes.git, or git@HOST:ME/notes.git",
            )
        proposals: list[str] = []
        rules = SyncRules(
            _resolver_of,
            lambda clashes: self._propose(clashes, proposals),
            self._library.catalog.update_after_sync,
            _is_ignored,
            UnversionedRules(
                self._areas,
                self._claim_session,
                _why_incompatible,
                self._split_versions,
                _is_log,
                _add_lines,
            )
            if self._areas
            else None,
        )
        watcher = SyncWatcher(tell, stopped, count)
        self._library.flush()  # include an index that is due
        report = self._history.sync(address, watcher, rules, replace_theirs=replace_theirs)
        if report.received and (doubled := self._archive.undo_duplicates()):
            note = (
                f"{counted(doubled, 'part')} of conversations had been condensed here and on"
                " another machine; what was made of it there stays."
            )
            report = replace(report, notes=(*report.notes, note))
        if self._remotes.get() is None:
            report = replace(report, notes=(*report.notes, *self._scope_notes))
        self._remotes.put(address.text)
        return Synced(report, tuple(dict.fromkeys(proposals)))

    @property
    def _scope_notes(self) -> Iterator[str]:
        """Sentences for the first sync about what is synced and what isn't."""
        kinds = {"docs": "documents under docs/", "sessions": "conversations"}
        along = "".join(f", {kinds[area]}" for area in self._areas)
        stay = [kind for area, kind in kinds.items() if area not in self._areas]
        how = " `kbtui config set sync.conversations true` takes conversations along"
        yield (
            f"Notes travel with the pictures and papers beside them{along}, memory and how-tos, and"
            f" with their history; {enumerated([*stay, 'the settings'])} stay on this machine."
            f"{f'{how}, `sync.documents` documents.' if stay else ''}"
        )
        if large := self._too_large():
            yield f"{describe_large(self._workspace, large)} {LARGER}"

    @contextmanager
    def _claim_session(self, path: str) -> Iterator[None]:
        """Lock a conversation while it is replaced; documents need no lock."""
        area, _, name = path.partition("/")
        if area != "sessions" or "/" in name:  # sessions are only at the top level
            yield
            return
        self._workspace.confirm()
        claim = Claim.take(self._workspace.machine / area, name.removesuffix(".jsonl"))
        try:
            yield
        finally:
            claim.release()

    def _split_versions(self, path: str, ours: bytes, theirs: bytes) -> tuple[bytes, bytes]:
        """Return the version that keeps the name if both sides changed a file, and the copy.

        The copy of a conversation has only the diverging end, as the common part would be condensed
        twice. The name stays with the version whose end was condensed already, as archive entries
        refer to message numbers. If one side only changed the title there is no copy.
        """
        if not _is_log(path):
            return ours, theirs
        mine, other = (data.splitlines(keepends=True) for data in (ours, theirs))
        pairs = zip(mine, other, strict=False)
        common = next(n for n, (a, b) in enumerate([*pairs, (b"", b"-")]) if a != b)
        if not common:
            return ours, theirs
        for longer, end in ((ours, other[common:]), (theirs, mine[common:])):
            if _only_retitles(end) and longer.endswith(b"\n"):
                return longer + b"".join(end), b""
        last = _last_id(path, b"".join(mine[:common]))
        new_head = _head_of_copy(mine[0], last)
        if self._is_condensed_elsewhere(path, last):
            return theirs, new_head + b"".join(mine[common:])
        return ours, new_head + b"".join(other[common:])

    def _is_condensed_elsewhere(self, path: str, last: int) -> bool:
        """Return whether only other machines condensed messages after `last`."""
        session = path.rpartition("/")[2].removesuffix(".jsonl")
        condensed_by = {
            entry.origin
            for entry in self._archive.entries()
            if entry.session == session and entry.messages and entry.messages[1] > last
        }
        return bool(condensed_by) and self._archive.origin not in condensed_by

    def _propose(self, clashes: Sequence[Clash], proposals: list[str]) -> None:
        for clash in clashes:
            proposal = self._inbox().add(
                Actor.SYNC,
                f"{short_name(clash.path)} was changed on another machine in the same place.",
                {clash.path: files.text_of(clash.theirs)},
                bases={clash.path: clash.kept},
            )
            proposals.append(proposal.id)


def _why_incompatible(path: str, ours: bytes, theirs: bytes) -> str:
    """Return why two versions of a conversation can't coexist: one has what the other forgot."""
    if not _is_log(path) or forgotten_in(ours) == forgotten_in(theirs):
        return ""
    return "something was forgotten in it on one machine only; delete it on the other"


def _is_log(path: str) -> bool:
    return path.startswith("sessions/") and path.endswith(".jsonl")


def _last_id(path: str, log: bytes) -> int:
    records, _ = parse_records(log, path)
    return SessionLog.of(each.value for each in records).last_id


def _head_of_copy(head: bytes, last: int) -> bytes:
    """Return the first line of a copy of a conversation, with what came after a message."""
    record = {**(json_object(head) or {}), "begins": last + 1}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _add_lines(path: str, kept: bytes, lines: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Add lines to a conversation, or to a copy if their numbers are taken by other messages."""
    last = _last_id(path, kept)
    added = b"".join(line + b"\n" for line in lines)
    numbers = [(json_object(line) or {}).get("id") for line in lines]
    if all(isinstance(number, int) and number > last for number in numbers):
        return kept + (b"" if kept.endswith(b"\n") else b"\n") + added, b""
    return kept, _head_of_copy(kept.partition(b"\n")[0], last) + added


def _only_retitles(records: Iterable[bytes]) -> bool:
    """Return whether these records of a conversation only change its title."""
    return all((json_object(line) or {}).get("kind") == "title" for line in records)


def _is_ignored(path: str) -> bool:
    return is_derived(path) or path in _SHIPPED


def _resolver_of(path: str) -> Resolver | None:
    return _merge_index if _INDEX.fullmatch(path) else resolver_of(path)


def _merge_index(
    path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Merge what people wrote around a generated index, which is regenerated later."""
    if ours is None or theirs is None:
        return ours if theirs is None else theirs
    was, here, there = (without_block(data or b"") for data in (base, ours, theirs))
    if there in (was, here):
        return ours
    if here == was:
        return theirs
    merged = merge_three(path, was, here, there)
    if merged is None or merged.theirs is not None:
        merged = merge_three(path, None, here, there)  # both texts, concatenated
    return ours if merged is None else merged.data


class Remotes:
    """The remote of one workspace, stored in the user's state directory.

    It isn't stored in the workspace, which may be a shared folder and must not choose where notes
    are sent. Addresses may contain a token, so only the owner can read the file.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._key = os.fspath(workspace.root)
        self._former = former_paths(workspace.root)

    def get(self) -> str | None:
        """Return the address, also if stored before the folder was moved; None if unknown."""
        known = self._read()
        found = [known.get(key) for key in (self._key, *reversed(self._former))]
        return next((each for each in found if isinstance(each, str) and each), None)

    def put(self, address: str) -> None:
        """Store the address.

        Raises:
            StorageError: The file system refused.
        """
        known = self._read()
        if known.get(self._key) == address:
            return
        known[self._key] = address
        folder = _folder()
        with storage_errors(f"Can't write {folder / _REMOTES}"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False).encode()
        files.write_machine_file(folder, _REMOTES, data)

    def _read(self) -> dict[str, object]:
        try:
            return json_object((_folder() / _REMOTES).read_bytes()) or {}
        except OSError:
            return {}


def _folder() -> Path:
    return platformdirs.user_state_path("kbtui", appauthor=False)
