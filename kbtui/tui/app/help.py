"""Help screen and command palette, both generated from the action registry."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from kbtui.search.results import QUERY_LANGUAGE
from kbtui.text import has_words
from kbtui.tui.actions.registry import ACTIONS, CONTEXT_TITLES, CONTEXTS, Action, key_names, keys_of
from kbtui.tui.widgets.dialogs import Dialog

_KEYS_WIDTH = 26
_LABEL_WIDTH = 21
_MIN_HELP_WIDTH = 30
_CHROME_ROWS = 5  # frame, filter and blank lines
_WIDTH = _KEYS_WIDTH + _LABEL_WIDTH + 50
_INDENT = "      "
_TITLE_WIDTH, _SHORTCUTS_WIDTH, _ROW_WIDTH = 28, 22, 116
_MIN_SUMMARY_WIDTH = 28
INTRODUCTION = (
    "Chat on the left, your notes on the right. Say what is worth keeping and it becomes a "
    "note; ask, and the answer cites the lines that it comes from. In the prompt the keys of "
    "a shell work (Ctrl+A, Ctrl+E, Ctrl+K, Ctrl+W, Ctrl+Y ...); everywhere else single letters do."
)


class HelpScreen(Dialog[None]):
    """A table of all actions, filtered as the user types."""

    DEFAULT_CLASSES = "wide"
    DEFAULT_CSS = """
    HelpScreen {
        & > Vertical { height: 90%; }
        VerticalScroll { height: 1fr; margin-top: 1; scrollbar-size-vertical: 1; }
        Static { margin: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll(-1)", "Up", show=False),
        Binding("down", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-15)", "Page up", show=False),
        Binding("pagedown", "scroll(15)", "Page down", show=False),
    ]
    NEEDS_ALL_HINTS = False
    TITLE_TEXT = "Help"
    HINT = "↑↓ scroll · Esc close"

    def __init__(
        self,
        word: str = "",
        keymap: Mapping[str, str] | None = None,
        contexts: Collection[str] = CONTEXTS,
    ) -> None:
        super().__init__()
        self._word = word
        self._keymap = keymap or {}
        self._contexts = contexts

    def compose_question(self) -> ComposeResult:
        yield Input(self._word, placeholder="filter keys and commands", select_on_focus=False)
        with VerticalScroll(can_focus=False):
            yield Static()

    def on_resize(self) -> None:
        self.call_after_refresh(self._update_table)

    def _update_table(self) -> None:
        table = self.table
        self.query_one("VerticalScroll > Static", Static).update(table)
        if not self._word:  # as high as the unfiltered table, so that typing doesn't move it
            self.query_one(Vertical).styles.max_height = len(table.split("\n")) + _CHROME_ROWS

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        self._word = event.value
        self._update_table()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    @property
    def table(self) -> Content:
        """The table of the actions that match the filter."""
        room = self.query_one(VerticalScroll).content_size.width - 1  # a scrollbar
        return help_table(self._word, self._keymap, self._contexts, room)

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def help_table(
    word: str,
    keymap: Mapping[str, str],
    contexts: Collection[str] = CONTEXTS,
    width: int = _WIDTH,
) -> Content:
    """Return the actions of `contexts` that match `word`, grouped by context.

    If `width` is too small for three columns, the description follows the title.
    """
    needle = word.strip()
    whole = contexts is CONTEXTS and not needle
    parts = [
        (CONTEXT_TITLES[context], _action_rows(context, needle, keymap, width))
        for context in CONTEXTS
        if context in contexts
    ]
    if contexts is CONTEXTS:
        parts.append(("In a search", _query_rows(needle, width)))
    lines = [Content(INTRODUCTION), Content()] if whole else []
    for title, rows in parts:
        if rows:
            lines += [Content.styled(title, "bold $primary"), *rows, Content()]
    if not lines:
        lines = [Content.styled("Nothing fits that.", "$text-muted")]
    if whole:
        lines += [Content.styled(KEYS_NOTE, "$text-muted")]
    return Content("\n").join(lines)


def _action_rows(context: str, needle: str, keymap: Mapping[str, str], width: int) -> list[Content]:
    actions = (action for action in ACTIONS if action.context == context)
    return [row for action in actions for row in _rows(action, needle, keymap, width)]


def _query_rows(needle: str, width: int) -> list[Content]:
    """Return the rows of the query language that match."""
    return [
        row
        for form, meaning in QUERY_LANGUAGE
        if has_words(f"search query {form} {meaning}", needle)
        for row in _row(form, "", meaning, width)
    ]


KEYS_NOTE = """\
Any key can be changed in config.toml (see /config) by the name of its action:
    [ui.keys]
    "notes.edit" = "e,f12" """


def _rows(action: Action, needle: str, keymap: Mapping[str, str], width: int) -> Iterator[Content]:
    keys = key_names(keys_of(action, keymap))
    command = f"{action.slash} {action.usage}".rstrip() if action.slash else ""
    if not has_words(f"{action.id} {keys} {command} {action.title} {action.help}", needle):
        return
    yield from _row("  ".join(filter(None, (keys, command))), action.title, action.help, width)


def _row(left: str, title: str, text: str, width: int) -> Iterator[Content]:
    """Yield the lines of one action, in three columns or, if too narrow, as running text."""
    body = Content.styled(text, "$text-muted")
    if width - _KEYS_WIDTH - _LABEL_WIDTH >= _MIN_HELP_WIDTH:
        head = f"  {left} ".ljust(_KEYS_WIDTH)
        title = title.ljust(_KEYS_WIDTH + _LABEL_WIDTH - len(head))
        first, *rest = body.wrap(width - len(head) - len(title))
        yield Content.assemble((head, "$accent"), title, first)
        head += title
    else:
        head, parts = _INDENT, filter(None, (Content.styled(left, "$accent"), Content(title), body))
        first, *rest = Content("  ").join(parts).wrap(max(1, width - len(head)))
        yield Content("  ") + first
    for line in rest:
        yield Content(" " * len(head)) + line


_HIDDEN = frozenset({"global.palette", "global.interrupt", "global.escape"})
_PANES = ("global", "chat", "prompt", "transcript", "notes", "memory")


class ActionProvider(Provider):
    """The command palette's provider of the registry's actions."""

    @property
    def _app(self) -> Any:  # KbtuiApp, which imports this module
        return self.app

    def _available(self) -> list[Action]:
        """Return the actions of the screen below the palette."""
        if self.screen is self._app.main:
            return [a for a in ACTIONS if a.context in _PANES and a.id not in _HIDDEN]
        active = {each.binding.id for each in self.screen.active_bindings.values()}
        return [a for a in ACTIONS if a.id in active and a.id not in _HIDDEN]

    async def discover(self) -> Hits:
        """Yield all available actions, in the order of the registry."""
        for action in self._available():
            title = _title(action)
            yield DiscoveryHit(
                self._row(action, Content(title)),
                partial(self._app.run_action_of, action),
                text=title,
            )

    async def search(self, query: str) -> Hits:
        """Yield the available actions that match the query."""
        matcher = self.matcher(query)
        for action in self._available():
            title = _title(action)
            score = max(matcher.match(title), matcher.match(action.slash or ""))
            if score > 0:
                row = self._row(action, matcher.highlight(title))
                yield Hit(score, row, partial(self._app.run_action_of, action), text=title)

    def _row(self, action: Action, title: Content) -> Content:
        """Return title, keys and command and, if there is room, a description, in columns."""
        shortcuts = [key_names(keys_of(action, self._app.keymap)), action.slash or ""]
        width = min(_ROW_WIDTH, self.app.size.width * 19 // 20 - 10)
        keys = Content.styled("  ".join(filter(None, shortcuts)), "$accent not bold")
        if width < _TITLE_WIDTH + _SHORTCUTS_WIDTH + _MIN_SUMMARY_WIDTH:
            title = title.truncate(width - keys.cell_length - 1, ellipsis=True)
            return title + " " * (width - title.cell_length - keys.cell_length) + keys
        row = Content.assemble(
            title.truncate(_TITLE_WIDTH - 1, ellipsis=True, pad=True),
            " ",
            keys.pad_right(max(2, _SHORTCUTS_WIDTH - keys.cell_length)),
        )
        gist = _first_clauses(action.help, width - row.cell_length)
        return (row + Content.styled(gist, "$text-muted not bold")).truncate(width, ellipsis=True)


def _first_clauses(text: str, room: int) -> str:
    """Return `text` cut at the last pause that fits into `room`, or whole if none does."""
    ends = [pause.start() for pause in re.finditer(r"[;,.] ", text) if pause.start() < room]
    return f"{text[: ends[-1]]}." if len(text) > room and ends else text


def _title(action: Action) -> str:
    if action.context in ("global", "chat", "memory"):
        return action.title
    return f"{CONTEXT_TITLES[action.context]}: {action.title}"
