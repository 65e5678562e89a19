"""Commands: processor time of one-shot commands, beside what others need for the same.

`ask` talks to a scripted endpoint on this machine, so it is all our own time; `import litellm`
alone runs in the same rounds. What runs before the rounds isn't counted, unless there is none. Peers are looked for in environments of their own, `--llm BIN` and
`--basic-memory BIN`, and left out where none is given; basic-memory indexes the same notes, and
both search them by words.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.material import make_vault
from tests.benchmarks.report import Table, spread, versions
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "where is the spare key?"
QUERY = "key"
ANSWER = "Under the green pot."
OWN_SECONDS, HELP_SECONDS = 1.0, 0.09


def processor_seconds(argv: list[str], env: dict[str, str]) -> float:
    """User and system time of a process and of those that it waited for."""
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None  # noqa: PT018
        out, complaint = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, 1}:  # 1: nothing was found
        raise RuntimeError(f"{argv}: {(out + complaint).decode()[-400:]}")
    return usage.ru_utime + usage.ru_stime


def _llm_home(home: Path, server: ScriptedServer) -> dict[str, str]:
    folder = home / "llm"
    folder.mkdir()
    (folder / "extra-openai-models.yaml").write_text(
        f"- model_id: scripted\n  model_name: scripted\n  api_base: {server.url}\n"
    )
    return {"LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "none"}


def run(argv: list[str]) -> dict[str, Any]:
    """Measure, print nothing; the caller prints the table and the JSON."""
    options = argparse.ArgumentParser(prog="commands")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--entries", type=int, default=300)
    options.add_argument("--only", default="", help="rows with these in their names, by commas")
    options.add_argument("--llm", help="the program `llm` of an environment of its own")
    options.add_argument("--basic-memory", help="the same of `basic-memory`")
    chosen = options.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, ScriptedServer([Reply(ANSWER)]) as server:
        wanted = chosen.only.split(",")
        rows = _commands(Path(folder), server, chosen)
        rows = {name: one for name, one in rows.items() if any(each in name for each in wanted)}
        first = {name: [one()] for name, one in rows.items()}
        taken: dict[str, list[float]] = {name: [] for name in rows} if chosen.rounds else first
        for _ in range(chosen.rounds):
            for name, one in rows.items():
                taken[name].append(one())
    return _summary(taken)


def _commands(
    home: Path, server: ScriptedServer, chosen: argparse.Namespace
) -> dict[str, Callable[[], float]]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    ours = {
        **env,
        "PYTHONPATH": str(ROOT),
        "KBTUI_WORKSPACE": str(home / "notes"),
        "KBTUI_SEARCH__BACKGROUND": "false",
        "KBTUI_MODELS__CHAT__MODEL": "openai/scripted",
        "KBTUI_MODELS__CHAT__API_BASE": server.url,
    }
    make_vault(home / "notes" / "knowledge", chosen.entries)
    entry = home / "notes" / "knowledge" / "topics" / "garden.md"
    entry.write_text("# Garden\n\nThe spare key is under the green pot.\n")
    processor_seconds([sys.executable, "-m", "kbtui", "init"], ours)

    def row(argv: list[str], env: dict[str, str]) -> Callable[[], float]:
        return lambda: processor_seconds(argv, env)

    def kbtui(*args: str) -> Callable[[], float]:
        return row([sys.executable, "-m", "kbtui", *args], ours)

    rows = {
        "import litellm": row(
            [sys.executable, "-c", "import litellm"],
            {**env, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        ),
        "kbtui ask": kbtui("ask", QUESTION),
        "kbtui ask, offline": row(
            [sys.executable, "-m", "kbtui", "ask", QUESTION],
            {**ours, "KBTUI_MODELS__CHAT__MODEL": "offline"},
        ),
        "kbtui search": kbtui("search", QUERY),
        "kbtui list": kbtui("list"),
        "kbtui show": kbtui("show", "garden"),
        "kbtui log": kbtui("log", "-n", "10"),
        "kbtui inbox": kbtui("inbox"),
        "kbtui config": kbtui("config", "list"),
        "kbtui --help": kbtui("--help"),
        "kbtui --version": kbtui("--version"),
    }
    if chosen.llm:
        rows["llm"] = row(
            [chosen.llm, "-m", "scripted", QUESTION], {**env, **_llm_home(home, server)}
        )
    if chosen.basic_memory:
        shutil.copytree(home / "notes" / "knowledge", home / "copy")
        theirs = {**env, "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false"}
        for step in (["project", "add", "notes", str(home / "copy")], ["reindex", "--search"]):
            processor_seconds([chosen.basic_memory, *step], theirs)
        rows["basic-memory search"] = row(
            [chosen.basic_memory, "tool", "search-notes", QUERY, "--project", "notes"], theirs
        )
    return rows


def _summary(taken: dict[str, list[float]]) -> dict[str, Any]:
    table = Table("commands", ["command", "processor s, median", "lowest", "highest", "bar"])
    middle = {name: spread(seconds).median for name, seconds in taken.items()}
    bars = {"kbtui --help": HELP_SECONDS, "kbtui --version": HELP_SECONDS}
    if "import litellm" in middle:
        bars["kbtui ask"] = middle["import litellm"] + OWN_SECONDS
    if "basic-memory search" in middle:
        bars["kbtui search"] = 0.3 * middle["basic-memory search"]
    for name, seconds in taken.items():
        table.row(name, middle[name], min(seconds), max(seconds), bars.get(name))
    return {"tables": [table], "figures": {"versions": versions("litellm"), **middle}}
