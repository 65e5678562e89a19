"""Imports: which parts of exports come in, which are named, by an own count of what they hold.

Every text in an export's files is a part, by the place where it stands (its path of keys). It is
brought into an empty workspace, and looked for in the files there. What isn't there should be named
in the import's report. Without ``PATH`` these are the exports of the shared data, and a twin of
each newer layout (`tests/importers/twins.py`).
"""

from __future__ import annotations

import argparse
import html
import json
import re
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.material import DATA, needed
from tests.benchmarks.report import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^<>]*>")
_NO_TEXT = re.compile(r"\S*|[\d\W]*|.*://\S*")
_JOPLINS = re.compile(r"(?:\A|\n\n)id: [0-9a-f]{32}\n.*type_: \d+\Z", re.DOTALL)
_LONGEST = 12
"""Words by which a text is looked for."""


def run(argv: list[str]) -> dict[str, Any]:
    """Count, and list by export where what didn't come stood."""
    parser = argparse.ArgumentParser(prog="parts")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    given: list[Path] = parser.parse_args(argv).paths
    from tests.importers.twins import TWINS

    table = Table("Imports", ["export", "program", "parts in", "out", "not out, where", "named"])
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        found = {str(path): needed(path) for path in given}
        if not given:
            found |= {p.name: p for p in (DATA / "exports").glob("*/*") if p.is_dir()}
            for name, write in TWINS.items():
                found[name] = Path(folder, name.replace(" ", "-"))
                write(found[name])
        for name, path in found.items():
            figures[name] = each = count(path)
            rest = ", ".join(f"{where} {number}" for where, number in each["rest"].items())
            named = ", ".join(f"{what} {number}" for what, number in each["named"].items())
            said = "; ".join(filter(None, (named, *each["skipped"])))
            table.rows.append(
                (name, each["program"], each["in"], each["out"], rest or "-", said or "-")
            )
    return {"tables": [table], "figures": figures}


def count(path: Path) -> dict[str, Any]:
    """What one export holds, what of it is in a workspace afterwards, and what the report names."""
    from kbtui.importers import engine
    from kbtui.importers.export_files import OpenedExport
    from kbtui.knowledge_base import KnowledgeBase

    parts = Counter(dict.fromkeys(_parts(path), 1))
    named: Counter[str] = Counter()
    skipped: list[str] = []
    programs: list[str] = []
    quick = {"search": {"semantic": False}}
    with (
        tempfile.TemporaryDirectory() as folder,
        KnowledgeBase.open(Path(folder, "notes"), create=True, overrides=quick) as kb,
        OpenedExport(path) as opened,
    ):
        for source in engine.sources_of(opened):
            report = engine.run(kb.services, opened, source)
            programs.append(source.name)
            named.update(report.named)
            named["other branch"] += sum(each.branches for each in report.sessions)
            skipped += [f"{each.place}: {each.why}" for each in report.skipped]
        if left := engine.left_over(opened):
            skipped.append(f"{left.place}: {left.why}")
        there = " ".join(_brought(kb.workspace.root))
    rest: Counter[str] = Counter()
    for where, text in parts:
        words = text.split(" ")
        half = " ".join(words[len(words) // 2 :])  # without "Prompted", or a date and a name
        if f" {text} " not in there and (len(words) < 4 or f" {half} " not in there):
            rest[where] += 1
    return {
        "program": ", ".join(dict.fromkeys(programs)),
        "in": len(parts),
        "out": len(parts) - rest.total(),
        "rest": dict(sorted(rest.items())),
        "named": dict(sorted((+named).items())),
        "skipped": skipped,
    }


def _parts(path: Path) -> Iterator[tuple[str, str]]:
    """The texts of an export's files with where they stand, each as the words to look for."""
    for file in sorted(path.rglob("*") if path.is_dir() else [path]):
        if file.is_file() and file.name not in ("README.md", "README.txt", "LICENSE"):
            for where, text in _texts(file):
                if not _NO_TEXT.fullmatch(text) and (words := _words(text)[:_LONGEST]):
                    yield where, " ".join(words)


def _texts(file: Path) -> Iterator[tuple[str, str]]:
    data = file.read_bytes()
    if data.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(file)) as connection:
            for (value,) in connection.execute("SELECT value FROM cursorDiskKV"):
                yield from _leaves(json.loads(value), "")
    elif file.suffix == ".jsonl":
        for line in data.splitlines():
            yield from _leaves(json.loads(line), "")
    elif file.suffix == ".json":
        yield from _leaves(json.loads(data), "")
    elif file.suffix in (".md", ".txt", ".html"):
        text = _JOPLINS.sub("", data.decode())
        lines = _TAG.split(text) if file.suffix == ".html" else text.splitlines()
        if file.suffix == ".txt":  # a chat: date, name, text
            lines = [line.partition(": ")[2] or line for line in lines]
        yield from ((file.suffix, line) for line in lines)


def _leaves(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if value.startswith("{"):  # JSON in JSON
            try:
                yield from _leaves(json.loads(value), where)
            except ValueError:
                yield where, value
        else:
            yield where, value
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, where)
    elif isinstance(value, dict):
        for key, each in value.items():
            name = "*" if re.search(r"\d", key) else key
            yield from _leaves(each, f"{where}.{name}".lstrip("."))


def _words(text: str) -> list[str]:
    return _WORD.findall(_TAG.sub(" ", html.unescape(text)).replace("_", " "))


def _brought(root: Path) -> Iterator[str]:
    """The words of all that an import has written, file by file."""
    for file in sorted(root.rglob("*")):
        if (
            not file.is_file()
            or "history.git" in file.parts
            or file.is_relative_to(root / ".kbtui")
        ):
            continue
        yield f" {' '.join(_words(file.stem))} "
        if file.suffix == ".jsonl":
            for line in file.read_text().splitlines():
                yield from (
                    f" {' '.join(_words(text))} " for _, text in _leaves(json.loads(line), "")
                )
        elif file.suffix == ".md":
            yield f" {' '.join(_words(file.read_text()))} "
