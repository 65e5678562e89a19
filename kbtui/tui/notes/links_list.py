"""The list of where an entry leads and what leads to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.binding import Binding
from textual.content import Content
from textual.message import Message

from kbtui.text import clean_line
from kbtui.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from kbtui.tui.notes.documents import DocumentLinks


class _Item(NamedTuple):
    arrow: str
    title: str
    detail: str
    path: str | None
    line: int | None
    target: str


class LinksList(RowList):
    """Outgoing links, then backlinks with the line that they stand in."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", show=False)]

    class Closed(Message):
        """The person is done with the list."""

    class Chosen(Message):
        """A link was chosen; `path` is None where its `target` doesn't exist yet."""

        def __init__(self, path: str | None, line: int | None, target: str) -> None:
            super().__init__()
            self.path = path
            self.line = line
            self.target = target

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        self._items: list[_Item] = []
        super().__init__(id=id)

    def show_links(self, links: DocumentLinks) -> None:
        """Show the links of an entry, each once."""
        items: dict[tuple[object, ...], _Item] = {}
        for resolved in links.outgoing:
            title = clean_line(resolved.title or resolved.link.target)
            detail = clean_line(resolved.link.heading or "") if resolved.path else "not there yet"
            key = ("→", resolved.path or title)
            items.setdefault(
                key, _Item("→", title, detail, resolved.path, None, resolved.link.target)
            )
        for back in links.backlinks:
            item = _Item(
                "←", clean_line(back.title), clean_line(back.text), back.path, back.line, ""
            )
            items.setdefault(("←", back.path, back.line), item)
        self._items = list(items.values())
        self.rows_changed(0)

    @property
    def row_count(self) -> int:
        """How many links there are."""
        return len(self._items)

    def empty_text(self) -> Content:
        """Say that there are none."""
        return Content.styled(" No links. [[name]] in the text makes one.", ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        """Draw one link."""
        item = self._items[index]
        title_style = "" if item.path else ".rows--bad"
        line = Content.assemble(
            (f" {item.arrow} ", ".rows--accent"),
            (item.title, title_style),
            (f"  {item.detail}" if item.detail else "", ".rows--muted"),
        )
        return [line.truncate(width, ellipsis=True)]

    def on_row_list_selected(self, event: RowList.Selected) -> None:
        """Follow the link."""
        event.stop()
        item = self._items[event.index]
        self.post_message(self.Chosen(item.path, item.line, item.target))

    def action_close(self) -> None:
        """Fold the list away."""
        self.post_message(self.Closed())
