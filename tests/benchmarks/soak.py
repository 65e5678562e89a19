"""Soak: an hour of everything at once, and what grows meanwhile.

Two apps in terminals (one is talked to, one is browsed), commands, another agent over MCP, an
editor that saves by renaming, Dream, and a second machine that syncs through a folder, all on one
workspace. Noted are memory and open files of the processes that stay, the size of what is kept, and
how long each kind of action takes. What was to be flat and isn't is listed under ``rises``; what
went wrong under ``problems``, of which there must be none.

    python -m tests.benchmarks soak [--minutes 5] [--entries 300] [--plot soak.svg]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.report import Table, spread, versions
from tests.benchmarks.soak_plot import draw
from tests.faults.world import REPOSITORY, Place, check_with_git, litter
from tests.mcp_server.conftest import connected, environment
from tests.terminal import ENTER, ESC, F, Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.mcp_server.conftest import Client

SAMPLES = 120
_FEW = 40
"""Actions come back to the same few entries, so that a flat line can be flat."""
_PATIENCE = 60.0
_ANSWERED = "✓ remembered", "nearest:", "don't know", "▌"


@dataclass
class Run(Place):
    """What was noted: (seconds since the start, value) by name."""

    minutes: float
    entries: int
    started: float = field(default_factory=time.monotonic)
    over: threading.Event = field(default_factory=threading.Event)
    took: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    sizes: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    memory: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    handles: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def now(self) -> float:
        return time.monotonic() - self.started

    def timed(self, name: str, action: Callable[[], object]) -> None:
        """Do something and note how many milliseconds it took."""
        begun = time.monotonic()
        action()
        self.took.setdefault(name, []).append((self.now, 1000 * (time.monotonic() - begun)))

    def actor(self, name: str, steps: Iterator[None], pause: float) -> threading.Thread:
        """A thread that takes a step, waits, and so on until the time is over."""

        def act() -> None:
            try:
                for _ in steps:
                    if self.over.wait(pause):
                        return
            except Exception as error:  # noqa: BLE001 — it is reported
                self.problems.append(f"{name} after {self.now:.0f} s: {error!s:.2000}")

        return threading.Thread(target=act, name=name, daemon=True)


def kbtui(run: Run, *words: str, root: Path | None = None, may: tuple[int, ...] = (0,)) -> str:
    """Run one command; one that fails is a problem, but for the statuses that it may end with."""
    command = [sys.executable, "-m", "kbtui", "-w", str(root or run.notes), *words]
    done = subprocess.run(
        command,
        env=environment(run.folder),
        cwd=run.folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=5 * _PATIENCE,
        check=False,
    )
    if done.returncode not in may or "Traceback" in done.stderr:
        run.problems.append(f"{' '.join(words)} after {run.now:.0f} s: {done.stderr[-2000:]}")
    return done.stdout


# Who does something


def talk(run: Run, app: Terminal) -> Iterator[None]:
    """Tell and ask in the chat, and begin a new conversation now and then."""
    number = 0
    while True:
        number += 1
        box = number % _FEW
        said = f"where does box {box - 1} stand? {number}"
        if number % 2:
            said = f"remember that box {box} stands on shelf {number}"

        def answered(screen: str, said: str = said) -> bool:
            _, found, after = screen.rpartition(f"> {said}")
            return bool(found) and any(word in after for word in _ANSWERED)

        app.send(said)
        app.wait_for(said, timeout=_PATIENCE)
        run.timed("app: key to screen", lambda said=said: _go(app, "!", f"{said}!"))  # type: ignore[misc]
        app.send("\x7f")
        run.timed("app: message to answer", lambda: _send(app, answered))
        if number % 50 == 0:
            app.send("/new ")  # the blank closes the list of commands
            yield from _idle(app, 1.0, run)
            app.send(ENTER)
            app.wait_gone(said, timeout=_PATIENCE)
        yield from _idle(app, 3.0, run)


def _send(app: Terminal, answered: Callable[[str], bool]) -> None:
    app.send(ENTER)
    app.wait(answered, _PATIENCE)


def _idle(app: Terminal, seconds: float, run: Run) -> Iterator[None]:
    """Let an app draw for a while, as a terminal that nobody types into does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not run.over.is_set():
        if not app._pump():
            raise RuntimeError(f"the app is gone: {app.text}")
    yield


def browse(run: Run, app: Terminal) -> Iterator[None]:
    """Go through tree, history and search."""
    rng = random.Random(2)
    while True:
        run.timed("app: to the history", lambda: _go(app, F[4], "─ History"))
        for _ in range(5):
            app.send("j")
            yield from _idle(app, 0.3, run)
        run.timed("app: to the search", lambda: _go(app, F[7], "exact phrase"))
        app.send(rng.choice(["shelf", "budget", "box", "alice", "review"]))
        yield from _idle(app, 1.0, run)
        app.send(ESC)
        run.timed("app: to the notes", lambda: _go(app, F[3], "─ Notes"))
        app.send("l" + "j" * rng.randint(1, 20) + ENTER)
        yield from _idle(app, 2.0, run)


def _go(app: Terminal, key: str, shown: str) -> None:
    app.send(key)
    app.wait_for(shown, timeout=_PATIENCE)


def command(run: Run) -> Iterator[None]:
    """Run commands one after the other, those that make memory among them."""
    number = 0
    while True:
        number += 1
        for name, words in (
            ("search", ("search", "shelf of box", "--json")),
            ("show", ("show", f"entry-{number % _FEW:04}")),
            ("ask", ("ask", "-s", "soak", f"remember that lamp {number % _FEW} is {number} years")),
            ("log", ("log", "-n", "20")),
            ("consolidate", ("consolidate",)),
            ("dream", ("dream",)),
        ):
            run.timed(f"cli: {name}", lambda words=words: kbtui(run, *words))  # type: ignore[misc]
            yield


def serve(run: Run, client: Client) -> Iterator[None]:
    """Search, read and write as another agent."""
    number = 0
    while True:
        number += 1
        title = f"Agent note {number % _FEW}"
        tools: list[tuple[str, dict[str, Any]]] = [
            ("memory_search", {"query": f"box {number % _FEW} shelf"}),
            ("list_entries", {"type": "fact"}),
            ("read_entry", {"entry": f"entry-{number % _FEW:04}"}),
        ]
        if number > _FEW:
            tools.append(("edit_entry", {"entry": title, "append": f"- seen {number}"}))
        else:
            tools.append(("write_entry", {"type": "fact", "title": title, "body": "- begun"}))
        for name, arguments in tools:
            run.timed(
                f"mcp: {name}",
                lambda name=name, arguments=arguments: client.ok(name, **arguments),  # type: ignore[misc]
            )
            yield


def edit(run: Run, root: Path, name: str) -> Iterator[None]:
    """Save entries as an editor does: a new file, renamed over the old one."""
    rng = random.Random(name)
    number = 0
    while True:
        number += 1
        file = root / f"knowledge/topics/entry-{rng.randrange(_FEW):04}.md"
        if file.exists():
            lines = [line for line in file.read_text().split("\n") if f"{name} was" not in line]
            lines.insert(-1, f"- {name} was here, {number}")
            swap = file.with_name(f".{file.name}.swp")
            swap.write_text("\n".join(lines))
            swap.replace(file)
        yield


def synced(run: Run) -> Iterator[None]:
    """Let both machines sync in turn."""
    while True:
        for root in (run.notes, run.other):
            run.timed(
                "cli: sync",
                lambda root=root: kbtui(run, "sync", str(run.remote), root=root),  # type: ignore[misc]
            )
            yield


# What is looked at


def sample(run: Run, processes: dict[str, int]) -> None:
    """Note memory (MB), open files and sizes (MB)."""
    for name, pid in processes.items():
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            handles = len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            run.problems.append(f"{name} was gone after {run.now:.0f} s")
            continue
        memory = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        run.memory.setdefault(name, []).append((run.now, memory))
        run.handles.setdefault(name, []).append((run.now, handles))
    places = {
        "history": run.repository,
        "sessions": run.notes / "sessions",
        "cache": run.folder / ".cache",
        "remote": run.remote,
    }
    for name, place in places.items():
        run.sizes.setdefault(name, []).append((run.now, _size(place) / 1e6))


def _size(place: Path) -> int:
    total = 0
    for folder, _, names in os.walk(place):
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_size
            except OSError:
                continue  # it was temporary
    return total


def rises(series: dict[str, list[tuple[float, float]]], allowed: float) -> list[str]:
    """The series whose last quarter's median is over the second quarter's by more than allowed."""
    found = []
    for name, points in series.items():
        values = [value for _, value in points]
        quarter = len(values) // 4
        if quarter < 3:
            continue
        early = statistics.median(values[quarter : 2 * quarter])
        late = statistics.median(values[-quarter:])
        if late > early * (1 + allowed):
            found.append(f"{name}: {early:.4g} to {late:.4g}")
    return found


def settle(run: Run) -> None:
    """When all is quiet: everything is sound, and both machines say the same."""
    for root in (run.notes, run.other, run.notes):
        kbtui(run, "sync", str(run.remote), root=root)
    kbtui(run, "check")
    trees = [
        subprocess.run(
            ["git", "--git-dir", place, "rev-parse", "main^{tree}"],
            capture_output=True,
            check=False,
        ).stdout
        for place in (run.repository, run.other / REPOSITORY)
    ]
    if len(set(trees)) != 1 or not trees[0]:
        run.problems.append(f"two machines end differently: {trees}")
    run.problems += check_with_git(run.repository, run.remote)
    run.problems += [f"left over: {path}" for path in litter(run.notes, run.remote)[:10]]


def _stage(run: Run) -> None:
    topics = run.notes / "knowledge" / "topics"
    topics.mkdir(parents=True)
    rng = random.Random(1)
    words = [
        "plan",
        "review",
        "budget",
        "alice",
        "decision",
        "meeting",
        "storage",
        "auth",
        "release",
        "shelf",
        "box",
    ]
    for number in range(run.entries):
        body = "\n\n".join(" ".join(rng.choices(words, k=60)) for _ in range(4))
        link = f"[[entry-{rng.randrange(run.entries):04}]]"
        name = f"entry-{number:04}"
        (topics / f"{name}.md").write_text(f"# {name}\n\n{body}\n\nSee {link}.\n")
    kbtui(run, "init", str(run.notes))
    kbtui(run, "sync", str(run.remote))
    kbtui(run, "init", str(run.other))
    kbtui(run, "sync", str(run.remote), root=run.other)


def _live(run: Run) -> None:
    program = [sys.executable, "-m", "kbtui", "-w", str(run.notes)]
    env = environment(run.folder)
    with (
        Terminal(program, env) as talking,
        Terminal(program, env) as browsing,
        connected(run.notes, run.folder, name="soak") as client,
    ):
        for app in (talking, browsing):
            app.wait_for("─ Notes", "Ask, tell", timeout=_PATIENCE)
        processes = {"app, talked to": talking.pid, "app, browsed": browsing.pid}
        for status in Path("/proc").glob("[0-9]*/cmdline"):
            if b"\0mcp\0" in status.read_bytes() and str(run.notes).encode() in status.read_bytes():
                processes["mcp"] = int(status.parent.name)
        run.started = time.monotonic()
        actors = [
            run.actor("talking", talk(run, talking), 0),
            run.actor("browsing", browse(run, browsing), 0),
            run.actor("commands", command(run), 4),
            run.actor("mcp", serve(run, client), 2),
            run.actor("editor", edit(run, run.notes, "vim"), 7),
            run.actor("editor elsewhere", edit(run, run.other, "emacs"), 13),
            run.actor("sync", synced(run), 15),
        ]
        for actor in actors:
            actor.start()
        sample(run, processes)  # a run may be over before all actors have started
        while run.now < run.minutes * 60:
            run.over.wait(run.minutes * 60 / SAMPLES)
            sample(run, processes)
        run.over.set()
        for actor in actors:
            actor.join(5 * _PATIENCE)
        for app in (talking, browsing):
            app.send("\x11")
            app.wait_exit(_PATIENCE)


def run(argv: list[str]) -> dict[str, Any]:
    """Soak, print nothing; the caller prints the tables and the JSON."""
    options = argparse.ArgumentParser(prog="soak")
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--plot", type=Path, default=None, help="where the picture (SVG) goes")
    options.add_argument("--entries", type=int, default=300, help="at the start, at least 40")
    chosen = options.parse_args(argv)
    if not Path("/proc/self/statm").exists():
        raise SystemExit("Memory and open files are read from /proc, which isn't here.")
    with tempfile.TemporaryDirectory(prefix="kbtui-soak-") as folder:
        made = Run(Path(folder), chosen.minutes, max(_FEW, chosen.entries))
        _stage(made)
        _live(made)
        settle(made)
    if chosen.plot is not None:
        panels = {
            "memory (MB)": made.memory,
            "open files": made.handles,
            "size (MB)": made.sizes,
            "app and MCP (ms)": _of(made.took, "app", "mcp"),
            "commands (ms)": _of(made.took, "cli"),
        }
        chosen.plot.write_text(draw(f"{chosen.minutes:g} minutes", chosen.minutes, panels))
    return _report(made)


def _of(took: dict[str, list[tuple[float, float]]], *rooms: str) -> dict[str, Any]:
    return {name: points for name, points in sorted(took.items()) if name.startswith(rooms)}


def _report(run: Run) -> dict[str, Any]:
    waits = Table("how long it took (ms)", ["action", "count", "median", "p95", "first", "last"])
    for name, points in sorted(run.took.items()):
        values = [value for _, value in points]
        quarter = max(1, len(values) // 4)
        ends = [statistics.median(part) for part in (values[:quarter], values[-quarter:])]
        waits.row(name, len(values), spread(values).median, spread(values).p95, *ends)
    states = Table("what is held", ["what", "start", "quarter", "half", "end", "highest"])
    for what, series in (("MB", run.memory), ("files", run.handles), ("MB on disk", run.sizes)):
        for name, points in series.items():
            values = [value for _, value in points]
            at = [values[int((len(values) - 1) * part)] for part in (0, 0.25, 0.5, 1)]
            states.row(f"{name} ({what})", *at, max(values))
    figures = {
        "versions": versions("textual", "dulwich"),
        "minutes": run.minutes,
        "actions": sum(map(len, run.took.values())),
        "problems": run.problems,
        "rises": {
            "memory, over 10 %": rises(run.memory, 0.1),
            "open files, over 10 %": rises(run.handles, 0.1),
            "latency, over 50 %": rises(run.took, 0.5),
            "size, over 50 %": rises(run.sizes, 0.5),
        },
        "series": {
            what: {
                name: " ".join(f"{value:.4g}" for _, value in points)
                for name, points in series.items()
            }
            for what, series in (
                ("MB", run.memory),
                ("open files", run.handles),
                ("MB on disk", run.sizes),
            )
        },
    }
    print(json.dumps({"problems": run.problems}), file=sys.stderr)
    return {"tables": [waits, states], "figures": figures}
