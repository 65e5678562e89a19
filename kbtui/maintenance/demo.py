"""The example of ``kbtui init --demo``: a month in a small notebook, written by the real code.

Everything in it is made as usual: commits by the history, conversations in logs, condensed in the
archive, a run of Dream, proposals in the inbox. So undo, *why*, the audit and the review work in
it. Its texts are always the same; its dates are the last four weeks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, NamedTuple

from kbtui.clock import local_now
from kbtui.history.change import Actor, Origin
from kbtui.memory.background.service import Memory
from kbtui.memory.services import Services
from kbtui.models.port import Message, Reply, ReplyEvent, ToolCall, ToolSpec, Usage
from kbtui.sessions.store import Session
from kbtui.shipped.install import example_entries
from kbtui.workspace.files import text_of
from kbtui.workspace.layout import MEMORY
from kbtui.workspace.opening import set_first_note

MODEL = "example"
"""The model name recorded in the story; none was called."""
_DAYS = 28
_START_HERE = "knowledge/topics/start-here.md"
_KESTREL = "knowledge/projects/kestrel.md"
_SITE = "knowledge/facts/station-site.md"
_SQLITE = "knowledge/decisions/2026-09-sqlite-for-readings.md"
_SOLAR = "knowledge/decisions/2026-10-solar-power.md"
_LORA = "knowledge/topics/lora-radio.md"
_SERIES = "knowledge/topics/time-series.md"
_BOOK = "knowledge/references/designing-data-intensive-applications.md"
_SHOPPING = "knowledge/topics/shopping-list.md"
_SHOPPING_TEXT = """\
---
type: topic
tags: [hardware]
---
# Shopping list

- 2 clamps for the mast
- 10 m of coaxial cable
- a bag of silica gel
"""
_OLD_STATUS = "The mast\nstill leans against Jonas's shed."
_STATUS = (
    "The mast is set; the rain gauge still counts twice\nwhen the wind shakes it. Next: debounce "
    "in firmware, then the\nmove to the allotment."
)


class _DemoMessage(NamedTuple):
    """A message, its answer, and the answer's citations: a file and a part of a line."""

    message: str
    answer: str
    cited: tuple[tuple[str, str], ...] = ()


class StoryClock:
    """The clock of the story: starts four weeks ago, and is set to each day in turn."""

    def __init__(self) -> None:
        self.today = self._now = local_now()
        self.go_to(_DAYS, 9, 0)

    def __call__(self) -> datetime:
        """Return the time, one second later on each call."""
        self._now += timedelta(seconds=1)
        return self._now

    def go_to(self, days_ago: int, hour: int, minute: int) -> None:
        """Set the clock to a time of a day."""
        day = (self.today - timedelta(days=days_ago)).date()
        self._now = datetime.combine(day, time(hour, minute)).astimezone()

    def wait(self, minutes: int) -> None:
        """Advance the clock."""
        self._now += timedelta(minutes=minutes)


def plant(services: Services, memory: Memory, clock: StoryClock) -> None:
    """Write the whole story into a workspace without entries."""
    _Story(services, memory, clock).tell()


class _Story:
    """The month, day by day."""

    def __init__(self, services: Services, memory: Memory, clock: StoryClock) -> None:
        self._services = services
        self._history = services.history
        self._memory = memory
        self._clock = clock
        self._texts = example_entries()

    def tell(self) -> None:
        self._first_week()
        self._second_week()
        self._third_week()
        self._last_week()
        set_first_note(self._services.workspace, _START_HERE)

    def _first_week(self) -> None:
        go, later = self._clock.go_to, {_LORA, _SOLAR, _SERIES, _BOOK}
        go(_DAYS, 9, 12)
        first = {path: text for path, text in self._texts.items() if path not in later}
        first[_KESTREL] = _replaced(first[_KESTREL], _final_status(first[_KESTREL]), _OLD_STATUS)
        self._write(Actor.YOU, "the notebook of Kestrel", first)
        go(27, 19, 5)
        self._remember("I build Kestrel, a weather station, with Mira and Jonas.")
        go(26, 18, 40)
        brought = {path: self._texts[path] for path in (_BOOK, _SERIES)}
        self._write(Actor.IMPORT, "Brought from an older notebook.", brought)
        go(23, 20, 4)
        with self._create_session("Which spreading factor") as session:
            self._add_exchange(session, "t01", _RADIO)
            self._write_from_session(
                session, {_LORA: self._texts[_LORA]}, "asked to keep the settings"
            )

    def _second_week(self) -> None:
        go = self._clock.go_to
        go(19, 21, 15)
        with self._create_session("Power for the mast") as session:
            self._add_exchange(session, "t02", _POWER)
            self._write_from_session(session, {_SOLAR: self._texts[_SOLAR]}, "decided: solar power")
        go(18, 7, 50)
        self._remember("Answers are to be short, with their source.")
        go(17, 10, 31)
        self._write(Actor.YOU, "", {_SHOPPING: _SHOPPING_TEXT})
        go(15, 17, 2)
        kestrel = self._services.library.get(_KESTREL).text
        self._write(Actor.YOU, "", {_KESTREL: _replaced(kestrel, _OLD_STATUS, _STATUS)})

    def _third_week(self) -> None:
        go = self._clock.go_to
        go(13, 8, 20)
        with self._history.change(Actor.YOU, "all bought") as change:
            change.delete(_SHOPPING)
        go(12, 21, 20)
        self._remember("Mira's birthday is on 12 March; she collects old barometers.")
        go(10, 19, 45)
        self._edit(
            _SITE,
            "- The gate's key is with the allotment's keeper on Saturdays until noon.",
            "- The gate's key is with the allotment's keeper on Saturdays until one o'clock.",
        )
        go(8, 20, 30)
        with self._create_session("Why SQLite") as session:
            for number, exchange in enumerate(_QUESTIONS, 3):
                self._add_exchange(session, f"t{number:02}", exchange)
            self._condense(session)

    def _last_week(self) -> None:
        go = self._clock.go_to
        go(6, 20, 10)
        with self._create_session("The winter meeting") as session:
            self._add_exchange(session, "t05", _MEETING)
            memory = text_of(self._services.library.read(MEMORY))
            self._write_from_session(
                session, {MEMORY: f"{memory}{_MEETING_NOTE}\n"}, "asked to remember it"
            )
        go(5, 3, 10)
        asyncio.run(self._memory.dream.run(model=_ScriptedModel(_DREAM_EDITS)))
        go(3, 11, 26)
        self._propose()
        go(1, 18, 55)
        self._edit(
            _SERIES,
            "A missing value is not zero.",
            "A missing value is not zero, and not the one before it either.",
        )

    # Steps

    def _write(
        self, actor: Actor, reason: str, texts: Mapping[str, str], origin: Origin | None = None
    ) -> None:
        with self._history.change(actor, reason, origin or Origin()) as change:
            for path, text in texts.items():
                change.write(path, text)

    def _edit(self, path: str, old: str, new: str) -> None:
        text = self._services.library.get(path).text
        self._write(Actor.YOU, "", {path: _replaced(text, old, new)})

    def _remember(self, line: str) -> None:
        self._memory.remembering.remember(line, Origin())

    def _create_session(self, title: str) -> Session:
        return self._services.sessions.create("tui", title=title)

    def _write_from_session(self, session: Session, texts: Mapping[str, str], reason: str) -> None:
        """Write the result of a conversation, and condense it after a pause."""
        last = session.messages[-1]
        origin = Origin(session=session.id, messages=(1, last.id), turn=last.turn, model=MODEL)
        self._write(Actor.AGENT, reason, texts, origin)
        self._condense(session)

    def _condense(self, session: Session) -> None:
        self._clock.wait(40)
        messages = session.messages
        user_text = " ".join(each.content for each in messages if each.role == "user")
        with self._history.change(Actor.CONSOLIDATOR, "A conversation had gone quiet.") as change:
            self._services.archive.stage(
                change,
                user_text,
                session=session.id,
                messages=(messages[0].id, messages[-1].id),
                timestamp=messages[-1].time,
            )

    def _add_exchange(self, session: Session, turn: str, exchange: _DemoMessage) -> None:
        """Append a message and its answer, with citations if any."""
        places = enumerate(exchange.cited, 1)
        cited = [self._cited(number, path, part) for number, (path, part) in places]
        session.append("user", exchange.message, turn=turn)
        self._clock.wait(1)
        meta = {"citations": cited} if cited else None
        session.append("assistant", exchange.answer, turn=turn, meta=meta)
        self._clock.wait(3)

    def _cited(self, number: int, path: str, part: str) -> dict[str, Any]:
        entry = self._services.library.get(path)
        at = next(n for n, line in enumerate(entry.text.split("\n"), 1) if part in line)
        return {"n": number, "path": path, "lines": [at, at], "title": entry.title}

    def _propose(self) -> None:
        old = "- A battery that survives two weeks of fog."
        new = "- A battery that survives sixteen days of fog, as measured."
        text = self._services.library.get(_KESTREL).text
        self._memory.inbox.add(
            Actor.MCP,
            "The decision on solar power says sixteen days.",
            {_KESTREL: _replaced(text, old, new)},
            origin=Origin(model="Claude Code"),
        )


def _replaced(text: str, old: str, new: str) -> str:
    """Replace a passage, which must be in the text."""
    if old not in text:
        raise ValueError(old)
    return text.replace(old, new, 1)


def _final_status(kestrel: str) -> str:
    """Return the project's status on the mast at the end of the month."""
    begin = kestrel.index("The mast is set")
    return kestrel[begin : kestrel.index("\n\n## People")]


_RADIO = _DemoMessage(
    "Spreading factor 10 brings no range that we need, and doubles the time on air. Keep "
    "spreading factor 9, 125 kHz and 14 dBm as our settings for LoRa. Mira has a spare antenna in "
    "her shed.",
    "Kept under LoRa radio, with the reason.",
)
_POWER = _DemoMessage(
    "We decided on solar power instead of a cable: a 20 W panel charges a 12 Ah battery, which "
    "carries the sender through sixteen dark days. Jonas has moved the receiver to the attic of "
    "his house.",
    "Noted as a decision, with what else was considered.",
)
_MEETING = _DemoMessage(
    "The allotment association meets on the first Saturday in December, and I bring the poster "
    "about the mast. Remember that.",
    "I'll remember it in every conversation.",
)
_MEETING_NOTE = (
    "- The allotment association meets on the first Saturday in December; I bring the poster "
    "about the mast."
)
_QUESTIONS = (
    _DemoMessage(
        "Why did we choose SQLite for the readings?",
        "Because it needs no server, survives a power cut, and a backup is a copy of one file [1]. "
        "InfluxDB would have wanted more memory than the board has [2].",
        ((_SQLITE, "needs no server, survives"), (_SQLITE, "InfluxDB: made for this")),
    ),
    _DemoMessage(
        "And how long do we keep the raw readings?",
        "For 90 days; after that only hourly means stay, with minimum and maximum [1].",
        ((_SERIES, "After 90 days only hourly means"),),
    ),
)
_DREAM_EDITS: tuple[dict[str, str], ...] = (
    {
        "do": "add_line",
        "path": "people/mira-okafor",
        "new": "Has a spare antenna in her shed.",
        "section": "Notes",
    },
    {
        "do": "edit_file",
        "path": "facts/station-site",
        "old": "- The receiver hangs under the roof of Jonas's house, facing south-east.",
        "new": "- The receiver is in the attic of Jonas's house, facing south-east.",
    },
)


@dataclass
class _ScriptedModel:
    """A model that always returns the edits of the story."""

    edits: Sequence[Mapping[str, str]]
    name: str = MODEL
    is_local: bool = True
    context_window: int = 32_768
    sees: bool = False
    takes_tools: bool = True

    async def complete(
        self,
        messages: Sequence[Message],  # noqa: ARG002 - the port's
        tools: Sequence[ToolSpec] = (),
        *,
        force_tool: str | None = None,
    ) -> Reply:
        tool = force_tool or tools[0].name
        call = ToolCall("1", tool, json.dumps({"edits": list(self.edits)}))
        return Reply("", (call,), "tool_calls", Usage())

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[ReplyEvent]:
        yield await self.complete(messages, tools)
