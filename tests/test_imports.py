"""What importing a module brings along, looked at in a fresh process.

A linter sees which imports are written; only a fresh process shows which ones happen. Engines and
other slow libraries may only be loaded where they are used.
"""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import kbtui

ROOT = Path(__file__).resolve().parents[1]
ENGINES = {
    "litellm",
    "torch",
    "sentence_transformers",
    "transformers",
    "onnx",
    "onnxruntime",
    "tokenizers",
}
SLOW = ENGINES | {"whoosh", "dulwich", "keyring", "watchfiles"}
FIRST_PAINT = SLOW | {"pydantic", "numpy", "yaml", "click", "rapidfuzz", "frontmatter", "sqlite3"}
HEADLESS = [
    name
    for _, name, _ in pkgutil.walk_packages(kbtui.__path__, "kbtui.")
    if not name.startswith("kbtui.tui") and name != "kbtui.search.embedding.prepare_model"
]
# In any order, as no module imports one that imports it (`lint-imports`).
ONE_BY_ONE = """
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
    brought = {unwanted!r} & {{each.partition(".")[0] for each in sys.modules}}
    if brought:
        sys.exit(f"{{name}} imports {{sorted(brought)}}")
"""


def _loaded_after(code: str) -> set[str]:
    """The top-level names of all modules in a process that has run `code`."""
    script = f"{code}\nimport sys, json; print(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_no_headless_module_loads_textual_or_an_ai_engine() -> None:
    code = ONE_BY_ONE.format(modules=HEADLESS, unwanted=ENGINES | {"textual", "rich"})
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert not done.returncode, done.stderr


def test_what_is_imported_before_the_first_paint_is_textual_and_little_else() -> None:
    loaded = _loaded_after("import kbtui.__main__, kbtui.tui.app.app, kbtui.tui.app.main")
    assert not loaded & FIRST_PAINT


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(option: str) -> None:
    loaded = _loaded_after(
        f"from kbtui.cli.root import run\ntry:\n    run(['{option}'])\nexcept SystemExit:\n    pass"
    )
    assert not loaded & (SLOW | {"textual", "pydantic", "numpy", "yaml", "sqlite3"})


def test_opening_and_searching_by_words_loads_no_ai_engine(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from kbtui.knowledge_base import KnowledgeBase\n"
        f"kb = KnowledgeBase.open(Path({str(tmp_path / 'kb')!r}), create=True)\n"
        "kb.search.sync(); kb.search.search('anything', semantic=False); kb.close()"
    )
    assert not _loaded_after(code) & (ENGINES | {"textual", "rich"})
