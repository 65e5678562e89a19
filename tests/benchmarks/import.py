# ruff: noqa: N999 - it is called as the command is
"""Imports: a large export read and brought in, beside ijson alone on the same file.

``--size`` is the export's in MB, ``--bring`` that of the one which is really brought in, which takes
longer: every message is searched for secrets; ``--notes`` is how many notes of a folder are, ``--html``
the size of what is read of Gemini and of web pages. Each is measured in a process of its own, by its
processor time too, without that of its helpers.

``--grow`` brings exports of that many MB and three times as large in by the command, and compares
how much memory it had with its helpers; ``--emoji`` is how many MB each of three conversations has
with an emoji in each message, which widens whatever Python keeps of it. ``--talks`` is how many MB one
conversation has in the form of each of the ``--programs``, with short messages and long ones, and
``--stream`` the size of an export of Claude.ai and of what is in a zip of ChatGPT's. ``--base`` is the
folder of an earlier build, with a ``.venv``, beside which the command is timed in turn: all of the
processor's, helpers included.

What the time of notes is spent on is told by samples: the innermost function of a part counts.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.benchmarks.commands import processor_seconds
from tests.benchmarks.exports import (
    write_chatgpt,
    write_claude,
    write_emoji,
    write_gemini,
    write_notes,
    write_pages,
)
from tests.benchmarks.long_talks import TALKS, write_talk
from tests.benchmarks.material import ROOT
from tests.benchmarks.paired import environment_of, python_of
from tests.benchmarks.report import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

BAR_SHARE, BAR_MB = 0.3, 300
BAR_PEAK_MB = 200
BARS = {"notes": 0.5, "conversations": 1.0}
MOST_GROWTH = 1.25
"""How much more memory three times as large an export may take; keeping its texts takes more."""
_GROWN = 3
_MB_OF_A_NOTE = 0.03
_POLL_SECONDS = 0.02
_SAMPLE_SECONDS = 0.002
_PARTS: dict[str, tuple[str, ...]] = {
    "loading modules": ("<frozen importlib", "/kbtui/cache.py"),
    "hash": (":blob_id", ":git_object", ":hash_file", "/hashlib.py"),
    "compress": ("/dulwich/", ":_store_pack"),
    "sync": (":_sync", ":sync"),
    "redaction": ("/kbtui/redaction/",),
    "parse": (
        *("/kbtui/knowledge/format/", "/kbtui/knowledge/entries/"),
        *("/yaml/", "/markdown_it/", "/frontmatter/"),
    ),
    "tables and catalogue": ("/kbtui/derived.py", "/kbtui/knowledge/"),
    "reading and making notes": ("/kbtui/importers/",),
    "names, locks and writing": ("/kbtui/history/", "/kbtui/workspace/"),
}
"""Which functions belong to a part, by a piece of their file and name."""


def run(argv: list[str]) -> dict[str, Any]:
    """Measure, and print how it stands to the bars."""
    parser = argparse.ArgumentParser(prog="import")
    parser.add_argument("--size", type=float, default=1000)
    parser.add_argument("--bring", type=float, default=20)
    parser.add_argument("--notes", type=int, default=1500)
    parser.add_argument("--html", type=float, default=20)
    parser.add_argument("--grow", type=float, default=20)
    parser.add_argument("--emoji", type=float, default=22)
    parser.add_argument("--talks", type=float, default=22)
    parser.add_argument("--programs", default=",".join(each.replace(",", "") for each in TALKS))
    parser.add_argument("--stream", default="1000,320", help="two sizes")
    parser.add_argument("--base", type=Path, help="an earlier build")
    parser.add_argument("--rounds", type=int, default=5, help="of the earlier build and this one")
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args(argv)
    if options.child:
        return _child(options.child[0], Path(options.child[1]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_claude(folder / "large", options.size)
        write_claude(folder / "small", options.bring)
        write_notes(folder / "notes", options.notes)
        write_gemini(folder / "gemini", options.html)
        write_pages(folder / "pages", options.html)
        figures = {
            "ijson": _measured("ijson", folder / "large"),
            "reading": _measured("reading", folder / "large"),
            "reading Gemini": _measured("reading", folder / "gemini"),
            "reading web pages": _measured("reading", folder / "pages"),
            "bringing": _measured("bringing", folder / "small"),
            "bringing notes": _measured("bringing", folder / "notes"),
        }
        parts, shares = _shares(folder / "notes", options.notes)
        tables: list[object] = [parts]
        grown: dict[str, float] = {}
        ratios: dict[str, float] = {}
        if options.grow:
            growth, grown = _growth(folder, options.grow)
            tables.append(growth)
        peaks: dict[str, float] = {}
        if options.emoji or options.talks or options.stream:
            memory, peaks = _peaks(folder, options)
            tables.append(memory)
        if options.base:
            beside, ratios = _beside(options.base, folder, options.rounds)
            tables.append(beside)
    share = figures["reading"]["mb_s"] / figures["ijson"]["mb_s"]
    peak = max(figures[name]["peak_mb"] for name in ("reading", "bringing"))
    shown = Table("Imports", ["", "MB/s", "MB/s of processor time", "peak MB"])
    shown.rows += [
        (name, each["mb_s"], each["cpu_mb_s"], each["peak_mb"]) for name, each in figures.items()
    ]
    bars = f"reading / ijson: {share:.2f} (bar {BAR_SHARE}); peak: {peak:.0f} MB (bar {BAR_MB})"
    return {
        "tables": [shown, bars, *tables],
        "figures": {
            **figures,
            "share": share,
            "shares": shares,
            "growth": grown,
            "peaks": peaks,
            "too much memory": [kind for kind, each in peaks.items() if each > BAR_PEAK_MB],
            "too much growth": [kind for kind, each in grown.items() if each > MOST_GROWTH],
            "to the earlier build": ratios,
            "within": share >= BAR_SHARE and peak <= BAR_MB,
        },
    }


def _measured(what: str, file: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks", "import", "--child", what, str(file)]
    env = environment_of(ROOT)
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return dict(json.loads(done.stdout))


def _child(what: str, file: Path) -> dict[str, Any]:
    begun, before = time.perf_counter(), _used()
    if what == "ijson":
        import ijson

        with file.open("rb") as stream:
            count = sum(1 for _ in ijson.items(stream, "item"))
    elif what == "sampled":
        return _sampled(lambda: _bring(file, only_look=False))
    else:
        count = _bring(file, only_look=what == "reading")
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = _used() - before
    size = sum(each.stat().st_size for each in (file, *file.glob("*"))) / 1_000_000
    return {
        "mb_s": size / seconds,
        "cpu_mb_s": size / used,
        "seconds": seconds,
        "conversations": count,
        "peak_mb": peak,
    }


def _used() -> float:
    """Return the processor time of this process and its helpers, finer than `os.times` has it."""
    each = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def _bring(file: Path, *, only_look: bool) -> int:
    from kbtui.importers import engine
    from kbtui.importers.export_files import OpenedExport
    from kbtui.knowledge_base import KnowledgeBase

    quick = {"search": {"semantic": False}}
    with (
        tempfile.TemporaryDirectory() as folder,
        KnowledgeBase.open(Path(folder, "notes"), create=True, overrides=quick) as kb,
        OpenedExport(file) as opened,
    ):
        source = engine.find_source(opened)
        if source is None:
            raise ValueError("the export isn't recognised")
        if only_look:
            return engine.preview(kb.services, opened, source).conversations
        return len(engine.run(kb.services, opened, source).sessions)


# Where the time goes ------------------------------------------------------------------------------


def _shares(notes: Path, count: int) -> tuple[Table, dict[str, float]]:
    """Tell what the processor's time of bringing notes in is spent on."""
    figures = _measured("sampled", notes)
    seconds, samples = figures["seconds"], Counter[str](figures["samples"])
    table = Table(f"Processor time of {count:,} notes", ["", "share", "µs a note"])
    shares = {part: samples[part] / (samples.total() or 1) for part in (*_PARTS, "rest")}
    for part, share in shares.items():
        table.row(part, share, 1e6 * seconds * share / count)
    table.row("all", 1.0, 1e6 * seconds / count)
    return table, shares


def _sampled(work: Callable[[], object]) -> dict[str, Any]:
    """Do something, looking at what is being done at equal intervals of the processor's time."""
    samples: Counter[str] = Counter()

    def sample(_number: int, frame: FrameType | None) -> None:
        samples[_part_of(frame)] += 1

    before = time.process_time()
    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _SAMPLE_SECONDS, _SAMPLE_SECONDS)
    try:
        work()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"seconds": time.process_time() - before, "samples": samples}


def _part_of(frame: FrameType | None) -> str:
    while frame is not None:
        place = f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
        for part, pieces in _PARTS.items():
            if any(piece in place for piece in pieces):
                return part
        frame = frame.f_back
    return "rest"


# Memory -------------------------------------------------------------------------------------------


def _growth(folder: Path, megabytes: float) -> tuple[Table, dict[str, float]]:
    """Compare what exports of two sizes take of the memory."""
    kinds: dict[str, Callable[[Path, float], None]] = {
        "conversations": write_claude,
        "conversations in a zip": write_chatgpt,
        "notes": lambda place, size: write_notes(place, 1 + round(size / _MB_OF_A_NOTE), 10),
    }
    columns = ["", f"peak MB at {megabytes:g} MB", f"at {_GROWN * megabytes:g} MB", "ratio", "bar"]
    table, ratios = Table("Memory of the command and its helpers", columns), dict[str, float]()
    for number, (kind, write) in enumerate(kinds.items()):
        peaks: list[float] = []
        for times in (1, _GROWN):
            export = folder / f"{number}-{times}"
            write(export, times * megabytes)
            peaks.append(_peak(_command(ROOT, folder / f"{export.name}-notes", export))[0])
        ratios[kind] = peaks[1] / peaks[0]
        table.row(kind, *peaks, ratios[kind], MOST_GROWTH)
    return table, ratios


def _peaks(folder: Path, options: argparse.Namespace) -> tuple[Table, dict[str, float]]:
    """Measure the most memory of the command, its helpers' said apart."""
    columns = ["", "peak MB", "of that its helpers", "bar"]
    table, peaks = Table("Memory of the command and its helpers", columns), dict[str, float]()
    for kind, export in _exports(folder, options):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            peaks[kind], helpers = _peak(_command(ROOT, Path(place, "notes"), export))
        table.row(kind, peaks[kind], helpers, BAR_PEAK_MB)
    return table, peaks


def _exports(folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Write exports of long conversations and of many, each with what it is."""
    export = folder / "export"
    for words, twice in product((300, 12), (True, False)) if options.emoji else ():
        write_emoji(export, options.emoji, words, twice=twice)
        yield f"{words} words in {'two notations' if twice else 'one notation'}", export
    programs = options.programs.split(",")
    wanted = [each for each in TALKS if each.replace(",", "") in programs]
    for program, characters in product(wanted, (150, 4000)) if options.talks else ():
        talk = write_talk(program, folder, options.talks, characters)
        yield f"{program}, {characters} characters", talk
    kinds = (("Claude.ai", write_claude), ("ChatGPT in a zip", write_chatgpt))
    for (kind, write), size in zip(kinds, filter(None, options.stream.split(",")), strict=False):
        write(export, float(size))
        yield f"{kind}, {size} MB", export


def _peak(argv: list[str]) -> tuple[float, float]:
    """Return the most megabytes of a process and those that it started, and theirs at that time."""
    most = 0, 0
    with subprocess.Popen(argv, env=environment_of(ROOT), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            helpers = sum(map(_kilobytes, _started_by(process.pid)))
            most = max(most, (_kilobytes(process.pid) + helpers, helpers))
            time.sleep(_POLL_SECONDS)
    if process.returncode:
        raise RuntimeError(f"{argv} ended with {process.returncode}")
    return most[0] / 1024, most[1] / 1024


def _started_by(process: int) -> list[int]:
    """Return the processes below one; until it is a program, a new one shares its memory."""
    own = _text(Path(f"/proc/{process}/cmdline"))
    _, *below = _family(process)
    return [each for each in below if _text(Path(f"/proc/{each}/cmdline")) != own]


def _family(process: int) -> Iterator[int]:
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in _text(task).split():
            yield from _family(int(child))


def _kilobytes(process: int) -> int:
    lines = _text(Path(f"/proc/{process}/status")).splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # it has ended
        return ""


# An earlier build ---------------------------------------------------------------------------------


def _beside(base: Path, folder: Path, rounds: int) -> tuple[Table, dict[str, float]]:
    """Time the command of an earlier build and of this one in turn."""
    columns = ["", "the earlier build, s", "this build, s", "ratio", "bar"]
    table, ratios = Table("Processor time of the command", columns), dict[str, float]()
    exports = {"notes": folder / "notes", "conversations": folder / "small"}
    for kind, export in exports.items():
        took: dict[Path, list[float]] = {base: [], ROOT: []}
        for number in range(rounds + 1):
            for build, times in took.items():
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    cache = folder / f"cache-{build.name}-{build == base}"
                    command = _command(build, Path(place, "notes"), export)
                    times.append(processor_seconds(command, environment_of(build, cache)))
                if not number:  # its bytecode was made then
                    times.clear()
        pairs = zip(took[ROOT], took[base], strict=True)
        ratios[kind] = median(now / before for now, before in pairs)
        table.row(kind, median(took[base]), median(took[ROOT]), ratios[kind], BARS[kind])
    return table, ratios


def _command(build: Path, place: Path, export: Path) -> list[str]:
    place.mkdir()
    told = ["-m", "kbtui", "-w", str(place), "import", "--no-memory", str(export)]
    return [python_of(build), *told]
