"""The stage of a life: machines with a workspace each, what is done on them, and what is recorded.

A life is a function that gets a `Stage`::

    def life(stage: Stage) -> None:
        desk = stage.machine("desk")
        desk.kbtui("init", desk.notes)
        desk.ask("Alice owns billing")
        desk.edit("knowledge/people/alice.md", "billing", "analytics")
        stage.pass_(days=1)
        desk.ask("who owns billing?", replies=[Reply("Alice [1].")])

Each word of it is a step. Its time follows from the line of the life that it stands in, so that one
step more or less in a loop over what the program answers changes no later one. A life fails where a
command does what the life doesn't expect.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import CodeType
from typing import Any

from tests.replay import asked
from tests.replay.fixed import environment
from tests.replay.processes import Forked, serve_replies
from tests.replay.recording import Keeper, Recording, Step
from tests.scripted_server import Reply, Request

Replies = Sequence[Reply | Callable[[Request], Reply]]
BEGIN = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
_LIMIT = 10
"""How many hits of a query are compared."""


class LifeError(Exception):
    """A life can't go on as it is written."""


class MissingDataError(Exception):
    """A life needs measuring data that isn't there."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it wrote, as JSON."""
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it wrote, a JSON object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Stage:
    """Where one life is played."""

    def __init__(self, folder: Path, code: list[str], data: Path | None, model: Path) -> None:
        """Play below `folder`, with the program found in `code`, and shared data and model."""
        self.folder = folder
        self.code = code
        self.now = BEGIN
        self._passed = timedelta()
        self._script: CodeType | None = None
        self.recording = Recording()
        self._data = data
        self._model = model
        self._machines: dict[str, Machine] = {}
        folder.mkdir(parents=True)

    def machine(self, name: str, *, meaning: bool = False, user: str = "", **env: str) -> Machine:
        """Set up a machine, with search by `meaning`, and a name of its `user` known to git."""
        made = Machine(self, name, env)
        if user:
            address = f"{user.partition(' ')[0].lower()}@example.org"
            text = f"[user]\n\tname = {user}\n\temail = {address}\n"
            (made.home / ".gitconfig").write_text(text, "utf-8")
        if meaning:
            made.env["KBTUI_SEARCH__SEMANTIC"] = "true"
            made.searches_by_meaning = True
            models = made.home / ".cache" / "kbtui" / "models"
            models.parent.mkdir(parents=True, mode=0o700)
            shutil.copytree(self._model, models)
        self._machines[name] = made
        return made

    def play(self, life: Callable[[Stage], None]) -> None:
        """Play a life, and ask in the end what every machine knows.

        Raises:
            LifeError: A command ended otherwise than the life expects.
            MissingDataError: It needs measuring data that isn't there.
        """
        self._script = life.__code__
        life(self)
        for machine in self._machines.values():
            machine.look_back()
        self._check_times()

    def pass_(self, **time: float) -> None:
        """Let time pass: ``days=1``, ``hours=2``."""
        self._passed += timedelta(**time)

    def data(self, *parts: str) -> Path:
        """Return a file or folder of the measuring data."""
        place = self._data.joinpath(*parts) if self._data is not None else None
        if place is None or not place.exists():
            raise MissingDataError("/".join(parts))
        return place

    def remote(self, name: str = "remote") -> Path:
        """Return an empty folder that machines can sync by."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def begin_step(self, machine: Machine, title: str) -> Step:
        """Begin the next step, a minute later for each line of the life."""
        planned = BEGIN + self._passed + timedelta(minutes=self._line())
        self.now = max(self.now + timedelta(seconds=1), planned)
        return self.recording.begin(machine.name, self.now, title)

    def _line(self) -> int:
        """Return the line of the life that is being played, or the one after its last."""
        frame = sys._getframe()
        while (caller := frame.f_back) is not None and caller.f_code is not self._script:
            frame = caller
        if self._script is None:
            return 0
        lines = [line for _, _, line in self._script.co_lines() if line is not None]
        at = max(lines) + 1 if caller is None else caller.f_lineno
        return at - self._script.co_firstlineno

    def _check_times(self) -> None:
        """Refuse today's date in what is left: the clock was stopped in March."""
        today = datetime.now(UTC).date().isoformat()
        steps = ((step.name, step.answer) for step in self.recording.steps)
        for name, text in (*steps, *self.recording.contents.items()):
            if today in text:
                raise LifeError(f"Today's date stands in {name}: {text}")


class Machine:
    """A computer with a home, a name, a workspace in the folder `notes`, and a folder `out`."""

    def __init__(self, stage: Stage, name: str, env: Mapping[str, str]) -> None:
        self.stage = stage
        self.name = name
        self.home = stage.folder / name
        self.notes = self.home / "notes"
        self.out = self.home / "out"
        self.searches_by_meaning = False
        for folder in (self.out, self.home / "tmp"):
            folder.mkdir(parents=True)
        self.env = {**environment(self.home, stage.code), **env}
        self._keeper = Keeper(stage.recording, name, self.notes)

    # What is asked of the program -----------------------------------------------------------

    def kbtui(
        self,
        *argv: object,
        stdin: str = "",
        status: int | Iterable[int] = 0,
        replies: Replies | None = None,
        **env: str,
    ) -> Done:
        """Run a command on the workspace.

        Args:
            argv: Its words.
            stdin: What it reads.
            status: How it may end.
            replies: What a model answers to each call; None: there is none.
            env: More of its environment.

        Raises:
            LifeError: It ended otherwise.
        """
        words = [str(each) for each in argv]
        step = self.stage.begin_step(self, f"kbtui {' '.join(words)}")
        with serve_replies(replies) as server:
            child = self._fork(step, words, {**env, **server.environment})
            child.write(stdin)
            done = Done(*child.wait())
        self._note(step, done, server.tool_answers)
        expected = {status} if isinstance(status, int) else set(status)
        if done.status not in expected:
            raise LifeError(f"{step.title} ended with {done.status}: {done.err or done.out}")
        return done

    def ask(self, text: str, *, session: str = "", **more: Any) -> list[dict[str, Any]]:
        """Say something to the agent, in a conversation of that name; its events."""
        where = ("--session", session) if session else ()
        return self.kbtui("ask", "--json", *where, "--", text, **more).events

    def json(self, *argv: object, **more: Any) -> Any:
        """Run a command that answers in JSON."""
        return self.kbtui(*argv, "--json", **more).json

    @contextmanager
    def mcp(self, *options: str, client: str = "another agent") -> Iterator[Client]:
        """Serve the workspace to another agent."""
        step = self.stage.begin_step(self, f"kbtui mcp {' '.join(options)}".strip())
        child = self._fork(step, ["mcp", *options], {}, talks=True)
        connected = Client(child, client)
        yield connected
        self._note(step, Done(*child.wait()), connected.answers)

    def edits_with(self, program: str) -> dict[str, str]:
        """Return the environment in which this shell script is the person's editor, of ``$1``."""
        script = self.home / "editor"
        script.write_text(f"#!/bin/sh\n{program}\n", "utf-8")
        script.chmod(0o755)
        return {"EDITOR": str(script), "VISUAL": str(script)}

    # What a person does by other means --------------------------------------------------------

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return (self.notes / path).read_bytes().decode()

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file by hand."""
        with self._by_hand(f"writes {path}"):
            file = self.notes / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text in a file by hand; it stands there once."""
        text = self.read(path)
        if text.count(old) != 1:
            raise LifeError(f"{path} holds {old!r} {text.count(old)} times:\n{text}")
        self.write(path, text.replace(old, new))

    def append(self, path: str, text: str) -> None:
        """Add a text to the end of a file by hand."""
        self.write(path, self.read(path) + text)

    def remove(self, path: str) -> None:
        """Delete a file or folder by hand."""
        with self._by_hand(f"removes {path}"):
            place = self.notes / path
            shutil.rmtree(place) if place.is_dir() else place.unlink()

    def move(self, path: str, to: str) -> None:
        """Move a file or folder by hand."""
        with self._by_hand(f"moves {path} to {to}"):
            (self.notes / to).parent.mkdir(parents=True, exist_ok=True)
            (self.notes / path).rename(self.notes / to)

    def take(self, source: Path, to: str = "") -> None:
        """Copy a folder or a file of the measuring data into the notes."""
        with self._by_hand(f"takes {source.name}"):
            target = self.notes / to
            if source.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
            for file in target.rglob("*") if target.is_dir() else [target]:
                if file.is_file():
                    file.chmod(file.stat().st_mode | stat.S_IWUSR)  # those of the data are not
                    os.utime(file, (0, 0))  # a time of this step, as if it were changed in it

    # ------------------------------------------------------------------------------------------

    @contextmanager
    def _by_hand(self, what: str) -> Iterator[None]:
        step = self.stage.begin_step(self, what)
        yield
        self._keeper.look(step)

    def _fork(
        self, step: Step, words: list[str], env: Mapping[str, str], *, talks: bool = False
    ) -> Forked:
        where = [] if words[:1] == ["init"] else ["-w", str(self.notes)]
        return Forked.kbtui(
            [*where, *words],
            {**self.env, **env},
            folder=self.home,
            moment=step.time.timestamp(),
            machine=self.name,
            seed=f"{self.name} {step.time}",
            talks=talks,
        )

    def _note(self, step: Step, done: Done, answers: list[str]) -> None:
        self._keeper.look(step)
        self._keeper.answer(step, done.status, done.out, done.err, answers)

    def look_back(self) -> None:
        """Ask all that a person may ask in the end, and read the history itself."""
        if not (self.notes / ".kbtui").is_dir():
            return
        for words in (
            ["list", "--json"],
            ["log", "--json"],
            ["sessions", "--json"],
            ["inbox", "--json"],
            ["dream-log", "--json", "-n", "50"],
            ["audit", "--json"],
            ["check", "--json"],
        ):
            self.kbtui(*words, status=range(256))
        self._ask_queries()
        step = self.stage.begin_step(self, "why of every line")
        child = Forked.function(
            asked.why_of_every_line,
            (str(self.notes), self._keeper.recorded_paths()),
            self.env,
            moment=step.time.timestamp(),
            machine=self.name,
            seed=f"{self.name} {step.time}",
        )
        status, out, err = child.wait()
        if status:
            raise LifeError(f"why of every line of {self.name} ended with {status}: {err}")
        self._keeper.look(step)
        self._keeper.why(json.loads(out))
        self._keeper.history()

    def _ask_queries(self) -> None:
        queries = [
            json.dumps({"id": text, "text": text})
            for text in (Path(__file__).with_name("queries.txt")).read_text("utf-8").splitlines()
        ]
        means = "--semantic" if self.searches_by_meaning else "--lexical"
        step = self.stage.begin_step(self, "fifty queries")
        words = ["search", "--queries", "-", means, "--scope", "all", "-n", str(_LIMIT)]
        child = self._fork(step, words, {})
        child.write("\n".join(queries))
        status, out, err = child.wait()
        if status:
            raise LifeError(f"the queries on {self.name} ended with {status}: {err}")
        self._keeper.look(step)
        self._keeper.hits([json.loads(line) for line in out.splitlines()])


class Client:
    """Another agent, connected over MCP."""

    def __init__(self, child: Forked, name: str) -> None:
        self.answers: list[str] = []
        self._child = child
        self._count = 0
        self._request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": name, "version": "1"},
        )
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; what it answers, errors included."""
        answer = self._request("tools/call", name=tool, arguments=arguments)
        told = json.dumps(arguments, ensure_ascii=False)
        self.answers.append(f"{tool} {told}\n{json.dumps(answer, indent=1, ensure_ascii=False)}")
        return answer

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Make any other request of the protocol."""
        answer = self._request(method, **params)
        self.answers.append(f"{method}\n{json.dumps(answer, indent=1, ensure_ascii=False)}")
        return answer

    def _request(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        while line := self._child.read_line():
            message = json.loads(line)
            if message.get("id") == self._count:
                found: dict[str, Any] = message.get("result", message.get("error"))
                return found
        raise LifeError(f"The server ended at {method}.")

    def _send(self, message: dict[str, Any]) -> None:
        self._child.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n", more=True)
