"""``python -m tests.benchmarks NAME [OPTIONS]``: run one benchmark, print tables, then JSON."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys

from tests import benchmarks

_HELPERS = {
    "__main__",
    "blame",
    "embedding_cache",
    "growth",
    "judged_sets",
    "material",
    "plain_bm25",
    "report",
    "soak_plot",
}


def main(argv: list[str]) -> int:
    """Dispatch to ``tests/benchmarks/NAME.py``, whose ``run(argv)`` measures."""
    names = sorted({m.name for m in pkgutil.iter_modules(benchmarks.__path__)} - _HELPERS)
    if not argv or argv[0] not in names:
        print(f"usage: python -m tests.benchmarks {{{','.join(names)}}} [options]", file=sys.stderr)
        return 2
    result = importlib.import_module(f"tests.benchmarks.{argv[0]}").run(argv[1:])
    for table in result.pop("tables", []):
        print(table, end="\n\n")
    print(json.dumps(result.get("figures", result), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
