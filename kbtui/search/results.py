"""The shapes that a search answers with. Nothing here imports an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

# From this relevance on a hit counts as an answer: below it, nothing is known.
RELEVANT = 0.5
MOST_COUNTED = 100
State = Literal["opening", "syncing", "preparing", "embedding", "ready", "lexical-only"]
QUERY_LANGUAGE = (
    ("tax letter", "Any of the words; what holds more of them, or rarer ones, comes first."),
    ('"tax letter"', "These words, side by side."),
    ("+letter", "Must be there."),
    ('-letter  -"tax letter"  NOT letter', "Must not be there."),
    ("lett*", "Words that begin so."),
    ("type:decision", "Entries of a type."),
    ("tag:auth  #auth", "With a tag."),
    ("folder:projects  path:projects/", "Where the path holds this; in: is the same."),
    ("title:tax  heading:tax", "Where the title, or a heading, holds the words."),
    ("by:user  by:assistant", "Who said it, of conversations."),
    ("updated:week", "Changed lately: today, yesterday, week, month, year."),
    ("after:2026-03-01  before:2026", "Changed from then on, or before then."),
    ("created:2026-03  updated:>2026-03-01", "Made or changed then; also <, <= and >=."),
    ("created:2026-01..2026-03", "Made in these months; days and years are said alike."),
    ("-type:decision  -tag:auth", "All but these: every condition may be turned round."),
)
"""What a search understands, as people type it, and what it means; anything else is words."""
_NO_BOOSTS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Explain:
    """Why a hit stands where it stands; ranks count from 1, None where a list lacks the hit."""

    lexical_rank: int | None
    semantic_rank: int | None
    lexical: float
    semantic: float
    boosts: Mapping[str, float] = field(default_factory=lambda: _NO_BOOSTS)


@dataclass(frozen=True, slots=True)
class OtherPlace:
    """A further place that says what a hit says; of a conversation with its messages."""

    path: str
    title: str
    line: int
    session: str | None = None
    messages: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One place that answers a query.

    `lines` are those of the chunk, `line` is that of the first match in the snippet, or where the
    snippet starts; `matches` are offsets in `snippet`. Of a conversation, `session` and `messages`
    say which messages it is, `speaker` who said it (``user`` or ``assistant``). `score`, in 0..1,
    orders the hits of one query; `relevance`, in 0..1, compares between queries: how likely the
    hit is an answer, `RELEVANT` being the threshold. `also` are other places that say the same.
    """

    path: str
    title: str
    heading: str
    lines: tuple[int, int]
    snippet: str
    matches: tuple[tuple[int, int], ...]
    score: float
    explain: Explain
    session: str | None = None
    messages: tuple[int, int] | None = None
    line: int = 1
    text: str = ""
    updated: str | None = None
    speaker: str = ""
    relevance: float = 1.0
    also: tuple[OtherPlace, ...] = ()

    @property
    def is_relevant(self) -> bool:
        """True if the hit is likely to answer the query."""
        return self.relevance >= RELEVANT


_WEAK = 0.7
"""The share of the best hit's relevance below which a hit without any of the words is weak."""
_FOLDED_FROM = 3


def without_weak(hits: Sequence[Hit]) -> tuple[list[Hit], list[Hit]]:
    """Part hits from those without any of the words that are far less likely answers than the best.

    One or two of these are left where they are: a line that says so would take as much room.
    """
    best = max((hit.relevance for hit in hits), default=0.0)
    weak = {id(hit) for hit in hits if not hit.matches and hit.relevance < _WEAK * best}
    if len(weak) < _FOLDED_FROM:
        return [*hits], []
    return [h for h in hits if id(h) not in weak], [h for h in hits if id(h) in weak]


def counted_in_conversations(count: int) -> str:
    """Say how many places in conversations answer a query as well; nothing of none."""
    return f"{count}{'+' * (count >= MOST_COUNTED)} in conversations" if count else ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of one query, best first.

    `semantic` tells whether meaning was compared as well as words; `notice` is for a banner;
    `suggestion` is the query as it may have been meant.
    """

    query: str
    scope: str
    took_ms: float
    semantic: bool
    hits: tuple[Hit, ...]
    notice: str = ""
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How far the index is; `message` is ready to be shown, `left` passages have no vector yet.

    `reading` are the files that a large sync has read, and has to read.
    """

    state: State
    files: int = 0
    chunks: int = 0
    embedded: int = 0
    message: str = ""
    model: str = ""
    left: int = 0
    reading: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Preparation:
    """How far the embedding model is; `why` is a sentence on what failed, or keeps it waiting."""

    state: Literal["prepared", "preparing", "failed", "waiting"]
    why: str = ""
    hint: str = ""

    @property
    def is_done(self) -> bool:
        """True if the model can be loaded in a moment."""
        return self.state == "prepared"


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The outcome of a sync; `skipped` are files that are listed, not indexed, with the reason."""

    files: int
    chunks: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    took_ms: float = 0.0
    rebuilt: str = ""
    skipped: tuple[tuple[str, str], ...] = ()
