"""Proposals: changes that wait for a person, as they are kept and compared."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kbtui.history.change import Actor, Origin
from kbtui.memory.facts import statements
from kbtui.memory.ranges import read_range
from kbtui.memory.tombstones import Source
from kbtui.workspace import files

if TYPE_CHECKING:
    from collections.abc import Sequence


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

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it would change."""
        return tuple(edit.path for edit in self.edits)


def new_facts(proposal: Proposal) -> list[str]:
    """What the proposal states and the files didn't."""
    return [
        fact
        for edit in proposal.edits
        if edit.text is not None
        for fact in _missing(statements(edit.text), statements(edit.base_text or ""))
    ]


def fingerprint(actor: Actor, edits: Sequence[ProposedEdit]) -> str:
    """What a change does, whatever stands around it: the lines that come and those that go."""
    parts = []
    for edit in edits:
        old, new = Counter(_lines(edit.base_text)), Counter(_lines(edit.text))
        kinds = (edit.text is None, sorted((new - old).items()), sorted((old - new).items()))
        parts.append((edit.path, kinds))
    return hashlib.sha256(repr((actor.value, parts)).encode()).hexdigest()


def _lines(text: str | None) -> list[str]:
    return [line.rstrip() for line in (text or "").splitlines() if line.strip()]


def _missing(facts: list[str], known: list[str]) -> list[str]:
    return [fact for fact in facts if fact not in known]


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
    )


def _edit_from_json(value: Any) -> ProposedEdit:
    path = files.checked_path(value["path"])
    texts = [value["base"], value["text"], value.get("base_text")]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise TypeError("an edit holds texts")
    return ProposedEdit(path, *texts)
