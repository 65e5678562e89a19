"""Dialogs: boxes over the screen that ask for something, or show a page to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from rich.cells import cell_len
from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from kbtui.presentation.notes import kind_of
from kbtui.text import clean, clean_line, fold
from kbtui.tui.actions.registry import key_name
from kbtui.tui.messages import tell
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.tui.widgets.hints import whole_parts
from kbtui.tui.widgets.kinds import sign
from kbtui.tui.widgets.line_view import LineView
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList, ValueT
from kbtui.tui.widgets.text_field import TextField

Answer = TypeVar("Answer")
_CORNERS = 6
QUIET_SECONDS = 1.0
"""Seconds without a key after which somebody isn't writing any more."""


class Dialog(ModalScreen[Answer | None], Generic[Answer]):
    """A box in the middle of the screen with its keys in the lower border; Esc gives no answer.

    There are two widths: one for a question, and with the class ``wide`` one for what is to be
    read or chosen from.
    """

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        background: $background 60%;
        & > Vertical {
            width: 72; max-width: 95%; height: auto; max-height: 90%;
            background: $surface; border: round $border; padding: 0 1;
            border-title-color: $text-primary; border-subtitle-color: $text-muted;
        }
        &.wide > Vertical { width: 104; }
        Input { border: none; height: 1; padding: 0 1; background: $boost; }
        Input:focus { border: none; }
        ChoiceList { height: auto; max-height: 14; margin-top: 1; }
        Static { height: auto; margin: 0 1; }
        .keys { display: none; color: $text-muted; margin-top: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", show=False)]
    TITLE_TEXT = ""
    HINT = "Enter takes it · Esc leaves"
    NEEDS_ALL_HINTS: ClassVar[bool] = True
    """False where the first hints may be left out in a narrow box: not those of a question."""

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(clean_line(self.TITLE_TEXT))
            yield from self.compose_question()
            yield Static(classes="keys", markup=False)

    def compose_question(self) -> ComposeResult:
        return ()

    def on_resize(self) -> None:
        """Say what the keys do in the lower border, or above it where they don't fit in."""
        self.call_after_refresh(self.say, self.HINT)

    def say(self, hint: str) -> None:
        """Say something in the lower border, or above it where it has to be said whole."""
        box, below = self.query_one(Vertical), self.query_one(".keys", Static)
        room = box.outer_size.width - _CORNERS
        hint = hint if self.NEEDS_ALL_HINTS else whole_parts(hint, room)
        fits = cell_len(hint) <= room
        box.border_subtitle = Content(hint if fits else "")
        below.display = not fits
        if not fits:
            below.update(hint)

    def action_cancel(self) -> None:
        self.dismiss(None)


class TextDialog(Dialog[str]):
    """Asks for one line of text."""

    def __init__(self, title: str, value: str = "", explanation: str = "") -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self._value = value
        self._explanation = explanation

    def compose_question(self) -> ComposeResult:
        yield Input(self._value, select_on_focus=False)
        if self._explanation:
            yield Static(Content.styled(clean(self._explanation), "$text-muted"))

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        value = clean_line(event.value)
        self.dismiss(value or None)


class ListDialog(Dialog[Answer], Generic[Answer]):
    """A list, perhaps below a line to write in; the arrows move in it, whatever has the focus."""

    NEEDS_ALL_HINTS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("q", "cancel", "Leave", show=False),
        Binding("enter", "take", "Take it", show=False),
    ]

    choices = getters.query_one(ChoiceList)

    def action_move(self, by: int) -> None:
        self.choices.cursor += by

    def action_take(self) -> None:
        if self.choices.item is not None:
            self.dismiss(self.choices.item.value)

    @on(Input.Submitted)
    @on(RowList.Selected)
    def _chosen(self) -> None:
        self.action_take()


class PickDialog(ListDialog[Any]):
    """Chooses one of many by typing a part of it; perhaps a new one."""

    PLACEHOLDER = "type to filter, or a new name"

    def __init__(self, title: str, choices: Sequence[Choice[Any]], *, new: str = "") -> None:
        """Ask with `title`; `new` is what a new value is called, empty where there can't be one."""
        super().__init__()
        self.TITLE_TEXT = title
        self._all = list(choices)
        self._new = new

    def compose_question(self) -> ComposeResult:
        yield Input(placeholder=self.PLACEHOLDER if self._new else "type to filter")
        choices = ChoiceList(self._all)
        if self._new and not self._all:
            choices.empty = "None was found: type one."
        yield choices

    def offer(self, choices: Sequence[Choice[Any]]) -> None:
        """Offer other choices; the filter stays."""
        self._all = list(choices)
        self._show(self.query_one(Input).value)

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, typed: str) -> None:
        wanted = fold(typed).strip()
        shown = [choice for choice in self._all if wanted in fold(choice.label)]
        typed = clean_line(typed)
        if self._new and typed and all(typed != choice.value for choice in shown):
            shown.append(Choice(typed, self._new, typed))
        self.choices.show(shown, 0)


class NewEntry(NamedTuple):
    """The entry that is to be made."""

    type: str
    title: str


class NewEntryDialog(ListDialog[NewEntry]):
    """Asks for the title and the type of a new entry."""

    TITLE_TEXT = "New note"
    HINT = "Enter makes it · Esc leaves"

    def __init__(self, types: Mapping[str, str], type_: str = "topic", title: str = "") -> None:
        """Offer `types` (name to folder) with `type_` chosen."""
        super().__init__()
        self._types = types
        self._type = type_
        self._title = title

    def compose_question(self) -> ComposeResult:
        yield Input(self._title, placeholder="title, or folder/title", select_on_focus=False)
        yield ChoiceList(
            [
                Choice(type_, f"{folder}/" if folder else "", type_, sign(kind_of(type_)))
                for type_, folder in self._types.items()
            ]
        )

    def on_mount(self) -> None:
        """Start on the type that fits the place."""
        names = list(self._types)
        self.choices.cursor = names.index(self._type) if self._type in names else 0

    def action_take(self) -> None:
        """Answer with title and type, once there is a title."""
        title = clean_line(self.query_one(Input).value)
        choice = self.choices.item
        if title and choice is not None:
            self.dismiss(NewEntry(str(choice.value), title))
        else:
            self.query_one(Input).focus()


class KeyDialog(Dialog[str]):
    """Says something and waits for one of a few keys."""

    def __init__(
        self, title: str, text: str, keys: Mapping[str, str], *, leave: str = "cancel"
    ) -> None:
        """Ask; `keys` maps each key to what it does, `leave` is what Esc does. The key answers."""
        super().__init__()
        self.TITLE_TEXT = title
        said = {**keys, "escape": leave}
        self.HINT = " · ".join(f"{key_name(key)} {label}" for key, label in said.items())
        self.text = Content(clean(text))
        for key, label in keys.items():
            self._bindings.bind(key, f"answer('{key}')", label)

    def compose_question(self) -> ComposeResult:
        yield Static(self.text)

    def action_answer(self, key: str) -> None:
        self.dismiss(key)


class UnaskedDialog(KeyDialog):
    """A question that comes by itself: letters that somebody was writing don't answer it.

    A key counts only where none came for a while before it, as from somebody who has read.
    """

    def __init__(self, title: str, text: str, keys: Mapping[str, str]) -> None:
        super().__init__(title, text, keys)
        self._came_at = monotonic()

    def action_answer(self, key: str) -> None:
        """Take the key as the answer, unless it belongs to what was being written."""
        app = self.app
        if isinstance(app, KeysInOrder):
            before = max(self._came_at, app.typed_before)
            if app.typed_at - before < QUIET_SECONDS:
                self.say(f"You were typing: press {key_name(key)} again")
                return
        super().action_answer(key)


class ReadingDialog(Dialog[Answer], Generic[Answer]):
    """Something to read; j and k scroll what can be scrolled first, q closes."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    ReadingDialog VerticalScroll { height: auto; max-height: 80vh; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "cancel", "Close", show=False),
        Binding("j,down", "scroll(1)", "Down", show=False),
        Binding("k,up", "scroll(-1)", "Up", show=False),
    ]

    def action_scroll(self, lines: int) -> None:
        places = [*self.query(LineView), *self.query(VerticalScroll)]
        places[0].scroll_relative(y=lines, animate=False)


class PageScreen(ReadingDialog[None]):
    """Shows a text in a box; y copies it."""

    NEEDS_ALL_HINTS = False
    DEFAULT_CSS = "PageScreen Static { margin: 0; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "Copy")]
    HINT = "j k scroll · y copy · Esc close"

    def __init__(self, title: str, text: Content) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self.text = text

    def compose_question(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self.text)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text.plain)


class TextEditScreen(Dialog[str]):
    """Asks for a few lines of text; answers with them as they were written."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    TextEditScreen {
        & > Vertical { height: 14; padding: 0; }
        TextArea { height: 1fr; border: none; padding: 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "take", "Take it", show=False, priority=True),
        Binding("escape", "cancel", "Leave", show=False, priority=True),
    ]
    HINT = "Ctrl+S takes it · Esc leaves"

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self._text = text

    def compose_question(self) -> ComposeResult:
        yield TextField(self._text, soft_wrap=True)

    def on_mount(self) -> None:
        """Write on at the end."""
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)
        area.focus()

    def action_take(self) -> None:
        self.dismiss(self.query_one(TextArea).text)


async def ask(node: DOMNode, title: str, text: str, keys: Mapping[str, str]) -> str | None:
    """Wait for one of a few keys, as `KeyDialog` has them; None where nobody wants any."""
    return await node.app.push_screen_wait(KeyDialog(title, text, keys))


async def ask_text(node: DOMNode, title: str, value: str = "", about: str = "") -> str | None:
    """Ask for one line of text."""
    return await node.app.push_screen_wait(TextDialog(title, value, about))


async def pick(
    node: DOMNode,
    title: str,
    choices: Sequence[Choice[ValueT]],
    *,
    new: str = "",
    nothing: str = "",
) -> ValueT | None:
    """Have one of many chosen; its value, or None.

    `new` is what a value that is typed instead is called, `nothing` is said where there is no
    choice.
    """
    if not choices and nothing:
        tell(node, nothing)
        return None
    chosen: ValueT | None = await node.app.push_screen_wait(PickDialog(title, choices, new=new))
    return chosen
