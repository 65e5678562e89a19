"""Pickers for the conversation to resume and for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import Input, Static

from kbtui.errors import KbtuiError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.models.roles import Destination, ModelRegistry
from kbtui.presentation.times import format_time
from kbtui.sessions.store import SessionInfo
from kbtui.settings import OFFLINE
from kbtui.text import clean_line, counted
from kbtui.tui.widgets.dialogs import Dialog, ListDialog, PickDialog, ask
from kbtui.tui.widgets.row_list import Choice, ChoiceList

if TYPE_CHECKING:
    from kbtui.models.roles import FoundModel

_OWN_CHANNELS = {"tui", "cli"}
_NO_MODEL_HINT = (
    "\nWith Ollama (https://ollama.com), `kbtui setup` in a shell fetches a model that fits this "
    "machine, and tries it."
)


async def may_leave(node: DOMNode, chosen: Destination) -> bool:
    """Return whether a model may be used, asking before messages first leave this machine."""
    if not chosen.leaves:
        return True
    text = (
        f"What you say, and what your notes say about it, goes to {chosen.place} then.\n"
        "Until now it stayed on this machine. Private notes still do."
    )
    return await ask(node, f"Use {chosen.name}?", text, {"y": "send it there"}) == "y"


async def use_model(
    node: DOMNode,
    models: ModelRegistry,
    chosen: Destination,
    key: str | None = None,
    *,
    try_out: bool = False,
) -> bool:
    """Switch to a model if the person allows messages to go there; return whether they do.

    Raises:
        KbtuiError: The model can't be used, or doesn't answer with `try_out`.
    """
    if not await may_leave(node, chosen):
        return False
    if try_out:
        await models.try_out(chosen.name, chosen.api_base, key)
    name, base = chosen.name, chosen.api_base
    await asyncio.to_thread(lambda: models.use(name, api_base=base, api_key=key, remember=True))
    return True


class ModelScreen(ListDialog["Destination"]):
    """A dialog with the usable models and the ways to add others; returns the one chosen."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    ModelScreen {
        Static { margin: 0; }
        ChoiceList { max-height: 16; }
    }
    """
    TITLE_TEXT = "Model"
    HINT = "Enter uses it · Esc leaves"

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__()
        self._kb = kb

    def compose_question(self) -> ComposeResult:
        yield Static(Content.styled("Looking around ...", "$text-muted"))
        yield ChoiceList()

    def on_mount(self) -> None:
        self.choices.focus()
        self._look()

    @work
    async def _look(self) -> None:
        from kbtui.models.providers import PROVIDERS

        models = self._kb.models
        found = [each for each in await models.discover() if each.usable]
        now = await asyncio.to_thread(models.describe)
        names = {each.name for each in found}
        choices = [Choice(each.name, each.about, _Offer(each)) for each in found]
        choices += [
            Choice(provider.model, f"with a key of {provider.title}", _Offer(name=provider.model))
            for provider in PROVIDERS
            if provider.model not in names
        ]
        choices += [
            Choice("another model or server ...", "by name, address and key", _Offer()),
            Choice("no model", "quotes your notes", _Offer(name=OFFLINE, asks=False)),
        ]
        in_use = "no model" if now.offline else clean_line(now.name)
        status = Content.assemble("In use: ", (in_use, "bold"), f"  {now.reason}")
        if not found:
            status += Content.styled(_NO_MODEL_HINT, "$text-muted")
        self.query_one(Static).update(status)
        self.choices.show(choices)

    def action_take(self) -> None:
        """Use the selected model, or ask for its missing details."""
        if self.choices.item is not None:
            self._use(self.choices.item.value)

    @work
    async def _use(self, offer: _Offer) -> None:
        if offer.found is None and offer.asks:
            chosen = await self.app.push_screen_wait(ModelForm(self._kb, offer.name))
            if chosen is not None:
                self.dismiss(chosen)
            return
        models = self._kb.models
        name, base = (offer.found.name, offer.found.api_base) if offer.found else (offer.name, None)
        try:
            chosen = await asyncio.to_thread(models.destination, name, base, keep=False)
            if await use_model(self, models, chosen):
                self.dismiss(chosen)
        except KbtuiError as error:
            self.query_one(Static).update(Content.styled(str(error), "$error"))


@dataclass(frozen=True, slots=True)
class _Offer:
    """A row of the picker: a model that was found, or one that `asks` for more details."""

    found: FoundModel | None = None
    name: str = ""
    asks: bool = True


class ModelForm(Dialog["Destination"]):
    """A form for name, address and key of a model, which is tested before it is saved."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    ModelForm {
        Static { margin: 1 0 0 0; }
        .label { color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "keep", "Keep it untested")]
    TITLE_TEXT = "Model"
    HINT = "Enter tests and keeps · Tab next · Esc leaves"

    def __init__(self, kb: KnowledgeBase, name: str = "") -> None:
        super().__init__()
        self._kb = kb
        self._name = name

    def compose_question(self) -> ComposeResult:
        yield Static("Name, as provider/model", classes="label")
        yield Input(self._name, placeholder="openai/my-model", id="name", select_on_focus=False)
        yield Static("Address, only for a server of your own", classes="label")
        yield Input(placeholder="http://127.0.0.1:8080/v1", id="base")
        yield Static("Key, kept in your keyring or a file only you can read", classes="label")
        yield Input(password=True, id="key")
        yield Static("", id="outcome")

    def on_mount(self) -> None:
        """Focus the first empty field."""
        self.query_one("#key" if self._name else "#name", Input).focus()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._use(try_out=True)

    def action_keep(self) -> None:
        self._use(try_out=False)

    @work(exclusive=True)
    async def _use(self, *, try_out: bool) -> None:
        outcome = self.query_one("#outcome", Static)
        name, base, key = (self.query_one(f"#{field}", Input).value.strip() for field in _FIELDS)
        if not name:
            outcome.update(Content.styled("A name is needed, as provider/model.", "$warning"))
            return
        outcome.update(
            Content.styled("Asking it for one word ..." if try_out else "", "$text-muted")
        )
        models = self._kb.models
        try:
            chosen = await asyncio.to_thread(models.destination, name, base or None, keep=False)
            if await use_model(self, models, chosen, key or None, try_out=try_out):
                self.dismiss(chosen)
            else:
                outcome.update("")
        except KbtuiError as error:
            message = Content.styled(clean_line(f"{error.message} {error.hint}".strip()), "$error")
            anyway = Content.styled("\nCtrl+S keeps it anyway." if try_out else "", "$text-muted")
            outcome.update(message + anyway)


_FIELDS = ("name", "base", "key")


def conversations(infos: Sequence[SessionInfo]) -> PickDialog:
    """Return a dialog to choose a conversation, latest first; its result is a session id."""
    dialog = PickDialog("Conversations", [_choice(info) for info in infos])
    dialog.add_class("wide")
    return dialog


def _choice(info: SessionInfo) -> Choice[str]:
    elsewhere = "" if info.channel in _OWN_CHANNELS else f"{info.channel} · "
    detail = f"{elsewhere}{counted(info.messages, 'message')} · {format_time(info.updated)}"
    return Choice(clean_line(info.title) or format_time(info.created), detail, info.id)
