"""Modal dialogs that ask a question or show a page to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from rich.cells import cell_len
from textual import getters, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from kbtui.presentation.notes import kind_of
from kbtui.text import clean, clean_line, has_words
from kbtui.tui.actions.registry import key_name
from kbtui.tui.messages import tell
from kbtui.tui.terminal.layout import TellsSizes
from kbtui.tui.terminal.type_ahead import KeysInOrder
from kbtui.tui.widgets.hints import last_parts
from kbtui.tui.widgets.kinds import sign
from kbtui.tui.widgets.line_view import LineView
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList, ValueT
from kbtui.tui.widgets.text_field import TextField

Answer = TypeVar("Answer")
_BORDER_CELLS = 6
QUIET_SECONDS = 1.0
"""Seconds without a key press after which the user counts as not typing."""


class Dialog(TellsSizes, ModalScreen[Answer | None], Generic[Answer]):
    """A centred modal box with key hints in its lower border; Esc dismisses it with None.

    There are two widths: the default for questions, and a wider one, by the class ``wide``, for
    pages to read and lists.
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
        /* Docked, the keys are seen however much there is to say; the rest scrolls above them. */
        & > Vertical { overflow-y: auto; scrollbar-size-vertical: 1; }
        .keys { display: none; dock: bottom; color: $text-muted; margin-top: 1; }
        &.-low {
            & > Vertical { max-height: 100%; }
            .keys, ChoiceList { margin-top: 0; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", show=False)]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (14, "-tall")]  # noqa: RUF012 - as in Screen
    TITLE_TEXT = ""
    HINT = "Enter takes it · Esc leaves"
    NEEDS_ALL_HINTS: ClassVar[bool] = True
    """False if a narrow box may omit the first hints; a question needs them all."""

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(clean_line(self.TITLE_TEXT))
            yield from self.compose_question()
            yield Static(classes="keys", markup=False)

    def compose_question(self) -> ComposeResult:
        return ()

    def on_resize(self) -> None:
        self.call_after_refresh(self.say, self.HINT)

    def say(self, hint: str) -> None:
        """Show a hint in the lower border, or in a row above it if it doesn't fit."""
        box, below = self.query_one(Vertical), self.query_one(".keys", Static)
        room = box.outer_size.width - _BORDER_CELLS
        hint = hint if self.NEEDS_ALL_HINTS else last_parts(hint, room)
        fits = cell_len(hint) <= room
        box.border_subtitle = Content(hint if fits else "")
        below.display = not fits
        if not fits:
            below.update(hint)

    def action_cancel(self) -> None:
        self.dismiss(None)


class TextDialog(Dialog[str]):
    """A dialog that asks for one line of text."""

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
    def _accept(self, event: Input.Submitted) -> None:
        value = clean_line(event.value)
        self.dismiss(value or None)


class ListDialog(Dialog[Answer], Generic[Answer]):
    """A dialog with a list, perhaps below an input; arrow keys move in the list from either."""

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
    def _accept_choice(self) -> None:
        self.action_take()


class PickDialog(ListDialog[Any]):
    """A dialog to choose one of many values by filtering, or to enter a new one."""

    PLACEHOLDER = "type to filter, or a new name"

    def __init__(self, title: str, choices: Sequence[Choice[Any]], *, new: str = "") -> None:
        """Initialize the dialog; `new` labels a new value, empty if none can be entered."""
        super().__init__()
        self.TITLE_TEXT = title
        self._choices = list(choices)
        self._new = new

    def compose_question(self) -> ComposeResult:
        yield Input(placeholder=self.PLACEHOLDER if self._new else "type to filter")
        choices = ChoiceList(self._choices)
        if self._new and not self._choices:
            choices.empty = "None was found: type one."
        yield choices

    def offer(self, choices: Sequence[Choice[Any]]) -> None:
        """Replace the choices, keeping the filter."""
        self._choices = list(choices)
        self._show(self.query_one(Input).value)

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, typed: str) -> None:
        shown = [choice for choice in self._choices if has_words(choice.label, typed)]
        typed = clean_line(typed)
        if self._new and typed and all(typed != choice.value for choice in shown):
            shown.append(Choice(typed, self._new, typed))
        self.choices.show(shown, 0)


class NewEntry(NamedTuple):
    """The type and title of an entry to create."""

    type: str
    title: str


class NewEntryDialog(ListDialog[NewEntry]):
    """A dialog that asks for the title and type of a new entry."""

    TITLE_TEXT = "New note"
    HINT = "Enter makes it · Esc leaves"

    def __init__(self, types: Mapping[str, str], type_: str = "topic", title: str = "") -> None:
        """Initialize the dialog with `types` (name to folder), `type_` selected."""
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
        names = list(self._types)
        self.choices.cursor = names.index(self._type) if self._type in names else 0

    def action_take(self) -> None:
        title = clean_line(self.query_one(Input).value)
        choice = self.choices.item
        if title and choice is not None:
            self.dismiss(NewEntry(str(choice.value), title))
        else:
            self.query_one(Input).focus()


class KeyDialog(Dialog[str]):
    """A dialog that shows a text and waits for one of a few keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_text(-1)", "Up", show=False),
        Binding("down", "scroll_text(1)", "Down", show=False),
    ]

    def __init__(
        self, title: str, text: str | Content, keys: Mapping[str, str], *, leave: str = "cancel"
    ) -> None:
        """Initialize the dialog; `keys` maps keys to labels, `leave` is the label of Esc."""
        super().__init__()
        self.TITLE_TEXT = title
        labels = {**keys, "escape": leave}
        self.HINT = " · ".join(f"{key_name(key)} {label}" for key, label in labels.items())
        self.text = text if isinstance(text, Content) else Content(clean(text))
        for key, label in keys.items():
            self._bindings.bind(key, f"answer('{key}')", label)

    def compose_question(self) -> ComposeResult:
        yield Static(self.text)

    def action_answer(self, key: str) -> None:
        self.dismiss(key)

    def action_scroll_text(self, lines: int) -> None:
        """Scroll the text, where there is too little room for it."""
        self.query_one(Vertical).scroll_relative(y=lines, animate=False)


def is_disturbing(app: App[Any]) -> bool:
    """Return whether the user is typing or in a dialog, so that no question may appear."""
    is_typing = isinstance(app, KeysInOrder) and monotonic() - app.typed_at < QUIET_SECONDS
    return is_typing or app.screen.is_modal


class UnaskedDialog(KeyDialog):
    """A `KeyDialog` that appears unprompted, and must not take type-ahead for an answer.

    A key counts only after a pause of `QUIET_SECONDS`, in which the user can have read the text.
    """

    def __init__(self, title: str, text: str, keys: Mapping[str, str]) -> None:
        super().__init__(title, text, keys)
        self._shown_at = monotonic()

    def action_answer(self, key: str) -> None:
        app = self.app
        if isinstance(app, KeysInOrder):
            before = max(self._shown_at, app.typed_before)
            if app.typed_at - before < QUIET_SECONDS:
                self.say(f"You were typing: press {key_name(key)} again")
                return
        super().action_answer(key)


class ReadingDialog(Dialog[Answer], Generic[Answer]):
    """A page to read; j and k scroll its first scrollable part, q closes it."""

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
        scrollables = [*self.query(LineView), *self.query(VerticalScroll)]
        scrollables[0].scroll_relative(y=lines, animate=False)


class PageScreen(ReadingDialog[None]):
    """A text in a box; y copies it."""

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
    """A dialog that asks for several lines of text."""

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
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)
        area.focus()

    def action_take(self) -> None:
        self.dismiss(self.query_one(TextArea).text)


async def ask(
    node: DOMNode, title: str, text: str | Content, keys: Mapping[str, str]
) -> str | None:
    """Show a `KeyDialog` and return the key, or None if it was cancelled."""
    return await node.app.push_screen_wait(KeyDialog(title, text, keys))


async def ask_text(node: DOMNode, title: str, value: str = "", about: str = "") -> str | None:
    """Show a `TextDialog` and return its text, or None if it was cancelled."""
    return await node.app.push_screen_wait(TextDialog(title, value, about))


async def pick(
    node: DOMNode,
    title: str,
    choices: Sequence[Choice[ValueT]],
    *,
    new: str = "",
    nothing: str = "",
) -> ValueT | None:
    """Show a `PickDialog` and return the chosen value, or None if it was cancelled.

    Args:
        node: Any node of the app.
        title: The title of the dialog.
        choices: The values to choose from.
        new: The label of a new value, empty if none can be entered.
        nothing: Shown as a toast instead of the dialog if there are no choices.
    """
    if not choices and nothing:
        tell(node, nothing)
        return None
    chosen: ValueT | None = await node.app.push_screen_wait(PickDialog(title, choices, new=new))
    return chosen
