"""The life of a note: how often it was written over time, and its versions one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import ceil
from typing import NamedTuple

from kbtui.clock import local_day
from kbtui.errors import KbtuiError
from kbtui.history.change import Commit
from kbtui.knowledge.library.library import PastLibrary
from kbtui.knowledge_base import KnowledgeBase
from kbtui.memory.recall.agenda import short_day
from kbtui.text import counted
from kbtui.tui.markdown.source import Property
from kbtui.tui.notes.documents import Document, document_of, is_day

_BARS = "▁▂▃▄▅▆▇█"
_COLUMNS = 7
_MAX_VERSIONS = 2_000
"""The most versions that are read; of a note with more these are the newest."""


class Version(NamedTuple):
    """A note as a change left it, under the path that it had then."""

    commit: Commit
    path: str


def read_life(kb: KnowledgeBase, path: str) -> tuple[Version, ...]:
    """Return the versions of a note, oldest first; run in a thread.

    A library of the past has none, as only what came later could be shown.
    """
    if isinstance(kb.library, PastLibrary):
        return ()
    try:
        found = [Version(*each) for each in islice(kb.history.versions(path), _MAX_VERSIONS)]
    except KbtuiError:
        return ()
    return tuple(reversed(found))


def bars(times: Sequence[float]) -> str:
    """Return how many of some times lie in each of equal spans between the first and the last."""
    first, span = min(times), max(times) - min(times)
    if not span:
        return _BARS[-1]
    counts = Counter(min(_COLUMNS - 1, int(_COLUMNS * (time - first) / span)) for time in times)
    most = max(counts.values())
    return "".join(_BARS[ceil((len(_BARS) - 1) * counts[at] / most)] for at in range(_COLUMNS))


def with_life(document: Document, life: Sequence[Version]) -> Document:
    """Return a note with its life as a chip, unless it was written once, or is that of a day."""
    if len(life) < 2 or is_day(document.path):
        return document
    drawn = bars([version.commit.time.timestamp() for version in life])
    edits = f"{drawn} {counted(len(life), 'edit')}{'+' * (len(life) == _MAX_VERSIONS)}"
    chip = Property("", (edits,), quiet=True)
    return replace(document, properties=(*document.properties, chip))


def load_version(kb: KnowledgeBase, now: Document, life: Sequence[Version], at: int) -> Document:
    """Load a version of a note to be read in its place; run in a thread."""
    version = life[at]
    made = version.commit.time.astimezone()
    told = f"As it was {short_day(made.date(), local_day())} {made:%H:%M}"
    told += f" · {at + 1} of {len(life)} · ← → · Esc now"
    try:
        data = kb.history.read(version.path, version.commit.id)
    except KbtuiError:
        return Document(now.path, "past", now.title, reason=f"{told}\n\nIt was deleted here.")
    then = document_of(kb, version.path, data)
    return replace(then, path=now.path, kind="past", reason=told, editable=False)
