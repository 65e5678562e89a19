"""Who wrote the lines of an entry, and why one of them stands there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kbtui.history.change import Actor, Origin
from kbtui.history.history import LineOrigin
from kbtui.memory.recall.provenance import Provenance
from kbtui.memory.records.archive import Archive
from kbtui.tui.history.history import HistoryScreen
from kbtui.tui.history.time_travel import TimeTravelScreen
from kbtui.tui.markdown.layout import render
from kbtui.tui.markdown.markdown_view import AuthorsGutter, age
from kbtui.tui.markdown.source import SourceText
from kbtui.tui.messages import OpenHistory, OpenMessage
from kbtui.tui.notes.why import WhyScreen
from kbtui.tui.widgets.line_view import Line
from kbtui.tui.widgets.row_list import ChoiceList
from tests.tui.notes_support import NotesApp, arrived, make_kb, opened, ready, text_of, until

ALICE = "knowledge/people/alice.md"
TEXT = "---\ntype: person\n---\n# Alice\n\nOwns billing.\n"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def kb(tmp_path):
    kb = make_kb(tmp_path, {"people/alice.md": TEXT})
    archive = Archive(kb.workspace, kb.history)
    kb.provenance = Provenance(kb.workspace, kb.history, archive, kb.sessions)
    with kb.sessions.create("tui", id="talk") as talk:
        talk.append("user", "What is new?")
        talk.append("user", "Alice plays chess.", turn="t")
        talk.append("assistant", "Kept: Alice plays chess.", turn="t")
    with kb.history.change(Actor.AGENT, "You said so.", Origin("talk", (2, 2), "t")) as change:
        change.write(ALICE, f"{TEXT}\nPlays chess.\n")
    return kb


class WhyApp(NotesApp):
    def on_open_message(self, event: OpenMessage) -> None:
        self.seen.append(event)


async def test_the_gutter_says_who_wrote_each_line(kb):
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        notes = await opened(pilot, ALICE)
        body = notes.view.body
        before = text_of(body)
        width = body.text_width
        await pilot.press("W")
        await until(pilot, lambda: "A now" in text_of(body), "the authors are there")
        lines = text_of(body).split("\n")
        assert next(line for line in lines if "billing" in line).startswith("│      Owns")
        assert next(line for line in lines if "chess" in line).startswith("A now  Plays chess.")
        await pilot.press("W")
        await until(pilot, lambda: body.text_width == width and text_of(body) == before)


@pytest.mark.parametrize(("line", "said"), [(1, "(its properties)"), (-1, "---")])
async def test_only_the_head_is_called_the_properties(kb, line, said):
    with kb.history.change(Actor.YOU, "a rule") as change:
        change.write(ALICE, f"{TEXT}\n---\n")
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        places = range(len(kb.library.get(ALICE).text.splitlines()) + 1)
        app.push_screen(WhyScreen(kb, ALICE, places[line]))
        screen = await arrived(pilot, WhyScreen, "#why-text")
        await until(pilot, lambda: screen.why is not None, "the answer")
        assert str(screen.query_one("#why-text").render()).split("\n")[0] == said
        title = str(screen.query_one("WhyScreen > Vertical").border_title)
        assert title == f"Why Alice, line {places[line]}"
        await pilot.resize_terminal(40, 12)
        await until(pilot, lambda: str(screen.query_one("WhyScreen > Vertical").border_subtitle))
        assert not screen.query_one(".keys").display, "there is room for the last of them"


async def test_the_gutter_follows_to_another_entry_and_to_another_version(kb):
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        notes = await opened(pilot, ALICE)
        await pilot.press("W")
        body = notes.view.body
        await until(pilot, lambda: "A now" in text_of(body))
        with kb.history.change(Actor.DREAM, "tidied") as change:
            change.write(ALICE, f"{TEXT}\nPlays chess.\n\nLikes tea.\n")
        await until(pilot, lambda: "D now  Likes tea." in text_of(body), "Dream's line is marked")


async def test_w_shows_where_the_line_under_the_cursor_comes_from(kb):
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        notes = await opened(pilot, ALICE)
        body = notes.view.body
        for _ in range(8):
            await pilot.press("j")
        assert (
            body.pointed_source == kb.library.get(ALICE).text.split("\n").index("Plays chess.") + 1
        )
        await pilot.press("w")
        screen = app.screen
        assert isinstance(screen, WhyScreen)
        await until(pilot, lambda: screen.why is not None, "it is looked up")
        said = screen.query_one(ChoiceList)
        await until(pilot, lambda: said.has_focus)
        assert said.item.value == 2
        explained = str(screen.query_one("#why-text").render())
        assert "Plays chess." in explained
        assert "You said so." in explained
        await pilot.press("j", "enter")
        await until(pilot, lambda: app.seen, "it leads there")
        (event,) = app.seen
        assert (event.session, event.message) == ("talk", 3)


async def test_the_change_of_a_line_can_be_shown(kb):
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, ALICE)
        await pilot.press("w")
        screen = app.screen
        await until(pilot, lambda: screen.why is not None)
        assert "You wrote it." in str(screen.query_one("#why-text").render())
        assert not screen.query_one(ChoiceList).display
        await pilot.press("H")
        await until(pilot, lambda: app.seen)
        (event,) = app.seen
        assert isinstance(event, OpenHistory)
        assert event.commit == kb.history.blame(ALICE)[0].commit


async def test_a_line_that_was_opened_is_the_one_that_is_asked_about(kb):
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        lines = kb.library.get(ALICE).text.split("\n")
        notes = await opened(pilot, ALICE, lines.index("Plays chess.") + 1)
        body = notes.view.body
        await until(pilot, lambda: body.flashed)
        await pilot.press("W")
        await until(pilot, lambda: "A now" in text_of(body))
        await pilot.press("w")
        await until(pilot, lambda: app.screen.why is not None)
        assert app.screen.why.text == "Plays chess."


async def test_w_in_the_history_leads_from_a_changed_place_to_what_was_said(kb):
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        screen = HistoryScreen(kb)
        await app.push_screen(screen)
        await until(pilot, lambda: "Plays chess." in text_of(screen.diff), "the diff is shown")
        await pilot.press("n", "n", "w")
        why = app.screen
        assert isinstance(why, WhyScreen)
        await until(pilot, lambda: why.why is not None and why.why.messages)
        await pilot.press("enter")
        await until(pilot, lambda: app.seen)
        assert (app.seen[0].session, app.seen[0].message) == ("talk", 2)
        assert app.screen is app.screen_stack[0]


async def test_w_in_a_history_above_time_travel_leads_out_of_the_past_as_well(kb):
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await app.push_screen(TimeTravelScreen(kb, kb.history.commit("HEAD"), ALICE))
        past = app.screen
        await until(pilot, lambda: past.notes.current_path == ALICE)
        await pilot.press("H")
        await arrived(pilot, HistoryScreen, "#history-diff")
        screen = app.screen
        await until(pilot, lambda: "Plays chess." in text_of(screen.diff), "the diff is shown")
        await pilot.press("w")
        await until(pilot, lambda: app.screen.why is not None and app.screen.why.messages)
        await pilot.press("enter")
        await until(pilot, lambda: app.seen and isinstance(app.seen[-1], OpenMessage))
        assert len(app.screen_stack) == 1


async def test_what_cannot_be_answered_is_said(kb):
    docs = kb.workspace.root / "docs" / "readme.md"
    docs.parent.mkdir(exist_ok=True)
    docs.write_text("# Read me\n")
    app = WhyApp(kb)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, "docs/readme.md")
        await pilot.press("w")
        screen = app.screen
        await until(pilot, lambda: "doesn't keep" in str(screen.query_one("#why-text").render()))
        await pilot.press("escape")
        assert not isinstance(app.screen, WhyScreen)


async def test_the_cursor_scrolls_the_text_and_is_found_again(tmp_path):
    text = "# Long\n\n" + "\n\n".join(f"Paragraph {n}." for n in range(1, 200))
    app = NotesApp(make_kb(tmp_path, {"topics/long.md": text}))
    async with app.run_test(size=(120, 16)) as pilot:
        notes = await opened(pilot, "knowledge/topics/long.md")
        body = notes.view.body
        for _ in range(body.size.height + 3):
            await pilot.press("j")
        assert body.scroll_y == 3
        assert body.pointed_source > body.top_source
        await pilot.press("G")
        assert body.pointed_source == body.top_source  # it was left behind
        await pilot.press("k")
        assert body.lines[-1].text == "Paragraph 199."
        assert body.pointed_source == body.lines[-1].source


def test_a_line_of_the_screen_knows_its_line_of_the_file():
    text = "one two\nthree four\nfive\n\n- six\n  seven\n"
    lines = render(SourceText(text, first_line=4), 9).lines
    shown = [(line.text, line.source) for line in lines if line.text.strip()]
    assert shown == [
        ("one two", 4),
        ("three", 5),
        ("four five", 5),
        ("• six", 8),
        ("  seven", 9),
    ]


def test_the_gutter_marks_a_run_once_and_leaves_out_what_it_does_not_know():
    origins = [
        LineOrigin("a" * 40, Actor.AGENT, NOW - timedelta(days=3), Origin(), ALICE, n)
        for n in (1, 2)
    ]
    origins.append(LineOrigin(None))
    lines = [Line(text, n) for n, text in enumerate(map(_content, "abcd"), 1)]
    gutter = AuthorsGutter(lines, origins, 7, NOW)
    assert [gutter(n).plain for n in range(4)] == ["A 3d", "│", "y new", ""]
    assert AuthorsGutter(lines, origins, 2, NOW)(0).plain == "A"
    assert len({actor.letter for actor in Actor}) == len(Actor)


def _content(text):
    from textual.content import Content

    return Content(text)


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(seconds=30), "now"),
        (timedelta(minutes=5), "5m"),
        (timedelta(hours=23), "23h"),
        (timedelta(days=6), "6d"),
        (timedelta(days=20), "2w"),
        (timedelta(days=300), "10mo"),
        (timedelta(days=800), "2y"),
        (timedelta(days=-1), "now"),
    ],
)
def test_an_age_takes_four_cells(passed, shown):
    assert age(NOW - passed, NOW) == shown
    assert age(None, NOW) == "new"
