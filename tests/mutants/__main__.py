"""``python -m tests.mutants`` asks the tests whether they notice small faults of the program."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.mutants.lines import Lines
from tests.mutants.runs import End, Job, run
from tests.mutants.sites import PACKAGES, Mutant, is_same, mutants

_ROOT = Path(__file__).resolve().parents[2]
_DEAD = (End.KILLED, End.TIMED_OUT)
_HOW = """\
Asks the tests whether they notice small faults of the program.

Which tests run which lines is recorded first, which takes as long as all tests, into a folder that
both steps are told:

  KBTUI_LINES=/tmp/lines python -m pytest -n auto -p tests.mutants.lines
  python -m tests.mutants --lines /tmp/lines --out /tmp/mutants.jsonl

To compare the tests of two commits, check out one after the other and give the same --base, --seed,
--count and --lines, and --again with what the first one wrote.
"""


def main() -> None:
    """Choose the mutants, run the tests that cover their lines, and write down how each ended."""
    options = _options()
    sources = _sources(options.base)
    lines = Lines(options.lines)
    jobs, changed = [], 0
    killers = _killers(options.again) if options.again else None
    for mutant in _chosen(sources, lines, options.seed, options.count):
        now = _ROOT / mutant.file
        if not now.exists() or not is_same(mutant, sources[mutant.file], now.read_text("utf-8")):
            changed += 1
            continue
        tests = lines.tests(mutant.file, mutant.line)[: options.tests]
        if killers is not None:
            if str(mutant) not in killers:
                continue
            tests = [killers[str(mutant)]] if killers[str(mutant)] else tests
        jobs.append(Job(mutant, tests, sum(lines.seconds[test] for test in tests)))
    run(jobs)
    _discount(jobs, lines)
    _report(jobs, options.out)
    ends = Counter(job.end for job in jobs)
    killed = sum(ends[end] for end in _DEAD)
    others = f"{changed} in functions that have changed since {options.base}"
    sys.stdout.write(f"{killed} of {len(jobs)} killed; {others}; {dict(ends)}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=_HOW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--tests", type=int, default=15, help="the most that a mutant is run with")
    parser.add_argument("--base", default="HEAD", help="the commit whose sources are made wrong")
    parser.add_argument(
        "--lines", type=Path, required=True, help="what a run with -p tests.mutants.lines wrote"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="a file for the ends, as JSON lines"
    )
    parser.add_argument(
        "--again", type=Path, help="ask only for what is killed in an earlier --out, by that test"
    )
    return parser.parse_args()


def _killers(earlier: Path) -> dict[str, str]:
    """Return the test that killed each mutant; none where it took too long."""
    rows = [json.loads(line) for line in earlier.read_text("utf-8").splitlines()]
    return {row["mutant"]: row["killer"] for row in rows if row["end"] in _DEAD}


def _sources(commit: str) -> dict[str, str]:
    listed = _git("ls-tree", "-r", "--name-only", commit, *PACKAGES).split()
    return {file: _git("show", f"{commit}:{file}") for file in listed if file.endswith(".py")}


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=_ROOT, check=True, capture_output=True)
    return done.stdout.decode()


def _chosen(sources: dict[str, str], lines: Lines, seed: int, count: int) -> list[Mutant]:
    """As many as asked for of those whose line some test runs; the same ones for the same seed."""
    found = [
        mutant
        for file, source in sorted(sources.items())
        for mutant in mutants(file, source)
        if lines.tests(file, mutant.line)
    ]
    return sorted(random.Random(seed).sample(found, min(count, len(found))))


def _discount(jobs: list[Job], lines: Lines) -> None:
    """Let no test kill that fails without a mutant as well."""
    killers = sorted({test for job in jobs for test in job.killers})
    plain = Job(None, killers, sum(lines.seconds[test] for test in killers))
    run([plain])
    if plain.end is End.TIMED_OUT:
        raise SystemExit("The tests that killed take too long without a mutant.")
    for job in jobs:
        if not set(plain.killers).isdisjoint(job.killers):
            job.end = End.SURVIVED


def _report(jobs: list[Job], out: Path) -> None:
    rows = [
        {"mutant": str(job.mutant), "end": job.end, "killer": "".join(job.killers)} for job in jobs
    ]
    out.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    main()
