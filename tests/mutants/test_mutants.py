"""The mutants themselves: which faults are made, and that a running process runs them."""

from __future__ import annotations

import ast
import gc
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from tests.mutants import sites
from tests.mutants.sites import is_same, mutants, mutated

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("return a < 1", {"return None", "return a <= 1", "return a < 2"}),
        ("return a + b", {"return None", "return a - b"}),
        ("return a and not b", {"return None", "return a or not b", "return a and b"}),
        ("return 'word' in a", {"return None", "return '' in a", "return 'word' not in a"}),
        ("a = b if a else ''", {"a = b if not a else ''", "a = b if a else 'wrong'"}),
        ("a.close(True)", {"pass", "a.close(False)"}),
        ("x: Literal[1] = a", set()),
    ],
)
def test_each_part_of_a_statement_is_made_wrong_in_its_way(right: str, wrong: set[str]) -> None:
    source = f"def f(a, b=1):\n    '''Says so.'''\n    {right}\n"
    made = {
        ast.unparse(mutated(mutant, source)).split("\n")[-1].strip()
        for mutant in mutants("a.py", source)
    }
    assert made == wrong


def test_a_mutant_names_its_function_and_the_line_that_a_test_must_run() -> None:
    source = "class A:\n    def f(self):\n        if self:\n            return [\n                1\n            ]\n"
    found = mutants("a.py", source)
    assert {each.function for each in found} == {"A.f"}
    assert {(each.kind, each.line) for each in found} == {
        ("condition", 3), ("return", 4), ("constant", 4),
    }  # fmt: skip


def test_comments_change_no_function_and_statements_do() -> None:
    before = "def f(a):\n    return a < 1\n"
    mutant = mutants("a.py", before)[0]
    assert is_same(mutant, before, "import os\n\n\ndef f(a):\n    # why\n    return a < 1\n")
    assert not is_same(mutant, before, "def f(a):\n    return a > 1\n")
    assert not is_same(mutant, before, "def g(a):\n    return a < 1\n")


def test_who_has_imported_a_function_runs_the_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "def twice(of):\n    return [each + each for each in [of]][0]\n"
    file = tmp_path / "doubling.py"
    file.write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    imported = import_module("doubling").twice
    (mutant,) = [each for each in mutants("doubling.py", source) if each.kind == "arithmetic"]
    assert imported(2) == 4
    assert sites.install(mutant, file, source)
    gc.freeze()
    assert imported(2) == 0
