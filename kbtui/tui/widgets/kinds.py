"""How kinds of notes are drawn: the same coloured sign on every screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


# With 16 colours every other value becomes the nearest of these, so that kinds would share one.
_FEW_DARK = {
    "decision": "#aa5500",
    "person": "#5555ff",
    "project": "#ff5555",
    "topic": "#55ff55",
    "fact": "#ffffff",
    "preference": "#55ffff",
    "reference": "#ff55ff",
    OTHER.name: "#aaaaaa",
}
_FEW_LIGHT = {
    "decision": "#aa5500",
    "person": "#0000aa",
    "project": "#aa0000",
    "topic": "#00aa00",
    "fact": "#000000",
    "preference": "#00aaaa",
    "reference": "#aa00aa",
    OTHER.name: "#555555",
}

KIND_STYLE = ".kind--"
HOT = "bold $background on $accent"
"""The style of the thing to do here, and of nothing else: what waits, and the key for it."""


@dataclass(slots=True)
class Palette:
    """How signs are drawn in this terminal; set by the app once the settings are loaded."""

    letters: bool = False
    few_colors: bool = False


PALETTE = Palette()
"""The palette of this process, read in any thread."""


def locale_has_signs(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal's locale, as far as the environment names one, is in UTF-8."""
    named = next(filter(None, map(environment.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    codeset = named.partition("@")[0].partition(".")[2].lower().replace("-", "")
    return named not in {"C", "POSIX"} and codeset in {"", "utf8"}


def kind_colour(theme: Theme, name: str) -> str:
    """Return the theme's variable ``kind-NAME``, or the default for its light or dark ground."""
    name = name.removeprefix(f"{OTHER.name}-")
    if PALETTE.few_colors:
        return (_FEW_DARK if theme.dark else _FEW_LIGHT)[name]
    themed = theme.variables.get(f"kind-{name}")
    return themed or (_DARK if theme.dark else _LIGHT)[name]


def with_sign(named: Named, style: str = "") -> Content:
    """Return the title of a note after the sign of its kind."""
    title = Content.styled(clean_line(named.title), style)
    return sign(named.kind) + title if named.kind is not None else title


def draw_pieces(pieces: Iterable[str | Named]) -> Iterator[Content]:
    """Convert the pieces of a sentence, drawing notes with their signs."""
    return (with_sign(piece) if isinstance(piece, Named) else Content(piece) for piece in pieces)


def draw_sentence(commit: Commit, names: Names) -> Content:
    """Return the sentence of what a commit did and who made it."""
    # Imported here because the first frame shows no commits.
    from kbtui.presentation.actors import committer
    from kbtui.presentation.commit_summary import summarize

    return Content.assemble(f"{committer(commit)} ", *draw_pieces(summarize(commit, names).pieces))


def sign(kind: Kind) -> Content:
    """Return the sign of a kind and a space, in the style ``.kind--NAME`` (see `kind_colour`)."""
    return Content.styled(f"{mark(kind)} ", f"{KIND_STYLE}{kind.name}")


def mark(kind: Kind) -> str:
    """Return the shape of a kind, or its letter if the terminal needs letters."""
    return kind.letter if PALETTE.letters else kind.shape
