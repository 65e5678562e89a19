"""Programs of the person's from the app: it comes back whatever they do, and loses no text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from textual.app import App

from kbtui.errors import ConfigurationError
from kbtui.tui.terminal import outside
from kbtui.tui.terminal.outside import TextCopy, in_terminal, take_saved_later

if TYPE_CHECKING:
    from pathlib import Path

_GONE = 2**22 + 1  # above the largest process id


async def test_the_app_comes_back_after_an_error_while_it_was_suspended(monkeypatch) -> None:
    app: App[None] = App()
    async with app.run_test():
        assert app._driver is not None
        calls: list[str] = []
        monkeypatch.setattr(type(app._driver), "can_suspend", True)
        for name in ("suspend_application_mode", "resume_application_mode"):
            monkeypatch.setattr(app._driver, name, lambda name=name: calls.append(name))
        with pytest.raises(ZeroDivisionError):
            in_terminal(app, lambda: 1 // 0)
        assert calls == ["suspend_application_mode", "resume_application_mode"]


async def test_an_app_without_a_terminal_says_so() -> None:
    app: App[None] = App()
    async with app.run_test():
        with pytest.raises(ConfigurationError, match="no terminal"):
            in_terminal(app, lambda: 1)


async def test_what_a_window_saves_is_noticed_once_it_is_complete(tmp_path: Path) -> None:
    copy = TextCopy(tmp_path / "state", "draft")
    assert copy.file.stat().st_mode & 0o777 == 0o600
    copy.file.write_text("draft\n")  # saved as it was
    copy.file.write_text("draft, edited\n")
    assert await copy.wait_until_saved() == "draft, edited"


def test_what_is_saved_after_the_app_has_ended_is_taken_by_the_next_one(tmp_path: Path) -> None:
    kept: list[str] = []

    def left(text: str, saved: str | None = None) -> None:
        copy = TextCopy(tmp_path, text)
        if saved is not None:
            copy.file.write_text(saved)
        for file in (copy.file, copy.file.with_suffix(".taken")):
            file.rename(tmp_path / file.name.replace(f"-{os.getpid()}-", f"-{_GONE}-"))

    left("closed as it was")
    left("one", "one, saved\n")
    running = TextCopy(tmp_path, "of this process")
    running.file.write_text("saved")
    assert take_saved_later(tmp_path.glob("*.md"), kept.append) == "one, saved"
    assert kept == ["one, saved"]
    assert [*tmp_path.glob("*.md")] == [running.file], "one that runs watches its own"


def test_an_address_is_a_link_of_the_terminal_and_can_not_end_it(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = outside.address("https://example.org/a b\x1b\\?q=é")
    assert shown.plain == "https://example.org/a b\\?q=é"
    (span,) = shown.spans
    assert span.style.link == "https://example.org/a%20b%5C?q=%C3%A9"
    monkeypatch.setenv("TERM", "linux")
    assert not outside.address("https://example.org").spans
