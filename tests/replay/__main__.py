"""The replay's command line."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from tests.replay.accepted import Accepted, AcceptedError, Entry
from tests.replay.builds import (
    ROOT,
    Build,
    MissingCommitError,
    Player,
    build_of,
    prepared_model,
    working_tree,
)
from tests.replay.compare import Difference, compare
from tests.replay.lives import LIVES
from tests.replay.recording import Recording

COMMIT = "613c5499"
"""The build that others are compared with."""
_SHOWN_LINES = 16
_WIDTH = 200
_ENOUGH = 2 << 30  # bytes


@dataclass
class Outcome:
    """What playing a life came to."""

    life: str
    seconds: float = 0.0
    steps: int = 0
    differences: list[Difference] = field(default_factory=list)
    skipped: str = ""
    broken: str = ""


class Replay:
    """Plays lives on two builds, one after the other in the same place, and compares them."""

    def __init__(
        self, old: Player, new: Player, scratch: Path, accepted: Accepted, keep: Path | None
    ) -> None:
        self._old, self._new = old, new
        self._scratch = scratch
        self._keep = keep
        self._accepted = accepted
        self._data = data_folder()
        self._model = prepared_model(old.build)

    def play(self, life: str) -> Outcome:
        """Play a life on both builds."""
        begun = time.monotonic()
        outcome = Outcome(life)
        try:
            old, new = (self._record(player, life) for player in (self._old, self._new))
        except RuntimeError as error:
            outcome.broken = str(error)
            return outcome
        outcome.skipped = old.missing or new.missing
        if not outcome.skipped:
            outcome.differences = compare(life, old, new, ordered=self._accepted.ordered)
            outcome.broken = old.failed
        outcome.steps = len(old.steps)
        outcome.seconds = time.monotonic() - begun
        return outcome

    def _record(self, player: Player, life: str) -> Recording:
        """Play a life on one build; the path of its stage is the same for both."""
        stage = self._scratch / "stage" / life
        file = self._scratch / f"{life}.json"
        is_old = player is self._old
        player.play(
            life,
            folder=str(stage),
            data=str(self._data) if self._data.is_dir() else None,
            model=str(self._model),
            record=str(file),
        )
        if self._keep is not None:
            kept = self._keep / ("old" if is_old else "new")
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copytree(stage, kept / life, symlinks=True, dirs_exist_ok=True)
            shutil.copy(file, kept / file.name)
        shutil.rmtree(stage)
        return Recording.load(file)


def data_folder() -> Path:
    """Return where the measuring data lies, if it is there."""
    return Path(os.environ.get("KBTUI_DATA", ROOT.parent / "shared" / "data"))


def main(argv: Sequence[str] | None = None) -> int:
    """Play, compare and report; the exit code is 1 if something differs that isn't accepted."""
    options = _parser().parse_args(argv)
    names = [name for name in LIVES if _is_wanted(name, options.life)]
    if options.list:
        for name in names:
            print(f"{name:24} {LIVES[name].about}")
        return 0
    if not names:
        print(f"There is no life {', '.join(options.life)}; --list names them.")
        return 2
    try:
        accepted = Accepted() if options.same else Accepted.read()
        old = build_of(options.against)
    except MissingCommitError:
        print(f"skipped: this repository doesn't have the commit {options.against}.")
        return 0
    except AcceptedError as error:
        print(error)
        return 2
    new = old if options.same else working_tree()
    with tempfile.TemporaryDirectory(prefix="kbtui-replay-", dir=_memory()) as folder:
        outcomes = _play_all(names, (old, new), Path(folder), accepted, options)
    return report(outcomes, accepted, options.keep)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.replay",
        description="Play recorded lives on an earlier build and this one, and compare them.",
    )
    parser.add_argument("--life", action="append", default=[], metavar="NAME", help="only this one")
    parser.add_argument("--list", action="store_true", help="list the lives")
    parser.add_argument("--same", action="store_true", help="play the earlier build twice")
    parser.add_argument("--against", default=COMMIT, metavar="COMMIT", help="the earlier build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what was left of the lives")
    return parser


def _is_wanted(name: str, patterns: list[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _memory() -> str | None:
    """Return a folder in memory, where nothing waits for a disk, if there is room enough."""
    memory = Path("/dev/shm")
    is_roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= _ENOUGH
    return str(memory) if is_roomy else None


def _play_all(
    names: list[str],
    builds: tuple[Build, Build],
    scratch: Path,
    accepted: Accepted,
    options: argparse.Namespace,
) -> list[Outcome]:
    outcomes = []
    with (
        Player(builds[0], scratch / "old") as old,
        Player(builds[1], scratch / "new") as new,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        replay = Replay(old, new, scratch, accepted, options.keep)
        for outcome in pool.map(replay.play, names):
            print(_line(outcome), flush=True)
            outcomes.append(outcome)
    return outcomes


def _line(outcome: Outcome) -> str:
    if outcome.skipped:
        said = f"skipped: there is no {outcome.skipped} (set KBTUI_DATA to the measuring data)"
    elif outcome.broken:
        said = f"broken: {outcome.broken.splitlines()[0]}"
    else:
        count = len(outcome.differences)
        said = f"{count} differences" if count else "the same"
    return f"{outcome.life:24} {outcome.steps:3} steps {outcome.seconds:6.1f} s  {said}"


def report(outcomes: list[Outcome], accepted: Accepted, keep: Path | None) -> int:
    """Print what differs and what is skipped; return the exit code."""
    found = [each for outcome in outcomes for each in outcome.differences]
    played = [each.life for each in outcomes if not each.skipped and not each.broken]
    refused, unused = accepted.judge(found, played)
    broken = [each for each in outcomes if each.broken]
    skipped = [each for each in outcomes if each.skipped]
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        text = "".join(_shown(each, width=None, most=None) for each in found)
        (keep / "differences.txt").write_text(text, "utf-8")
    for difference in refused:
        print(_shown(difference, width=_WIDTH, most=_SHOWN_LINES), end="")
    for outcome in broken:
        print(f"\nThe life {outcome.life} doesn't work on the earlier build: {outcome.broken}")
    for entry in unused:
        print(f"\nNothing differs any more as accepted.toml says: {_described(entry)}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    parts = [
        f"{len(played)} lives played in {used.ru_utime + used.ru_stime:.0f} s of processor time",
        f"{len(skipped)} skipped",
        f"{len(found) - len(refused)} differences accepted",
        f"{len(refused)} not",
    ]
    print(f"\n{', '.join(parts)}.")
    return 1 if refused or unused or broken else 0


def _described(entry: Entry) -> str:
    return f"{entry.life} · {entry.kind} · {entry.place}"


def _shown(difference: Difference, *, width: int | None, most: int | None) -> str:
    """Lay out a difference: the life, where, when, and the lines."""
    when = f", {difference.when}" if difference.when else ""
    head = f"\n{difference.life} · {difference.kind} · {difference.place}{when}"
    lines = [line[:width] for line in difference.lines[:most]]
    left = len(difference.lines) - len(lines)
    more = [f"… and {left} lines more"] if left else []
    return "\n".join([head, *(f"    {line}" for line in (*lines, *more))]) + "\n"


if __name__ == "__main__":
    # Whoever ends it leaves no scratch folder behind.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sys.exit(main())
