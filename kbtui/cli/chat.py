"""`kbtui chat`: conversation line by line, for screen readers, dumb terminals and pipes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kbtui.cli.ask import TextView, condense_if_due, open_session, sentence_of, show_turn
from kbtui.cli.context import WorkspaceOption, model_option, pass_place, remote_option, use_model
from kbtui.cli.output import INTERRUPTED, complain, note, say, to_terminal
from kbtui.errors import KbtuiError, NotFoundError, UsageError
from kbtui.text import clean_line, moment, slugify

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?\Z", re.DOTALL)
_MAX_SESSIONS = 20


@click.command()
@model_option
@remote_option
@click.option(
    "-s", "--session", "ref", metavar="SESSION", help="Continue this session, or start it."
)
@click.option("--plain", is_flag=True, help="Plain lines, without colours.")
@pass_place
def chat(
    place: WorkspaceOption, model: str | None, remote: bool, ref: str | None, plain: bool
) -> int:
    r"""Chat with the agent, one line per message.

    A line that ends in \ continues on the next. /help lists commands, Ctrl-C stops an answer,
    Ctrl-D quits. From a pipe, each line is a message.
    """
    by_lines = plain or not to_terminal() or os.environ.get("TERM", "dumb") == "dumb"
    with place.opened() as kb:
        if model:
            use_model(kb, model, remote=remote)
        talk = _Chat(kb, open_session(kb, ref), by_lines=by_lines)
        try:
            return talk.run()
        finally:
            talk.session.close()


class _Chat:
    """The read-eval loop of the command, which may switch between conversations."""

    def __init__(self, kb: KnowledgeBase, session: Session, *, by_lines: bool) -> None:
        self.session = session
        self._kb = kb
        self._by_lines = by_lines
        self._is_interactive = sys.stdin is not None and sys.stdin.isatty()
        self._status = 0
        self._answered = False
        self._ended = False
        self._commands: Mapping[str, tuple[str, Callable[[str], None]]] = {
            "help": ("tell what can be said", self._help),
            "new": ("begin another conversation: /new [title]", self._new),
            "sessions": ("list the last conversations", self._sessions),
            "resume": ("go on with one: /resume <title or id>", self._resume),
            "rename": ("give this one a title: /rename <title>", self._rename),
            "export": ("write this one to a Markdown file: /export [file]", self._export),
            "quit": ("end; so does Ctrl-D", self._quit),
        }

    def run(self) -> int:
        """Run until the input ends; return the last failure's exit code if not on a terminal."""
        if self._is_interactive:
            say("Say something, or /help.")
        was_stopped = False
        while not self._ended:
            try:
                message = self._read()
                if message is None:
                    break
                self._handle(message)
                was_stopped = False
            except KeyboardInterrupt:
                if was_stopped or not self._is_interactive:
                    return INTERRUPTED
                was_stopped = True
                say("\nStopped. Ctrl-C again, or /quit, ends.")
        with suppress(KeyboardInterrupt):
            self._leave()
        return 0 if self._is_interactive else self._status

    def _read(self) -> str | None:
        """Read the next message, or return None at the end of the input."""
        lines: list[str] = []
        while True:
            if self._is_interactive:
                say("You: " if not lines else "...: ", newline=False)
                sys.stdout.flush()
            line = sys.stdin.readline() if sys.stdin is not None else ""
            if not line and self._is_interactive:
                say()
            if not line:
                return "\n".join(lines) if lines else None
            text = line.rstrip("\r\n")
            lines.append(text.removesuffix("\\"))
            if not text.endswith("\\"):
                return "\n".join(lines)

    def _handle(self, message: str) -> None:
        text = message.strip()
        command = _COMMAND.match(text)
        try:
            if command is None:
                if text:
                    self._answer(text)
            elif command[1] in self._commands:
                self._commands[command[1]][1]((command[2] or "").strip())
            else:
                raise UsageError(f"There is no /{command[1]} here.", "/help lists what there is.")
        except KbtuiError as error:
            self._status = error.exit_code
            complain(error.message, error.hint)

    def _answer(self, text: str) -> None:
        import asyncio

        view = TextView(self._kb.workspace, partial(sentence_of, self._kb), by_lines=self._by_lines)
        if self._is_interactive:
            say("kbtui: ", newline=False)
        status = asyncio.run(show_turn(self._kb.agent.turn(self.session, text), view))
        self._answered |= status == 0
        self._status = status or self._status

    def _leave(self) -> None:
        """Consolidate the conversation if it is due."""
        if self._answered:
            condense_if_due(self._kb, self.session.id)
        self._answered = False

    @contextmanager
    def _switching(self) -> Iterator[None]:
        """Switch to the session that the block assigns, or keep the current one if it raises."""
        before = self.session
        yield
        if self.session is not before:
            with suppress(KbtuiError):
                now, self.session = self.session, before
                self._leave()
                self.session = now
            before.close()
            for notice in self.session.notices:
                note(f"kbtui: {notice}")
            say(f"Now in: {clean_line(self.session.title)} ({self.session.id})")

    def _help(self, _argument: str) -> None:
        for name, (text, _) in self._commands.items():
            say(f"/{name}: {text}")
        say("All else is a message. A line that ends in \\ goes on in the next.")

    def _new(self, title: str) -> None:
        with self._switching():
            self.session = self._kb.sessions.create("cli", title=clean_line(title))

    def _sessions(self, _argument: str) -> None:
        for info in self._kb.sessions.list()[:_MAX_SESSIONS]:
            when = moment(info.updated)
            say(f"{clean_line(info.title)}, {when}, {info.messages} messages ({info.id})")

    def _resume(self, name: str) -> None:
        if not name:
            raise UsageError("Which one?", "/sessions lists them; then /resume <title or id>")
        session = self._kb.sessions.find(name)
        if session == self.session.id:
            raise UsageError("That is this conversation.")
        with self._switching():
            self.session = self._kb.sessions.open(session)

    def _rename(self, title: str) -> None:
        if not clean_line(title):
            raise UsageError("A conversation needs a title.", "Say it: /rename <title>")
        self.session.rename(clean_line(title))

    def _export(self, name: str) -> None:
        from kbtui.maintenance.export import new_file, session_markdown

        if not self.session.messages:
            raise NotFoundError("Nothing was said yet.")
        file = Path(name or f"{slugify(self.session.title)}.md").expanduser()
        if file.exists():
            raise UsageError(f"{file} is there already.", "Name another: /export <file>")
        with new_file(file) as stream:
            text = "\n".join(
                session_markdown(self.session.id, self.session.title, self.session.messages)
            )
            stream.write(text.encode())
        say(f"Written to {file}")

    def _quit(self, _argument: str) -> None:
        self._ended = True
