"""What importing a module brings along, looked at in a fresh process.

A linter sees which imports are written; only a fresh process shows which ones happen. Engines and
other slow libraries may only be loaded where they are used.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
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
NOT_YET = {"kbtui.redaction.redact", "kbtui.sessions.store", "kbtui.history.objects.commit"}
"""Modules of ours whose tables and expressions take longer than a frame to make."""
# They run in processes of their own alone; the hub's library brings Rich.
CHILD_PROGRAMS = {"kbtui.models.hub", "kbtui.search.embedding.prepare_model"}
HEADLESS = [
    name
    for _, name, _ in pkgutil.walk_packages(kbtui.__path__, "kbtui.")
    if not name.startswith("kbtui.tui") and name not in CHILD_PROGRAMS
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
    """All modules in a process that has run `code`, and the top-level names of theirs."""
    script = f"{code}\nimport sys, json; print(json.dumps(sorted({{*sys.modules, *(m.partition('.')[0] for m in sys.modules)}})))"
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
    assert not loaded & (FIRST_PAINT | NOT_YET)


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


APART = ENGINES | {"textual", "rich", "openai", "mcp", "keyring", "watchfiles"}
READING = APART | {"whoosh", "numpy", "asyncio", "httpx", "ssl"}
NEVER_NEEDED = {
    "list": READING,
    "show garden": READING,
    "log": READING,
    "why garden": READING,
    "sessions": READING,
    "new topic Shed": READING,
    "export -o there.md": READING,
    "import --no-memory vault": READING | {"http", "multiprocessing"},
    "search key": APART,  # no model is prepared
    "inbox": APART | {"whoosh", "numpy"},
    "remember it": APART | {"whoosh", "numpy"},
    "audit": APART | {"whoosh", "numpy"},
    "config list": READING | {"dulwich", "sqlite3", "yaml", "subprocess"},
    "completion bash": READING | FIRST_PAINT - {"click"} | {"subprocess", "logging"},
    "help search": READING | FIRST_PAINT - {"click"} | {"subprocess", "logging"},
    "--help": READING | FIRST_PAINT - {"click"} | {"subprocess", "tempfile", "logging"},
}
# One process runs them all, each in a child of its own that has loaded nothing yet.
RUN_EACH = """
import json, os, sys
from kbtui.cli.root import run
for line in sys.argv[1:]:
    sys.stdout.flush()
    if not (child := os.fork()):
        out = os.dup(1)
        for stream in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        try:
            status = run(line.split())
        except SystemExit as end:
            status = end.code
        loaded = sorted({name.partition(".")[0] for name in sys.modules})
        os.write(out, json.dumps([line, status, loaded]).encode() + b"\\n")
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def loaded_by(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, set[str]]]:
    """How each command ended, and what it had loaded by then."""
    home = tmp_path_factory.mktemp("home")
    entry = home / "notes" / "knowledge" / "topics" / "garden.md"
    entry.parent.mkdir(parents=True)
    entry.write_text("# Garden\n\nThe key is under the pot.\n")
    (home / "vault").mkdir()
    (home / "vault" / "Shed.md").write_text("# Shed\n\nThe spade is in it.\n")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "KBTUI_WORKSPACE": str(home / "notes"),
        "KBTUI_SEARCH__BACKGROUND": "false",
    }
    # Only the first command of all compiles the word lists, and needs Whoosh for them.
    compiled = "from kbtui.offline.language import languages; languages()"
    subprocess.run([sys.executable, "-c", compiled], env=env, cwd=home, check=True)
    done = subprocess.run(
        [sys.executable, "-c", RUN_EACH, *NEVER_NEEDED],
        env=env,
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {line: (status, set(loaded)) for line, status, loaded in found}


@pytest.mark.parametrize("command", NEVER_NEEDED)
def test_a_command_loads_nothing_that_it_does_not_need(
    command: str, loaded_by: dict[str, tuple[int, set[str]]]
) -> None:
    status, loaded = loaded_by[command]
    assert status in {0, 1}  # 1: there is nothing
    assert not loaded & NEVER_NEEDED[command]


CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
PUBLIC_MODULES = {
    contract["protected_modules"][0]: sorted(
        allowed.partition(" -> ")[2] for allowed in contract["ignore_imports"]
    )
    for contract in CONTRACTS
    if contract["type"] == "protected"
}


@pytest.mark.parametrize("package", PUBLIC_MODULES)
def test_the_docstring_of_a_package_names_the_modules_that_its_contract_lets_others_import(
    package: str,
) -> None:
    told = importlib.import_module(package).__doc__ or ""
    listed = re.search(r"the only ones that other packages import:\n\n((?:.+\n)+)", told)
    assert listed is not None
    named = [line.split()[0] for line in listed[1].splitlines() if not line.startswith(" ")]
    assert sorted(f"{package}.{name}" for name in named) == PUBLIC_MODULES[package]
