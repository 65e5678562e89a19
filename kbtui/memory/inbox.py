"""The inbox: changes that a machine wanted to make and a person must decide on.

Each proposal is one file under ``.kbtui/inbox``, complete with the texts it was made from, so that
it can be merged into what the files have become since. It stays until it is accepted or rejected.
"""

from __future__ import annotations

import json
import secrets
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError, KbtuiError, NotFoundError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.history.merge import take_out
from kbtui.memory.proposal import (
    Proposal,
    ProposedEdit,
    as_json,
    fingerprint,
    from_json,
    new_facts,
    sources_of,
)
from kbtui.memory.tombstones import Tombstones
from kbtui.text import clean_line
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.jsonl import append_line, read_lines
from kbtui.workspace.layout import MACHINE, is_recorded, short_name
from kbtui.workspace.redact import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from kbtui.history.change import Commit
    from kbtui.history.history import History
    from kbtui.workspace.layout import Workspace

__all__ = ["Inbox", "Proposal", "ProposedEdit"]

_FOLDER = f"{MACHINE}/inbox"
_REJECTED = f"{_FOLDER}/rejected.jsonl"
_SUFFIX = ".json"


class Inbox:
    """The proposals of one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        tombstones: Tombstones | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._tombstones = tombstones or Tombstones(workspace, history, clock)
        self._clock = clock
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.RLock()

    def add(
        self,
        actor: Actor,
        reason: str,
        edits: Mapping[str, str | None],
        *,
        origin: Origin | None = None,
        bases: Mapping[str, bytes | None] | None = None,
    ) -> Proposal:
        """Propose a change to the files as they are now; secrets are redacted.

        The same change proposed again by the same actor is the same proposal, brought up to date
        with what the files say now. See `was_rejected` before asking a second time.

        Args:
            actor: Who proposes it.
            reason: Why it isn't simply made.
            edits: The new text of each path; None deletes the file.
            origin: Where it comes from.
            bases: What the files held when the texts were made; None: what they hold now.

        Raises:
            UsageError: no edits, or a path that the history doesn't keep.
            StorageError: the file system refused.
        """
        proposed = tuple(self._edit(path, text, bases) for path, text in sorted(edits.items()))
        if not proposed:
            raise UsageError("A proposal needs at least one file that it changes.")
        with self._lock:
            known = self._same(actor, proposed)
            if known is not None and known.edits == proposed:
                return known
            proposal = Proposal(
                known.id if known else self._free_id(),
                known.created if known else self._clock(),
                actor,
                redact(reason).text,
                origin or Origin(),
                proposed,
            )
            data = json.dumps(as_json(proposal), ensure_ascii=False, indent=1).encode()
            files.write_machine_file(self._workspace.root, self._path(proposal.id), data)
        self._tell()
        return proposal

    def was_rejected(
        self,
        actor: Actor,
        edits: Mapping[str, str | None],
        bases: Mapping[str, bytes | None] | None = None,
    ) -> bool:
        """Whether the user has rejected this very change before: these lines in, those out."""
        proposed = [self._edit(path, text, bases) for path, text in sorted(edits.items())]
        wanted = fingerprint(actor, proposed)
        rejected = read_lines(self._workspace.root / _REJECTED).records
        return any(record.get("change") == wanted for record in rejected)

    def list(self) -> list[Proposal]:
        """All proposals that wait, the oldest first."""
        found = (self._load(file) for file in self._files())
        return sorted(
            (proposal for proposal in found if proposal is not None),
            key=lambda proposal: (proposal.created, proposal.id),
        )

    def get(self, ref: str) -> Proposal:
        """One proposal by its id or the unique beginning of it.

        Raises:
            NotFoundError: there is none.
            UsageError: several begin so.
        """
        wanted = ref.strip().lower()
        found = [proposal for proposal in self.list() if wanted and proposal.id.startswith(wanted)]
        if not found:
            raise NotFoundError(
                f"There is no proposal {ref!r}.", "`kbtui inbox` lists those that wait."
            )
        if len(found) > 1:
            ids = ", ".join(proposal.id for proposal in found)
            raise UsageError(f"{ref!r} could be {ids}.", "Say more of it.")
        return found[0]

    def accept(self, ref: str, actor: Actor = Actor.YOU) -> Commit | None:
        """Make the whole proposed change, merged into what the files say now.

        Returns:
            The commit; None when everything stood there already.

        Raises:
            NotFoundError: there is no such proposal.
            ConflictError: a file was changed where the proposal changes it; nothing is done, and
                the proposal stays.
        """
        with self._lock:
            proposal = self.get(ref)
            merged = {edit.path: self._merged(edit) for edit in proposal.edits}
            with self._history.change(actor, _accepting(proposal), proposal.origin) as change:
                for path, (before, after) in merged.items():
                    if after is None:
                        change.delete(path, expecting=before)
                    else:
                        change.write(path, after, expecting=before)
            self._remove(proposal)
        self._tell()
        return change.result

    def reject(self, ref: str, actor: Actor = Actor.YOU) -> Proposal:
        """Put a proposal away, and see to it that its facts aren't proposed again.

        Raises:
            NotFoundError: there is no such proposal.
        """
        with self._lock:
            proposal = self.get(ref)
            with self._history.change(
                actor,
                f"Rejected a proposal of {proposal.actor}: {proposal.reason}",
                proposal.origin,
            ) as change:
                self._tombstones.bury(change, new_facts(proposal), sources_of(proposal.origin))
            rejected = fingerprint(proposal.actor, proposal.edits)
            append_line(
                self._workspace.root / _REJECTED,
                {"change": rejected, "time": self._clock().isoformat()},
            )
            self._remove(proposal)
        self._tell()
        return proposal

    def problems(self) -> tuple[str, ...]:
        """Files in the inbox that can't be read; they stay there."""
        broken = (file.name for file in self._files() if self._load(file) is None)
        return tuple(f"{_FOLDER}/{name}" for name in broken)

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when proposals come or go; returns the way out."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def _edit(
        self, path: str, text: str | None, bases: Mapping[str, bytes | None] | None
    ) -> ProposedEdit:
        path = files.checked_path(path)
        if not is_recorded(path):
            raise UsageError(f"{path} is not a file that the history keeps.")
        data = bases[path] if bases is not None and path in bases else self._read(path)
        before = None if data is None else files.decode(data).text
        if text is not None:
            text = redact(text, keep=before or "").text
        return ProposedEdit(path, None if data is None else files.blob_id(data), text, before)

    def _same(self, actor: Actor, edits: Sequence[ProposedEdit]) -> Proposal | None:
        wanted = fingerprint(actor, edits)
        same = (each for each in self.list() if fingerprint(each.actor, each.edits) == wanted)
        return next(same, None)

    def _merged(self, edit: ProposedEdit) -> tuple[str | None, str | None]:
        """The blob id of a file now and the text it is to have."""
        data = self._read(edit.path)
        now = None if data is None else files.blob_id(data)
        text = None if data is None else files.decode(data).text
        if now == edit.base or text == edit.text:
            return now, edit.text
        if text is not None and edit.text is not None:
            merge = take_out(edit.path, [edit.base_text or "", text], edit.text)
            if not merge.conflicts:
                return now, merge.text
            places = "; ".join(clean_line(each.ours)[:60] for each in merge.conflicts[:3])
        else:
            places = "it is not there" if text is None else "it is to be deleted"
        raise ConflictError(
            f"{short_name(edit.path)} was changed since this was proposed: {places}.",
            "Nothing was changed. Reject the proposal, or edit the file yourself.",
            paths=(edit.path,),
        )

    def _read(self, path: str) -> bytes | None:
        try:
            return files.read_bytes(self._workspace.root, path)
        except NotFoundError:
            return None

    def _files(self) -> Iterable[Path]:
        folder = self._workspace.root / _FOLDER
        return sorted(file for file in folder.glob(f"[!.]*{_SUFFIX}") if file.is_file())

    def _load(self, file: Path) -> Proposal | None:
        try:
            return from_json(json.loads(file.read_bytes()), file.name.removesuffix(_SUFFIX))
        except (OSError, KbtuiError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _remove(self, proposal: Proposal) -> None:
        with storage_errors(f"Can't remove the proposal {proposal.id}"):
            (self._workspace.root / self._path(proposal.id)).unlink(missing_ok=True)

    def _path(self, proposal_id: str) -> str:
        return f"{_FOLDER}/{proposal_id}{_SUFFIX}"

    def _free_id(self) -> str:
        while True:
            new = secrets.token_hex(3)
            if not (self._workspace.root / self._path(new)).exists():
                return new

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()


def _accepting(proposal: Proposal) -> str:
    return f"Accepted a proposal of {proposal.actor}: {proposal.reason}"
