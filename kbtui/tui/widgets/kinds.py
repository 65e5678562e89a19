"""Kinds of notes as they are drawn: their sign in their colour, alike on every screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from kbtui.presentation.notes import OTHER, Kind, Named, Names
from kbtui.text import clean_line

if TYPE_CHECKING:
    from textual.theme import Theme

    from kbtui.history.change import Commit


_DARK = {
    "decision": "#f0a35e",
    "person": "#7ab7f5",
    "project": "#f08a9b",
    "topic": "#5fcaa5",
    "fact": "#c3c9d1",
    "preference": "#e5d36c",
    "reference": "#c9a4f2",
    OTHER.name: "#949ca8",
}
_LIGHT = {
    "decision": "#9a4a00",
    "person": "#1f5fae",
    "project": "#b3264a",
    "topic": "#0b6b53",
    "fact": "#454d59",
    "preference": "#6f5a00",
    "reference": "#6d3fa6",
    OTHER.name: "#5d6674",
}


KIND_STYLE = ".kind--"


@dataclass(slots=True)
class Palette:
    """How kinds are told apart in this terminal; set by the app when it knows the settings."""

    letters: bool = False


PALETTE = Palette()
"""The one of the process: whoever draws a sign asks it, in whatever thread."""


def kind_colour(theme: Theme, name: str) -> str:
    """The colour of a kind: the theme's variable ``kind-NAME``, else one that fits its ground."""
    name = name.removeprefix(f"{OTHER.name}-")
    own = theme.variables.get(f"kind-{name}")
    return own or (_DARK if theme.dark else _LIGHT)[name]


def signed(named: Named, style: str = "") -> Content:
    """A note as it is said: its sign in the colour of its kind, then its title."""
    title = Content.styled(clean_line(named.title), style)
    return sign(named.kind) + title if named.kind is not None else title


def pieces_drawn(pieces: Iterable[str | Named]) -> Iterator[Content]:
    """The pieces of a sentence, with the notes as they are said."""
    return (signed(piece) if isinstance(piece, Named) else Content(piece) for piece in pieces)


def sentence_drawn(commit: Commit, names: Names) -> Content:
    """The whole sentence of what a commit did, with who did it."""
    # The first paint has no commits to tell of, and needn't wait for this.
    from kbtui.presentation.actors import committer
    from kbtui.presentation.commit_summary import summarize

    return Content.assemble(f"{committer(commit)} ", *pieces_drawn(summarize(commit, names).pieces))


def sign(kind: Kind) -> Content:
    """The sign of a kind and a blank, in the style ``.kind--NAME``, which `kind_colour` gives."""
    return Content.styled(f"{mark(kind)} ", f"{KIND_STYLE}{kind.name}")


def mark(kind: Kind) -> str:
    """Its shape; its letter where shapes can't be told apart."""
    return kind.letter if PALETTE.letters else kind.shape
