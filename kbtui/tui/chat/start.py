"""The start panel: what kbtui is, and options to begin with, each ticked once it is done.

It is shown above the conversation until the first message in a workspace.
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
from kbtui.tui.widgets.kinds import HOT
from kbtui.tui.widgets.row_list import Choice
from kbtui.workspace.opening import default_workspace, known_workspaces

_OPTION_NAMES = (
    "Bring your notes",
    "Bring your conversations",
    "Choose a model",
    "Or just type",
    "Look around first",
)
_NAME_COLUMNS = max(map(len, _OPTION_NAMES)) + 1
_MIN_REMARK_COLUMNS, _FULL_REMARK_COLUMNS = 16, 29
_MIN_ABOUT_ROWS = 20
_SPACIOUS_ROWS = 30
_ABOUT = (
    "What you tell me becomes notes; what you ask is answered from them. All of it is yours, in "
    "plain files."
)
_ABOUT_COLUMNS = 58


CONVERSATIONS = 1
"""The index of the option that imports conversations, for `take`."""
_EXAMPLE = 4


class Option(NamedTuple):
    """The state of one option: a remark about it, and whether it is done."""

    remark: str
    done: bool = False


_DEFAULTS = (
    Option("a vault or folder, in place"),
    Option("Claude, ChatGPT, Gemini ..."),
    Option("looking around ..."),
    Option("I keep and quote what you say"),
    Option("a month of somebody's notes"),
)


def is_first(kb: KnowledgeBase) -> bool:
    """Return whether nothing was said in the workspace yet; imports don't count."""
    if read_state(_state_file(kb)):
        return False
    return not any(each.messages and not each.untouched for each in kb.sessions.list())


def remember_start(kb: KnowledgeBase) -> None:
    """Record that the start panel was dismissed in this workspace."""
    write_state(_state_file(kb), "1\n")


def _state_file(kb: KnowledgeBase) -> Path:
    return workspace_state(kb.workspace.root) / "started"


def read_options(kb: KnowledgeBase) -> tuple[Option, ...]:
    """Read the state of each option from files and local servers; run in a thread."""
    return _notes_state(kb), _conversations_state(kb), _model_state(kb), *_DEFAULTS[3:]


def _notes_state(kb: KnowledgeBase) -> Option:
    count = sum(info.is_entry for info in kb.library.infos())
    if count:
        return Option(f"{counted(count, 'note')} here", done=True)
    before = _previous_workspace(kb.workspace.root)
    return Option(f"{clean_line(before.name)} as last time, or others") if before else _DEFAULTS[0]


def _previous_workspace(here: Path) -> Path | None:
    """Return the most recent other workspace, if any."""
    return next(
        (each.path for each in known_workspaces() if each.is_there and each.path != here), None
    )


def _conversations_state(kb: KnowledgeBase) -> Option:
    count = sum(each.untouched for each in kb.sessions.list())
    return Option(f"{counted(count, 'conversation')} here", done=True) if count else _DEFAULTS[1]


def _model_state(kb: KnowledgeBase) -> Option:
    status = kb.models.describe(look=True)
    if not status.offline:
        return Option(f"{clean_line(status.name)} answers", done=True)
    if status.chosen:
        return Option("none: answers are quoted from your notes", done=True)
    return Option("none found; a key will do")


_MAX_RECENT = 4
_WHEN_COLUMNS = 17  # yesterday 14:02


def greeting(kb: KnowledgeBase, reason: str = "") -> list[Content]:
    """Return the greeting of an empty conversation: links to the latest conversations.

    Reads files, so run in a thread. `reason` says why this model, or none, answers.
    """
    lines = [*WELCOME, Content()]
    recent = [each for each in kb.sessions.list() if each.messages and each.title][:_MAX_RECENT]
    for each in recent:
        when = Content.styled(format_time(each.updated).ljust(_WHEN_COLUMNS), "$text-muted")
        link = Style.from_meta({"session": each.id})
        lines.append(when + Content(clean_line(each.title)).stylize(link))
    if recent:
        lines += [Content(), Content.styled("/resume goes on with one of them.", "$text-muted")]
    return [*lines, Content.styled(reason, "$text-muted")] if reason else lines


class StartPanel(Widget):
    """The options to begin with; a number and Enter in the prompt, or a click, chooses one.

    Args:
        kb: The knowledge base that shows which options are done.
        choose: Called with the index of a clicked option, from 0.
    """

    DEFAULT_CSS = """
    StartPanel { height: auto; padding: 1 0; }
    StartPanel.-tight { padding: 0; }
    """

    def __init__(self, kb: KnowledgeBase, choose: Callable[[int], None]) -> None:
        super().__init__(id="start")
        self.options: tuple[Option, ...] = _DEFAULTS
        self._kb = kb
        self._choose = choose

    def on_mount(self) -> None:
        self.look()

    @latest("ways")
    async def look(self) -> None:
        """Read again which options are done."""
        found = await asyncio.to_thread(read_options, self._kb)
        if found != self.options:
            self.options = found
            self.refresh(layout=True)

    # Drawing

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self._lines(width))

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.size.width))

    def _lines(self, width: int) -> list[Content]:
        """Return the lines of the panel; those of an option are clickable."""
        height = self.app.size.height
        has_about, spacious = height >= _MIN_ABOUT_ROWS, height >= _SPACIOUS_ROWS
        self.set_class(not has_about, "-tight")
        lines: list[Content] = []
        if has_about:
            lines += NAME
            columns = max(1, min(_ABOUT_COLUMNS, width - 2 * GREETING_MARGIN))
            lines += [*Content(_ABOUT).wrap(columns), *[Content()] * (1 + spacious)]
        least = _FULL_REMARK_COLUMNS if spacious else _MIN_REMARK_COLUMNS
        beside = width - GREETING_MARGIN * 2 - _NAME_COLUMNS >= least
        for number, (name, option) in enumerate(zip(_OPTION_NAMES, self.options, strict=True)):
            rows = _draw(number, name, option, beside=beside, below=has_about and not beside)
            link = Style.from_meta({"way": number})
            lines += [*(line.stylize(link) for line in rows), *[Content()] * spacious]
        if has_about:
            lines += [Content(), Content.styled("A number and Enter, or a click.", "$text-muted")]
        left = greeting_inset(width)
        room = max(1, width - left)
        inset = Content(" " * left)
        return [inset + line.truncate(room, ellipsis=True) for line in lines]

    def on_click(self, event: events.Click) -> None:
        option = event.style.meta.get("way")
        if isinstance(option, int):
            self._choose(option)


def _draw(number: int, name: str, option: Option, *, beside: bool, below: bool) -> list[Content]:
    """Render an option in one line or two, with a tick instead of its number if it is done."""
    text, style = ("✓", "bold $success") if option.done else (str(number + 1), HOT)
    sign = Content.styled(f" {text} " if beside else text, style)
    line = Content.assemble(sign, " " if beside else "  ", (name, "bold"))
    remark = Content.styled(clean_line(option.remark), "$text-muted")
    if beside:
        return [line + Content(" " * (_NAME_COLUMNS - len(name))) + remark]
    return [line, Content("   ") + remark] if below else [line]


class NearbyDialog(PickDialog):
    """A dialog to choose a path, from those found nearby or by typing another one."""

    PLACEHOLDER = "filter, or write where it is"

    def __init__(self, title: str, look: Callable[[], Sequence[Choice[str]]], new: str) -> None:
        super().__init__(title, [], new=new)
        self._find_choices = look

    def on_mount(self) -> None:
        self.choices.empty = "Looking around ..."
        self._look()

    @work
    async def _look(self) -> None:
        found = await asyncio.to_thread(self._find_choices)
        self.choices.empty = "None found nearby: write or paste where it is."
        self.offer(found)


def nearby_notes(here: Path) -> list[Choice[str]]:
    """Return folders of notes nearby, except the open one; run in a thread."""
    known = [NotesNearby(each.path, "kbtui") for each in known_workspaces() if each.is_there]
    found = {each.path: each for each in (*known, *notes_nearby())}
    return [
        _choice(each.path, each.program or "notes")
        for each in found.values()
        if each.path != here and not each.path.is_relative_to(here)
    ]


def nearby_exports(_here: Path) -> list[Choice[str]]:
    """Return nearby files that look like exports; run in a thread."""
    return [_choice(path, "") for path in exports_nearby()]


def _choice(path: Path, program: str) -> Choice[str]:
    place = str(path.parent)
    home = str(Path.home())
    if place == home or place.startswith(f"{home}/"):
        place = place.replace(home, "your home", 1)
    detail = f"{program} · in {place}" if program else f"in {place}"
    return Choice(path.name or str(path), detail, str(path))


async def take(host: ChatHost, kb: KnowledgeBase, option: int) -> None:
    """Run the option with an index."""
    root = kb.workspace.root
    if option == 0:
        question = NearbyDialog("Bring your notes", lambda: nearby_notes(root), "a folder")
        await _ask_and_run(host, question, "/workspaces")
    elif option == CONVERSATIONS:
        question = NearbyDialog(
            "Bring your conversations", lambda: nearby_exports(root), "a file or folder"
        )
        await _ask_and_run(host, question, "/import")
    elif option == 2:
        host.run_command(Command(slash_commands()["/model"], ""))
    elif option == _EXAMPLE:
        host.say("Writing a month of somebody's notes …")
        example = await asyncio.to_thread(_open_example)
        host.run_command(Command(slash_commands()["/workspaces"], str(example)))
    else:
        host.focus_prompt()


def _open_example() -> Path:
    """Return the example workspace, creating it if needed; run in a thread."""
    from kbtui.maintenance.demo import StoryClock, plant

    folder, clock = default_workspace().parent / "example", StoryClock()
    with KnowledgeBase.open(folder, create=True, clock=clock) as kb:
        if not kb.library.infos():
            plant(kb.services, kb.memory, clock)
    return folder


async def _ask_and_run(host: ChatHost, question: NearbyDialog, command: str) -> None:
    chosen = await host.app.push_screen_wait(question)
    if chosen:
        host.run_command(Command(slash_commands()[command], chosen))
