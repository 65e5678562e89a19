"""The input of the renderer: a text with its properties, embeds and link targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kbtui.presentation.notes import Named

if TYPE_CHECKING:
    from kbtui.documents.documents import DocumentPicture
    from kbtui.tui.markdown.syntax import LinkRef


class Embed(NamedTuple):
    """The replacement of an embedded file: its title, and its text or picture.

    A picture without pixels is drawn as a box of its shape.
    """

    title: str
    text: str = ""
    picture: DocumentPicture | None = None


class Property(NamedTuple):
    """A property of a note, with values that may be or contain links.

    Without a name only the values are shown, like tags. If `linked`, each value names an entry.
    A `quiet` property is shown without a chip, like the date of the last change.
    """

    name: str
    values: tuple[str, ...]
    linked: bool = False
    quiet: bool = False


class Neighbour(NamedTuple):
    """A line of another note listed below the text; plain text if it has no note."""

    note: Named | None
    text: str
    line: int = 0


class Cell(NamedTuple):
    """A word of a row that may link to a file, at a line; `here` marks the current one.

    A `strong` word stands out, as what is late.
    """

    text: str
    path: str = ""
    here: bool = False
    line: int = 0
    strong: bool = False


class Section(NamedTuple):
    """A titled list around the text of a note: lines of notes, or rows of cells."""

    title: str
    rows: tuple[Neighbour, ...] = ()
    cells: tuple[tuple[Cell, ...], ...] = ()


class SourceText(NamedTuple):
    """A text to render.

    `first_line` is the text's first line in the file, below the frontmatter that `properties` come
    from; `resolve` resolves links, as in `Links`. `embeds` replace the links that embed them;
    `above` and `below` stand around the text. With `whole` nothing is hidden that Obsidian would
    hide. With `breaks` single line breaks are shown, instead of as spaces.
    """

    text: str
    first_line: int = 1
    raw: bool = False
    resolve: Callable[[LinkRef], Named | None] = lambda _ref: Named("", "")
    properties: tuple[Property, ...] = ()
    below: tuple[Section, ...] = ()
    above: tuple[Section, ...] = ()
    embeds: Mapping[LinkRef, Embed] = MappingProxyType({})
    whole: bool = False
    breaks: bool = False
