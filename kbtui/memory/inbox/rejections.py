"""Changes that the user has put away or put into words of their own: not proposed again.

A place is recognised by the lines that come and those that go, whatever stands around it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kbtui.history.change import Actor
from kbtui.history.places import Plan, Proposal, ProposedEdit, ProposedPlace, places_of, put
from kbtui.history.queries.diff import split_lines
from kbtui.workspace import files
from kbtui.workspace.jsonl import append_line, read_lines
from kbtui.workspace.layout import MACHINE

FOLDER = f"{MACHINE}/inbox"
_FILE = f"{FOLDER}/rejected.jsonl"
_Texts = tuple[str, "str | None", "str | None"]


@dataclass(slots=True)
class PutAway:
    """Fingerprints of what was put away, and by its id of what a person `reworded`."""

    rejected: set[str] = field(default_factory=set)
    reworded: dict[str, set[str]] = field(default_factory=dict)

    def holds(self, actor: Actor, edits: Sequence[ProposedEdit]) -> bool:
        """True if a change, or each of its places, was put away."""
        if fingerprint(actor, edits) in self.rejected:
            return True
        places = [each for edit in edits for each in _fingerprints(actor, edit)]
        return bool(places) and self.rejected.issuperset(places)

    def taken_out(self, actor: Actor, edits: Iterable[ProposedEdit]) -> Iterator[ProposedEdit]:
        """A change without the places that were put away."""
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
                    data = text.encode(base.encoding, "replace")
                    yield ProposedEdit(edit.path, edit.base, data)


class Rejections:
    """Keeps them, as hashes, in one file."""

    def __init__(self, root: Path) -> None:
        self._file = root / _FILE

    def read(self) -> PutAway:
        """All that is known."""
        known = PutAway()
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
        """Remember places that are put away; all of them are the change."""
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
        """Remember what a proposal was."""
        self._append(when, reworded=proposal.id, places=[*prints])

    def _append(self, when: datetime, **record: object) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        append_line(self._file, {"time": when.isoformat(), **record})


def fingerprint(actor: Actor, edits: Iterable[ProposedEdit]) -> str:
    """Name a change by the lines that come and those that go, whatever stands around it."""
    return _whole(actor, (each for edit in edits for each in _by_path(edit)))


def _fingerprints(actor: Actor, edit: ProposedEdit) -> list[str]:
    """Name each place of a change; a file that comes, goes or moves is one or two places."""
    if edit.base is None or edit.wanted is None or edit.old_path is not None:
        return [_whole(actor, [each]) for each in _by_path(edit)]
    places = places_of(files.text_of(edit.base), files.text_of(edit.wanted))
    both = ((_said("".join(each.ours)), _said("".join(each.theirs))) for each in places)
    return [_hash((actor.value, edit.path, each)) for each in both]


def _by_path(edit: ProposedEdit) -> Iterator[_Texts]:
    """The text of each path before and after; a move is a file that goes and one that comes."""
    base = None if edit.base is None else files.text_of(edit.base)
    wanted = None if edit.wanted is None else files.text_of(edit.wanted)
    if edit.old_path is None:
        yield edit.path, base, wanted
    else:
        yield edit.old_path, base, None
        yield edit.path, None, wanted


def _whole(actor: Actor, texts: Iterable[_Texts]) -> str:
    parts = []
    for path, base, wanted in sorted(texts):
        old, new = Counter(_said(base or "")), Counter(_said(wanted or ""))
        kinds = (wanted is None, sorted((new - old).items()), sorted((old - new).items()))
        parts.append((path, kinds))
    return _hash((actor.value, parts))


def _hash(said: object) -> str:
    return hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest()


def _said(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _data(lines: Sequence[str]) -> bytes:
    return "".join(lines).encode("utf-8", "replace")
