"""What is to be drawn: a text, what its head says, and what is known of where it leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kbtui.presentation.notes import Named

if TYPE_CHECKING:
    from kbtui.documents.documents import DocumentPicture
    from kbtui.tui.markdown.syntax import LinkRef


class Embed(NamedTuple):
    """What stands in the place of an embedded file: its title, its text or what it looks like."""

    title: str
    text: str = ""
    picture: DocumentPicture | None = None


class Property(NamedTuple):
    """A property of a note: what it is called and its values, which may be links or hold some.

    Without a name the values stand for themselves, as tags do. `linked`: each names an entry.
    A `quiet` one is said without a chip around it, as the day of the last change is.
    """

    name: str
    values: tuple[str, ...]
    linked: bool = False
    quiet: bool = False


class Neighbour(NamedTuple):
    """A line of another note that is listed below the text: where it stands and what it says.

    Without a note it is only said.
    """

    note: Named | None
    said: str
    line: int = 0


class Cell(NamedTuple):
    """A word of a row that may lead to a file; `here` is where one is."""

    said: str
    path: str = ""
    here: bool = False


class Section(NamedTuple):
    """What is listed below the text of a note, under a title: lines of notes, or rows of cells."""

    title: str
    rows: tuple[Neighbour, ...] = ()
    cells: tuple[tuple[Cell, ...], ...] = ()


class SourceText(NamedTuple):
    """A text to be shown.

    `first_line` is the line of the file that the text begins with (below its frontmatter, of
    which `properties` are made), and `leads_to` names what is at a link's end, as `Links` has it.
    `embeds` are shown in the place of what embeds them, and `below` under it all. With `whole`
    nothing is left out as Obsidian leaves it out.
    """

    text: str
    first_line: int = 1
    raw: bool = False
    leads_to: Callable[[LinkRef], Named | None] = lambda _ref: Named("", "")
    properties: tuple[Property, ...] = ()
    below: tuple[Section, ...] = ()
    embeds: Mapping[LinkRef, Embed] = MappingProxyType({})
    whole: bool = False
