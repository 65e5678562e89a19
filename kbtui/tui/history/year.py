"""The year as a strip of days, the fuller the more was written; a cursor walks in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from math import ceil, log1p
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from kbtui.history.change import is_derived
from kbtui.history.history import HistoryReader
from kbtui.presentation.actors import committer
from kbtui.presentation.commit_summary import is_upkeep
from kbtui.presentation.times import day_heading
from kbtui.text import clean_line, counted, shorten
from kbtui.tui.widgets.hints import whole_parts
from kbtui.tui.widgets.line_view import Looks, style_parser, to_strip

WEEKS = 53
_WEEK = 7
_GLYPHS, _FEW_COLORS = "■■■■■", "·░▒▓█"
_WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "Sun")
_MARGIN = 4
_KEYS, _CORNERS = "←↑↓→ day · n p with changes · Enter shows it · h closes", 6
_HAND_COLUMNS, _COUNT_COLUMNS = 15, 8
_HANDS_APART, _LEAST_BAR, _WIDEST_BAR = 6, 12, 60
_LAST_ROW = _WEEK + 1  # below the months and the days: what is said of the one under the cursor


class Written(NamedTuple):
    """How many files were written on each day of a year, and by whom."""

    days: Counter[date]
    hands: Counter[str]


def read_year(history: HistoryReader, path: str | None, today: date) -> Written:
    """What was written in the last 53 weeks; called in a thread."""
    since = datetime.combine(today - timedelta(days=WEEKS * _WEEK), time()).astimezone()
    year = Written(Counter(), Counter())
    for commit in history.log(path, since=since):
        written = sum(not is_derived(change.path) for change in commit.paths)
        if written and not is_upkeep(commit):
            year.days[commit.time.astimezone().date()] += written
            year.hands[committer(commit)] += written
    return year


def level(count: int, most: int) -> int:
    """How full a day is, from 0 to 4: one more counts for less the more there are."""
    return min(4, ceil(4 * log1p(count) / log1p(most))) if count else 0


class YearView(Looks, Widget, can_focus=True):
    """A column a week, the last one this week's; as many weeks as there is room for.

    Where there is more, it says beside them who wrote how much.
    """

    LOOKS: ClassVar[Mapping[str, str]] = {
        "year--0": "$foreground 12%",
        "year--1": "$primary 40%",
        "year--2": "$primary 60%",
        "year--3": "$primary 80%",
        "year--4": "$primary",
        "year--cursor": "bold $foreground on $foreground 35%",
        "year--muted": "$text-muted",
    }
    FEW_COLORS: ClassVar[Mapping[str, str]] = {"year--cursor": "bold $background on $foreground"}
    DEFAULT_CSS = "YearView { height: 11; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "walk(-7)", "Week before", show=False),
        Binding("right,l", "walk(7)", "Next week", show=False),
        Binding("up,k", "walk(-1)", "Day before", show=False),
        Binding("down,j", "walk(1)", "Next day", show=False),
        Binding("n", "written(1)", "Next day with changes", show=False),
        Binding("p", "written(-1)", "Day with changes before", show=False),
        Binding("enter", "choose", "Show the day", show=False),
    ]
    day: reactive[date] = reactive(date.min, init=False)
    """The day under the cursor."""

    @dataclass
    class DayHighlighted(Message):
        """The cursor is on another day."""

        day: date

    class DaySelected(DayHighlighted):
        """A day was chosen."""

    def __init__(self, year: Written, today: date, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._today = today
        self.set_reactive(YearView.day, max(year.days, default=today))
        self.show(year)

    def show(self, year: Written) -> None:
        """Show what was written; the cursor stays."""
        self._days, self._hands = year
        self._most = max(self._days.values(), default=1)
        total = sum(self._days.values())
        self.border_title = Content(f"A year: {counted(total, 'change')} to notes")
        self.refresh()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Say what the keys do while they come here."""
        super().watch_has_focus(has_focus)
        self._say_keys()

    def on_resize(self) -> None:
        """Say as much of it as there is room for."""
        self._say_keys()

    def _say_keys(self) -> None:
        said = whole_parts(_KEYS, self.outer_size.width - _CORNERS)
        self.border_subtitle = said if self.has_focus else ""

    # Places

    @property
    def _cell(self) -> int:
        return 2 if self.content_size.width >= _MARGIN + 2 * WEEKS else 1

    @property
    def _glyphs(self) -> str:
        return _FEW_COLORS if self.app.has_class("-few-colors") else _GLYPHS

    @property
    def _weeks(self) -> int:
        return max(1, min(WEEKS, (self.content_size.width - _MARGIN) // self._cell))

    @property
    def _first(self) -> date:
        """The Monday of the first week that is shown."""
        this_week = self._today - timedelta(days=self._today.weekday())
        return this_week - timedelta(days=_WEEK * (self._weeks - 1))

    def validate_day(self, day: date) -> date:
        return max(self._first, min(self._today, day))

    # Moving

    def watch_day(self, day: date) -> None:
        self.post_message(self.DayHighlighted(day))

    def action_walk(self, days: int) -> None:
        self.day += timedelta(days=days)

    def action_written(self, way: int) -> None:
        """Go to the next day on which something was written, or to the one before."""
        found = [day for day in self._days if (day - self.day).days * way > 0]
        self.day = min(found, key=lambda day: abs(day - self.day), default=self.day)

    def action_choose(self) -> None:
        self.post_message(self.DaySelected(self.day))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or not 0 < at.y <= _WEEK or at.x < _MARGIN:
            return
        week = (at.x - _MARGIN) // self._cell
        if week < self._weeks:
            self.day = self._first + timedelta(days=week * _WEEK + at.y - 1)

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Draw the months, a weekday through the year, or the line about the day."""
        if y == 0:
            line = self._months()
        elif y <= _WEEK:
            line = self._weekday(y - 1)
            line += self._hand(y - 1, from_column=line.cell_length)
        else:
            line = self._said() if y == _LAST_ROW else Content()
        width = self.content_size.width
        return to_strip(line, width, self.visual_style, style_parser(self))

    def _months(self) -> Content:
        line = ""
        for week in range(self._weeks):
            day = self._first + timedelta(days=_WEEK * week)
            at = _MARGIN + week * self._cell
            if day.day <= _WEEK and len(line) <= at:
                line = f"{line:<{at}}{day:%b} "
        return Content.styled(line, ".year--muted")

    def _weekday(self, weekday: int) -> Content:
        line = Content.styled(f"{_WEEKDAYS[weekday]:<{_MARGIN}}", ".year--muted")
        for week in range(self._weeks):
            day = self._first + timedelta(days=_WEEK * week + weekday)
            if day > self._today:
                break
            full = level(self._days.get(day, 0), self._most)
            style = "cursor" if day == self.day else str(full)
            line += Content.styled(self._glyphs[full], f".year--{style}") + " " * (self._cell - 1)
        return line

    def _hand(self, number: int, *, from_column: int) -> Content:
        """One of those who wrote most, and how much, at the right of the weeks."""
        at = _MARGIN + self._weeks * self._cell + _HANDS_APART
        room = self.content_size.width - at - _HAND_COLUMNS - _COUNT_COLUMNS
        most = self._hands.most_common(_WEEK)
        if number >= len(most) or room < _LEAST_BAR:
            return Content()
        name, count = most[number]
        cells = max(1, round(min(room, _WIDEST_BAR) * count / most[0][1]))
        return Content.assemble(
            " " * (at - from_column),
            f"{shorten(clean_line(name), _HAND_COLUMNS - 1):<{_HAND_COLUMNS}}",
            ("▬" * cells, ".year--2"),
            (f" {count:,}", ".year--muted"),
        )

    def _said(self) -> Content:
        count = self._days.get(self.day, 0)
        said = f"{counted(count, 'note')} written" if count else "nothing written"
        line = Content.assemble(
            " " * _MARGIN, (day_heading(self.day, self._today), "bold"), f"  {said}"
        )
        cells = [(f"{each} ", f".year--{full}") for full, each in enumerate(self._glyphs)]
        scale = Content.assemble(("less ", ".year--muted"), *cells, ("more", ".year--muted"))
        gap = _MARGIN + self._weeks * self._cell - line.cell_length - scale.cell_length
        return line + Content(" " * gap) + scale if gap > 1 else line
