"""Changes that the user has rejected or reworded, so they aren't proposed again.

A place is identified by its added and removed lines, whatever surrounds it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kbtui.history.change import Actor
from kbtui.history.places import Plan, Proposal, ProposedEdit, ProposedPlace, places_of, put
from kbtui.history.queries.diff import split_lines
from kbtui.workspace import files
from kbtui.workspace.jsonl import append_line, read_lines
from kbtui.workspace.layout import MACHINE, Workspace

FOLDER = f"{MACHINE}/inbox"
_FILE = f"{FOLDER}/rejected.jsonl"
_Texts = tuple[str, "str | None", "str | None"]


@dataclass(slots=True)
class RecordedRejections:
    """Fingerprints of rejected changes, and of `reworded` proposals by id."""

    rejected: set[str] = field(default_factory=set)
    reworded: dict[str, set[str]] = field(default_factory=dict)

    def holds(self, actor: Actor, edits: Sequence[ProposedEdit]) -> bool:
        """Return whether a change, or every one of its places, was rejected."""
        if fingerprint(actor, edits) in self.rejected:
            return True
        places = [each for edit in edits for each in _fingerprints(actor, edit)]
        return bool(places) and self.rejected.issuperset(places)

    def without_rejected(
        self, actor: Actor, edits: Iterable[ProposedEdit]
    ) -> Iterator[ProposedEdit]:
        """Yield the edits of a change without the rejected places."""
        for edit in edits:
            prints = _fingerprints(actor, edit)
            if self.rejected.isdisjoint(prints):
                yield edit
            elif edit.base is not None and edit.wanted is not None:
                base = files.decode(edit.base)
                places = places_of(base.text, files.text_of(edit.wanted))
                named = zip(places, prints, strict=True)
                left = [each for each, name in named if name not in self.rejected]
                if left:
                    text = put(split_lines(base.text), left)
                    data = files.encoded_as(text, base)
                    yield ProposedEdit(edit.path, edit.base, data)


class Rejections:
    """Stores rejections as hashes in one file."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file = workspace.root / _FILE

    def read(self) -> RecordedRejections:
        """Return all recorded fingerprints."""
        known = RecordedRejections()
        for record in read_lines(self._file).records:
            places = record.get("places")
            prints = [record.get("change"), *(places if isinstance(places, list) else ())]
            found = {each for each in prints if isinstance(each, str)}
            reworded = record.get("reworded")
            if isinstance(reworded, str):
                known.reworded.setdefault(reworded, set()).update(found)
            else:
                known.rejected |= found
        return known

    def reject(self, plan: Plan, chosen: Collection[ProposedPlace], when: datetime) -> None:
        """Record rejected places; if all were chosen, also the whole change."""
        actor = plan.proposal.actor
        prints: dict[str, None] = {}
        for file in plan.files:
            for place in file.places:
                edit = file.edit
                if not place.whole:
                    edit = ProposedEdit(edit.path, _data(place.was), _data(place.theirs))
                if place in chosen:
                    prints |= dict.fromkeys(_fingerprints(actor, edit))
        whole = {"change": fingerprint(actor, plan.proposal.edits)}
        self._append(when, places=[*prints], **(whole if len(chosen) == len(plan.places) else {}))

    def reword(self, proposal: Proposal, prints: Iterable[str], when: datetime) -> None:
        """Record the earlier fingerprints of a reworded proposal."""
        self._append(when, reworded=proposal.id, places=[*prints])

    def _append(self, when: datetime, **record: object) -> None:
        self._workspace.confirm()
        append_line(self._file, {"time": when.isoformat(), **record})


def fingerprint(actor: Actor, edits: Iterable[ProposedEdit]) -> str:
    """Return the fingerprint of a change, made from its added and removed lines."""
    return _hash_change(actor, (each for edit in edits for each in _by_path(edit)))


def _fingerprints(actor: Actor, edit: ProposedEdit) -> list[str]:
    """Return the fingerprint of each place; an added, deleted or moved file counts as a whole."""
    if edit.base is None or edit.wanted is None or edit.old_path is not None:
        return [_hash_change(actor, [each]) for each in _by_path(edit)]
    places = places_of(files.text_of(edit.base), files.text_of(edit.wanted))
    both = ((_lines("".join(each.ours)), _lines("".join(each.theirs))) for each in places)
    return [_hash((actor.value, edit.path, each)) for each in both]


def _by_path(edit: ProposedEdit) -> Iterator[_Texts]:
    """Yield each path with its text before and after; a move is a deletion and an addition."""
    base = None if edit.base is None else files.text_of(edit.base)
    wanted = None if edit.wanted is None else files.text_of(edit.wanted)
    if edit.old_path is None:
        yield edit.path, base, wanted
    else:
        yield edit.old_path, base, None
        yield edit.path, None, wanted


def _hash_change(actor: Actor, texts: Iterable[_Texts]) -> str:
    parts = []
    for path, base, wanted in sorted(texts):
        old, new = Counter(_lines(base or "")), Counter(_lines(wanted or ""))
        kinds = (wanted is None, sorted((new - old).items()), sorted((old - new).items()))
        parts.append((path, kinds))
    return _hash((actor.value, parts))


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _data(lines: Sequence[str]) -> bytes:
    return "".join(lines).encode("utf-8", "replace")
