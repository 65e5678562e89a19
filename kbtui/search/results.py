"""The types of search results. Nothing here imports an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Literal

# Relevance from which a hit counts as an answer.
RELEVANT = 0.5
MAX_COUNTED = 100
State = Literal["opening", "syncing", "preparing", "embedding", "ready", "lexical-only"]
QUERY_LANGUAGE = (
    ("tax letter", "Any of the words; what holds more of them, or rarer ones, comes first."),
    ('"tax letter"  "tax letter"~3', "These words, side by side; at most so many apart."),
    ("tax AND letter  (tax OR bill) AND letter", "All of them; either of those in brackets."),
    ("+letter", "Must be there."),
    ('-letter  -"tax letter"  NOT letter', "Must not be there."),
    ("lett*  l?tter  leter~", "Words that begin so; with any letter; spelt nearly so."),
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
"""The query syntax: examples and what each means. Any other text is searched as words."""
LANGUAGE_NAMES = MappingProxyType(
    {
        "ar": "Arabic",
        "da": "Danish",
        "de": "German",
        "el": "Greek",
        "en": "English",
        "es": "Spanish",
        "fi": "Finnish",
        "fr": "French",
        "he": "Hebrew",
        "hi": "Hindi",
        "hu": "Hungarian",
        "it": "Italian",
        "ja": "Japanese",
        "ko": "Korean",
        "nl": "Dutch",
        "no": "Norwegian",
        "pl": "Polish",
        "pt": "Portuguese",
        "ru": "Russian",
        "sv": "Swedish",
        "th": "Thai",
        "tr": "Turkish",
        "zh": "Chinese",
    }
)
"""The languages that are told from each other, by their codes."""
_ENGLISH = "en"
_MOST_FROM = 30  # passages
_NO_BOOSTS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Explain:
    """The components of a hit's score; ranks count from 1, None if a list lacks the hit.

    `in_context` tells that no word stands in the hit itself, only just before or after it.
    """

    lexical_rank: int | None
    semantic_rank: int | None
    lexical: float
    semantic: float
    boosts: Mapping[str, float] = field(default_factory=lambda: _NO_BOOSTS)
    in_context: bool = False


@dataclass(frozen=True, slots=True)
class OtherPlace:
    """Another place with the same text as a hit; in a conversation, with its messages."""

    path: str
    title: str
    line: int
    session: str | None = None
    messages: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class NewerLine:
    """A line that holds instead of an older one.

    Attributes:
        path: Its file.
        line: Its line number in the file, from 1; in a conversation the message's id.
        text: The line.
        day: The day on which it was said.
        moment: A Unix time to order it by.
        session: The conversation, if it stands in one.
    """

    path: str
    line: int
    text: str
    day: date
    moment: float
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result.

    `lines` is the chunk's range; `line` is that of the first match in the snippet, or of its start;
    `matches` are offsets in `snippet`. In a conversation, `session` and `messages` identify the
    messages, `speaker` who wrote them (``user`` or ``assistant``). `score`, in 0..1, orders the
    hits of one query; `relevance`, in 0..1, is comparable between queries: the probability that the
    hit is an answer, with `RELEVANT` as the threshold. `also` lists places with the same text.
    `newer` is the line that holds instead of the one that is shown, if whoever asked may see it.
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
    newer: NewerLine | None = None

    @property
    def is_relevant(self) -> bool:
        """Whether the hit probably answers the query."""
        return self.relevance >= RELEVANT

    @property
    def is_by_meaning_alone(self) -> bool:
        """Whether the hit has no word of the query, not in its title either."""
        # A cosine below 0 has no rank.
        return self.explain.lexical_rank is None and self.explain.semantic != 0

    @property
    def why_weak(self) -> str:
        """Why the hit stands below those with a word of the query; empty if it has one."""
        if self.explain.in_context:
            return "next to the words"
        return "by meaning alone" if self.is_by_meaning_alone else ""


def without_weak(hits: Sequence[Hit]) -> tuple[list[Hit], list[Hit]]:
    """Separate hits with a word of the query from those without one."""
    strong = [hit for hit in hits if not hit.why_weak]
    return strong, [hit for hit in hits if hit.why_weak]


def answers_by_meaning(strong: Sequence[Hit], weak: Sequence[Hit]) -> bool:
    """Return whether hits without a word are to be listed: nothing else answers, and one does."""
    return not strong and any(hit.is_relevant for hit in weak)


def counted_in_conversations(count: int) -> str:
    """Format how many places in conversations also match; empty for none."""
    return f"{count}{'+' * (count >= MAX_COUNTED)} in conversations" if count else ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of one query, best first.

    `semantic` tells whether vectors were compared as well as words; `notice` is for a banner;
    `suggestion` is a corrected spelling of the query; `conditions` are those of the query, as
    Whoosh's searcher ran them, empty for plain words.
    """

    query: str
    scope: str
    took_ms: float
    semantic: bool
    hits: tuple[Hit, ...]
    notice: str = ""
    suggestion: str | None = None
    conditions: str = ""


@dataclass(frozen=True, slots=True)
class SimilarNote:
    """A note that is like another: its sentence that is most alike, the line, and how near it is.

    `score` is a cosine on the bundled model's scale.
    """

    path: str
    title: str
    line: int
    sentence: str
    score: float


@dataclass(frozen=True, slots=True)
class SimilarNotes:
    """The notes that are like another, nearest first; `notice` says what is missing."""

    notes: tuple[SimilarNote, ...]
    notice: str = ""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The progress of indexing; `message` is for display, `left` passages have no vector yet.

    `reading` is the progress of a large sync: files read, and files in all. `remark` is a sentence
    about how the model runs here.
    """

    state: State
    files: int = 0
    chunks: int = 0
    embedded: int = 0
    message: str = ""
    model: str = ""
    left: int = 0
    reading: tuple[int, int] = (0, 0)
    remark: str = ""


@dataclass(frozen=True, slots=True)
class LanguageReport:
    """The languages of a workspace's passages, and what the multilingual model has read.

    Attributes:
        counts: The number of passages by language code; without those that can't be told.
        passages: The number of all.
        foreign: The number of those that are in another language than English, or hold some.
        model: The multilingual model's name; empty if it isn't loaded, as nothing calls for it.
        embedded: The number of its vectors.
        problem: Why it can't be loaded.
        others: The names of the languages that it reads, besides English.
        unread: The number of passages in languages that no model reads.
    """

    counts: Mapping[str, int]
    passages: int
    foreign: int
    model: str
    embedded: int
    problem: str
    others: tuple[str, ...]
    unread: int

    @property
    def main(self) -> str:
        """The name of the language that most passages are in, if it isn't English; else empty.

        A few passages tell nothing. Where several languages make up most, it is the first of them.
        """
        if self.foreign < _MOST_FROM or 2 * self.foreign <= self.passages:
            return ""
        code = max(self.counts.keys() - {_ENGLISH}, key=self.counts.__getitem__)
        return LANGUAGE_NAMES[code]

    def is_read(self, name: str) -> bool:
        """Return whether a model that is here reads a language other than English."""
        return name in self.others and not self.problem


@dataclass(frozen=True, slots=True)
class Preparation:
    """The state of the embedding model; `why` is a sentence on what failed, or prevents it."""

    state: Literal["prepared", "preparing", "failed", "waiting"]
    why: str = ""
    hint: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the model can be loaded without preparation."""
        return self.state == "prepared"


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The outcome of a sync; `skipped` are files that weren't indexed, with the reason."""

    files: int
    chunks: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    took_ms: float = 0.0
    rebuilt: str = ""
    skipped: tuple[tuple[str, str], ...] = ()
