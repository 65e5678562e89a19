"""The list of tasks: what runs in the background, how far it is, and a way to stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from kbtui.tui.widgets.choice_list import Choice, ChoiceList
from kbtui.tui.widgets.tasks import Task, running_tasks

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.tui.chat.chat_pane import ChatPane

_LOOK_AGAIN = 0.5


class TaskList(ChoiceList):
    """The tasks, each with how far it is."""

    def empty_text(self) -> Content:
        """Say that there is nothing to wait for."""
        return Content.styled(" Nothing runs in the background.", ".rows--muted")


class TasksScreen(ModalScreen[None]):
    """Shows the tasks as they go on; x stops the one under the cursor."""

    DEFAULT_CSS = """
    TasksScreen {
        align: center middle;
        background: $background 60%;
        & > Vertical {
            width: 90; max-width: 95%; height: auto; max-height: 90%;
            background: $surface; border: round $primary 60%; padding: 0 1;
            border-title-color: $text-primary; border-subtitle-color: $text-muted;
        }
        TaskList { height: auto; min-height: 1; max-height: 14; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,delete", "stop", "Stop"),
        Binding("j", "move(1)", "Down", show=False),
        Binding("k", "move(-1)", "Up", show=False),
        Binding("q,escape", "close", "Close"),
    ]

    def __init__(self, kb: KnowledgeBase, chat: ChatPane) -> None:
        super().__init__()
        self._kb = kb
        self._chat = chat
        self._shown: list[Task] = []

    def compose(self) -> ComposeResult:
        """The box."""
        with Vertical() as box:
            box.border_title = Content("Tasks")
            box.border_subtitle = Content("x stop · Esc close")
            yield TaskList()

    def on_mount(self) -> None:
        """Follow what goes on."""
        self._look()
        self.set_interval(_LOOK_AGAIN, self._look)

    @property
    def tasks(self) -> TaskList:
        """The list."""
        return self.query_one(TaskList)

    def _look(self) -> None:
        found = running_tasks(self._kb, self._chat)
        if [task[:2] for task in found] == [task[:2] for task in self._shown]:
            return
        self._shown = found
        choices = [
            Choice(f"{task.name}: {task.text}", f"x {task.does}" if task.stop else "", task)
            for task in found
        ]
        self.tasks.show_choices(choices, min(self.tasks.cursor, max(0, len(found) - 1)))

    def action_move(self, by: int) -> None:
        """Go to another task."""
        self.tasks.cursor += by

    def action_stop(self) -> None:
        """Stop the task under the cursor."""
        choice = self.tasks.choice
        if choice is None:
            return
        if choice.value.stop is None:
            self.notify("This goes on by itself, also after a restart.", markup=False)
            return
        choice.value.stop()
        self._look()

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)
