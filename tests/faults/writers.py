"""Two writers in processes of their own, and the account of what became of each change."""

from __future__ import annotations

import contextlib
import json
import os
import random
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kbtui.errors import ConflictError
from kbtui.history.change import Actor
from kbtui.workspace import files
from kbtui.workspace.opening import create_workspace, open_workspace
from kbtui.workspace.scan import Scanner
from tests.faults.world import REPOSITORY, check_with_git, open_history

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kbtui.history.history import History

SHARED = tuple(f"knowledge/topics/shared-{n}.md" for n in range(3))


@dataclass
class Outcome:
    """How many changes became commits, how many were refused, and what is wrong."""

    commits: int = 0
    conflicts: int = 0
    wrong: list[str] = field(default_factory=list)


def run_writers(root: Path, each: int, *, meetings: int) -> Outcome:
    """Let two processes make `each` changes, and check that every one is accounted for.

    Before their first `meetings` changes they meet between reading and writing, so that each file
    that both write then is a sure race.
    """
    create_workspace(root)
    open_history(root)
    reports = [root.parent / f"writer-{name}.json" for name in "ab"]
    pipes = (os.pipe(), os.pipe())
    children = [
        _fork(root, name, each, report, meeting=_meeting(pipes, number, meetings))
        for number, (name, report) in enumerate(zip("ab", reports, strict=True))
    ]
    for end in (end for pipe in pipes for end in pipe):
        os.close(end)
    for child in children:
        os.waitpid(child, 0)
    outcome = Outcome()
    history = open_history(root)
    for report in reports:
        _settle(outcome, history, json.loads(report.read_text()))
    _check_whole(outcome, history, root)
    return outcome


def _meeting(pipes: Sequence[tuple[int, int]], number: int, meetings: int) -> Callable[[int], None]:
    """What a writer calls to wait for the other one; a writer that is gone keeps nobody waiting."""
    (mine, my_end), (other_end, others) = pipes[number], pipes[1 - number]
    foreign = [my_end, other_end]

    def meet(change: int) -> None:
        while foreign:
            os.close(foreign.pop())
        if change >= meetings:
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(others, b".")
        os.read(mine, 1)

    return meet


def _fork(root: Path, name: str, each: int, report: Path, *, meeting: Callable[[int], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        report.write_text(json.dumps(_write(root, name, each, meeting)))
    except BaseException:  # noqa: BLE001 — a child reports whatever happens to it
        report.write_text(json.dumps([{"error": traceback.format_exc()}]))
    finally:
        os._exit(0)


def _write(
    root: Path, name: str, each: int, meet: Callable[[int], None]
) -> list[dict[str, str | None]]:
    """Read a file, write its next version; half of the files are shared with the other writer."""
    rng = random.Random(name)
    history = open_history(root)
    actor = Actor.AGENT if name == "a" else Actor.MCP
    account = []
    for number in range(each):
        path = SHARED[number % 3] if number % 2 else f"knowledge/people/{name}-{number % 20}.md"
        before = files.read_bytes(root, path) if files.exists(root, path) else None
        base = None if before is None else files.blob_id(before)
        text = f"writer {name}\nchange {number}\nbase {base}\n{'x' * rng.randint(0, 500)}\n"
        record = {"path": path, "text": text, "base": base, "commit": None, "kept": None}
        meet(number)
        try:
            with history.change(actor, f"{name} {number}") as change:
                change.write(path, text, expecting=base)
            record["commit"] = change.result.id if change.result else "none"
        except ConflictError as error:
            record["kept"] = str(error)
        account.append(record)
    return account


def _settle(outcome: Outcome, history: History, account: list[dict[str, str | None]]) -> None:
    for record in account:
        if "error" in record:
            outcome.wrong.append(str(record["error"]))
        elif record["commit"] is not None:
            outcome.commits += 1
            _check_commit(outcome, history, record)
        else:
            outcome.conflicts += 1
            kept = str(record["kept"])
            if "conflict-" not in kept:
                outcome.wrong.append(f"refused without keeping the text: {kept}")


def _check_commit(outcome: Outcome, history: History, record: dict[str, str | None]) -> None:
    """A commit holds its text, and was built on what the writer had read."""
    path, commit = str(record["path"]), str(record["commit"])
    if history.tree(commit).get(path) != files.blob_id(str(record["text"]).encode()):
        outcome.wrong.append(f"{commit[:8]} doesn't hold what was written to {path}")
    parent = history.commit(commit).parent
    before = history.tree(parent).get(path) if parent else None
    if before != record["base"]:
        outcome.wrong.append(f"{commit[:8]} overwrote a version of {path} that nobody had read")


def _check_whole(outcome: Outcome, history: History, root: Path) -> None:
    log = list(history.log())
    if len(log) != outcome.commits:
        outcome.wrong.append(f"{outcome.commits} were acknowledged, the log has {len(log)}")
    deleted = [path.path for commit in log for path in commit.paths if path.kind == "deleted"]
    outcome.wrong += [f"deleted unasked: {path}" for path in deleted]
    adopted = history.adopt(settle=0)
    if adopted is not None:
        outcome.wrong.append(f"recorded as the user's: {adopted.subject}")
    copies = Scanner(open_workspace(root)).conflict_copies()
    if len(copies) != outcome.conflicts:
        outcome.wrong.append(f"{outcome.conflicts} conflicts, {len(copies)} copies")
    outcome.wrong += check_with_git(root / REPOSITORY)
