"""``/remember``: adds a person's statement to MEMORY.md at once, without a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kbtui.clock import local_now
from kbtui.errors import NotFoundError, UsageError
from kbtui.history.change import Actor, Change, Origin
from kbtui.history.history import History
from kbtui.knowledge.format.facts import normalise, plain_fact
from kbtui.memory.edits.memory_file import with_facts
from kbtui.memory.edits.memory_limits import why_full
from kbtui.memory.records.committing import committed
from kbtui.memory.records.dates import local, with_dates
from kbtui.memory.records.tombstones import Tombstones
from kbtui.redaction.redact import redact
from kbtui.workspace import files
from kbtui.workspace.layout import MEMORY, Workspace


@dataclass(frozen=True, slots=True)
class RememberedFact:
    """A fact in MEMORY.md and its line; without a `commit` it was known already."""

    fact: str
    line: int
    commit: str | None = None
    warning: str = ""


@dataclass(eq=False)
class Remembering:
    """Adds a person's facts to MEMORY.md, even forgotten ones.

    `most_tokens` is what a prompt has room for.
    """

    workspace: Workspace
    history: History
    tombstones: Tombstones
    most_tokens: int
    clock: Callable[[], datetime] = local_now

    def remember(self, text: str, origin: Origin = Origin()) -> RememberedFact:  # noqa: B008  # frozen
        """Add a fact under the heading where it belongs.

        Raises:
            UsageError: The text says nothing. Otherwise as `committed`.
        """
        fact = with_dates(plain_fact(text), local(self.clock()))
        if not normalise(fact):
            raise UsageError("There is nothing to remember.", "Say it: /remember I prefer tea")

        def work(change: Change) -> str:
            before = self._read()
            self.tombstones.lift(change, [fact])
            grown = with_facts(before or "", [fact])
            if grown != (before or ""):
                blob = None if before is None else files.blob_id(before.encode())
                change.write(MEMORY, grown, expecting=blob)
            return grown

        reason = "You asked to remember it."
        memory, commit = committed(self.history, self.workspace, Actor.YOU, reason, origin, work)
        line = _line_of(memory, fact)
        warnings = filter(None, (_warning(fact), why_full(memory, self.most_tokens)))
        return RememberedFact(fact, line, commit.id if commit else None, " ".join(warnings))

    def _read(self) -> str | None:
        try:
            return files.read_bytes(self.workspace, MEMORY).decode("utf-8", "surrogateescape")
        except NotFoundError:
            return None


def _line_of(memory: str, fact: str) -> int:
    wanted = normalise(fact)
    for number, line in enumerate(memory.splitlines(), 1):
        if normalise(plain_fact(line)) == wanted:
            return number
    return 1


def _warning(fact: str) -> str:
    found = redact(fact).found
    if not found:
        return ""
    return f"That looks like a secret ({found[0].kind}): everything in memory goes to your model."
