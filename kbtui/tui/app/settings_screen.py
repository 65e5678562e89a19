"""The settings form: groups at the left, fields at the right, a description below."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events, getters, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from kbtui.errors import KbtuiError
from kbtui.knowledge_base import KnowledgeBase
from kbtui.setting_values import HIDDEN, Setting, all_settings, parse_value, to_toml, write_setting
from kbtui.settings import OFFLINE, config_file
from kbtui.text import clean_line, has_words
from kbtui.tui.actions.registry import ACTIONS, CONTEXT_TITLES, Action, bindings, key_names, keys_of
from kbtui.tui.terminal.background import latest, run_latest
from kbtui.tui.widgets.dialogs import Dialog, ask_text, pick
from kbtui.tui.widgets.divided import Divided
from kbtui.tui.widgets.finder import Finder
from kbtui.tui.widgets.line_view import READABLE
from kbtui.tui.widgets.pane import Pane
from kbtui.tui.widgets.row_list import Choice, ChoiceList, RowList

_OFFLINE = "none: answers are quoted from your notes"
_MODELS, _KEYS = "Models", "Keys"
_TALL_ROWS = 30
_RESTART_NOTICE = "It holds from the next start on."


class Field(NamedTuple):
    """A row of the form: a setting, or the keys of an action, with its label and shown value."""

    group: str
    label: str
    value: str
    setting: Setting
    action: Action | None = None

    @property
    def is_given(self) -> bool:
        """Whether the value is set, not the default."""
        return bool(self.setting.source)

    def fits(self, wanted: str) -> bool:
        """Return whether all words of the filter occur in the field."""
        text = f"{self.group} {self.label} {self.value} {self.setting.name} {self.about}"
        return has_words(text, wanted)

    @property
    def about(self) -> str:
        """The description."""
        return self.setting.about

    @property
    def has_choices(self) -> bool:
        """Whether the value is chosen from a list."""
        return self.setting.is_model or len(self.setting.choices or ()) > 2

    @property
    def standard(self) -> str:
        """The default value, as shown."""
        if self.action is not None:
            return key_names(self.action.keys)
        return self.setting.unset if self.setting.is_model else format_value(self.setting.default)


def format_value(value: Any) -> str:
    """Format a value for display."""
    if value is None or value in ([], {}, ""):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return clean_line(f"{value:,}" if isinstance(value, int) else str(value))


def fields_of(settings: Iterable[Setting], keymap: Mapping[str, str]) -> list[Field]:
    """Return the rows of the form: models, other settings, then keys by action."""
    found = list(settings)
    models = [_model(each) for each in found if each.is_model]
    rest = [
        Field(each.section, _label(each), format_value(each.value), each)
        for each in found
        if not each.is_model and each.name != "ui.keys"
    ]
    keys = next(each for each in found if each.name == "ui.keys")
    return [*models, *rest, *_keys(keys, keymap)]


def _model(setting: Setting) -> Field:
    value = setting.unset if setting.value is None else format_value(setting.value)
    return Field(_MODELS, setting.role, _OFFLINE if value == OFFLINE else value, setting)


def _label(setting: Setting) -> str:
    """Return the label of a setting, prefixed by the role for a role's setting."""
    return f"{setting.role}: {setting.title}" if setting.role else setting.title


def _keys(setting: Setting, keymap: Mapping[str, str]) -> list[Field]:
    rows = []
    for action in ACTIONS:
        if action.keys:
            own = setting.source if action.id in (setting.value or {}) else ""
            each = Setting(f"ui.keys.{action.id}", action.help, None, None, own)
            label = f"{CONTEXT_TITLES[action.context]}: {action.title}"
            rows.append(Field(_KEYS, label, key_names(keys_of(action, keymap)), each, action))
    return rows


class FieldList(RowList[Field]):
    """A list of fields with their values as chips, in the accent colour if they are set.

    On a tall screen the description is shown below each field.
    """

    LOOKS: ClassVar[Mapping[str, str]] = {
        **RowList.LOOKS,
        "fields--value": "on $panel",
        "fields--given": "bold $text-primary on $panel",
    }
    empty = "Nothing fits that."

    def show_fields(self, fields: Sequence[Field], name: str = "") -> None:
        """Show fields, with the cursor on the setting called `name`."""
        explained = self.app.size.height >= _TALL_ROWS and any(not each.action for each in fields)
        self.ROW_HEIGHT = 3 if explained else 1
        names = [field.setting.name for field in fields]
        self.show(fields, names.index(name) if name in names else 0)

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        width = min(width, READABLE)
        field = self.items[index]
        style = ".fields--given" if field.is_given else ".fields--value"
        more = " ▾" if field.has_choices else ""
        room = max(width // 2, width - cell_len(field.label) - 4) - 4
        value = Content(field.value).truncate(max(4, room), ellipsis=True)
        chip = Content.styled(f" {value.plain}{more} ", style)
        label = Content.styled(f" {field.label}", ".rows--strong" if self.ROW_HEIGHT > 1 else "")
        label = label.truncate(max(1, width - chip.cell_length - 2), ellipsis=True)
        gap = " " * max(1, width - label.cell_length - chip.cell_length - 1)
        about = Content.styled(f" {field.about}", ".rows--muted")
        return [label + Content(gap) + chip, about.truncate(width - 1, ellipsis=True)]


class KeyPressDialog(Dialog[str]):
    """A dialog that asks for a key press and returns the key."""

    HINT = "press the key · Esc leaves"

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.TITLE_TEXT = action.title
        self._about = action.help

    def compose_question(self) -> ComposeResult:
        yield Static(Content(self._about))

    def on_key(self, event: events.Key) -> None:
        if event.key != "escape":
            event.stop()
            event.prevent_default()
            self.dismiss(event.key)


class SettingsScreen(Finder):
    """A form of all settings, which writes only to the user's own config.toml.

    Args:
        kb: The knowledge base, for its workspace's settings and the available models.
        keymap: The keys that the user has remapped, by action id.
    """

    DEFAULT_CSS = """
    SettingsScreen {
        #settings-groups { height: 5; }
        #settings-fields { height: 1fr; }
        &.-beside #settings-groups { width: 24; height: 100%; }
        &.-beside #settings-fields { width: 1fr; height: 100%; }
        #settings-list { height: 1fr; }
        #settings-about {
            height: auto; max-height: 8; padding: 0 1; margin-top: 1; background: $surface;
        }
        &.-columns #settings-fields { layout: horizontal; }
        &.-columns #settings-list { width: 101; height: 100%; }
        &.-columns #settings-about {
            width: 1fr; max-height: 100%; margin: 0 0 0 2; padding: 1 2;
        }
        #settings-wrong { display: none; height: auto; color: $text-error; padding: 0 1; }
        &.-wrong #settings-wrong { display: block; }
    }
    """
    BINDINGS = bindings("settings")
    TITLE_TEXT = "Settings"
    BESIDE_COLUMNS = 70
    FILTER_HINT = "filter all settings"
    CHOOSES = "change"
    rows: FieldList
    groups = getters.query_one(ChoiceList)

    def __init__(self, kb: KnowledgeBase, keymap: Mapping[str, str]) -> None:
        super().__init__(kb)
        self.rows = FieldList(id="settings-list")
        self._keymap = dict(keymap)
        self._fields: list[Field] = []
        self._filter_text = ""

    def compose_body(self) -> ComposeResult:
        yield Static(id="settings-wrong", markup=False)
        with Divided(id="settings-body", classes="parts"):
            with Pane(id="settings-groups") as groups:
                groups.label_with("Settings")
                yield ChoiceList(id="settings-names")
            with Pane(id="settings-fields"):
                yield self.rows
                yield Static(id="settings-about", markup=False)

    def on_mount(self) -> None:
        self.rows.focus()
        run_latest(self, "read", self._read)

    # Reading

    async def _read(self) -> None:
        """Load the settings; if a file is invalid, show the error and the settings in force."""
        root, wrong = self.kb.workspace.root, ""
        try:
            found = await asyncio.to_thread(all_settings, root)
        except KbtuiError as error:
            wrong = f"{error.message} {error.hint} Nothing of it is touched. In force:"
            found = await asyncio.to_thread(all_settings, root, self.kb.settings)
        self.set_class(bool(wrong), "-wrong")
        self.query_one("#settings-wrong", Static).update(clean_line(wrong))
        own = next(each.value for each in found if each.name == "ui.keys")
        self._keymap |= {name: keys for name, keys in own.items() if keys}
        self._fields = fields_of(found, self._keymap)
        names = list(dict.fromkeys(field.group for field in self._fields))
        if self.groups.row_count != len(names):
            self.groups.show([Choice(name, "", name) for name in names])
        self._show()

    def _show(self) -> None:
        """Show the fields that match the filter, or without one those of the group."""
        group = self.groups.item.value if self.groups.item is not None else _MODELS
        fitting = (
            [field for field in self._fields if field.fits(self._filter_text)]
            if self._filter_text
            else [field for field in self._fields if field.group == group]
        )
        at = self.rows.item.setting.name if self.rows.item is not None else ""
        title = f"All that fits {self._filter_text!r}" if self._filter_text else group
        self.query_one("#settings-fields", Pane).label_with(title)
        self.rows.show_fields(fitting, at)
        self._explain()

    def _explain(self) -> None:
        """Show the field's description, its default, and where its value comes from."""
        field = self.rows.item
        about = self.query_one("#settings-about", Static)
        about.display = field is not None
        if field is not None:
            source = field.setting.source
            given = f"set by {clean_line(source)}" if source else "not changed"
            facts = [field.setting.name, f"default: {field.standard}", given]
            if self.has_class("-columns"):
                about.update(
                    Content.assemble(
                        (f"{field.label}\n", "bold $text-primary"),
                        f"{field.about}\n\n",
                        ("\n".join(facts), "$text-muted"),
                    )
                )
                return
            inline = self.rows.ROW_HEIGHT > 1 and cell_len(field.about) < self.rows.size.width - 2
            meaning = "" if inline else f"{field.about or field.label}\n"
            about.update(Content.assemble((meaning, "bold"), ("   ".join(facts), "$text-muted")))

    @on(RowList.Highlighted, "#settings-names")
    def _show_group(self) -> None:
        self._filter_text = ""
        self._show()

    def look_at(self) -> None:
        self._explain()

    # Moving

    def action_move(self, by: int) -> None:
        (self.groups if self.groups.has_focus else self.rows).cursor += by

    def action_left(self) -> None:
        self.groups.focus()

    def action_right(self) -> None:
        self.rows.focus()

    async def find(self, query: str) -> None:
        """Show the settings of all groups that match a query."""
        self._filter_text = query
        self._show()

    # Changing

    def action_change(self) -> None:
        if self.groups.has_focus:
            self.rows.focus()
        elif self.rows.item is not None:
            self._change(self.rows.item)

    @latest("change")
    async def action_reset(self) -> None:
        if self.rows.item is not None:
            await self._reset(self.rows.item)

    async def _reset(self, field: Field) -> None:
        if field.action is not None:
            self._keymap.pop(field.action.id, None)
        await self._write(field, None)

    @latest("change")
    async def _change(self, field: Field) -> None:
        if field.action is not None:
            await self._change_keys(field, field.action)
        elif field.setting.choices == (True, False):
            await self._write(field, not field.setting.value)
        else:
            text = await self._ask(field)
            if text is not None:
                value = await asyncio.to_thread(parse_value, field.setting.name, text)
                await self._write(field, value)

    async def _ask(self, field: Field) -> str | None:
        """Ask for the new value as text; a role may instead be reset at once."""
        if field.setting.name == "ui.theme":
            themes = [name for name in self.app.available_themes if name.startswith("kbtui-")]
            others = sorted(set(self.app.available_themes) - set(themes))
            return await self._pick(field, [*sorted(themes), *others])
        if field.setting.choices:
            return await self._pick(field, field.setting.choices)
        if field.setting.is_model:
            return await self._pick_model(field)
        value = field.setting.value
        text = "" if value in (None, HIDDEN) else to_toml(value)
        return await ask_text(self, field.label, text, field.about)

    async def _pick(self, field: Field, values: Sequence[Any]) -> str | None:
        return await pick(
            self, field.label, [Choice(format_value(each), "", str(each)) for each in values]
        )

    async def _pick_model(self, field: Field) -> str | None:
        """Ask for a discovered model, any other by name, or none."""
        found = [each for each in await self.kb.models.discover() if each.usable]
        choices = [Choice(each.name, each.about, each.name) for each in found]
        if field.setting.value is not None:
            choices.insert(0, Choice("none of its own", field.standard, ""))
        chosen = await pick(self, field.label, choices, new="by its name")
        if chosen == "":
            await self._reset(field)
        return chosen or None

    async def _change_keys(self, field: Field, action: Action) -> None:
        key = await self.app.push_screen_wait(KeyPressDialog(action))
        if key is None:
            return
        taken = self._conflicting(key, action)
        if taken is not None:
            self.notify(
                f"{key_names(key)} is {taken.title} already; give that another key first.",
                severity="warning",
                markup=False,
            )
            return
        self._keymap[action.id] = key
        await self._write(field, key)

    def _conflicting(self, key: str, wanted: Action) -> Action | None:
        """Return the action that conflicts with assigning `key` to `wanted`."""
        places = {wanted.context, "global"} if wanted.context != "global" else None
        for action in ACTIONS:
            near = places is None or action.context in places
            if near and action is not wanted and key in keys_of(action, self._keymap).split(","):
                return action
        return None

    async def _write(self, field: Field, value: Any) -> None:
        name = field.setting.name
        await asyncio.to_thread(write_setting, name, value)
        await self._read()
        source = next((f.setting.source for f in self._fields if f.setting.name == name), "")
        if source and source != str(config_file()):
            self.notify(f"It is written, but {source} says otherwise, and wins.", markup=False)
        elif not name.startswith("ui."):
            self.notify(_RESTART_NOTICE, markup=False)
