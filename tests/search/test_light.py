from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAVY = "whoosh numpy onnxruntime tokenizers torch watchfiles rapidfuzz yaml litellm".split()  # noqa: SIM905


def run(code: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-1000:]


def test_importing_the_index_imports_no_engine() -> None:
    run(
        "import sys, kbtui.search.search_index, kbtui.search.results, kbtui.search.query.parser\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        f"assert not loaded & set({HEAVY}), loaded & set({HEAVY})\n"
    )


def test_importing_the_index_reads_no_setting_and_opens_no_file() -> None:
    run(
        "import sys, kbtui.search.search_index\nassert not {'pydantic', 'sqlite3'} & set(sys.modules)\n"
    )
