"""Choosing the model that answers: what was found, or a name with a key or an address."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from kbtui.errors import KbtuiError
from kbtui.text import clean_line
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from kbtui.knowledge_base import KnowledgeBase

_CSS = """
        align: center middle;
        background: $background 60%;
        & > Vertical {
            width: 84; max-width: 95%; height: auto; max-height: 90%;
            background: $surface; border: round $primary 60%; padding: 0 1;
            border-title-color: $primary; border-subtitle-color: $text-muted;
        }
        Static { height: auto; }
        ChoiceList { height: auto; max-height: 16; margin-top: 1; }
"""
_OTHER = ""


class ModelScreen(ModalScreen[bool]):
    """What can be used as it is, and the ways to more; answers whether a model was chosen."""

    DEFAULT_CSS = f"ModelScreen {{{_CSS}}}"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "Use"),
        Binding("escape,q", "back", "Back"),
    ]

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__()
        self._kb = kb

    def compose(self) -> ComposeResult:
        """The list, empty until the looking around is done."""
        with Vertical() as box:
            box.border_title = Content("Model")
            box.border_subtitle = Content("Enter uses it · Esc leaves")
            yield Static(Content.styled("Looking around ...", "$text-muted"))
            yield ChoiceList()

    def on_mount(self) -> None:
        """Look for models."""
        self.query_one(ChoiceList).focus()
        self._look()

    @work
    async def _look(self) -> None:
        from kbtui.models.providers import PROVIDERS

        models = self._kb.models
        now = await asyncio.to_thread(lambda: models.describe(look=True))
        found = [each for each in await models.discover() if each.usable]
        names = {each.name for each in found}
        choices = [
            Choice(each.name, f"through {each.source}", (each.name, False)) for each in found
        ]
        choices += [
            Choice(provider.model, f"with a key of {provider.title}", (provider.model, True))
            for provider in PROVIDERS
            if provider.model not in names
        ]
        choices += [
            Choice("another model or server ...", "by name, address and key", (_OTHER, True)),
            Choice("offline", "no model: quotes your notes", ("offline", False)),
        ]
        self.query_one(Static).update(
            Content.assemble("In use: ", (clean_line(now.name), "bold"), f"  {now.reason}")
        )
        self.query_one(ChoiceList).show_choices(choices)

    @on(RowList.Selected)
    def action_choose(self) -> None:
        """Use the model under the cursor, or ask for what it still needs."""
        choice = self.query_one(ChoiceList).choice
        if choice is not None:
            name, asks = choice.value
            self._use(name, asks=asks)

    @work
    async def _use(self, name: str, *, asks: bool) -> None:
        if asks:
            if await self.app.push_screen_wait(ModelForm(self._kb, name)):
                self.dismiss(True)
            return
        try:
            await asyncio.to_thread(lambda: self._kb.models.use(name, remember=True))
        except KbtuiError as error:
            self.query_one(Static).update(Content.styled(str(error), "$error"))
        else:
            self.dismiss(True)

    def action_back(self) -> None:
        """Change nothing."""
        self.dismiss(False)


class ModelForm(ModalScreen[bool]):
    """Name, address and key of a model; it is asked for one word before it is kept."""

    DEFAULT_CSS = f"""
    ModelForm {{{_CSS}
        Input, Input:focus {{ border: none; height: 1; padding: 0 1; background: $boost; }}
        .label {{ color: $text-muted; margin-top: 1; }}
        #outcome {{ margin-top: 1; }}
    }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("ctrl+s", "keep", "Keep it untested"),
    ]

    def __init__(self, kb: KnowledgeBase, name: str = "") -> None:
        super().__init__()
        self._kb = kb
        self._name = name

    def compose(self) -> ComposeResult:
        """Three lines to fill in, and what came of it."""
        with Vertical() as box:
            box.border_title = Content("Model")
            box.border_subtitle = Content("Enter tests and keeps · Tab next · Esc leaves")
            yield Static("Name, as provider/model", classes="label")
            yield Input(self._name, placeholder="openai/my-model", id="name", select_on_focus=False)
            yield Static("Address, only for a server of your own", classes="label")
            yield Input(placeholder="http://127.0.0.1:8080/v1", id="base")
            yield Static("Key, kept in your keyring or a file only you can read", classes="label")
            yield Input(password=True, id="key")
            yield Static("", id="outcome")

    def on_mount(self) -> None:
        """Begin with what is missing."""
        self.query_one("#key" if self._name else "#name", Input).focus()

    @property
    def _filled(self) -> tuple[str, str | None, str | None]:
        name, base, key = (self.query_one(f"#{field}", Input).value.strip() for field in _FIELDS)
        return name, base or None, key or None

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._test()

    @work(exclusive=True)
    async def _test(self) -> None:
        outcome = self.query_one("#outcome", Static)
        name, base, key = self._filled
        if not name:
            outcome.update(Content.styled("A name is needed, as provider/model.", "$warning"))
            return
        outcome.update(Content.styled("Asking it for one word ...", "$text-muted"))
        try:
            await self._kb.models.try_out(name, base, key)
        except KbtuiError as error:
            text = f"{error.message} {error.hint}".strip()
            outcome.update(
                Content.assemble(
                    (clean_line(text), "$error"), "\n", ("Ctrl+S keeps it anyway.", "$text-muted")
                )
            )
        else:
            self.action_keep()

    def action_keep(self) -> None:
        """Use it from now on."""
        self._keep(*self._filled)

    @work
    async def _keep(self, name: str, base: str | None, key: str | None) -> None:
        try:
            await asyncio.to_thread(
                lambda: self._kb.models.use(name, api_base=base, api_key=key, remember=True)
            )
        except KbtuiError as error:
            self.query_one("#outcome", Static).update(Content.styled(str(error), "$error"))
        else:
            self.dismiss(True)

    def action_back(self) -> None:
        """Change nothing."""
        self.dismiss(False)


_FIELDS = ("name", "base", "key")
