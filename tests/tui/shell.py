"""What the tests of the shell share: a real workspace, an agent that says what a test wants."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from textual import events
from textual.keys import _character_to_key

from kbtui.agent.context import Part, assemble
from kbtui.agent.events import (
    Citation,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnChange,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.app.app import KbtuiApp
from tests.tui import at_rest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from textual.pilot import Pilot

    from kbtui.agent.events import Event
    from kbtui.sessions.store import Session

_NO_MODEL = {"search": {"semantic": False}}
ANSWER = """\
PKCE, because the client can't keep a secret [1].

- **first** reason
- `second` reason

```python
def verify(code: str) -> bool:
    return True
```
"""


class ScriptedAgent:
    """Plays events; each turn waits at a `gate` where the test has closed it.

    Like the real agent it stores what was said, and what was said until it was stopped.
    """

    def __init__(self, script: list[Event] | None = None) -> None:
        self.script = script if script is not None else answer_events()
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[str] = []
        self.stopped = 0
        self.services: Any = None

    def session_room(self) -> int:
        return 50_000

    def prompt_parts(self, session: Session | None, text: str) -> tuple[Part, ...]:
        return assemble(self.services, session, text).parts

    async def turn(self, session: Session, text: str, *, model: Any = None) -> AsyncIterator[Event]:
        self.asked.append(text)
        turn = f"turn-{len(self.asked)}"
        message = session.append("user", text, turn=turn)
        said = ""
        yield TurnStarted(turn, session.id, message.id)
        try:
            for event in self.script:
                if isinstance(event, TextDelta):
                    said += event.text
                if isinstance(event, TurnFinished):
                    session.append("assistant", event.text, turn=turn)
                yield event
                await asyncio.sleep(0)
                await self.gate.wait()
        except (asyncio.CancelledError, GeneratorExit):
            self.stopped += 1
            session.append("assistant", said, turn=turn, interrupted=True)
            raise


def answer_events(text: str = ANSWER) -> list[Event]:
    """A turn with two tools, a streamed answer and a citation."""
    path = "knowledge/decisions/2026-11-auth-pkce.md"
    change = TurnChange("c0ffee", (path, "knowledge/INDEX.md"), "decisions/2026-11-auth-pkce")
    return [
        ToolStarted("1", "search", {"query": "auth"}),
        ToolFinished("1", "search", True, "4 hits", "1. decisions/2026-11-auth-pkce:14"),
        ToolStarted("2", "write_entry", {"title": "Auth: PKCE"}),
        ToolFinished(
            "2", "write_entry", True, "decisions/2026-11-auth-pkce created", "", (change,)
        ),
        *(TextDelta(text[at : at + 7]) for at in range(0, len(text), 7)),
        UsageReported(800, 200, 0.0125),
        TurnFinished(text, "", "", (Citation(1, path, 14, 16, "Auth: PKCE"),), (change,)),
    ]


def said(text: str) -> list[Event]:
    """A turn that only says something."""
    return [TextDelta(text), TurnFinished(text, "", "")]


async def until(pilot: Pilot[Any], condition: Callable[[], object], what: str = "") -> None:
    """Let the app run until a condition holds, and everything that follows from it is done."""
    await at_rest.until(pilot.app, condition, what)


async def settle(pilot: Pilot[Any]) -> None:
    """Let all keys and messages be handled, and all that they lead to be done."""
    await at_rest.rest(pilot.app)


def key_event(key: str) -> events.Key:
    """What the driver makes of a key press."""
    character = key if len(key) == 1 else " " if key == "space" else None
    return events.Key(_character_to_key(key) if len(key) == 1 else key, character)


class Shell:
    """A running app with the parts that tests ask about."""

    def __init__(self, app: KbtuiApp, pilot: Pilot[Any], agent: ScriptedAgent) -> None:
        self.app = app
        self.pilot = pilot
        self.agent = agent

    @property
    def chat(self) -> Any:
        return self.app.main.chat

    @property
    def prompt(self) -> Any:
        return self.chat.prompt

    @property
    def transcript(self) -> Any:
        return self.chat.transcript

    @property
    def text(self) -> str:
        """What the conversation shows, all of it."""
        return "\n".join(line.content.plain for line in self.transcript.lines)

    @property
    def idle(self) -> bool:
        return not self.chat.conversation.busy and self.transcript._timer is None

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        await until(self.pilot, condition, what)

    async def press(self, *keys: str) -> None:
        for key in keys:
            event = key_event(key)
            event.set_sender(self.app)
            self.app._driver.send_message(event)
            await at_rest.rest(self.app, typing=True)
        await settle(self.pilot)

    async def type(self, text: str) -> None:
        """Write at the cursor, as fast as a paste."""
        self.prompt.insert(text)
        await settle(self.pilot)

    async def say(self, text: str, *, wait: bool = True) -> None:
        """Write into the prompt and send."""
        self.prompt.replace_text(text)
        await self.press("enter")
        if wait:
            await self.until(lambda: self.idle)

    async def notified(self, part: str) -> None:
        """Wait for a notification."""
        await self.until(lambda: any(part in each.message for each in self.app._notifications))


@asynccontextmanager
async def running(
    root: Path,
    *,
    size: tuple[int, int] = (120, 40),
    script: list[Event] | None = None,
    entries: int = 0,
    scripted: bool = True,
    overrides: Mapping[str, Any] = _NO_MODEL,
) -> AsyncIterator[Shell]:
    """The app on a workspace of its own, opened and idle."""
    agent = ScriptedAgent(script)

    def opener(_workspace: Path | None) -> KnowledgeBase:
        kb = KnowledgeBase.open(root, create=True, overrides=overrides)
        for number in range(entries):
            kb.library.create("topic", f"Topic {number}", body=f"# Topic {number}\n\nText.\n")
        agent.services = kb.services
        if scripted:  # else it is the real one, without a model
            kb.agent = agent  # type: ignore[assignment]
        return kb

    app = KbtuiApp(root, opener=opener)
    async with app.run_test(size=size) as pilot:
        shell = Shell(app, pilot, agent)
        await shell.until(lambda: app.kb is not None and app.themes.found)
        await shell.until(lambda: shell.chat.model is not None)
        try:
            yield shell
        finally:
            app.close_knowledge()
