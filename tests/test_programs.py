"""The editor, the browser and the desktop's viewer: whether they can be started, and what came."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from kbtui import programs
from kbtui.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Made = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Make programs of shell scripts on a PATH that has little else."""
    folder = tmp_path / "home" / "bin"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    for name in ("VISUAL", "EDITOR", "BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)

    def make(name: str, script: str = "exit 0") -> Path:
        made = folder / name
        made.write_text(f"#!/bin/sh\n{script}\n")
        made.chmod(0o755)
        return made

    return make


# The editor


@pytest.mark.parametrize("value", ["~/bin/ed-it --wait", "$HOME/bin/ed-it --wait"])
def test_the_home_directory_in_editor_is_expanded(program: Made, monkeypatch, value: str) -> None:
    made = program("ed-it")
    monkeypatch.setenv("EDITOR", value)
    assert programs.editor_command() == [str(made), "--wait"]


def test_visual_goes_before_editor(program: Made, monkeypatch) -> None:
    program("ed-it")
    monkeypatch.setenv("EDITOR", "none")
    monkeypatch.setenv("VISUAL", "ed-it")
    assert programs.editor_command() == ["ed-it"]


@pytest.mark.parametrize(
    ("value", "said"),
    [("no-such-editor", "not installed"), ("~/notes.txt", "may run"), ("vi 'x", "can't be read")],
)
def test_an_editor_that_can_not_be_started_is_said(
    program: Made, tmp_path: Path, monkeypatch, value: str, said: str
) -> None:
    (tmp_path / "home" / "notes.txt").write_text("no program")
    monkeypatch.setenv("EDITOR", value)
    with pytest.raises(ConfigurationError, match=said) as refused:
        programs.editor_command()
    assert "EDITOR" in f"{refused.value.message} {refused.value.hint}"


def test_an_editor_is_told_by_its_exit_code_and_by_what_is_in_the_file(
    program: Made, tmp_path: Path, monkeypatch
) -> None:
    file = tmp_path / "text.md"
    file.write_text("before")
    for script, failed, changed in (
        ('printf after > "$1"', False, True),
        ('printf half > "$1"; exit 3', True, True),
        ('touch "$1"', False, False),
        ("kill -9 $$", True, False),
    ):
        program("ed-it", script)
        monkeypatch.setenv("EDITOR", "ed-it")
        edited = programs.edit(file)
        assert (bool(edited.failure), edited.changed) == (failed, changed), script
        assert bool(edited.at_once) is (not failed and not changed), script
    assert edited.status == 128 + signal.SIGKILL


def test_an_editor_that_a_person_left_without_a_change_did_not_return_at_once() -> None:
    assert programs.Edited("vi", 0, changed=False, seconds=20.0).at_once == ""


def test_ctrl_c_is_left_to_the_program_in_front(program: Made) -> None:
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        made = program("asks", f"kill -INT {os.getpid()}; exit 7")
        assert programs.run_in_terminal([str(made)]) == 7
        assert heard == []
        os.kill(os.getpid(), signal.SIGINT)
        assert heard == [signal.SIGINT], "afterwards it is this process's own again"
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_program_in_front_ends_with_this_process(program: Made, number: signal.Signals) -> None:
    heard = []
    before = signal.signal(number, lambda number, _: heard.append(number))
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    told = signal.set_wakeup_fd(writer)
    try:
        made = program("waits", f"kill -{number:d} {os.getpid()}; exec sleep 100")
        assert programs.run_in_terminal([str(made)]) == 128 + number
        assert heard == [number], "and who saves and ends at it does so"
        assert os.read(reader, 10) == bytes([number]), "as does who is told by a pipe"
    finally:
        signal.set_wakeup_fd(told)
        signal.signal(number, before)
        os.close(reader)
        os.close(writer)


# Browser and viewer


@pytest.mark.parametrize("name", ["www-browser", "links", "elinks", "lynx", "w3m", "xdg-open"])
def test_without_a_display_nothing_is_started_that_happens_to_be_installed(
    program: Made, name: str
) -> None:
    program(name)
    assert programs.openers("https://example.org", {}, "linux") == []


@pytest.mark.parametrize(
    ("browser", "command", "in_terminal"),
    [
        ("helper", ["helper", "https://example.org"], False),
        ("nothing:helper -n %s", ["helper", "-n", "https://example.org"], False),
        ("lynx", ["lynx", "https://example.org"], True),
        ("~/bin/lynx", ["{}/home/bin/lynx", "https://example.org"], True),
    ],
)
def test_the_browser_that_a_person_names_is_taken_and_a_text_browser_gets_the_terminal(
    program: Made, tmp_path: Path, browser: str, command: list[str], in_terminal: bool
) -> None:
    program("helper"), program("lynx")
    (found,) = programs.openers("https://example.org", {"BROWSER": browser}, "linux")
    assert found == ([word.format(tmp_path) for word in command], in_terminal)


def test_a_file_is_opened_by_the_desktop_and_not_by_the_browser(program: Made) -> None:
    program("helper"), program("xdg-open")
    found, *_ = programs.openers("/a.pdf", {"BROWSER": "helper", "DISPLAY": ":0"}, "linux")
    assert found.command == ["xdg-open", "/a.pdf"]


def test_what_is_opened_in_a_window_has_no_terminal_and_the_next_is_tried_after_a_failure(
    program: Made, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    fails = program("fails", "exit 3")
    check = "import os, sys; print(os.isatty(0), os.getsid(0) == os.getpid())"
    works = program("works", f"exec {sys.executable} -c '{check}' > {seen}")
    choices = [programs.Opener([str(each)]) for each in (fails, works)]
    assert programs.open_in_window(choices[:1]) == "'fails' ended with exit code 3."
    assert programs.open_in_window(choices) == ""
    assert seen.read_text().split() == ["False", "True"]


def test_a_browser_that_goes_on_running_has_been_started(
    program: Made, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(programs, "_STARTED_SECONDS", 0.01)
    fifo = tmp_path / "window"
    os.mkfifo(fifo)
    runs = program("runs", f"read closed < {fifo}; exit 3")
    assert programs.open_in_window([programs.Opener([str(runs)])]) == ""
    fifo.write_text("closed\n")
