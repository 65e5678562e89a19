"""Which tests run which lines, and how long each takes: a plugin of pytest's.

``python -m pytest -n auto -p tests.mutants.lines`` writes one file a worker into the folder that
``KBTUI_LINES`` names. A statement that is run sets a byte, which costs a tenth of what a tracer
does; forked children set the same bytes, programs that a test starts set none.
"""

from __future__ import annotations

import ast
import builtins
import json
import mmap
import os
import sys
from collections import Counter
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.mutants.sites import PACKAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

FOLDER = "KBTUI_LINES"
_ROOT = Path(__file__).resolve().parents[2]
_NAME = "_lines_that_ran"
_MOST = 1 << 17
_ran = mmap.mmap(-1, _MOST)
_statements: list[str] = []


class Lines:
    """What a run has recorded: the tests of a line, the cheapest first."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._of_line: dict[str, list[str]] = {}
        self._breadth: Counter[str] = Counter()
        for file in sorted(folder.glob("*.json")):
            for test, each in json.loads(file.read_text("utf-8")).items():
                self.seconds[test] = each["seconds"]
                for line in each["lines"]:
                    self._of_line.setdefault(line, []).append(test)
                    self._breadth[test] += 1

    def tests(self, file: str, line: int) -> list[str]:
        """Who runs the line, the tests that run the fewest others first."""
        found = self._of_line.get(f"{file}:{line}", ())
        return sorted(found, key=lambda test: (self._breadth[test] * self.seconds[test], test))


class _Marking(ast.NodeTransformer):
    """Sets a byte before each statement of each function."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._is_inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._inside(node, is_function=True)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._inside(node, is_function=True)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._inside(node, is_function=False)

    def _inside(self, node: ast.AST, *, is_function: bool) -> ast.AST:
        before, self._is_inside = self._is_inside, is_function
        marked = self.generic_visit(node)
        self._is_inside = before
        return marked

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if self._is_inside and isinstance(body, list):
                setattr(node, name, [each for one in body for each in self._marked(one)])
        return node

    def _marked(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        if isinstance(statement, ast.Global | ast.Nonlocal):
            yield statement
            return
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            (mark,) = ast.parse(f"{_NAME}[{len(_statements)}] = 1").body
            _statements.append(f"{self._file}:{statement.lineno}")
            for node in ast.walk(mark):
                ast.copy_location(node, statement)
            yield mark
        yield statement


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        file = self.get_filename(fullname)
        tree = ast.parse(self.get_data(file))
        marked = _Marking(Path(file).relative_to(_ROOT).as_posix()).visit(tree)
        return compile(marked, file, "exec", dont_inherit=True)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not f"{name}.".startswith(tuple(each.replace("/", ".") + "." for each in PACKAGES)):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


_found: dict[str, dict[str, Any]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Mark what is imported from now on."""
    loaded = [name for name in sys.modules if name.startswith("kbtui.history")]
    assert not loaded, f"imported before it could be marked: {loaded}"
    setattr(builtins, _NAME, _ran)
    sys.meta_path.insert(0, _Finder())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note which lines a test has run, with its fixtures, and its processor time."""
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        ran = _ran[: len(_statements)]
        lines = sorted({each for each, mark in zip(_statements, ran, strict=True) if mark})
        _ran[: len(ran)] = bytes(len(ran))
        seconds = round(sum(os.times()[:4]) - before, 3)
        if lines:
            _found[item.nodeid] = {"seconds": seconds, "lines": lines}


def pytest_sessionfinish() -> None:
    """Write down what was found."""
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    (folder / f"{worker}.json").write_text(json.dumps(_found), "utf-8")
