"""Syncing a knowledge base: what is merged how, and where a person decides.

The history room brings two histories together; here it learns which files are accounts of the
memory or generated, and that what both sides changed in the same place goes into the inbox.
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
    """A sync that was made, and the proposals that wait for a person because of it."""

    report: SyncReport
    proposals: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Its outcome, in one line."""
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
    """Syncs one workspace with the place that is remembered for it."""

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
        """The place that was synced with before."""
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
        """Sync with an address, or the one that is remembered, and remember it.

        `stopped` says whether somebody wants to stop, `count` is told how much of a step is done of
        how much, or `tell` in words; with `replace_theirs`, after a purge, what
        the other side has that we don't is dropped.

        Raises:
            UsageError: No address is known.
            RemoteError: The way or the other end doesn't work; nothing is lost.
            RefusedHistoryError: The histories can't be brought together; nothing was changed.
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
            _is_unused,
            UnversionedRules(self._areas, self._hold, _keeps_apart, self._split)
            if self._areas
            else None,
        )
        watcher = SyncWatcher(tell, stopped, count)
        self._library.flush()  # an index that is due goes along
        report = self._history.sync(address, watcher, rules, replace_theirs=replace_theirs)
        if report.received and (doubled := self._archive.undo_duplicates()):
            told = (
                f"{counted(doubled, 'part')} of conversations had been condensed here and on"
                " another machine; what was made of it there stays."
            )
            report = replace(report, notes=(*report.notes, told))
        if self._remotes.get() is None:
            report = replace(report, notes=(*report.notes, *self._scope))
        self._remotes.put(address.text)
        return Synced(report, tuple(dict.fromkeys(proposals)))

    @property
    def _scope(self) -> Iterator[str]:
        """What travels and what doesn't, in sentences for the first sync."""
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
    def _hold(self, path: str) -> Iterator[None]:
        """Keep others from a conversation while it is replaced; documents need nothing."""
        area, _, name = path.partition("/")
        if area != "sessions" or "/" in name:  # below a folder there are none
            yield
            return
        claim = Claim.take(self._workspace.machine / area, name.removesuffix(".jsonl"))
        try:
            yield
        finally:
            claim.release()

    def _split(self, path: str, ours: bytes, theirs: bytes) -> tuple[bytes, bytes]:
        """What keeps the name where both went on with one, and what becomes a copy.

        Of a conversation the copy is the rest alone: what was said before would be condensed twice.
        The name stays with the version whose end was condensed already, as that is told by number.
        Where one side only gave it another title there is no rest.
        """
        if not path.startswith("sessions/"):
            return ours, theirs
        mine, other = (data.splitlines(keepends=True) for data in (ours, theirs))
        pairs = zip(mine, other, strict=False)
        same = next(n for n, (a, b) in enumerate([*pairs, (b"", b"-")]) if a != b)
        if not same:
            return ours, theirs
        for longer, end in ((ours, other[same:]), (theirs, mine[same:])):
            if _only_retitles(end) and longer.endswith(b"\n"):
                return longer + b"".join(end), b""
        records, _ = parse_records(b"".join(mine[:same]), path)
        last = SessionLog.of(each.value for each in records).last_id
        head = {**(json_object(mine[0]) or {}), "begins": last + 1}
        begun = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        if self._is_condensed_elsewhere(path, last):
            return theirs, begun + b"".join(mine[same:])
        return ours, begun + b"".join(other[same:])

    def _is_condensed_elsewhere(self, path: str, last: int) -> bool:
        """True if only other computers condensed messages of a conversation behind the `last`."""
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


def _keeps_apart(path: str, ours: bytes, theirs: bytes) -> str:
    """Why two versions of a conversation can't both stay: one would tell what the other forgot."""
    if not path.startswith("sessions/") or forgotten_in(ours) == forgotten_in(theirs):
        return ""
    return "something was forgotten in it on one machine only; delete it on the other"


def _only_retitles(records: Iterable[bytes]) -> bool:
    """True if these lines of a conversation do nothing but give it another title."""
    return all((json_object(line) or {}).get("kind") == "title" for line in records)


def _is_unused(path: str) -> bool:
    return is_derived(path) or path in _SHIPPED


def _resolver_of(path: str) -> Resolver | None:
    return _merge_index if _INDEX.fullmatch(path) else resolver_of(path)


def _merge_index(
    path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> bytes | None:
    """Keep what people wrote around a generated index; the index is generated again."""
    if ours is None or theirs is None:
        return ours if theirs is None else theirs
    was, here, there = (without_block(data or b"") for data in (base, ours, theirs))
    if there in (was, here):
        return ours
    if here == was:
        return theirs
    merged = merge_three(path, was, here, there)
    if merged is None or merged.theirs is not None:
        merged = merge_three(path, None, here, there)  # both texts, one below the other
    return ours if merged is None else merged.data


class Remotes:
    """The remote of one workspace, remembered beside the user's own settings.

    Not in the workspace: that may be a shared folder, and must not choose where notes are sent to.
    An address may hold a token, so the file is readable by its owner only.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._key = os.fspath(workspace.root)
        self._former = former_paths(workspace.root)

    def get(self) -> str | None:
        """The address, that from before the folder was moved included; None: none is known."""
        known = self._all()
        found = [known.get(key) for key in (self._key, *reversed(self._former))]
        return next((each for each in found if isinstance(each, str) and each), None)

    def put(self, address: str) -> None:
        """Remember an address.

        Raises:
            StorageError: The file system refused.
        """
        known = self._all()
        if known.get(self._key) == address:
            return
        known[self._key] = address
        folder = _folder()
        with storage_errors(f"Can't write {folder / _REMOTES}"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False).encode()
        files.write_machine_file(folder, _REMOTES, data)

    def _all(self) -> dict[str, object]:
        try:
            return json_object((_folder() / _REMOTES).read_bytes()) or {}
        except OSError:
            return {}


def _folder() -> Path:
    return platformdirs.user_state_path("kbtui", appauthor=False)
