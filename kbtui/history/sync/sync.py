"""Syncing several machines' workspaces: fetch, merge, push.

Whoever comes second merges and the others fast-forward, so all end at the same commit. If both
sides changed the same line, ours stays in the file and theirs is given to whoever decides, so
neither side is ever lost. A purge on one machine makes the other machines' histories incompatible
(see `purge`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kbtui.errors import ConflictError, RefusedHistoryError, RemoteError
from kbtui.history.adoption import Adoption
from kbtui.history.change import Actor, Change, Origin
from kbtui.history.door import Door, MovedError
from kbtui.history.merging.tree_merge import Clash, MergePlan, Resolver, TreeMerge
from kbtui.history.objects.commit import Commit, is_derived, read_commit
from kbtui.history.objects.lineage import Divergence, diverge
from kbtui.history.objects.pack_folder import PackRecord
from kbtui.history.objects.packing import pack_commits
from kbtui.history.objects.repository import Repository
from kbtui.history.objects.trees import LINK, MODULE, GitObject, TreeEntry, walk_files
from kbtui.history.sync.file_plan import UnversionedRules as UnversionedRules
from kbtui.history.sync.inspection import portable_names
from kbtui.history.sync.notes_at_root import NotesAtRoot, is_note
from kbtui.history.sync.purge import PurgedCommits, PurgedTipError
from kbtui.history.sync.remote import (
    Address as Address,
    SyncWatcher as SyncWatcher,
    parse_address as parse_address,
)
from kbtui.history.sync.shared_folder import UNVERSIONED
from kbtui.history.sync.transport import Transport
from kbtui.history.sync.unversioned import UnversionedSync
from kbtui.text import clean_line, counted, storable
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.layout import Layout
from kbtui.workspace.scan import Scanner

log = logging.getLogger(__name__)
_ATTEMPTS = 6
_MAX_NAMES = 5
_CLONE = (
    "Take what you wrote since out of this workspace, then make a new one of the other history:"
    " `kbtui init NEW-FOLDER` and `kbtui -w NEW-FOLDER sync {place}`."
)


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The result of a sync.

    Attributes:
        remote: The address, without passwords.
        received: The number of commits received.
        sent: The number of commits sent.
        merge: The merge commit; None if none was needed.
        clashes: The conflicts of the merge.
        notes: What a person should know, one sentence each.
        replaced: Whether the other history was replaced by ours, after a purge.
        files_received: The number of documents and conversations received.
        files_sent: The number of documents and conversations sent.
    """

    remote: str
    received: int = 0
    sent: int = 0
    merge: Commit | None = None
    clashes: tuple[Clash, ...] = ()
    notes: tuple[str, ...] = ()
    replaced: bool = False
    files_received: int = 0
    files_sent: int = 0


@dataclass(frozen=True, slots=True)
class SyncRules:
    """Merge rules that only higher packages know.

    Attributes:
        resolver_of: Returns the resolver for a file of a special kind, None for others.
        on_clashes: Receives the conflicts, before the merge is recorded.
        on_received: Receives the changed paths; the changes it makes are synced as well.
        is_unused: Returns whether a path is one that kbtui itself puts into a new workspace.
        companions: The unversioned files that are synced as well; None for none.
    """

    resolver_of: Callable[[str], Resolver | None] = lambda _: None
    on_clashes: Callable[[Sequence[Clash]], None] = lambda _: None
    on_received: Callable[[Sequence[str]], None] = lambda _: None
    is_unused: Callable[[str], bool] = is_derived
    companions: UnversionedRules | None = None


class Sync:
    """Syncs one workspace's history."""

    def __init__(
        self,
        layout: Layout,
        repository: Repository,
        door: Door,
        adoption: Adoption,
        scanner: Scanner,
        rules: SyncRules,
    ) -> None:
        self._layout = layout
        self._repository = repository
        self._door = door
        self._adoption = adoption
        self._rules = rules
        self._purged = PurgedCommits(layout.root)
        self._at_root = NotesAtRoot(repository, self._store)
        self._unversioned = UnversionedSync(layout, repository, scanner, self._store, door.now)

    def run(
        self, address: Address, watcher: SyncWatcher, *, replace_theirs: bool = False
    ) -> SyncReport:
        """Sync with the history at an address.

        Args:
            address: The address.
            watcher: Receives progress and may cancel.
            replace_theirs: After a purge: drop what the other history has that ours doesn't.

        Raises:
            RemoteError: The connection or the other end doesn't work; nothing is lost.
            RefusedHistoryError: The histories can't be merged; nothing was changed.
            MassDeletionError: Many entries were deleted here, and nobody has confirmed it.
        """
        folder, root = address.folder, self._layout.root
        if folder is not None and folder.is_relative_to(root) and folder != root:
            raise RemoteError(
                f"{address.shown} lies inside the workspace.",
                "Sync with a folder outside of it, such as one on a stick or a shared drive.",
            )
        transport = Transport(address, self._repository, watcher)
        report = SyncReport(address.shown)
        for _ in range(_ATTEMPTS):
            try:
                done = self._once(transport, watcher, report, replace_theirs=replace_theirs)
                report = self._with_companions(address, watcher, done, forced=replace_theirs)
                return self._prune(transport, report)
            except MovedError as moved:
                why = moved
                log.info("sync again: %s", moved)
                watcher.tell("Somebody was faster; once more")
            except _MergedError as merged:
                why, report = merged.why, merged.report
        raise RemoteError(
            f"Somebody was faster, {_ATTEMPTS} times: {why.message}", f"Nothing is lost. {why.hint}"
        )

    def _with_companions(
        self, address: Address, watcher: SyncWatcher, report: SyncReport, *, forced: bool
    ) -> SyncReport:
        companions, place = self._rules.companions, address.shown
        if companions is None:
            return report
        watcher.tell("Bringing documents and conversations together")
        transport = Transport(address, self._repository, watcher, UNVERSIONED)
        done = self._unversioned.run(transport, place, companions, replace_theirs=forced)
        notes = (*report.notes, *done.notes)
        return replace(report, files_received=done.received, files_sent=done.sent, notes=notes)

    def _once(
        self,
        transport: Transport,
        watcher: SyncWatcher,
        report: SyncReport,
        *,
        replace_theirs: bool,
    ) -> SyncReport:
        if self._purged.are_in(self._repository):
            raise RefusedHistoryError(
                "A purge was not finished: the history here still holds what was to be removed.",
                "Run it again: `kbtui purge`.",
            )
        self._adoption.adopt(5.0, 0.0, confirmed=False)
        head = self._repository.head()
        purged = self._purged.known()
        try:
            found = transport.fetch([*([head] if head else []), *self._at_root.tips()], purged)
        except PurgedTipError as old:
            return self._replace(transport, watcher, report, old.tip, forced=replace_theirs)
        if found is None:
            return self._send(transport, watcher, report, None) if head else report
        theirs = self._as_ours(found)
        if theirs == head:
            return report
        apart = diverge(self._repository, head, theirs)
        if not purged.isdisjoint(each for each, _ in apart.theirs):  # by a git program or a race
            if theirs != found:
                raise RefusedHistoryError(
                    f"{report.remote} still has what you purged here.",
                    "It holds notes of a git program, whose history kbtui doesn't rewrite. Remove"
                    " it there (`git filter-repo --replace-text`), then sync again.",
                )
            return self._replace(transport, watcher, report, theirs, forced=replace_theirs)
        self._check_epoch(apart, head, report.remote)
        return self._join(head, found, theirs, apart, transport, watcher, report)

    def _join(
        self,
        head: str | None,
        found: str,
        theirs: str,
        apart: Divergence,
        transport: Transport,
        watcher: SyncWatcher,
        report: SyncReport,
    ) -> SyncReport:
        """Merge the fetched history and send what they lack.

        `theirs` is the commit in our history that corresponds to the fetched `found`.
        """
        at_root = theirs != found
        watcher.tell("Bringing both together")
        tip, report = self._with_portable_names(head, theirs, apart, report)
        if at_root and not self._at_root.tips():
            report = replace(report, notes=(*report.notes, *self._root_notes(report.remote)))
        report = self._integrate(head, tip, apart, watcher, report, joins=at_root)
        came = self._repository.compare(head, self._repository.head())
        self._rules.on_received([path for path, _, _ in came])
        try:
            if at_root:
                return self._send_notes(transport, watcher, report, found)
            if self._repository.head() == theirs:
                return report
            return self._send(transport, watcher, report, theirs)
        except MovedError as moved:
            raise _MergedError(report, moved) from None

    def _as_ours(self, tip: str) -> str:
        """Return our commit for a fetched one: its twin, if the remote has notes at its root."""
        return (self._layout.in_place and self._at_root.twin_of(tip)) or tip

    def _store(self, objects: Sequence[GitObject]) -> None:
        with self._door.entered(), storage_errors("Can't keep what was fetched"):
            self._repository.store(objects)

    def _root_notes(self, place: str) -> Iterator[str]:
        yield (
            f"{place} holds notes at its root: notes and what lies beside them travel there, as one"
            " commit each time; memory, how-tos and the steps of the history stay here."
        )
        if (self._layout.root / ".git").exists():
            yield (
                "This folder is a git repository itself. Where another program syncs it as well"
                " (Obsidian Git), switch one of the two off on this machine."
            )

    def _send_notes(
        self, transport: Transport, watcher: SyncWatcher, report: SyncReport, onto: str
    ) -> SyncReport:
        """Send our notes to a remote with notes at its root, as one commit on top of theirs."""
        head = self._repository.head() or ""
        new = self._at_root.commit_for(head, onto, self._door.now())
        if new != onto:
            commit = new, self._repository.read_commit(new)
            watcher.tell("Sending the notes")
            transport.push(new, onto, lambda: pack_commits(self._repository, [commit]))
            report = replace(report, sent=report.sent + 1)
        with self._door.entered():
            self._at_root.remember(new, head)
        return report

    def _send(
        self,
        transport: Transport,
        watcher: SyncWatcher,
        report: SyncReport,
        theirs: str | None,
        expected: str | None = None,
    ) -> SyncReport:
        """Send what they lack, given that `theirs` is all they have of our history."""
        head = self._repository.head() or ""
        commits = diverge(self._repository, head, theirs).ours

        def pack() -> tuple[int, Iterator[PackRecord]]:
            return pack_commits(self._repository, commits)

        watcher.tell(f"Sending {counted(len(commits), 'commit')}")
        transport.push(head, expected or theirs, pack)
        return replace(report, sent=report.sent + len(commits))

    def _integrate(
        self,
        head: str | None,
        theirs: str,
        apart: Divergence,
        watcher: SyncWatcher,
        report: SyncReport,
        *,
        joins: bool,
    ) -> SyncReport:
        base = apart.base
        if base == theirs:
            return report
        report = replace(report, received=report.received + len(apart.theirs))
        report = self._report_foreign(head, theirs, report)
        if base is None and head is not None and not self._repository.files(theirs):
            return self._merge(None, head, theirs, watcher, report)  # it has only a README.md, say
        if head is None or base == head or (base is None and self._is_unused(head)):
            self._door.forward(head, theirs, watch=partial(watcher.count, "Writing files"))
            return report
        if base is None and not joins:
            raise RefusedHistoryError(
                f"{report.remote} holds another knowledge base: the two have no past in common.",
                "To use that one, sync a new workspace with it: `kbtui init NEW-FOLDER`, then"
                " `kbtui -w NEW-FOLDER sync ...`. To keep this one, sync with an empty place.",
            )
        return self._merge(base, head, theirs, watcher, report)

    def _with_portable_names(
        self, head: str | None, theirs: str, apart: Divergence, report: SyncReport
    ) -> tuple[str, SyncReport]:
        """Return a commit on top of theirs that renames files to names all systems can store."""
        if apart.base == theirs:
            return theirs, report
        base, ours, there = map(self._repository.files, (apart.base, head, theirs))
        names = _names_to_change(base, ours, there)
        if not names:
            return theirs, report
        read = self._repository.read_blob
        edits: dict[str, bytes | None] = dict.fromkeys(names)
        edits |= {new: read(there[old]) for old, new in names.items()}
        before = {path: read(there[path]) if path in there else None for path in edits}
        notes = tuple(
            f"{clean_line(self._layout.file(old))} is {self._layout.file(new)} now:"
            " its name can't be used on every machine."
            for old, new in names.items()
        )
        change = Change(self._layout, Actor.SYNC, "\n".join(notes), Origin(), adopted=True)
        made, _, objects = self._door.build(change, theirs, before, edits)
        self._store(objects)
        return made.id, replace(report, notes=(*report.notes, *notes))

    def _report_foreign(self, head: str | None, theirs: str, report: SyncReport) -> SyncReport:
        """Report what the other history has besides a workspace's files, when it first appears.

        Raises:
            RefusedHistoryError: It has notes, but none where a workspace has them.
        """
        here, there = self._repository.foreign(head), self._repository.foreign(theirs)
        new = [f"{path}{self._kind(there[path])}" for path in sorted(there.keys() - here.keys())]
        if not new:
            return report
        tree = self._repository.read_commit(theirs).tree
        every = walk_files(tree, self._repository.read_tree)
        if not self._repository.files(theirs) and any(is_note(path) for path, _ in every):
            raise RefusedHistoryError(
                f"{report.remote} holds no knowledge base, but other files: {_listed(new)}.",
                "Nothing was taken over. To sync its notes, have them where they are: `kbtui init"
                " NEW-FOLDER --in-place`, then `kbtui -w NEW-FOLDER sync` with that address. Else"
                " name an empty place, or a workspace's.",
            )
        verb = "is" if len(new) == 1 else "are"
        note = f"{_listed(new)} {verb} no part of a workspace: kept there, and not written here."
        return replace(report, notes=(*report.notes, note))

    def _kind(self, entry: TreeEntry) -> str:
        """Describe in brackets why an entry isn't part of a workspace, if its name doesn't tell."""
        mode, sha = entry
        kind = {LINK: "a link", MODULE: "a submodule"}.get(mode, "")
        if sha.hex() in self._repository.large:
            kind = f"larger than {files.READ_LIMIT >> 20} MB"
        return f" ({kind})" if kind else ""

    def _merge(
        self, base: str | None, head: str, theirs: str, watcher: SyncWatcher, report: SyncReport
    ) -> SyncReport:
        rules = self._rules
        plan = TreeMerge(self._repository, base, head, theirs, rules.resolver_of).plan()
        watcher.check()  # the last chance: it isn't cancelled from here on
        if plan.clashes:
            rules.on_clashes(plan.clashes)
        for copy, data in plan.copies.items():
            files.write_atomic(self._layout, copy, data)
        commit = self._record(plan, head, theirs, report)
        return replace(
            report,
            merge=commit,
            clashes=(*report.clashes, *plan.clashes),
            notes=(*report.notes, *plan.notes),
        )

    def _record(self, plan: MergePlan, head: str, theirs: str, report: SyncReport) -> Commit:
        reason = "\n".join([f"Brought together with {report.remote}.", *plan.notes])
        change = Change(self._layout, Actor.SYNC, reason, Origin(), adopted=True)
        change.second_parent, change.foreign = theirs, plan.foreign
        free = {path for path in plan.edits if is_derived(path) and path.endswith("INDEX.md")}
        change.seal({path: data for path, data in plan.edits.items() if path not in free})
        for path in free:  # generated files are left for companions to regenerate
            change.replace(path, plan.edits[path])
        self._door.commit_merge(change, head)
        if change.result is None:
            raise ConflictError("The merge was not recorded.", "Try again.")
        return change.result

    def _is_unused(self, head: str) -> bool:
        """Return whether our history contains nothing written by a person."""
        return all(self._rules.is_unused(path) for path in self._repository.files(head))

    def _check_epoch(self, apart: Divergence, head: str | None, place: str) -> None:
        """Refuse to reintroduce what was purged elsewhere and is still in our history."""
        if head is None or apart.base == head or (apart.base is None and self._is_unused(head)):
            return
        if any(read_commit(*each).origin.epoch for each in apart.theirs):
            raise RefusedHistoryError(
                f"A secret was purged from the history at {place}, and this workspace still has"
                " the history from before.",
                _CLONE.format(place=place),
            )

    def _replace(
        self,
        transport: Transport,
        watcher: SyncWatcher,
        report: SyncReport,
        old: str,
        *,
        forced: bool,
    ) -> SyncReport:
        """Replace the other history by ours after a purge here."""
        if not forced and old not in self._purged.known():
            raise RefusedHistoryError(
                f"You have purged a secret here, and somebody has synced with {report.remote}"
                " since: there are changes there that aren't here.",
                "Take over by hand what you need from there, then replace it: `kbtui sync"
                " --replace`.",
            )
        self._purged.add([old])
        return replace(self._send(transport, watcher, report, None, expected=old), replaced=True)

    def _prune(self, transport: Transport, report: SyncReport) -> SyncReport:
        """Prune purged commits from a folder; report where else they may remain."""
        note = transport.prune(self._purged.known())
        if report.replaced and not note and not transport.is_folder:
            note = (
                f"{report.remote} may keep what was purged until it tidies up (`git gc"
                " --prune=now` there), and so may its forks, clones and backups."
            )
        return replace(report, notes=(*report.notes, note)) if note else report


def _listed(names: Sequence[str]) -> str:
    shown = [clean_line(storable(name)) for name in names[:_MAX_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


class _MergedError(Exception):
    """The merge is recorded here, but the push came too late: retry from it."""

    def __init__(self, report: SyncReport, why: MovedError) -> None:
        super().__init__("merged")
        self.report = report
        self.why = why


def _names_to_change(
    base: Container[str], ours: Mapping[str, str], theirs: Mapping[str, str]
) -> dict[str, str]:
    """Return portable names for files that come from the other side, by their current ones."""
    kept = {path for path in ours if path in theirs or path not in base}
    coming = {path for path in theirs if path in ours or path not in base}
    names = portable_names(coming | kept, kept)
    return {old: new for old, new in names.items() if old in coming - kept}
