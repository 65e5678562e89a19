"""The text area of the editor: Markdown highlighting by line, control characters made visible."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.strip import Strip

from kbtui.knowledge.format.document import Document
from kbtui.tui.widgets.line_view import Looks
from kbtui.tui.widgets.text_field import TextField

if TYPE_CHECKING:
    from rich.style import Style
    from rich.text import Text
    from textual import events
    from textual.geometry import Region

# Each character that `kbtui.text.clean` removes is shown here as one visible character instead.
_VISIBLE = {code: 0x2400 + code for code in range(0x20) if code not in {0x09, 0x0A, 0x0D}}
_VISIBLE |= {0x0D: 0x240D, 0x7F: 0x2421}
_VISIBLE |= dict.fromkeys(range(0x80, 0xA0), 0xB7)
_VISIBLE |= dict.fromkeys(
    [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xB7
)
_VISIBLE |= dict.fromkeys(range(0xE0000, 0xE0080), 0xB7)

_INDENT = 2
_ITEM = re.compile(r"(\s*)(?:([-*+])|(\d{1,9})([.)]))( +)(\[[^\[\]\n]\] )?")
_MOST_READ = 300_000  # characters; of a longer note a key would wait for the kinds of all lines
_MOST_COLORED = 10_000  # characters of a line; a longer one is a picture or a table of data
_HEADING = re.compile(r"#{1,6}\s")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s(?:\[[^\[\]\n]\]\s)?")
_QUOTE = re.compile(r"\s*(?:>\s?)+")
_KEY = re.compile(r"\s*[\w-]+:")
_INLINE = (
    (re.compile(r"`[^`]+`"), "code"),
    (re.compile(r"\*\*[^*]+\*\*|__[^_]+__"), "strong"),
    (re.compile(r"(?<![\w*])\*[^*\s][^*]*\*(?!\w)|(?<!\w)_[^_\s][^_]*_(?!\w)"), "em"),
    (re.compile(r"!?\[\[[^\]]+\]\]|!?\[[^\]]*\]\([^)]*\)|https?://\S+"), "link"),
    (re.compile(r"(?<!\S)#[^\W\d][\w/-]*"), "tag"),
)


class NoteArea(Looks, TextField):
    """A text area for Markdown; keys for which `takes_key` returns true aren't handled further."""

    LOOKS: ClassVar[Mapping[str, str]] = {
        "note--heading": "bold $text-primary",
        "note--muted": "$foreground 50%",
        "note--code": "$text-accent",
        "note--strong": "bold",
        "note--em": "italic",
        "note--link": "underline $text-accent",
        "note--tag": "$text-secondary",
        "note--bullet": "$text-primary",
        "note--key": "$text-secondary",
        "note--found": "reverse",
    }
    DEFAULT_CSS = """
    NoteArea {
        border: none; padding: 0 0 0 1; background: transparent;
        scrollbar-size-vertical: 1; scrollbar-gutter: stable;
        &:focus { border: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+y", "redo", "Redo", show=False),
        Binding("ctrl+home", "go_to_start", "Start", show=False),
        Binding("ctrl+end", "go_to_end", "End", show=False),
        Binding("tab", "indent(1)", "Indent", show=False),
        Binding("shift+tab", "indent(-1)", "Unindent", show=False),
    ]

    def __init__(self, text: str, *, id: str | None = None) -> None:
        self._line_kinds: list[str] = []
        self._kinds_version = -1
        self._edit_count = 0
        self._search_pattern: re.Pattern[str] | None = None
        self.takes_key: Callable[[str], bool] = lambda _key: False
        super().__init__(text, id=id, show_line_numbers=False)
        self.indent_width = _INDENT

    def set_search_pattern(self, pattern: re.Pattern[str] | None) -> None:
        """Highlight matches of a search pattern; None for none."""
        self._search_pattern = pattern
        self.notify_style_update()
        self.refresh()

    def on_text_area_changed(self) -> None:
        """Invalidate the cached kinds of lines."""
        self._edit_count += 1

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw blank lines once detached, when there are no background colours any more."""
        if not self.is_attached:
            return [Strip.blank(crop.width) for _ in range(crop.height)]
        return super().render_lines(crop)

    def _watch_show_vertical_scrollbar(self) -> None:
        """Avoid wrapping all lines again: the scrollbar's column is always reserved."""

    # Typing

    async def _on_key(self, event: events.Key) -> None:
        continued = event.key == "enter" and not self.read_only
        if self.takes_key(event.key) or (continued and self._continue_list()):
            event.stop()
            event.prevent_default()

    def _continue_list(self) -> bool:
        """Start the next list item, or end the list at an empty one; return whether handled."""
        start, end = self.selection
        row, column = start
        line = self.document.get_line(row)
        item = _ITEM.match(line)
        if start != end or item is None or column < item.end():
            return False
        if self.kind_of_line(row) == "code":
            return False
        if not line[item.end() :].strip():
            self.replace("", (row, 0), (row, len(line)), maintain_selection_offset=False)
            return True
        indent, bullet, number, dot, gap, task = item.groups()
        marker = bullet or f"{int(number) + 1}{dot}"
        self.insert(f"\n{indent}{marker}{gap}{'[ ] ' if task else ''}")
        return True

    def action_indent(self, by: int) -> None:
        """Indent or unindent lines; in a single line that is no list item, insert spaces."""
        (first, column), (last, _) = sorted(self.selection)
        line = self.document.get_line(first)
        if by > 0 and first == last and _ITEM.match(line) is None:
            self.insert(" " * (_INDENT - column % _INDENT))
            return
        for row in range(first, last + 1):
            line = self.document.get_line(row)
            if by > 0 and line:
                self.insert(" " * _INDENT, (row, 0))
            elif by < 0:
                blanks = len(line) - len(line.lstrip(" "))
                self.delete((row, 0), (row, min(blanks, _INDENT)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the text area's F6 and F7, which are keys of the app."""
        if action in {"select_line", "select_all"}:
            return False
        return super().check_action(action, parameters)

    def action_go_to_start(self) -> None:
        self.move_cursor((0, 0))

    def action_go_to_end(self) -> None:
        self.move_cursor(self.document.end)

    # Drawing

    def look_of_line(self, row: int) -> object:
        """Return the kind of a line, and what is searched for."""
        return self.kind_of_line(row), self._search_pattern

    def get_line(self, line_index: int) -> Text:
        """Return a line with syntax highlighting and search matches."""
        line = super().get_line(line_index)
        plain = line.plain
        shown = plain.translate(_VISIBLE)
        if shown != plain:
            line.plain = shown
        area = self.kind_of_line(line_index)
        if area == "code":
            line.stylize(self._style("code"))
        elif area == "front":
            self._color_frontmatter(line, shown)
        elif len(shown) <= _MOST_COLORED:
            self._color_markdown(line, shown)
        if self._search_pattern is not None:
            for match in self._search_pattern.finditer(plain):
                line.stylize(self._style("found"), match.start(), match.end())
        return line

    def _color_frontmatter(self, line: Text, plain: str) -> None:
        key = _KEY.match(plain)
        if plain.rstrip() == "---":
            line.stylize(self._style("muted"))
        elif key is not None:
            line.stylize(self._style("key"), 0, key.end())

    def _color_markdown(self, line: Text, plain: str) -> None:
        if _HEADING.match(plain):
            line.stylize(self._style("heading"))
            return
        for pattern, name in ((_BULLET, "bullet"), (_QUOTE, "muted")):
            match = pattern.match(plain)
            if match is not None:
                line.stylize(self._style(name), 0, match.end())
        for pattern, name in _INLINE:
            for match in pattern.finditer(plain):
                line.stylize(self._style(name), match.start(), match.end())

    def _style(self, name: str) -> Style:
        return self.get_visual_style(f"note--{name}", partial=True).rich_style

    def kind_of_line(self, index: int) -> str:
        """Return the kind of a line: ``front``, ``code`` or ``text``."""
        if (
            self._kinds_version != self._edit_count
            or len(self._line_kinds) != self.document.line_count
        ):
            self._line_kinds = _line_kinds(self.document.lines)
            self._kinds_version = self._edit_count
        return self._line_kinds[index] if index < len(self._line_kinds) else "text"


def _line_kinds(lines: list[str]) -> list[str]:
    text = "\n".join(lines)
    if len(text) > _MOST_READ:
        return ["text"] * len(lines)
    document = Document(text)
    head = document.line_at(document.body_start)
    kinds = ["front"] * head + ["text"] * (len(lines) - head)
    for number in document.fenced:
        kinds[number] = "code"
    return kinds
