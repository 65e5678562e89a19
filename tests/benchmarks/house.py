"""House: how big and how tangled the package is, by its syntax alone.

    python -m tests.benchmarks house [--list NAME]

``--list`` names what a row counts: ``paths``, ``classes``, ``faces`` or ``private``.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kbtui
from tests.benchmarks.report import Table

_ROOT = Path(kbtui.__file__).parent
_ROOMS = ("history", "memory", "knowledge", "agent", "workspace", "search", "models")
# Where it is decided what is private, and where the views are made that don't hold it.
_HOMES = (
    "knowledge/entries/",  # what a file says of itself
    "knowledge/catalog/",  # what all files say, copies and settings included
    "knowledge/library/",  # the library and the history as they are shown
    "search/index/",  # stores what a file says
    "search/query/privacy_filter.py",  # keeps it from embedding models elsewhere
    "sessions/__init__.py",  # the mark of what was drawn on
    "sessions/log_records.py",
    "views/",
    "settings.py",
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.match_case)


@dataclass(slots=True)
class House:
    """What is counted."""

    lines: int = 0
    files: int = 0
    paths: dict[str, int] = field(default_factory=dict)
    """Independent paths through each function, those of functions inside it included."""
    classes: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The files that define a class, by its name."""
    imported: dict[str, Counter[str]] = field(
        default_factory=lambda: {room: Counter() for room in _ROOMS}
    )
    """Of a room: its files that others import, by how many do."""
    private: dict[str, int] = field(default_factory=dict)
    """Lines that name what is private, by file, outside the homes of that."""


def run(argv: list[str]) -> dict[str, Any]:
    """Count."""
    parser = argparse.ArgumentParser(prog="house")
    parser.add_argument("--list", choices=("paths", "classes", "faces", "private"))
    options = parser.parse_args(argv)
    house = measure()
    shared = {name: files for name, files in house.classes.items() if len(files) > 1}
    figures: dict[str, Any] = {
        "lines": house.lines,
        "files": house.files,
        "functions with more than 15 paths": sum(n > 15 for n in house.paths.values()),
        "functions with more than 10 paths": sum(n > 10 for n in house.paths.values()),
        "class names with two or more meanings": len(shared),
        **{f"files of {room} that others import": len(house.imported[room]) for room in _ROOMS},
        "files that ask what is private by hand": len(house.private),
        "lines that do": sum(house.private.values()),
    }
    table = Table("the house", ["what", "count"])
    for name, count in figures.items():
        table.row(name, count)
    tables = [table]
    if options.list:
        tables.append(_listed(house, shared, options.list))
    return {"tables": tables, "figures": figures}


def _listed(house: House, shared: dict[str, list[str]], what: str) -> Table:
    table = Table(what, ["name", "count"])
    rows: dict[str, Any] = {
        "paths": {name: count for name, count in house.paths.items() if count > 10},
        "classes": {name: ", ".join(files) for name, files in shared.items()},
        "faces": {name: count for each in house.imported.values() for name, count in each.items()},
        "private": house.private,
    }[what]
    order = (lambda row: (-row[1], row[0])) if what != "classes" else None
    for name, count in sorted(rows.items(), key=order):
        table.row(name, count)
    return table


def measure(root: Path = _ROOT) -> House:
    """Read all files of the package."""
    house = House()
    for file in sorted(root.rglob("*.py")):
        name = file.relative_to(root).as_posix()
        text = file.read_text()
        tree = ast.parse(text)
        house.files += 1
        house.lines += text.count("\n")
        for label, function in _functions(tree):
            house.paths[f"{name}:{label}"] = paths(function)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                house.classes[node.name].append(name)
            for module in _imports(node):
                _count_import(house, name, module)
        if not name.startswith(_HOMES) and (lines := _private_lines(tree)):
            house.private[name] = lines
    return house


def _functions(tree: ast.AST, above: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The functions of a module and the methods of its classes; not those inside of functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.")
        elif isinstance(node, _DEFINITIONS):
            yield f"{above}{node.name}", node
        else:
            yield from _functions(node, above)


def paths(function: ast.AST) -> int:
    """Count the independent paths through a function.

    One, and one more for each branch, loop, handler, ``and``, ``or``, comprehension and its conditions.
    """
    count = 1
    for node in ast.walk(function):
        if isinstance(node, _BRANCHES):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
    return count


def _imports(node: ast.AST) -> list[str]:
    """The modules that a statement imports, and the names that may be modules."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{each.name}" for each in node.names]
    return []


def _count_import(house: House, importer: str, module: str) -> None:
    parts = module.split(".")
    if parts[0] != "kbtui" or len(parts) < 3 or parts[1] not in house.imported:
        return
    room = parts[1]
    if importer.startswith(f"{room}/"):
        return
    while parts:
        path = _ROOT.joinpath(*parts[1:])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                house.imported[room][file.relative_to(_ROOT).as_posix()] += 1
                return
        parts.pop()


def _private_lines(tree: ast.AST) -> int:
    """The lines with a name, argument or keyword that speaks of what is private."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.arg(arg=name)
                | ast.alias(name=name)
            ):
                pass
            case ast.keyword(arg=str(name)) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.Constant(value="private"):
                name = "private"
            case _:
                continue
        if "private" in name.lower() and name != "_PRIVATE_USE":
            found.add(node.lineno)
    return len(found)
