"""The first start: what kbtui is, and the ways in, each of which ticks itself when it is done.

It stands above the conversation of a workspace in which nothing was said yet, and goes for good
with the first message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from textual import events, work
from textual.content import Content
from textual.geometry import Size
from textual.style import Style
from textual.widget import Widget

from kbtui.knowledge_base import KnowledgeBase
from kbtui.presentation.times import format_time
from kbtui.text import clean_line, counted
from kbtui.tui.actions.registry import Command, slash_commands
from kbtui.tui.chat.conversation.transcript import GREETING_MARGIN, NAME, WELCOME, greeting_inset
from kbtui.tui.chat.host import ChatHost
from kbtui.tui.chat.nearby import NotesNearby, exports_nearby, notes_nearby
from kbtui.tui.terminal.background import latest
from kbtui.tui.terminal.state import read_state, workspace_state, write_state
from kbtui.tui.widgets.dialogs import PickDialog
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.opening import default_workspace, known_workspaces

_NAMES = (
    "Bring your notes",
    "Bring your conversations",
    "Choose a model",
    "Or just type",
    "Look around first",
)
_NAME_COLUMNS = max(map(len, _NAMES)) + 2
_LEAST_REMARK, _WHOLE_REMARK = 16, 29
_ROOMY_ROWS = 20
_AIRY_ROWS = 30
_ABOUT = (
    "What you tell me becomes notes; what you ask is answered from them. All of it is yours, in "
    "plain files."
)
_ABOUT_COLUMNS = 58


CONVERSATIONS = 1
"""The number of the way that brings conversations, for `take`."""
_EXAMPLE = 4


class Way(NamedTuple):
    """How far one of the ways is: what there is to know about it, and whether it is done."""

    remark: str
    done: bool = False


_AHEAD = (
    Way("a vault or folder, in place"),
    Way("Claude, ChatGPT, Gemini ..."),
    Way("looking around ..."),
    Way("I keep and quote what you say"),
    Way("a month of somebody's notes"),
)


def is_first(kb: KnowledgeBase) -> bool:
    """True until something was said in the workspace; what an import brought doesn't count."""
    if read_state(_mark(kb)):
        return False
    return not any(each.messages and not each.untouched for each in kb.sessions.list())


def remember_start(kb: KnowledgeBase) -> None:
    """Never show it again here."""
    write_state(_mark(kb), "1\n")


def _mark(kb: KnowledgeBase) -> Path:
    return workspace_state(kb.workspace.root) / "started"


def ways(kb: KnowledgeBase) -> tuple[Way, ...]:
    """How far each is; reads files and may ask servers on this machine, so it is for a thread."""
    return _notes(kb), _conversations(kb), _model(kb), *_AHEAD[3:]


def _notes(kb: KnowledgeBase) -> Way:
    count = sum(info.is_entry for info in kb.library.infos())
    if count:
        return Way(f"{counted(count, 'note')} here", done=True)
    before = _opened_before(kb.workspace.root)
    return Way(f"{clean_line(before.name)} as last time, or others") if before else _AHEAD[0]


def _opened_before(here: Path) -> Path | None:
    """The workspace that was open last, besides the one that is open."""
    return next(
        (each.path for each in known_workspaces() if each.is_there and each.path != here), None
    )


def _conversations(kb: KnowledgeBase) -> Way:
    count = sum(each.untouched for each in kb.sessions.list())
    return Way(f"{counted(count, 'conversation')} here", done=True) if count else _AHEAD[1]


def _model(kb: KnowledgeBase) -> Way:
    status = kb.models.describe(look=True)
    if not status.offline:
        return Way(f"{clean_line(status.name)} answers", done=True)
    if status.chosen:
        return Way("none: answers are quoted from your notes", done=True)
    return Way("none found; a key will do")


_LATELY = 4
_WHEN_COLUMNS = 17  # yesterday 14:02


def greeting(kb: KnowledgeBase, reason: str = "") -> list[Content]:
    """What stands where nothing was said yet: the last conversations, each a way to go on.

    Looks at files, so it is for a thread. `reason` is why this model answers, or none.
    """
    lines = [*WELCOME, Content()]
    recent = [each for each in kb.sessions.list() if each.messages and each.title][:_LATELY]
    for each in recent:
        when = Content.styled(format_time(each.updated).ljust(_WHEN_COLUMNS), "$text-muted")
        link = Style.from_meta({"session": each.id})
        lines.append(when + Content(clean_line(each.title)).stylize(link))
    if recent:
        lines += [Content(), Content.styled("/resume goes on with one of them.", "$text-muted")]
    return [*lines, Content.styled(reason, "$text-muted")] if reason else lines


class StartPanel(Widget):
    """Shows the ways in; a number and Enter in the prompt, or a click, takes one.

    Args:
        kb: What is looked at to see which of them are done.
        taken: Called with the one that was clicked, counted from 0.
    """

    DEFAULT_CSS = """
    StartPanel { height: auto; padding: 1 0; }
    StartPanel.-tight { padding: 0; }
    """

    def __init__(self, kb: KnowledgeBase, taken: Callable[[int], None]) -> None:
        super().__init__(id="start")
        self.ways: tuple[Way, ...] = _AHEAD
        self._kb = kb
        self._taken = taken

    def on_mount(self) -> None:
        self.look()

    @latest("ways")
    async def look(self) -> None:
        """See again what is done."""
        found = await asyncio.to_thread(ways, self._kb)
        if found != self.ways:
            self.ways = found
            self.refresh(layout=True)

    # Drawing

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self._lines(width))

    def render(self) -> Content:
        """What it is, and the ways."""
        return Content("\n").join(self._lines(self.size.width))

    def _lines(self, width: int) -> list[Content]:
        """The lines; those of a way lead there."""
        height = self.app.size.height
        roomy, airy = height >= _ROOMY_ROWS, height >= _AIRY_ROWS
        self.set_class(not roomy, "-tight")
        lines: list[Content] = []
        if roomy:
            lines += NAME
            columns = max(1, min(_ABOUT_COLUMNS, width - 2 * GREETING_MARGIN))
            lines += [*Content(_ABOUT).wrap(columns), *[Content()] * (1 + airy)]
        least = _WHOLE_REMARK if airy else _LEAST_REMARK
        beside = width - GREETING_MARGIN * 2 - _NAME_COLUMNS >= least
        for number, (name, way) in enumerate(zip(_NAMES, self.ways, strict=True)):
            drawn = _drawn(number, name, way, beside=beside, below=roomy and not beside)
            way_in = Style.from_meta({"way": number})
            lines += [*(line.stylize(way_in) for line in drawn), *[Content()] * airy]
        if roomy:
            lines += [Content(), Content.styled("A number and Enter, or a click.", "$text-muted")]
        left = greeting_inset(width)
        room = max(1, width - left)
        inset = Content(" " * left)
        return [inset + line.truncate(room, ellipsis=True) for line in lines]

    def on_click(self, event: events.Click) -> None:
        way = event.style.meta.get("way")
        if isinstance(way, int):
            self._taken(way)


def _drawn(number: int, name: str, way: Way, *, beside: bool, below: bool) -> list[Content]:
    """A way in one line or two, with a tick in place of the number's colour where it is done."""
    sign = ("✓", "bold $success") if way.done else (str(number + 1), "bold $primary")
    line = Content.assemble(sign, "  ", (name, "bold"))
    remark = Content.styled(clean_line(way.remark), "$text-muted")
    if beside:
        return [line + Content(" " * (_NAME_COLUMNS - len(name))) + remark]
    return [line, Content("   ") + remark] if below else [line]


class NearbyDialog(PickDialog):
    """Chooses a place of the disk, of those that are found nearby or by writing another one."""

    PLACEHOLDER = "filter, or write where it is"

    def __init__(self, title: str, look: Callable[[], Sequence[Choice[str]]], new: str) -> None:
        super().__init__(title, [], new=new)
        self._look_around = look

    def on_mount(self) -> None:
        self.choices.empty = "Looking around ..."
        self._look()

    @work
    async def _look(self) -> None:
        found = await asyncio.to_thread(self._look_around)
        self.choices.empty = "None found nearby: write or paste where it is."
        self.offer(found)


def nearby_notes(here: Path) -> list[Choice[str]]:
    """Folders of notes around, without the one that is open; for a thread."""
    known = [NotesNearby(each.path, "kbtui") for each in known_workspaces() if each.is_there]
    found = {each.path: each for each in (*known, *notes_nearby())}
    return [
        _choice(each.path, each.program or "notes")
        for each in found.values()
        if each.path != here and not each.path.is_relative_to(here)
    ]


def nearby_exports(_here: Path) -> list[Choice[str]]:
    """Files around that look like exports; for a thread."""
    return [_choice(path, "") for path in exports_nearby()]


def _choice(path: Path, program: str) -> Choice[str]:
    place = str(path.parent)
    home = str(Path.home())
    if place == home or place.startswith(f"{home}/"):
        place = place.replace(home, "your home", 1)
    told = f"{program} · in {place}" if program else f"in {place}"
    return Choice(path.name or str(path), told, str(path))


async def take(host: ChatHost, kb: KnowledgeBase, way: int) -> None:
    """Take one of the ways in."""
    root = kb.workspace.root
    if way == 0:
        question = NearbyDialog("Bring your notes", lambda: nearby_notes(root), "a folder")
        await _asked(host, question, "/workspaces")
    elif way == CONVERSATIONS:
        question = NearbyDialog(
            "Bring your conversations", lambda: nearby_exports(root), "a file or folder"
        )
        await _asked(host, question, "/import")
    elif way == 2:
        host.run_command(Command(slash_commands()["/model"], ""))
    elif way == _EXAMPLE:
        host.say("Writing a month of somebody's notes …")
        example = await asyncio.to_thread(_example)
        host.run_command(Command(slash_commands()["/workspaces"], str(example)))
    else:
        host.focus_prompt()


def _example() -> Path:
    """The workspace of the example, made where it isn't there yet; for a thread."""
    from kbtui.maintenance.demo import StoryClock, plant

    folder, clock = default_workspace().parent / "example", StoryClock()
    with KnowledgeBase.open(folder, create=True, clock=clock) as kb:
        if not kb.library.infos():
            plant(kb.services, kb.memory, clock)
    return folder


async def _asked(host: ChatHost, question: NearbyDialog, command: str) -> None:
    chosen = await host.app.push_screen_wait(question)
    if chosen:
        host.run_command(Command(slash_commands()[command], chosen))
