"""Layout of the map: the positions of notes and connecting lines, drawn by `map`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from kbtui.presentation.notes import OTHER, Kind, Named
from kbtui.workspace.layout import ENTRIES

MAX_SINGLE = 30
"""Notes on a side that are shown individually; more are folded into groups."""
_MAX_LISTED = 40
_MIN_SIDE_CELLS = 22
"""Cells that each side needs beside the middle note; with fewer, that is placed above."""
_MIN_BEHIND_CELLS, _MAX_BEHIND_CELLS = 14, 30
_MAX_MIDDLE_ROW = 12
_CONNECTOR_CELLS = 8  # cells between a side and the middle: " ──┼─── "
_CONNECTOR = " ─── "
EDGES = "▄▀"
"""Blocks above and below the middle note."""
_HEADING_ROWS = 2  # rows above the notes
_TO_IT, _FROM_IT = "links to it", "it links to"
_LIST_COLUMN_CELLS = 40
_FIRST_LIST_COLUMN = 10  # `Spot.column` of the first column of the list, greater than all above it
_STEP_HEADINGS = ("one step further", "two steps further")
MAX_STEPS = 1 + len(_STEP_HEADINGS)
"""The maximum distance from the middle, in links."""
_MAX_BAR_CELLS, _MAX_LABEL_CELLS = 6, 20
_PLURALS = {"person": "people", OTHER.name: "other notes"}
# Connectors of the left and right side, by whether the line continues up, down, and to the middle.
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
    """Notes of one kind or folder, shown as one item until unfolded."""

    name: str
    kind: Kind
    title: str
    members: tuple[Named, ...]


Item = Named | Group


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A note with its neighbours, and the link targets of these for some steps."""

    middle: Named
    incoming: tuple[Named, ...] = ()
    outgoing: tuple[Named, ...] = ()
    further: Mapping[str, tuple[Named, ...]] = field(default_factory=dict)

    @property
    def notes(self) -> dict[str, Named]:
        """All notes except the middle by path, neighbours first."""
        near = (*self.incoming, *self.outgoing)
        beyond = (note for notes in self.further.values() for note in notes)
        found = {note.path: note for note in (*near, *beyond)}
        found.pop(self.middle.path, None)
        return found


class Spot(NamedTuple):
    """A note or group and its position.

    `column` is 0 for the middle, negative to its left and positive to its right. In the list
    below the map columns count from `_FIRST_LIST_COLUMN`.
    """

    item: Item
    title: str
    x: int
    y: int
    column: int

    @property
    def width(self) -> int:
        """The width in cells of sign, space and title; that of the middle includes its padding."""
        return cell_len(self.title) + (4 if self.column == 0 else 2)


class Mark(NamedTuple):
    """A connecting line, a heading or a remark."""

    text: str
    x: int
    y: int


@dataclass(slots=True)
class Drawing:
    """A laid out map; the cursor moves among its `spots`, of which the middle is the first."""

    spots: list[Spot]
    marks: list[Mark]

    @property
    def height(self) -> int:
        """The height in rows."""
        return max((each.y for each in self._all), default=-1) + 1

    @property
    def _all(self) -> list[Spot | Mark]:
        return [*self.spots, *self.marks]

    def rows(self) -> list[list[Spot | Mark]]:
        """Return the items of each row, from left to right."""
        rows: list[list[Spot | Mark]] = [[] for _ in range(self.height)]
        for each in self._all:
            rows[each.y].append(each)
        for row in rows:
            row.sort(key=lambda each: each.x)
        return rows


def lay_out(
    around: Neighbourhood,
    width: int,
    unfolded: frozenset[str] = frozenset(),
    steps: int = 2,
    height: int = 0,
) -> Drawing:
    """Place a note in the middle, backlinks to its left, links to its right, the rest below.

    Args:
        around: The notes; their titles have one line.
        width: The available width in cells.
        unfolded: The names of groups whose members are shown.
        steps: The distance from the middle to show, in links, up to `MAX_STEPS`.
        height: The available rows; with plenty, notes on a side are spaced by empty rows.
    """
    left = folded("to", around.incoming, unfolded)
    right = folded("from", around.outgoing, unfolded)
    if not left and not right:
        return _lay_out_alone(around.middle, width)
    sides = 2 * (_CONNECTOR_CELLS + _MIN_SIDE_CELLS)
    chip = cell_len(around.middle.title) + 4
    if width - min(chip, max(8, width // 3)) < sides:
        drawing = _two_columns(around, left, right, width)
    else:
        roomy = _HEADING_ROWS + 2 * max(len(left), len(right)) <= height * 2 // 3
        drawing = _three_columns(
            around, left, right, width, min(chip, width - sides), 2 if roomy else 1
        )
    shown = {note.path for note in (around.middle, *around.incoming, *around.outgoing)}
    last: Sequence[Item] = (*right, *left)
    for head in _STEP_HEADINGS[: steps - 1]:
        last = _add_step(drawing, around, last, shown, width, head)
    return drawing


def folded(side: str, notes: Sequence[Named], unfolded: frozenset[str]) -> list[Item]:
    """Return the notes of a side, if many in groups by kind, or by folder if of one kind."""
    if len(notes) <= MAX_SINGLE:
        return [*notes]
    groups = _groups(side, notes, unfolded)
    found: list[Item] = []
    for group in groups:
        single = len(groups) == 1 or len(group.members) == 1
        found += () if single else (group,)
        found += group.members if single or group.name in unfolded else ()
    return found


def _groups(side: str, notes: Sequence[Named], unfolded: frozenset[str]) -> list[Group]:
    gathered: dict[str, list[Named]] = {}
    one_kind = len({_kind_name(note) for note in notes}) == 1
    for note in notes:
        folder, inside, _ = note.path.removeprefix(ENTRIES).partition("/")
        name = _kind_name(note) if not one_kind else folder if inside else ""
        gathered.setdefault(name, []).append(note)
    most = max(map(len, gathered.values()))
    found = []
    for name, of in gathered.items():
        label = (name or "no folder") if one_kind else _PLURALS.get(name, f"{name}s")
        is_open = f"{side} {name}" in unfolded
        title = _group_title(label, len(of), most, is_open=is_open)
        found.append(Group(f"{side} {name}", of[0].kind or OTHER, title, tuple(of)))
    return found


def _kind_name(note: Named) -> str:
    return (
        note.kind.name if note.kind is not None and note.kind.shape != OTHER.shape else OTHER.name
    )


def _group_title(label: str, count: int, most: int, *, is_open: bool) -> str:
    """Return a title such as ``Plugins ▇▇▇▇ 1,950 ▸``, with a bar in proportion to the largest."""
    bar = "▇" * ceil(_MAX_BAR_CELLS * count / most)
    return f"{cut(label, _MAX_LABEL_CELLS)} {bar} {count:,} {'▾' if is_open else '▸'}"


def _lay_out_alone(middle: Named, width: int) -> Drawing:
    title = cut(middle.title, max(1, width - 4))
    remark = cut("No note links to it, and it links to none.", width)
    spot = Spot(middle, title, max(0, (width - cell_len(title) - 4) // 2), 0, 0)
    return Drawing([spot], [Mark(remark, max(0, (width - cell_len(remark)) // 2), 2)])


def _path(item: Item) -> str:
    return item.path if isinstance(item, Named) else ""


def _max_cells(items: Iterable[Item], room: int) -> int:
    return max((min(room, cell_len(item.title) + 2) for item in items), default=0)


def _three_columns(
    around: Neighbourhood,
    left: Sequence[Item],
    right: Sequence[Item],
    width: int,
    chip: int,
    spacing: int,
) -> Drawing:
    room = (width - chip - 2 * _CONNECTOR_CELLS) // 2
    wide = _max_cells(left, room)
    near = _max_cells(right, room)
    beyond = (note for item in right for note in around.further.get(_path(item), ()))
    behind = _max_cells(beyond, _MAX_BEHIND_CELLS) + len(_CONNECTOR) if around.further else 0
    margin = max(0, (width - wide - near - behind - chip - 2 * _CONNECTOR_CELLS) // 2)
    edge = margin + wide
    at = edge + _CONNECTOR_CELLS * bool(left)
    after = at + chip + _CONNECTOR_CELLS * bool(right)
    half = (max(len(left), len(right)) - 1) * spacing // 2
    middle = _HEADING_ROWS + min(half, _MAX_MIDDLE_ROW)
    chip_spot = Spot(around.middle, cut(around.middle.title, chip - 4), at, middle, 0)
    edges = [
        Mark(each * chip_spot.width, at, y)
        for each, y in zip(EDGES, (middle - 1, middle + 1), strict=True)
    ]
    drawing = Drawing([chip_spot], edges)
    top = max(_HEADING_ROWS, middle - half)
    _place_side(drawing, left, -1, edge, middle, spacing, room)
    _place_side(drawing, right, 1, after, middle, spacing, room)
    heads = ((left, _TO_IT, max(0, edge - len(_TO_IT))), (right, _FROM_IT, after))
    drawing.marks += [Mark(head, x, top - _HEADING_ROWS) for items, head, x in heads if items]
    return drawing


def _place_side(
    drawing: Drawing,
    items: Sequence[Item],
    side: int,
    column: int,
    middle: int,
    spacing: int,
    room: int,
) -> None:
    """Place notes left (-1) or right (1) of `column`, connected to the middle."""
    start = max(_HEADING_ROWS, middle - (len(items) - 1) * spacing // 2)
    end = start + (len(items) - 1) * spacing
    for y in range(start, end + 1):
        on, to = "───" if y == middle else "", ""
        joint = ("├┤" if on else "││")[side > 0]
        if (y - start) % spacing == 0:
            item = items[(y - start) // spacing]
            title = cut(item.title, room - 2)
            x = column if side > 0 else column - cell_len(title) - 2
            drawing.spots.append(Spot(item, title, x, y, side))
            joint, to = _JOINTS[y > start, y < end, y == middle][side > 0], "──"
        line = f"{on}{joint}{to}" if side > 0 else f"{to}{joint}{on}"
        x = column - 4 - len(on) if side > 0 else column + 3 - len(to)
        drawing.marks.append(Mark(line, x, y))


def _two_columns(
    around: Neighbourhood, left: Sequence[Item], right: Sequence[Item], width: int
) -> Drawing:
    half = max(4, (width - 3) // 2)
    title = cut(around.middle.title, max(1, width - 4))
    chip = Spot(around.middle, title, max(0, (width - cell_len(title) - 4) // 2), 0, 0)
    drawing = Drawing([chip], [])
    sides = ((left, _TO_IT, -1, 0), (right, _FROM_IT, 1, half + 3 if left else 0))
    for items, head, column, x in sides:
        if items:
            drawing.marks.append(Mark(cut(head, half), x, _HEADING_ROWS))
            drawing.spots += (
                Spot(item, cut(item.title, half - 2), x, y, column)
                for y, item in enumerate(items, _HEADING_ROWS + 1)
            )
    return drawing


def _add_step(
    drawing: Drawing,
    around: Neighbourhood,
    items: Iterable[Item],
    shown: set[str],
    width: int,
    head: str,
) -> list[Named]:
    """Add the next step: one note behind each on the right if there is room, the others below.

    Returns:
        The new notes, which are also added to `shown`.
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
            title = cut(note.title, width - x - len(_CONNECTOR) - 2)
            drawing.marks.append(Mark(_CONNECTOR, x, spot.y))
            drawing.spots.append(Spot(note, title, x + len(_CONNECTOR), spot.y, 2))
    if rest:
        _list_below(drawing, rest, width, head)
    return added


def _has_room(spot: Spot, width: int) -> bool:
    return spot.column == 1 and width - spot.x - spot.width - len(_CONNECTOR) >= _MIN_BEHIND_CELLS


def _list_below(
    drawing: Drawing, rest: Sequence[tuple[Named, Named]], width: int, head: str
) -> None:
    """List notes in columns below the map, each with the note that links to it."""
    top, left = drawing.height + 2, min(4, width // 10)
    drawing.marks.append(Mark(cut(head, width - left), left, top - 1))
    shown = rest[:_MAX_LISTED]
    columns = max(1, min(3, (width - left) // _LIST_COLUMN_CELLS)) if len(shown) > 1 else 1
    rows, wide = -(-len(shown) // columns), (width - left) // columns
    for number, (note, by) in enumerate(shown):
        column, row = divmod(number, rows)
        x, y, room = left + column * wide, top + row, wide - (2 if columns > 1 else 0)
        spot = Spot(note, cut(note.title, max(1, room * 2 // 3)), x, y, _FIRST_LIST_COLUMN + column)
        drawing.spots.append(spot)
        if room - spot.width > 8:
            by_it = cut(f" via {by.title}", room - spot.width)
            drawing.marks.append(Mark(by_it, x + spot.width, y))
    if len(rest) > _MAX_LISTED:
        more = f"and {len(rest) - _MAX_LISTED:,} more"
        drawing.marks.append(Mark(more, left + 2, top + rows))


def cut(text: str, width: int) -> str:
    """Truncate a text to `width` cells with an ellipsis."""
    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, width - 1).rstrip()}…" if width > 1 else "…"[: max(0, width)]


def step(spots: Sequence[Spot], at: int, dx: int, dy: int) -> int:
    """Return the index of the nearest spot in a direction, or `at` if there is none."""
    current = spots[at]

    def vertical_distance(spot: Spot) -> tuple[bool, int, int]:
        return spot.column != current.column, abs(spot.y - current.y), abs(spot.x - current.x)

    def horizontal_distance(spot: Spot) -> tuple[int, int]:
        return abs(spot.column - current.column), abs(spot.y - current.y)

    def is_beside(spot: Spot) -> bool:
        listed = spot.column >= _FIRST_LIST_COLUMN
        return (
            listed == (current.column >= _FIRST_LIST_COLUMN)
            and (spot.column - current.column) * dx > 0
        )

    if dy:
        there = [n for n, spot in enumerate(spots) if (spot.y - current.y) * dy > 0]
        return min(there, key=lambda n: vertical_distance(spots[n]), default=at)
    there = [n for n, spot in enumerate(spots) if is_beside(spot)]
    return min(there, key=lambda n: horizontal_distance(spots[n]), default=at)
