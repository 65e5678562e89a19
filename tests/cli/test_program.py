"""The program itself: what it imports, how it ends, what it writes where."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import pty
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click
import pytest

from kbtui import __main__
from kbtui.cli.help import command_rows
from kbtui.cli.root import cli, run
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Command

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "textual", "rich", "pydantic", "numpy", "yaml", "sqlite3", "dulwich", "whoosh", "litellm",
    "torch", "sentence_transformers", "onnxruntime", "tokenizers", "rapidfuzz", "frontmatter",
    "asyncio", "keyring", "tomlkit", "watchfiles",
}  # fmt: skip


def _child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def _every(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _every(below, (*path, name))


@pytest.mark.parametrize("path", _every(cli), ids=" ".join)
def test_every_command_explains_itself(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*path, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: kbtui")
    assert "..." not in out.partition("Commands:")[2], "a short help is cut off"


def test_help_and_version_import_nothing_heavy() -> None:
    for argv in (["--help"], ["--version"], ["search", "--help"], ["config", "--help"]):
        code = f"import sys; from kbtui.cli.root import run; run({argv!r}); print(*sys.modules)"
        loaded = {name.partition(".")[0] for name in _child(code).stdout.split("\n")[-2].split()}
        assert not loaded & HEAVY


def _processor_seconds(*argv: str) -> float:
    """What a child costs at its best; unlike the clock, other programs hardly disturb it."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    costs = []
    for _ in range(7):
        before = spent()
        subprocess.run(
            [sys.executable, *argv],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        costs.append(spent() - before)
    return min(costs)


def test_help_costs_little_more_than_python() -> None:
    python = _processor_seconds("-c", "pass")
    extra = _processor_seconds("-m", "kbtui", "--help") - python
    assert extra < 16 * python, "seconds would be those of one machine"


def test_the_reference_names_every_command_once() -> None:
    rows = dict(command_rows(cli))
    words = {" ".join(path) for path in _every(cli)} - {"", "config", "inbox"}
    assert all(any(usage.startswith(f"kbtui {word}") for usage in rows) for word in words)
    assert len(rows) == len(words) + 1
    assert all(rows.values())
    assert "kbtui log [PATH] [-n N] [--actor A] [--json]" in rows
    assert "kbtui why PATH:LINE [--at REV] [--json]" in rows


@pytest.mark.parametrize(
    ("argv", "workspace"),
    [
        ([], None),
        (["-w", "x"], "x"),
        (["-wx"], "x"),
        (["--workspace", "x"], "x"),
        (["--workspace=x"], "x"),
        (["./x"], "./x"),
        (["/a/list"], "/a/list"),
        (["."], "."),
    ],
)
def test_without_a_command_the_app_starts(
    argv: list[str], workspace: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(sys, "argv", ["kbtui", *argv])
    monkeypatch.setattr(__main__, "_app", lambda named: asked.append(named) or 7)
    assert __main__.main() == 7
    assert asked == [workspace]


@pytest.mark.parametrize(
    "argv", [["list"], ["-w", "x", "list"], ["-w"], ["--help"], ["-w", "x", "-h"], ["./x", "list"]]
)
def test_with_a_command_it_does_not(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kbtui", *argv])
    monkeypatch.setattr("kbtui.cli.root.run", lambda given: 8 if given == argv else 9)
    assert __main__.main() == 8


def test_a_folder_named_without_a_slash_is_no_command_and_the_way_to_open_it_is_said(
    kbtui: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vault").mkdir()
    monkeypatch.chdir(tmp_path)
    done = kbtui("vault")
    assert done.status == 2
    assert "`kbtui ./vault` opens it" in done.err


def test_the_app_says_that_it_needs_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kbtui"])
    assert __main__.main() == 2
    err = capsys.readouterr().err
    assert err.startswith("kbtui: The app needs a terminal")
    assert len(err.splitlines()) == 2


def test_a_reader_that_leaves_ends_the_program_quietly(kbtui: Command) -> None:
    for number in range(3):
        kbtui.ok("new", "topic", f"Topic {number}", "-b", "word " * 40_000)
    child = subprocess.Popen(
        [sys.executable, "-m", "kbtui", "-w", kbtui.root, "show", "topic-1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.read(10)
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait(PATIENCE) in (0, 141)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_without_room_is_said_in_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        child = subprocess.run(
            [sys.executable, "-m", "kbtui", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert child.returncode == 3
    assert child.stderr.startswith("kbtui: The output can't be written: No space left on device.")


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "0<&- 1>&- 2>&-"])
def test_a_stream_that_is_closed_from_the_start_leads_nowhere(closed: str) -> None:
    child = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m kbtui config path {closed}', sys.executable],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (child.returncode, child.stderr) == (0, "")
    assert child.stdout.endswith("config.toml\n") == ("1>" not in closed)


def test_a_locale_without_most_characters_keeps_no_note_from_being_read(kbtui: Command) -> None:
    kbtui.ok("new", "topic", "東京 Grüße", "-b", "Schön: 東")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    def shown(*options: str) -> str:
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "kbtui",
                "-w",
                kbtui.root,
                "show",
                "topics/東京-gruße",
                *options,
            ],
            capture_output=True,
            encoding="ascii",
            check=True,
            env={**os.environ, **locale, "PYTHONPATH": str(ROOT)},
        ).stdout

    assert "Sch?n: ?" in shown()
    assert "Schön: 東" in json.loads(shown("--json"))["text"]


def test_an_interrupt_ends_with_130(kbtui: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("kbtui.knowledge.library.library.Library.infos", interrupted)
    done = kbtui("list")
    assert (done.status, done.out) == (130, "")
    assert "Traceback" not in done.err


def test_an_interrupt_while_it_is_loaded_ends_with_130_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Loading(ModuleType):
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "kbtui.cli.root", Loading("root"))
    monkeypatch.setattr(sys, "argv", ["kbtui", "list"])
    assert __main__.main() == 130


def test_what_nobody_foresaw_is_a_sentence_and_the_log_has_the_rest(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbtui.logs import log_file

    monkeypatch.setattr(logging.getLogger("kbtui"), "handlers", [])

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a \x1b[31mwheel\ncame off")

    monkeypatch.setattr("kbtui.knowledge.library.library.Library.infos", broken)
    done = kbtui("list")
    assert done.status == 1
    assert str(log_file()) in done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err
    assert "RuntimeError" in log_file().read_text()
    assert "in broken" in log_file().read_text()
    for handler in logging.getLogger("kbtui").handlers:
        handler.close()


def _on_terminal(*argv: str, **env: str) -> str:
    """Run a command whose standard output is a terminal."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "kbtui", *argv],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **env},
    )
    os.close(slave)
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    child.wait(PATIENCE)
    return b"".join(parts).decode()


@pytest.mark.pty
def test_colours_are_for_terminals_and_notes_cannot_steer_them(kbtui: Command) -> None:
    kbtui.file("knowledge/topics/evil.md").write_text("# Evil\nA \x1b]0;owned\x07 note \u202ex.\n")
    workspace = str(kbtui.root)
    shown = _on_terminal("-w", workspace, "list")
    assert "\x1b[36m" in shown
    assert "\x1b]0;" not in shown
    plain = _on_terminal("-w", workspace, "list", NO_COLOR="1")
    assert "\x1b[" not in plain
    for argv in (["show", "evil"], ["show", "evil", "--json"], ["links", "evil"], ["log"]):
        out = _on_terminal("-w", workspace, *argv)
        assert "\x1b]0;" not in out
        assert "\u202e" not in out
    assert "\x1b]0;owned" in kbtui.ok("show", "evil").out, "a pipe gets the bytes"
    assert "\x1b" not in kbtui.ok("show", "evil", "--json").out


def _denied(path: object, *_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


@pytest.mark.parametrize("name", ["sessions", ".kbtui/history.git", "knowledge"])
def test_a_folder_that_cannot_be_read_has_its_sentence(
    kbtui: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As root reads everything, the system's answer is given by the test."""
    place = str(kbtui.root / name)
    kbtui.ok("ask", "I prefer tea.")

    def refuse(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(path: Any = ".", *more: Any, **options: Any) -> Any:
            if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(place):
                _denied(path)
            return real(path, *more, **options)

        return act

    for call in ("open", "scandir", "listdir", "stat", "lstat"):
        monkeypatch.setattr(os, call, refuse(getattr(os, call)))
    monkeypatch.setattr("io.open", refuse(io.open))
    for command in (["sessions"], ["list"], ["ask", "hello"], ["log"]):
        done = kbtui(*command)
        assert "unexpected" not in done.err
        assert "Traceback" not in done.err
        if done.status:
            assert name in done.err


def test_a_cache_that_cannot_be_read_stops_nothing(
    kbtui: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kbtui.ok("new", "topic", "Boiler", "-b", "It works.")
    (closed := tmp_path / "closed").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(closed))
    assert "Boiler" in kbtui.ok("list").out
    assert "boiler" in kbtui.ok("search", "boiler").out


def test_a_current_folder_that_was_deleted_is_one_sentence(
    kbtui: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for command in (["list"], ["ask", "hello"]):
        done = kbtui.bare("-w", "notes", *command)
        assert done.status != 0
        assert "unexpected" not in done.err
        assert "folder" in done.err


@pytest.mark.parametrize(
    "words", ["list", "inbox", "sessions", "log", "dream-log -n 5", "list --json", "inbox --json"]
)
def test_an_empty_list_is_no_failure(kbtui: Command, words: str) -> None:
    assert kbtui(*words.split()).status == 0


@pytest.mark.parametrize("words", ["list --tag x", "log --actor dream", "search zyxwvu"])
def test_a_filter_that_nothing_fits_exits_with_1(kbtui: Command, words: str) -> None:
    assert kbtui(*words.split()).status == 1


def test_whoever_writes_says_in_which_workspace_if_it_is_not_the_folder_one_is_in(
    kbtui: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"Written in the workspace {kbtui.root}."
    kbtui.bare("config", "set", "workspace.default", str(kbtui.root))
    assert where in kbtui.bare("add", "The boiler hums").err
    assert where in kbtui.bare("remember", "I prefer tea").err
    assert where in kbtui.bare("new", "fact", "A fact").err
    assert where in kbtui.bare("undo").err
    assert where in kbtui.bare("ask", "remember that the gate squeaks").err
    assert "Written in" not in kbtui.bare("list").err + kbtui.bare("remember", "I prefer tea").err
    assert "Written in" not in kbtui("add", "It was named").err
    monkeypatch.setenv("KBTUI_WORKSPACE", str(kbtui.root))
    assert where in kbtui.bare("add", "A variable names it").err
    monkeypatch.chdir(kbtui.root / "knowledge")
    assert "Written in" not in kbtui.bare("add", "We are in it").err
