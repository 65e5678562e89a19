"""The year as a heat map of days, with a cursor."""

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
from kbtui.tui.widgets.hints import last_parts
from kbtui.tui.widgets.line_view import Looks, style_parser, to_strip

WEEKS = 53
_WEEK_DAYS = 7
_GLYPHS, _FEW_COLOR_GLYPHS = "■■■■■", "·░▒▓█"
_WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "Sun")
_MARGIN = 4
_KEY_HINTS, _CORNER_COLUMNS = "←↑↓→ day · n p with changes · Enter shows it · h closes", 6
_NAME_COLUMNS, _COUNT_COLUMNS = 15, 8
_BARS_GAP, _MIN_BAR, _MAX_BAR = 6, 12, 60
_LAST_ROW = _WEEK_DAYS + 1  # below the months and the days: the line about the selected day


class YearCounts(NamedTuple):
    """The number of files written in a year, by day and by committer."""

    days: Counter[date]
    committers: Counter[str]


def read_year(history: HistoryReader, path: str | None, today: date) -> YearCounts:
    """Count the files written in the last 53 weeks; run in a thread."""
    since = datetime.combine(today - timedelta(days=WEEKS * _WEEK_DAYS), time()).astimezone()
    year = YearCounts(Counter(), Counter())
    for commit in history.log(path, since=since):
        written = sum(not is_derived(change.path) for change in commit.paths)
        if written and not is_upkeep(commit):
            year.days[commit.time.astimezone().date()] += written
            year.committers[committer(commit)] += written
    return year


def level(count: int, maximum: int) -> int:
    """Return the level of a day from 0 to 4, on a logarithmic scale."""
    return min(4, ceil(4 * log1p(count) / log1p(maximum))) if count else 0


class YearView(Looks, Widget, can_focus=True):
    """A heat map with one column a week, the last one this week's, as many as fit.

    If there is room left beside it, bars show who wrote how much.
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
        """The cursor moved to another day."""

        day: date

    class DaySelected(DayHighlighted):
        """A day was chosen."""

    def __init__(self, year: YearCounts, today: date, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.set_reactive(YearView.day, max(year.days, default=today))
        self.show(year, today)

    def show(self, year: YearCounts, today: date) -> None:
        """Show the counts of the year that ends today, keeping the cursor."""
        self._today = today
        self._days, self._committers = year
        self._max_count = max(self._days.values(), default=1)
        total = sum(self._days.values())
        self.border_title = Content(f"A year: {counted(total, 'change')} to notes")
        self.refresh()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self._show_key_hints()

    def on_resize(self) -> None:
        self._show_key_hints()

    def _show_key_hints(self) -> None:
        hints = last_parts(_KEY_HINTS, self.outer_size.width - _CORNER_COLUMNS)
        self.border_subtitle = hints if self.has_focus else ""

    # Geometry

    @property
    def _cell_width(self) -> int:
        return 2 if self.content_size.width >= _MARGIN + 2 * WEEKS else 1

    @property
    def _glyphs(self) -> str:
        return _FEW_COLOR_GLYPHS if self.app.has_class("-few-colors") else _GLYPHS

    @property
    def _weeks(self) -> int:
        return max(1, min(WEEKS, (self.content_size.width - _MARGIN) // self._cell_width))

    @property
    def _first_day(self) -> date:
        """The Monday of the first week shown."""
        this_week = self._today - timedelta(days=self._today.weekday())
        return this_week - timedelta(days=_WEEK_DAYS * (self._weeks - 1))

    def validate_day(self, day: date) -> date:
        return max(self._first_day, min(self._today, day))

    # Moving

    def watch_day(self, day: date) -> None:
        self.post_message(self.DayHighlighted(day))

    def action_walk(self, days: int) -> None:
        self.day += timedelta(days=days)

    def action_written(self, direction: int) -> None:
        """Go to the next (1) or previous (-1) day on which something was written."""
        found = [day for day in self._days if (day - self.day).days * direction > 0]
        self.day = min(found, key=lambda day: abs(day - self.day), default=self.day)

    def action_choose(self) -> None:
        self.post_message(self.DaySelected(self.day))

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or not 0 < at.y <= _WEEK_DAYS or at.x < _MARGIN:
            return
        week = (at.x - _MARGIN) // self._cell_width
        if week < self._weeks:
            self.day = self._first_day + timedelta(days=week * _WEEK_DAYS + at.y - 1)

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Render the months, one weekday of all weeks, or the line about the selected day."""
        if y == 0:
            line = self._month_row()
        elif y <= _WEEK_DAYS:
            line = self._weekday_row(y - 1)
            line += self._committer_bar(y - 1, from_column=line.cell_length)
        else:
            line = self._day_line() if y == _LAST_ROW else Content()
        width = self.content_size.width
        return to_strip(line, width, self.visual_style, style_parser(self))

    def _month_row(self) -> Content:
        line = ""
        for week in range(self._weeks):
            day = self._first_day + timedelta(days=_WEEK_DAYS * week)
            at = _MARGIN + week * self._cell_width
            if day.day <= _WEEK_DAYS and len(line) <= at:
                line = f"{line:<{at}}{day:%b} "
        return Content.styled(line, ".year--muted")

    def _weekday_row(self, weekday: int) -> Content:
        line = Content.styled(f"{_WEEKDAYS[weekday]:<{_MARGIN}}", ".year--muted")
        for week in range(self._weeks):
            day = self._first_day + timedelta(days=_WEEK_DAYS * week + weekday)
            if day > self._today:
                break
            full = level(self._days.get(day, 0), self._max_count)
            style = "cursor" if day == self.day else str(full)
            line += Content.styled(self._glyphs[full], f".year--{style}") + " " * (
                self._cell_width - 1
            )
        return line

    def _committer_bar(self, number: int, *, from_column: int) -> Content:
        """Render the bar of one of the top committers, to the right of the weeks."""
        at = _MARGIN + self._weeks * self._cell_width + _BARS_GAP
        room = self.content_size.width - at - _NAME_COLUMNS - _COUNT_COLUMNS
        top = self._committers.most_common(_WEEK_DAYS)
        if number >= len(top) or room < _MIN_BAR:
            return Content()
        name, count = top[number]
        cells = max(1, round(min(room, _MAX_BAR) * count / top[0][1]))
        return Content.assemble(
            " " * (at - from_column),
            f"{shorten(clean_line(name), _NAME_COLUMNS - 1):<{_NAME_COLUMNS}}",
            ("▬" * cells, ".year--2"),
            (f" {count:,}", ".year--muted"),
        )

    def _day_line(self) -> Content:
        count = self._days.get(self.day, 0)
        text = f"{counted(count, 'note')} written" if count else "nothing written"
        line = Content.assemble(
            " " * _MARGIN, (day_heading(self.day, self._today), "bold"), f"  {text}"
        )
        cells = [(f"{each} ", f".year--{full}") for full, each in enumerate(self._glyphs)]
        scale = Content.assemble(("less ", ".year--muted"), *cells, ("more", ".year--muted"))
        gap = _MARGIN + self._weeks * self._cell_width - line.cell_length - scale.cell_length
        return line + Content(" " * gap) + scale if gap > 1 else line
