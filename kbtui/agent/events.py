"""The events of a turn, consumed by the app, the command line and tests.

A turn yields `TurnStarted`, then any of the others, then exactly one of `TurnFinished` and
`TurnFailed`. A cancelled turn ends with a `TurnFailed` with `cancelled` set, and what was said
until then is kept in the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kbtui.offline.orders import Order

if TYPE_CHECKING:
    from kbtui.memory.recall.differing import Difference


@dataclass(frozen=True, slots=True)
class Citation:
    """The source of ``[n]`` in an answer: lines `first` to `last` (1-based, inclusive).

    `place` is the page, slide, sheet or chapter they are on, in documents that have such.
    """

    n: int
    path: str
    first: int
    last: int
    title: str = ""
    place: str = ""


EARLIER = "earlier"
"""The key in an answer's metadata of the place of an earlier line."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier line that a new note may replace; `Agent.mark_past` strikes it out.

    It is line `first` of `path`, written `when`; `noted`, `noted_line` and `noted_time` are the
    file, line and time of the newer journal line.
    """

    path: str
    first: int
    text: str
    when: str
    noted: str
    noted_line: int
    noted_time: str


DIFFERS = "differs"
"""The key in an answer's metadata of the lines from which it differs."""


@dataclass(frozen=True, slots=True)
class TurnChange:
    """A commit of the turn, with the workspace paths it touched.

    `summary` is for people, e.g. ``decisions/2026-11-auth created``.
    """

    commit: str
    paths: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The user's message was stored as `message` of `session`; `turn` is the turn's id."""

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
class TextRevoked:
    """The text since the turn or the last tool began wasn't the answer but reasoning."""


@dataclass(frozen=True, slots=True)
class RetryStarted:
    """The model gave no answer and is called again; `text` tells the user why and when."""

    text: str


@dataclass(frozen=True, slots=True)
class NoticeGiven:
    """A sentence about the turn that the user should know."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run; `call` pairs it with its `ToolFinished`."""

    call: str
    tool: str
    arguments: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool has run; `summary` is one line, `output` is what the model gets.

    `proposal` is the id of the change waiting in the inbox, if the tool made one.
    """

    call: str
    tool: str
    ok: bool
    summary: str
    output: str = ""
    changes: tuple[TurnChange, ...] = ()
    proposal: str = ""


@dataclass(frozen=True, slots=True)
class AnswerDiffers:
    """A sentence of the answer differs from a line that the model was shown."""

    difference: Difference


@dataclass(frozen=True, slots=True)
class UsageReported:
    """The token usage and cost of one model call of the turn."""

    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is over; `text` is the last answer, `citations` are the sources of its ``[n]``.

    `not_kept` is what the user said that wasn't stored but may be worth it (by `Agent.keep`).
    `earlier` is the line that a stored statement may be about, `order` what the message told to do
    with the notes: nothing is done before the person was asked. `differs` are the lines from which
    the answer differs; `is_unfounded`: nothing of it stands in what the model was shown.
    """

    text: str
    session: str
    turn: str
    citations: tuple[Citation, ...] = ()
    changes: tuple[TurnChange, ...] = ()
    not_kept: str = ""
    earlier: Earlier | None = None
    order: Order | None = None
    differs: tuple[Difference, ...] = ()
    is_unfounded: bool = False


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn failed; its changes are kept."""

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
    | TextRevoked
    | RetryStarted
    | NoticeGiven
    | ToolStarted
    | ToolFinished
    | AnswerDiffers
    | UsageReported
    | TurnFinished
    | TurnFailed
)
