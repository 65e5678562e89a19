"""Events that a turn tells whoever watches it: the app, the command line, a test.

A turn is a stream of these, in this order: `TurnStarted`, then any of the middle ones, then
exactly one of `TurnFinished` and `TurnFailed`. A cancelled turn ends with `TurnFailed` whose
`cancelled` is set, and what had been said until then is kept in the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Citation:
    """The source of ``[n]`` in an answer: lines `first` to `last` (1-based, inclusive).

    `place` is the page, slide, sheet or chapter that they stand on, in a document that has such.
    """

    n: int
    path: str
    first: int
    last: int
    title: str = ""
    place: str = ""


EARLIER = "earlier"
"""The key of the metadata of an answer that has the place of an earlier line."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier line that what was just noted may be about; `Agent.mark_past` strikes it out.

    It stands in `path` on line `first`, and was written `when`; `noted`, `noted_line` and
    `noted_time` say which line of the journal is the newer one.
    """

    path: str
    first: int
    text: str
    when: str
    noted: str
    noted_line: int
    noted_time: str


@dataclass(frozen=True, slots=True)
class TurnChange:
    """A commit that the turn made, with the workspace-relative paths that it touched.

    `summary` is for people, e.g. ``decisions/2026-11-auth created``.
    """

    commit: str
    paths: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The user's message is stored under `message` in `session`; `turn` names the turn."""

    turn: str
    session: str
    message: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class RetryStarted:
    """The model gave no answer and is asked again; `text` says why and when, for people."""

    text: str


@dataclass(frozen=True, slots=True)
class NoticeGiven:
    """Something about the turn that the user should know; `text` is a sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run; `call` pairs it with its `ToolFinished`."""

    call: str
    tool: str
    arguments: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool has run; `summary` is one line, `output` what the model is told.

    `proposal` is the id of what waits in the inbox where the user reviews every change.
    """

    call: str
    tool: str
    ok: bool
    summary: str
    output: str = ""
    changes: tuple[TurnChange, ...] = ()
    proposal: str = ""


@dataclass(frozen=True, slots=True)
class UsageReported:
    """The consumption of one model call of the turn."""

    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is over; `text` is the last answer, `citations` what its ``[n]`` mean.

    `not_kept` is what the user said that may be worth keeping and isn't kept; `Agent.keep` does.
    `earlier` is the line that what was kept may be about.
    """

    text: str
    session: str
    turn: str
    citations: tuple[Citation, ...] = ()
    changes: tuple[TurnChange, ...] = ()
    not_kept: str = ""
    earlier: Earlier | None = None


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn could not be finished; nothing that it had changed is taken back."""

    error: str
    hint: str = ""
    session: str = ""
    turn: str = ""
    cancelled: bool = False
    changes: tuple[TurnChange, ...] = ()
    exit_code: int = 4


Event = (
    TurnStarted
    | TextDelta
    | ReasoningDelta
    | RetryStarted
    | NoticeGiven
    | ToolStarted
    | ToolFinished
    | UsageReported
    | TurnFinished
    | TurnFailed
)
