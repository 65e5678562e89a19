"""Proposals: changes that wait for a person, as they are kept and compared."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kbtui.errors import ConflictError, KbtuiError, NotFoundError, UsageError
from kbtui.history.change import Actor, Origin
from kbtui.history.looking.diff import split_lines
from kbtui.memory.inbox.hunks import cut, put
from kbtui.memory.records.ranges import read_range
from kbtui.memory.records.tombstones import Source
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.jsonl import append_line, read_lines
from kbtui.workspace.layout import MACHINE, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kbtui.memory.inbox.hunks import Cut
    from kbtui.workspace.layout import Workspace


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """One file of a proposal.

    `base` is the blob id of the text that it was made from, None for a file that wasn't there;
    `text` is None for a deletion.
    """

    path: str
    base: str | None
    text: str | None
    base_text: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change waiting for a decision; `id` is short enough to type."""

    id: str
    created: datetime
    actor: Actor
    reason: str
    origin: Origin
    edits: tuple[ProposedEdit, ...]
    was: tuple[str, ...] = ()
    """Fingerprints of what it was before a person wrote their own text into it."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it would change."""
        return tuple(edit.path for edit in self.edits)


def fingerprint(actor: Actor, edits: Sequence[ProposedEdit]) -> str:
    """What a change does, whatever stands around it: the lines that come and those that go."""
    parts = []
    for edit in edits:
        old, new = Counter(_lines(edit.base_text)), Counter(_lines(edit.text))
        kinds = (edit.text is None, sorted((new - old).items()), sorted((old - new).items()))
        parts.append((edit.path, kinds))
    return hashlib.sha256(repr((actor.value, parts)).encode()).hexdigest()


def place_fingerprints(
    actor: Actor, edits: Sequence[ProposedEdit], within: Cut | None = None
) -> list[str]:
    """What each place of a change does; a file that comes or goes is one place.

    `within`: only the places in those lines.
    """
    found = []
    for edit in edits:
        if edit.base_text is None or edit.text is None:
            found.append(fingerprint(actor, [edit]))
            continue
        base = split_lines(edit.base_text)
        for each in cut(edit.base_text, edit.text):
            if within is None or (within.first <= each.first and each.last <= within.last):
                lines = (_said(each.removed(base)), _said(each.lines))
                said = repr((actor.value, edit.path, lines))
                found.append(hashlib.sha256(said.encode("utf-8", "replace")).hexdigest())
    return found


def is_among(actor: Actor, edits: Sequence[ProposedEdit], known: frozenset[str]) -> bool:
    """Whether a change, or each of its places, has one of the known fingerprints."""
    if fingerprint(actor, edits) in known:
        return True
    places = place_fingerprints(actor, edits)
    return bool(places) and known.issuperset(places)


def without_places(
    actor: Actor, edits: Sequence[ProposedEdit], unwanted: frozenset[str]
) -> tuple[ProposedEdit, ...]:
    """Leave out the places whose fingerprint is unwanted."""
    kept: list[ProposedEdit] = []
    for edit in edits:
        prints = place_fingerprints(actor, [edit])
        if unwanted.isdisjoint(prints):
            kept.append(edit)
        elif edit.base_text is not None and edit.text is not None:
            cuts = [
                each
                for each, name in zip(cut(edit.base_text, edit.text), prints, strict=True)
                if name not in unwanted
            ]
            if cuts:
                kept.append(replace(edit, text=put(edit.base_text, cuts)))
    return tuple(kept)


def check_base(
    edit: ProposedEdit, proposed: ProposedEdit | None, expected: Mapping[str, str | None]
) -> None:
    """Check that an edit was made from what it takes the place of.

    Args:
        edit: The edit, with the file as it is now for its base.
        proposed: What is proposed for the file already, if the edit goes on with that.
        expected: The blob id of what it was made from, by path; what isn't there isn't checked.

    Raises:
        ConflictError: it was made from something else.
    """
    name = short_name(edit.path)
    if proposed is not None and proposed.text is None and edit.text is not None:
        raise ConflictError(
            f"{name} is to go: that it is renamed or deleted waits in the inbox.",
            "Edit it under its new name, or let the user decide first.",
            paths=(edit.path,),
        )
    stands = edit.base
    if proposed is not None and proposed.text is not None:
        stands = files.blob_id(proposed.text.encode("utf-8", "replace"))
    if edit.path in expected and expected[edit.path] != stands:
        raise ConflictError(
            f"{name}, or what waits in the inbox for it, was changed meanwhile.",
            "Nothing was proposed. Read it again, and propose what is still needed.",
            paths=(edit.path,),
        )


def grown(
    proposal: Proposal, reason: str, edits: Sequence[ProposedEdit], origin: Origin
) -> Proposal:
    """A proposal with more of the same turn or conversation in it.

    Args:
        proposal: What waits.
        reason: What is added.
        edits: The files; of one that is in it already the new text is taken.
        origin: Where they come from.
    """
    merged = {edit.path: edit for edit in proposal.edits}
    for edit in edits:
        known = merged.get(edit.path)
        merged[edit.path] = replace(known, text=edit.text) if known else edit
    reasons = dict.fromkeys([*proposal.reason.split("; "), reason])
    before, messages = proposal.origin.messages, origin.messages
    if before is not None and messages is not None:
        before = min(before[0], messages[0]), max(before[1], messages[1])
    return replace(
        proposal,
        reason="; ".join(reasons),
        edits=tuple(merged.values()),
        origin=replace(proposal.origin, messages=before),
    )


def _said(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


def _lines(text: str | None) -> list[str]:
    return [line.rstrip() for line in (text or "").splitlines() if line.strip()]


def sources_of(origin: Origin) -> tuple[Source, ...]:
    """Where what a change says had been said, as far as its origin knows."""
    if origin.session is None or origin.messages is None:
        return ()
    return (Source(origin.session, origin.messages),)


def as_json(proposal: Proposal) -> dict[str, Any]:
    """A proposal as JSON values."""
    origin = proposal.origin
    known = {name: getattr(origin, name) for name in Origin.__slots__}
    return {
        "id": proposal.id,
        "created": proposal.created.isoformat(),
        "actor": proposal.actor.value,
        "reason": proposal.reason,
        "origin": {name: value for name, value in known.items() if value is not None},
        "edits": [
            {"path": e.path, "base": e.base, "text": e.text, "base_text": e.base_text}
            for e in proposal.edits
        ],
        "was": list(proposal.was),
    }


def from_json(value: Any, name: str) -> Proposal:
    """Read a proposal back.

    Raises:
        KeyError, TypeError, ValueError, UnsafePathError: it isn't one.
    """
    origin = value["origin"]
    return Proposal(
        name,
        datetime.fromisoformat(value["created"]),
        Actor(value["actor"]),
        str(value["reason"]),
        Origin(**{**origin, "messages": read_range(origin.get("messages"))}),
        tuple(_edit_from_json(edit) for edit in value["edits"]),
        tuple(str(each) for each in value.get("was", ())),
    )


def _edit_from_json(value: Any) -> ProposedEdit:
    path = files.checked_path(value["path"])
    texts = [value["base"], value["text"], value.get("base_text")]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise TypeError("an edit holds texts")
    return ProposedEdit(path, *texts)


_FOLDER = f"{MACHINE}/inbox"
_REJECTED = f"{_FOLDER}/rejected.jsonl"
_SUFFIX = ".json"


class InboxStore:
    """Reads and writes the proposals of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root

    def list(self) -> list[Proposal]:
        """All proposals that wait, the oldest first."""
        found = (_load(file) for file in self._files())
        return sorted(
            (proposal for proposal in found if proposal is not None),
            key=lambda proposal: (proposal.created, proposal.id),
        )

    def get(self, ref: str) -> Proposal:
        """One proposal by its id or the unique beginning of it; raises as `Inbox.get`."""
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

    def put(self, proposal: Proposal) -> None:
        """Store a proposal, whole, for nobody else to read."""
        text = json.dumps(as_json(proposal), ensure_ascii=False, indent=1)
        data = text.encode("utf-8", "replace")
        files.write_machine_file(self._root, _path(proposal.id), data)

    def remove(self, proposal: Proposal) -> None:
        """Remove a proposal; one that is gone already is fine."""
        with storage_errors(f"Can't remove the proposal {proposal.id}"):
            (self._root / _path(proposal.id)).unlink(missing_ok=True)

    def free_id(self) -> str:
        """An id that nothing has yet, short enough to type."""
        while True:
            new = secrets.token_hex(3)
            if not (self._root / _path(new)).exists():
                return new

    def problems(self) -> tuple[str, ...]:
        """Files that can't be read; they stay there."""
        broken = (file.name for file in self._files() if _load(file) is None)
        return tuple(f"{_FOLDER}/{name}" for name in broken)

    def note_rejection(self, record: Mapping[str, object]) -> None:
        """Remember what was put away."""
        append_line(self._root / _REJECTED, record)

    def rejections(self) -> frozenset[str]:
        """The fingerprints of what was put away: of whole changes (``change``), and places."""
        found: set[str] = set()
        for record in read_lines(self._root / _REJECTED).records:
            places = record.get("places")
            prints = [record.get("change"), *(places if isinstance(places, list) else ())]
            found.update(each for each in prints if isinstance(each, str))
        return frozenset(found)

    def stamp(self) -> int:
        """Changes whenever a proposal came or went, in whichever process."""
        try:
            return (self._root / _FOLDER).stat().st_mtime_ns
        except OSError:
            return 0

    def _files(self) -> Iterable[Path]:
        folder = self._root / _FOLDER
        return sorted(file for file in folder.glob(f"[!.]*{_SUFFIX}") if file.is_file())


def _load(file: Path) -> Proposal | None:
    try:
        return from_json(json.loads(file.read_bytes()), file.name.removesuffix(_SUFFIX))
    except (OSError, KbtuiError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _path(proposal_id: str) -> str:
    return f"{_FOLDER}/{proposal_id}{_SUFFIX}"
