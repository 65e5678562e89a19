"""What kbtui works around in Textual."""

from __future__ import annotations

import asyncio
import gc
import weakref
import webbrowser
from typing import TYPE_CHECKING, ClassVar

import pytest
from rich.segment import Segment
from textual import events
from textual._styles_cache import StylesCache
from textual.app import App
from textual.binding import Binding, BindingType
from textual.document._wrapped_document import WrappedDocument
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Button, Input, Static, TextArea

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text
    from textual.app import ComposeResult


class Plain(App[None]):
    """A field for several lines, two buttons, and a key that opens a field for one line."""

    CSS = "TextArea {height: 5; border: none; scrollbar-gutter: stable}"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter"),
        Binding("d", "delete", "Delete"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.deleted = 0

    def compose(self) -> ComposeResult:
        yield Button("one", id="one")
        yield Button("two", id="two")
        yield TextArea("short", id="text")

    async def action_filter(self) -> None:
        field = Input()
        await self.mount(field)
        field.focus()

    def action_delete(self) -> None:
        self.deleted += 1


class Lines(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Static("a line")


async def test_a_timer_of_nearly_no_time_never_calls_back() -> None:
    async with Plain().run_test() as pilot:
        called: list[int] = []
        pilot.app.set_timer(1e-9, lambda: called.append(1))
        for _ in range(5):
            await asyncio.sleep(0.001)
            await pilot.pause()
    assert not called, "`call_after` of kbtui/tui/terminal/background.py can be `set_timer`"


async def test_keys_are_sent_before_the_field_that_one_of_them_opens_is_there() -> None:
    async with Plain().run_test() as pilot:
        for key, character in (("slash", "/"), ("d", "d"), ("d", "d")):
            pilot.app.post_message(events.Key(key, character))
        await pilot.pause()
        await pilot.pause()
        (field,) = pilot.app.query(Input)
        assert (pilot.app.deleted, field.value) == (2, ""), (  # type: ignore[attr-defined]
            "`KeysInOrder` of kbtui/tui/terminal/type_ahead.py and `_run_binding` of"
            " kbtui/tui/chat/prompt.py can go"
        )


async def test_an_app_is_not_resumed_after_an_error_while_it_was_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Plain().run_test() as pilot:
        driver = pilot.app._driver
        assert driver is not None
        resumed: list[int] = []
        monkeypatch.setattr(type(driver), "can_suspend", True)
        monkeypatch.setattr(driver, "suspend_application_mode", lambda: None)
        monkeypatch.setattr(driver, "resume_application_mode", lambda: resumed.append(1))
        with pytest.raises(FileNotFoundError), pilot.app.suspend():
            raise FileNotFoundError
        told = "`in_terminal` of kbtui/tui/terminal/outside.py can be `App.suspend`"
        assert not resumed, told


async def test_a_link_is_opened_by_any_text_browser_on_top_of_the_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "w3m"
    browser.write_text(f"#!/bin/sh\ntest -t 1; echo started > {tmp_path}/started\n")
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    async with Plain().run_test() as pilot:
        pilot.app.open_url("http://127.0.0.1:9/")
        told = "`openers` and `open_in_window` of kbtui/programs.py may go for `App.open_url`"
        assert (tmp_path / "started").exists(), told


async def test_copying_asks_the_terminal_alone_and_says_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux,1,0")
    async with Plain().run_test() as pilot:
        assert pilot.app._driver is not None
        written: list[str] = []
        monkeypatch.setattr(pilot.app._driver, "write", written.append)
        pilot.app.copy_to_clipboard("text")
        told = "`copy` of kbtui/programs.py may go, if what Textual does now reaches as much"
        assert written == ["\x1b]52;c;dGV4dA==\x07"], told


async def test_a_paste_of_several_lines_into_a_field_loses_all_but_the_first() -> None:
    async with Plain().run_test() as pilot:
        field = Input()
        await pilot.app.mount(field)
        field.focus()
        await pilot.pause()
        pilot.app.post_message(events.Paste("Kestrel\nmast"))
        await pilot.pause()
        await pilot.pause()
        assert field.value == "Kestrel", (
            "`_forward` and `as_one_line` of kbtui/tui/terminal/type_ahead.py may go, if what it is"
            " now is as good"
        )


async def test_a_wrapped_line_of_a_text_area_is_made_anew_for_each_of_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    get_line = TextArea.get_line

    def getting(self: TextArea, line_index: int) -> Text:
        made.append(line_index)
        return get_line(self, line_index)

    monkeypatch.setattr(TextArea, "get_line", getting)
    async with Plain().run_test() as pilot:
        area = pilot.app.query_one(TextArea)
        area.load_text("word " * 100)
        await pilot.pause()
        made.clear()
        for row in range(3):
            area._render_line(row)
    told = "`_render_line` and what it needs of kbtui/tui/widgets/text_field.py can go"
    assert made == [0, 0, 0], told


async def test_undo_that_hides_the_scrollbar_of_a_text_area_fails() -> None:
    async with Plain().run_test() as pilot:
        area = pilot.app.query_one(TextArea)
        area.insert("\n".join(f"line {n}" for n in range(40)), (0, 5))
        await pilot.pause()
        area.move_cursor(area.document.end)
        await pilot.pause()
        with pytest.raises(ValueError, match="out of bounds"):  # noqa: PT012 - either may raise
            # When nothing is raised, kbtui/tui/widgets/text_field.py can go: it is a `TextArea`.
            area.undo()
            await pilot.pause()


async def test_a_scrollbar_with_a_column_of_its_own_has_all_lines_wrapped_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Plain().run_test() as pilot:
        area = pilot.app.query_one(TextArea)
        await pilot.pause()
        widths = [area.wrap_width]
        wrap = WrappedDocument.wrap

        def wrapped(self: WrappedDocument, width: int, **options: int) -> None:
            widths.append(width)
            wrap(self, width, **options)

        monkeypatch.setattr(WrappedDocument, "wrap", wrapped)
        area.show_vertical_scrollbar = True
        await pilot.pause()
        assert len(widths) > 1, "NoteArea._watch_show_vertical_scrollbar can go"
        assert len(set(widths)) == 1, "the column isn't reserved any more"


async def test_a_text_area_that_was_removed_cannot_be_drawn() -> None:
    async with Plain().run_test() as pilot:
        area = pilot.app.query_one(TextArea)
        area.text = "other lines, not drawn yet"
        await area.remove()
        with pytest.raises(KeyError):  # when it doesn't, NoteArea.render_lines can go
            area.render_lines(Region(0, 0, 10, 2))


async def test_the_focus_of_a_removed_widget_goes_to_another() -> None:
    async with Plain().run_test() as pilot:
        button = pilot.app.query_one("#one")
        button.focus()
        await pilot.pause()
        await button.remove()
        await pilot.pause()
        assert pilot.app.focused is not None, (
            "`_entry_deleted` of kbtui/tui/notes/notes_pane.py may focus the tree last"
        )


async def test_widgets_of_a_closed_screen_stay_until_the_collector_runs() -> None:
    gc.disable()
    try:
        async with Plain().run_test() as pilot:
            pilot.app.push_screen(Lines())
            await pilot.pause()
            shown = weakref.ref(pilot.app.screen.query_one(Static))
            pilot.app.pop_screen()
            await pilot.pause()
            await pilot.pause()
            assert shown() is not None, (
                "`collect_when_idle` of kbtui/tui/terminal/process.py and what calls it can go"
            )
            gc.collect()
            assert shown() is None
    finally:
        gc.enable()


def test_a_line_that_was_drawn_refers_to_itself() -> None:
    gc.disable()
    try:
        gc.collect()
        line = Strip([Segment("abc")], 3)
        line.divide([3])
        del line
        assert gc.collect(), "one of the two reasons for `collect_when_idle` is gone"
    finally:
        gc.enable()


def test_the_table_of_border_colours_is_kept_by_widget() -> None:
    # Another test may have started the app, which replaces it; `__wrapped__` is Textual's own.
    code = vars(StylesCache)["get_inner_outer"]
    told = "`release_closed_widgets` of kbtui/tui/terminal/process.py can go"
    if isinstance(code, staticmethod):
        code = code.__wrapped__
        assert hasattr(code, "cache_info"), told
        return
    assert code.cache_parameters()["maxsize"] == 1024, told
    assert code.__wrapped__.__code__.co_argcount == 3, told  # the widget's cache is part of the key


def test_a_mixin_that_is_a_widget_hides_the_styles_of_the_second_base() -> None:
    class Mixin(Widget):
        pass

    class Field(Mixin, TextArea):
        pass

    assert TextArea not in Field._css_bases(Field), (
        "`_WidgetBase` of kbtui/tui/widgets/line_view.py can be `Widget`"
    )


async def test_the_percentage_of_a_variable_is_lost() -> None:
    async with Plain().run_test() as pilot:
        assert pilot.app.theme_variables["text-muted"] == "auto 60%"
        muted = Style.parse("$text-muted").foreground
        assert muted is not None
        assert (muted.auto, muted.a) == (True, 1.0), (
            "`get_visual_style` in kbtui/tui/widgets/line_view.py may take the style as it is"
        )


async def test_the_report_of_a_bug_shows_the_values_of_variables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Failing(App[None]):
        def on_mount(self) -> None:
            typed = "what somebody typed"
            raise RuntimeError(str(len(typed)))

    app = Failing()
    with pytest.raises(RuntimeError):
        async with app.run_test():
            pass
    assert "typed = 'what somebody typed'" in capsys.readouterr().err, (
        "KbtuiApp._fatal_error may leave it to Textual"
    )


def test_only_an_app_can_be_given_another_key() -> None:
    assert not hasattr(Screen, "bind"), "KeyDialog needs no `_bindings`: a screen has `bind`"
    assert not hasattr(App, "keymap"), "Prompt._run_binding needs no `_keymap`: there is a `keymap`"


@pytest.mark.parametrize(
    ("of", "name", "user"),
    [
        (App, "_driver", "tui/app/app.py"),
        (App, "_exception", "tui/app/app.py"),
        (App, "_exit", "tui/terminal/type_ahead.py"),
        (App, "_exit_renderables", "tui/app/app.py"),
        (App, "_close_messages_no_wait", "tui/app/app.py"),
        (App, "_fatal_error", "tui/app/app.py"),
        (App, "_handle_exception", "tui/app/app.py"),
        (App, "_keymap", "tui/chat/prompt.py"),
        (App, "_pop_to_screen", "tui/app/app.py"),
        (Widget, "_bindings", "tui/chat/prompt.py, tui/widgets/dialogs.py"),
        (TextArea, "_on_key", "tui/chat/prompt.py, tui/notes/note_area.py"),
        (TextArea, "_pause_blink", "tui/widgets/text_field.py"),
        (TextArea, "_restart_blink", "tui/widgets/text_field.py"),
        (TextArea, "_toggle_cursor_blink_visible", "tui/widgets/text_field.py"),
        (TextArea, "_on_paste", "tui/chat/prompt.py"),
        (TextArea, "_watch_show_vertical_scrollbar", "tui/notes/note_area.py"),
    ],
)
def test_a_private_name_that_kbtui_uses_is_there(of: type, name: str, user: str) -> None:
    assert hasattr(of, name) or hasattr(of(), name), f"kbtui/{user} has to do without {name}"


def test_the_mouse_is_chosen_only_before_the_app_starts_and_blinking_by_field() -> None:
    driver = LinuxDriver
    for method in (driver._enable_mouse_support, driver._disable_mouse_support):
        assert "_mouse" in method.__code__.co_names, "`TerminalDriver.use_mouse` is void"
    assert not hasattr(App, "mouse"), "`TerminalDriver.use_mouse` can go"
    assert not hasattr(App, "cursor_blink"), "`Restless.focused` can go: an app has it"
