"""``python -m tests.benchmarks NAME [OPTIONS]``: run one benchmark, print tables, then JSON."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path


def names() -> list[str]:
    """The modules with a ``run(argv)``, which measures; the others help them."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [file.stem for file in files if "\ndef run(argv" in file.read_text("utf-8")]


def main(argv: list[str]) -> int:
    """Dispatch to ``tests/benchmarks/NAME.py``; the environment stays as it is."""
    if not argv or argv[0] not in names():
        known = ",".join(names())
        print(f"usage: python -m tests.benchmarks {{{known}}} [options]", file=sys.stderr)
        return 2
    before = dict(os.environ)
    try:
        result = importlib.import_module(f"tests.benchmarks.{argv[0]}").run(argv[1:])
    finally:
        os.environ.clear()
        os.environ.update(before)
    for table in result.pop("tables", []):
        print(table, end="\n\n")
    print(json.dumps(result.get("figures", result), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
