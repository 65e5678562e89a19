"""Ways of giving a command its TEXT: an argument, `-`, a pipe, a file, and what is none of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from kbtui.cli.root import cli, run
from kbtui.cli.text_input import MOST_OF_BODY, MOST_OF_TEXT, TextCommand
from kbtui.workspace.files import READ_LIMIT
from tests.cli.conftest import Command, Done
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
MEMORY = "memory/MEMORY.md"
TREE = "\N{DECIDUOUS TREE}"


@contextmanager
def _open_pipe(data: bytes, *, ends: bool = True) -> Iterator[int]:
    """A pipe that a thread writes into; without `ends` it stays open until the block is left."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb", closefd=False) as stream:
            try:
                stream.write(data)
                stream.flush()
            except BrokenPipeError:
                pass
        if ends:
            os.close(writing)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield reading
    finally:
        os.close(reading)
        thread.join()
        if not ends:
            os.close(writing)


@pytest.fixture
def piped(
    kbtui: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Done]:
    """Run a command in this process with a descriptor, or bytes in a pipe, as standard input."""

    def execute(given: bytes | int, *argv: str, ends: bool = True) -> Done:
        def on(descriptor: int) -> Done:
            with (
                open(descriptor, closefd=False) as stream,
                monkeypatch.context() as patched,
            ):
                patched.setattr("sys.stdin", stream)
                capsys.readouterr()
                status = run(["-w", str(kbtui.root), *argv])
            return Done(status, *capsys.readouterr())

        if isinstance(given, int):
            return on(given)
        with _open_pipe(given, ends=ends) as descriptor:
            return on(descriptor)

    return execute


def _program(kbtui: Command, shell: str) -> Done:
    """Run a line of shell in which $K is the program."""
    done = subprocess.run(
        ["/bin/sh", "-c", shell],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=5 * PATIENCE,
        check=False,
        stdin=subprocess.DEVNULL,
        env={
            **os.environ,
            "K": f"{sys.executable} -m kbtui -w {kbtui.root}",
            "PYTHONPATH": str(ROOT),
        },
    )
    return Done(done.returncode, done.stdout, done.stderr)


def _journal(kbtui: Command) -> str:
    (note,) = kbtui.file("memory").glob("????-??-??.md")
    return note.read_text("utf-8")


def test_a_missing_text_is_read_from_a_pipe(kbtui: Command, piped: Callable[..., Done]) -> None:
    done = piped(b"The boiler is serviced in May\n", "remember")
    assert done.status == 0
    assert "- The boiler is serviced in May\n" in kbtui.file(MEMORY).read_text()
    assert piped(b"Alice has the key\n", "add").out.endswith(" Alice has the key\n")
    assert "Alice has the key" in _journal(kbtui)


def test_a_missing_text_is_read_from_a_file(kbtui: Command) -> None:
    kbtui.ok("add", stdin="From a file.\n")
    assert "From a file." in _journal(kbtui)


def test_a_dash_reads_the_text_from_standard_input(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    assert piped(b"The gate squeaks\n", "remember", "-").status == 0
    assert "- The gate squeaks\n" in kbtui.file(MEMORY).read_text()
    assert "boiler" in piped(b"the boiler hums", "ask", "-").out + _journal(kbtui)


def test_a_dash_after_two_is_a_text(kbtui: Command, piped: Callable[..., Done]) -> None:
    assert piped(b"not read", "remember", "--", "-").out.endswith(":3 -\n")
    assert "not read" not in kbtui.file(MEMORY).read_text()
    piped(b"not read", "add", "a", "-", "b")
    assert "a - b" in _journal(kbtui)


def test_a_piped_text_is_forgotten_purged_and_searched_for(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    kbtui.ok("new", "fact", "Pot", "-b", "The key kx-4417-secret is under the green pot.")
    assert "facts/pot.md" in piped(b"green pot\n", "search", "--lexical").out
    assert "facts/pot.md" in piped(b"green pot\n", "search", "-", "--lexical").out
    unsure = piped(b"green pot\n", "forget")
    assert "--yes" in unsure.err
    assert piped(b"kx-4417-secret\n", "purge", "-").status == 0
    assert "kx-4417" not in kbtui.file("knowledge/facts/pot.md").read_text()
    assert piped(b"green pot\n", "forget", "--yes").status == 0
    assert not kbtui.file("knowledge/facts/pot.md").exists()


def test_a_body_comes_from_the_option_with_a_dash(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    assert piped(b"Two\nlines.\n", "new", "fact", "Piped", "-b", "-").err == ""
    assert kbtui.file("knowledge/facts/piped.md").read_text().endswith("\n\nTwo\nlines.\n")


def test_bytes_that_wait_in_a_pipe_are_left_there_and_said(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    with _open_pipe(b"body") as pipe:
        done = piped(pipe, "new", "fact", "Title", "--tag", "x")
        assert os.read(pipe, 100) == b"body"
    assert done.status == 0
    assert "left there; `-b -` takes it" in done.err
    assert "body" not in kbtui.file("knowledge/facts/title.md").read_text()
    assert "left there; `-` takes it" in piped(b"more\n", "remember", "A fact").err
    assert "left there" not in piped(b"", "remember", "Another fact").err


def test_a_loop_that_reads_lines_goes_on(kbtui: Command) -> None:
    loop = 'while read -r line; do $K new fact "$line"; $K add "$line"; done'
    done = _program(kbtui, f"printf 'One\\nTwo\\nThree\\n' | {loop}")
    assert done.status == 0, done
    assert {file.stem for file in kbtui.file("knowledge/facts").iterdir()} == {
        "one",
        "two",
        "three",
    }
    assert all(word in _journal(kbtui) for word in ("One", "Two", "Three"))


@pytest.mark.slow
def test_fifty_megabytes_become_a_note(kbtui: Command, piped: Callable[..., Done]) -> None:
    body = (b"The boiler was serviced again, says Alice.\n" * 1_200_000)[:MOST_OF_BODY]
    assert len(body) == 50_000_000 < READ_LIMIT
    assert piped(body, "new", "fact", "Big", "-b", "-").status == 0
    assert body in kbtui.file("knowledge/facts/big.md").read_bytes()
    assert "facts/big" in kbtui.ok("list").out


def test_a_body_of_more_is_refused(kbtui: Command, piped: Callable[..., Done]) -> None:
    refused = piped(b"x" * (MOST_OF_BODY + 1), "new", "fact", "Bigger", "-b", "-")
    assert refused.status == 2
    assert "50,000 kB at most" in refused.err
    assert "kbtui import" in refused.err
    assert not kbtui.file("knowledge/facts/bigger.md").exists()


@pytest.mark.parametrize("command", ["add", "remember", "ask", "forget", "search"])
def test_a_text_that_never_stops_is_refused(
    kbtui: Command, piped: Callable[..., Done], command: str
) -> None:
    done = piped(b"y\n" * MOST_OF_TEXT, command)
    assert done.status == 2
    assert "too long" in done.err
    assert not any(kbtui.file("sessions").iterdir())


def test_nul_bytes_and_colour_codes_are_left_out_and_said(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    link = b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x07"
    done = piped(b"a\0b \x1b[1;31mred\x1b[0m " + link + b"\x1b(B\x07 end", "add")
    assert "colour codes were left out" in done.err
    assert done.out.endswith(" ab red link end\n")
    piped(b"nul\0l \x1b]never ended", "new", "fact", "Nul", "-b", "-")
    assert kbtui.file("knowledge/facts/nul.md").read_text().endswith("null never ended\n")


def test_bytes_that_are_not_utf_8_are_of_old_windows_or_replaced_and_said(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    done = piped(b"caf\xe9 au lait", "add")
    assert "isn't UTF-8 and was read as cp1252" in done.err
    assert "iconv" in done.err
    assert "café au lait" in _journal(kbtui)
    done = piped("Größe, Höhe, Maß ".encode() + b"\x9d", "add")
    assert "1 character can't be read as UTF-8" in done.err
    assert "iconv" in done.err
    assert "Größe, Höhe, Maß \ufffd" in _journal(kbtui)


def test_other_unicode_and_the_encoding_of_the_terminal_are_read(
    kbtui: Command, piped: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert piped(f"\ufeffa {TREE}".encode("utf-16-le"), "add").err == ""
    assert f"a {TREE}" in _journal(kbtui)
    latin = _program(kbtui, "printf 'caf\\351' | PYTHONIOENCODING=latin-1 $K add >&2")
    assert "became" not in latin.err
    assert "café" in _journal(kbtui)


def test_a_pipe_without_an_end_is_not_waited_for_if_there_is_a_text(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    for argv in (("remember", "A"), ("add", "A"), ("new", "fact", "A"), ("search", "A")):
        assert piped(b"", *argv, ends=False).status in {0, 1}
    assert piped(b"", "list", ends=False).status == 0


def test_a_text_that_does_not_come_is_waited_for_and_that_is_said(kbtui: Command) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "kbtui", "-w", str(kbtui.root), "add"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.stderr is not None
    said = child.stderr.readline()
    assert b"Waiting for standard input to end" in said
    assert b"</dev/null" in said
    child.communicate(b"late\n", timeout=PATIENCE)
    assert child.returncode == 0
    assert "late" in _journal(kbtui)


@pytest.mark.parametrize("text", [b"", b" \n\t\r\n", b"\0"])
@pytest.mark.parametrize("command", ["add", "remember", "forget", "ask", "search", "purge"])
def test_an_empty_pipe_is_no_text(
    kbtui: Command, piped: Callable[..., Done], command: str, text: bytes
) -> None:
    done = piped(text, command)
    assert done.status == 2
    assert "There is nothing to " in done.err
    assert "pipe it in" in done.err
    assert not kbtui.file(MEMORY).exists()


def test_no_standard_input_is_no_text(kbtui: Command) -> None:
    for no_input in ("</dev/null", "<&-"):
        done = _program(kbtui, f"$K remember {no_input}")
        assert (done.status, done.out) == (2, "")
        assert "There is nothing to remember." in done.err
    assert _program(kbtui, "$K add works </dev/null && $K add too <&-").status == 0


def test_standard_input_that_cannot_be_read_is_said(
    tmp_path: Path, piped: Callable[..., Done]
) -> None:
    writing = os.open(tmp_path / "written", os.O_WRONLY | os.O_CREAT)
    try:
        done = piped(writing, "remember")
    finally:
        os.close(writing)
    assert done.status == 2
    assert "Standard input can't be read: Bad file descriptor." in done.err


def test_an_empty_body_is_said(kbtui: Command, piped: Callable[..., Done]) -> None:
    done = piped(b"", "new", "fact", "Empty", "-b", "-")
    assert done.status == 0
    assert "Standard input was empty" in done.err


def test_a_terminal_is_not_waited_for_unless_a_dash_asks(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    ours, theirs = os.openpty()
    try:
        assert piped(theirs, "remember").status == 2
        os.write(ours, b"Typed by hand\n\x04")
        done = piped(theirs, "remember", "-")
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.status == 0
    assert "Ctrl-D" in done.err
    assert "- Typed by hand\n" in kbtui.file(MEMORY).read_text()


def test_lines_of_windows_become_lines(kbtui: Command, piped: Callable[..., Done]) -> None:
    piped(b"One\r\nTwo\r\n", "new", "fact", "Lines", "-b", "-")
    assert b"\r" not in kbtui.file("knowledge/facts/lines.md").read_bytes()
    piped(b"First\r\nSecond\rThird\r\n", "add")
    assert "First\n  Second\n  Third\n" in _journal(kbtui)


def test_ask_appends_standard_input_and_its_help_says_so(
    kbtui: Command, piped: Callable[..., Done]
) -> None:
    piped(b"the spare key is under the pot\n", "ask", "remember that")
    assert "spare key" in kbtui.file(MEMORY).read_text()
    assert "with TEXT above it" in kbtui.ok("ask", "--help").out
    assert "</dev/null" in kbtui.ok("ask", "--help").out


def test_add_notes_in_the_journal_without_a_model_or_a_conversation(kbtui: Command) -> None:
    done = kbtui.ok("add", "The", "boiler", "hums")
    place, _, text = done.out.partition(" ")
    path, _, number = place.partition(":")
    assert text == "The boiler hums\n"
    assert kbtui.file(path).read_text().splitlines()[int(number) - 1].endswith("The boiler hums")
    assert "noted already" in kbtui.ok("add", "The boiler hums").err
    assert not any(kbtui.file("sessions").iterdir())


def _commands(command: click.Command, path: str = "kbtui") -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _commands(below, f"{path} {name}")
    else:
        yield path, command


def test_every_text_of_a_command_is_read_in_one_way() -> None:
    of_texts = {
        path: [param for param in command.params if "TEXT" in (param.metavar or "").split("|")[0]]
        for path, command in _commands(cli)
    }
    found = {path for path, params in of_texts.items() if params}
    assert found >= {"kbtui add", "kbtui ask", "kbtui forget", "kbtui new", "kbtui purge"}
    for path, command in _commands(cli):
        for param in of_texts[path]:
            assert isinstance(command, TextCommand), path
            assert param.callback is not None, path
            assert param.callback.__module__ == "kbtui.cli.text_input", path
