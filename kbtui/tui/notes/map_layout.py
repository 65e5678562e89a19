"""Where the notes of a map stand, and which lines join them: plain data, drawn by `map`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from kbtui.presentation.notes import OTHER, Kind, Named
from kbtui.workspace.layout import ENTRIES

MOST_SINGLE = 30
"""Notes of a side that stand there one by one; more are folded into groups."""
_MOST_FURTHER = 40
_LEAST_SIDE = 22
"""Cells that each side needs beside the middle; with fewer, the middle stands above."""
_LEAST_BEHIND, _MOST_BEHIND = 14, 30
_MIDDLE_ROW = 12
_JOIN = 8  # cells between a side and the middle: " ──┼─── "
_BEHIND = " ─── "
EDGES = "▄▀"
"""What the note in the middle has above and below it."""
_HEADS = 2  # rows above the notes
_TO_IT, _FROM_IT = "links to it", "it links to"
_LIST_COLUMNS = 40
_LIST = 10  # the number of the first column of a list, right of all that stands above it
_FURTHER = ("one step further", "two steps further")
MOST_STEPS = 1 + len(_FURTHER)
"""Steps from the middle that a map goes at most."""
_PEOPLE = {"person": "people", OTHER.name: "other notes"}
# Of a line that comes from a side: by whether it goes on up, down, and to the middle.
_JOINTS = {
    (False, False, True): "──",
    (True, False, False): "╯╰",
    (False, True, False): "╮╭",
    (True, True, False): "┤├",
    (True, False, True): "┴┴",
    (False, True, True): "┬┬",
    (True, True, True): "┼┼",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Notes of one kind, or of one folder, that stand in one place until they are unfolded."""

    name: str
    kind: Kind
    title: str
    members: tuple[Named, ...]


Item = Named | Group


@dataclass(frozen=True, slots=True)
class Around:
    """A note, its neighbours, and what each of these links to, and so on for some steps."""

    middle: Named
    incoming: tuple[Named, ...] = ()
    outgoing: tuple[Named, ...] = ()
    further: Mapping[str, tuple[Named, ...]] = field(default_factory=dict)

    @property
    def notes(self) -> dict[str, Named]:
        """All notes but the middle by path: the neighbours first."""
        near = (*self.incoming, *self.outgoing)
        beyond = (note for notes in self.further.values() for note in notes)
        found = {note.path: note for note in (*near, *beyond)}
        found.pop(self.middle.path, None)
        return found


class Spot(NamedTuple):
    """A note or group where it stands; `column` counts from the left, the middle is 0.

    Those of a list below the map count from `_LIST` on.
    """

    item: Item
    title: str
    x: int
    y: int
    column: int

    @property
    def width(self) -> int:
        """The cells that it takes: its sign, a blank, its title; the middle with its edges."""
        return cell_len(self.title) + (4 if self.column == 0 else 2)


class Mark(NamedTuple):
    """A line, a heading or a remark."""

    text: str
    x: int
    y: int


@dataclass(slots=True)
class Drawing:
    """A map as it is drawn: `spots` can be gone to, the middle is the first of them."""

    spots: list[Spot]
    marks: list[Mark]

    @property
    def height(self) -> int:
        """How many rows it takes."""
        return max((each.y for each in self._all), default=-1) + 1

    @property
    def _all(self) -> list[Spot | Mark]:
        return [*self.spots, *self.marks]

    def rows(self) -> list[list[Spot | Mark]]:
        """What stands in each row, from the left."""
        rows: list[list[Spot | Mark]] = [[] for _ in range(self.height)]
        for each in self._all:
            rows[each.y].append(each)
        for row in rows:
            row.sort(key=lambda each: each.x)
        return rows


def lay_out(
    around: Around,
    width: int,
    unfolded: frozenset[str] = frozenset(),
    steps: int = 2,
    height: int = 0,
) -> Drawing:
    """Place a note in the middle, what links to it left, what it links to right, the rest below.

    Args:
        around: The notes; their titles are of one line.
        width: The cells there are.
        unfolded: The names of groups whose members are shown.
        steps: How many steps from the middle it goes, `MOST_STEPS` at most.
        height: The rows there are; where they are many, a side has an empty one between its notes.
    """
    left = folded("to", around.incoming, unfolded)
    right = folded("from", around.outgoing, unfolded)
    if not left and not right:
        return _alone(around.middle, width)
    sides = 2 * (_JOIN + _LEAST_SIDE)
    chip = cell_len(around.middle.title) + 4
    if width - min(chip, max(8, width // 3)) < sides:
        drawing = _two_columns(around, left, right, width)
    else:
        roomy = _HEADS + 2 * max(len(left), len(right)) <= height * 2 // 3
        drawing = _three_columns(
            around, left, right, width, min(chip, width - sides), 2 if roomy else 1
        )
    shown = {note.path for note in (around.middle, *around.incoming, *around.outgoing)}
    last: Sequence[Item] = (*right, *left)
    for head in _FURTHER[: steps - 1]:
        last = _add_beyond(drawing, around, last, shown, width, head)
    return drawing


def folded(side: str, notes: Sequence[Named], unfolded: frozenset[str]) -> list[Item]:
    """The notes of a side; where they are many, in groups by kind, or by folder if of one kind."""
    if len(notes) <= MOST_SINGLE:
        return [*notes]
    groups = _groups(side, notes)
    found: list[Item] = []
    for group in groups:
        single = len(groups) == 1 or len(group.members) == 1
        found += () if single else (group,)
        found += group.members if single or group.name in unfolded else ()
    return found


def _groups(side: str, notes: Sequence[Named]) -> list[Group]:
    gathered: dict[str, list[Named]] = {}
    one_kind = len({_kind_name(note) for note in notes}) == 1
    for note in notes:
        folder, inside, _ = note.path.removeprefix(ENTRIES).partition("/")
        name = _kind_name(note) if not one_kind else folder if inside else ""
        gathered.setdefault(name, []).append(note)
    return [
        Group(
            f"{side} {name}",
            of[0].kind or OTHER,
            _said(name, len(of), is_folder=one_kind),
            tuple(of),
        )
        for name, of in gathered.items()
    ]


def _kind_name(note: Named) -> str:
    return (
        note.kind.name if note.kind is not None and note.kind.shape != OTHER.shape else OTHER.name
    )


def _said(name: str, count: int, *, is_folder: bool) -> str:
    if is_folder:
        return f"{count:,} in {name or 'no folder'}"
    return f"{count:,} {_PEOPLE.get(name, f'{name}s')}"


def _alone(middle: Named, width: int) -> Drawing:
    title = cut(middle.title, max(1, width - 4))
    said = cut("No note links to it, and it links to none.", width)
    spot = Spot(middle, title, max(0, (width - cell_len(title) - 4) // 2), 0, 0)
    return Drawing([spot], [Mark(said, max(0, (width - cell_len(said)) // 2), 2)])


def _path(item: Item) -> str:
    return item.path if isinstance(item, Named) else ""


def _widest(items: Iterable[Item], room: int) -> int:
    return max((min(room, cell_len(item.title) + 2) for item in items), default=0)


def _three_columns(
    around: Around,
    left: Sequence[Item],
    right: Sequence[Item],
    width: int,
    chip: int,
    apart: int,
) -> Drawing:
    room = (width - chip - 2 * _JOIN) // 2
    wide = _widest(left, room)
    near = _widest(right, room)
    beyond = (note for item in right for note in around.further.get(_path(item), ()))
    behind = _widest(beyond, _MOST_BEHIND) + len(_BEHIND) if around.further else 0
    margin = max(0, (width - wide - near - behind - chip - 2 * _JOIN) // 2)
    edge = margin + wide
    at = edge + _JOIN * bool(left)
    after = at + chip + _JOIN * bool(right)
    half = (max(len(left), len(right)) - 1) * apart // 2
    middle = _HEADS + min(half, _MIDDLE_ROW)
    chip_spot = Spot(around.middle, cut(around.middle.title, chip - 4), at, middle, 0)
    edges = [
        Mark(each * chip_spot.width, at, y)
        for each, y in zip(EDGES, (middle - 1, middle + 1), strict=True)
    ]
    drawing = Drawing([chip_spot], edges)
    top = max(_HEADS, middle - half)
    _draw_side(drawing, left, -1, edge, middle, apart, room)
    _draw_side(drawing, right, 1, after, middle, apart, room)
    heads = ((left, _TO_IT, max(0, edge - len(_TO_IT))), (right, _FROM_IT, after))
    drawing.marks += [Mark(head, x, top - _HEADS) for items, head, x in heads if items]
    return drawing


def _draw_side(
    drawing: Drawing,
    items: Sequence[Item],
    side: int,
    column: int,
    middle: int,
    apart: int,
    room: int,
) -> None:
    """Notes below each other, joined to the one in the middle: left of `column`, or right of it."""
    start = max(_HEADS, middle - (len(items) - 1) * apart // 2)
    end = start + (len(items) - 1) * apart
    for y in range(start, end + 1):
        on, to = "───" if y == middle else "", ""
        joint = ("├┤" if on else "││")[side > 0]
        if (y - start) % apart == 0:
            item = items[(y - start) // apart]
            title = cut(item.title, room - 2)
            x = column if side > 0 else column - cell_len(title) - 2
            drawing.spots.append(Spot(item, title, x, y, side))
            joint, to = _JOINTS[y > start, y < end, y == middle][side > 0], "──"
        line = f"{on}{joint}{to}" if side > 0 else f"{to}{joint}{on}"
        x = column - 4 - len(on) if side > 0 else column + 3 - len(to)
        drawing.marks.append(Mark(line, x, y))


def _two_columns(
    around: Around, left: Sequence[Item], right: Sequence[Item], width: int
) -> Drawing:
    half = max(4, (width - 3) // 2)
    title = cut(around.middle.title, max(1, width - 4))
    chip = Spot(around.middle, title, max(0, (width - cell_len(title) - 4) // 2), 0, 0)
    drawing = Drawing([chip], [])
    sides = ((left, _TO_IT, -1, 0), (right, _FROM_IT, 1, half + 3 if left else 0))
    for items, head, column, x in sides:
        if items:
            drawing.marks.append(Mark(cut(head, half), x, _HEADS))
            drawing.spots += (
                Spot(item, cut(item.title, half - 2), x, y, column)
                for y, item in enumerate(items, _HEADS + 1)
            )
    return drawing


def _add_beyond(
    drawing: Drawing,
    around: Around,
    items: Iterable[Item],
    shown: set[str],
    width: int,
    head: str,
) -> list[Named]:
    """A step further: one note behind each at the right where there is room, the others below.

    Returns:
        What is new; it is among what is `shown` then.
    """
    added: list[Named] = []
    free = {spot.item: spot for spot in drawing.spots if _has_room(spot, width)}
    rest: list[tuple[Named, Named]] = []
    for item in (each for each in items if isinstance(each, Named)):
        for note in around.further.get(item.path, ()):
            if note.path in shown:
                continue
            shown.add(note.path)
            added.append(note)
            spot = free.pop(item, None)
            if spot is None:
                rest.append((note, item))
                continue
            x = spot.x + spot.width
            title = cut(note.title, width - x - len(_BEHIND) - 2)
            drawing.marks.append(Mark(_BEHIND, x, spot.y))
            drawing.spots.append(Spot(note, title, x + len(_BEHIND), spot.y, 2))
    if rest:
        _list_below(drawing, rest, width, head)
    return added


def _has_room(spot: Spot, width: int) -> bool:
    return spot.column == 1 and width - spot.x - spot.width - len(_BEHIND) >= _LEAST_BEHIND


def _list_below(
    drawing: Drawing, rest: Sequence[tuple[Named, Named]], width: int, head: str
) -> None:
    """List notes below all, in columns, each with the one that leads there."""
    top, left = drawing.height + 2, min(4, width // 10)
    drawing.marks.append(Mark(cut(head, width - left), left, top - 1))
    shown = rest[:_MOST_FURTHER]
    columns = max(1, min(3, (width - left) // _LIST_COLUMNS)) if len(shown) > 1 else 1
    rows, wide = -(-len(shown) // columns), (width - left) // columns
    for number, (note, by) in enumerate(shown):
        column, row = divmod(number, rows)
        x, y, room = left + column * wide, top + row, wide - (2 if columns > 1 else 0)
        spot = Spot(note, cut(note.title, max(1, room * 2 // 3)), x, y, _LIST + column)
        drawing.spots.append(spot)
        if room - spot.width > 8:
            by_it = cut(f" via {by.title}", room - spot.width)
            drawing.marks.append(Mark(by_it, x + spot.width, y))
    if len(rest) > _MOST_FURTHER:
        more = f"and {len(rest) - _MOST_FURTHER:,} more"
        drawing.marks.append(Mark(more, left + 2, top + rows))


def cut(text: str, width: int) -> str:
    """A text in at most `width` cells, with an ellipsis where it was longer."""
    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, width - 1).rstrip()}…" if width > 1 else "…"[: max(0, width)]


def step(spots: Sequence[Spot], at: int, dx: int, dy: int) -> int:
    """The spot where an arrow leads from the one at `at`; itself where there is none that way."""
    here = spots[at]

    def upright(spot: Spot) -> tuple[bool, int, int]:
        return spot.column != here.column, abs(spot.y - here.y), abs(spot.x - here.x)

    def sideways(spot: Spot) -> tuple[int, int]:
        return abs(spot.column - here.column), abs(spot.y - here.y)

    def is_beside(spot: Spot) -> bool:
        listed = spot.column >= _LIST
        return listed == (here.column >= _LIST) and (spot.column - here.column) * dx > 0

    if dy:
        there = [n for n, spot in enumerate(spots) if (spot.y - here.y) * dy > 0]
        return min(there, key=lambda n: upright(spots[n]), default=at)
    there = [n for n, spot in enumerate(spots) if is_beside(spot)]
    return min(there, key=lambda n: sideways(spots[n]), default=at)
