"""Running the real program as a person or a script would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.forked import run_forked
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


# For root, who may read everything otherwise.
_MERE_USER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")


def kbtui(
    *args: str | Path,
    workspace: Path | None = None,
    stdin: str = "",
    mere_user: bool = False,
    **env: str,
) -> Done:
    """Run one command to its end; the environment is the test's own, plus `env`.

    As a `mere_user` it may read only what the modes of files allow.
    """
    where = [] if workspace is None else ["-w", str(workspace)]
    argv = [*where, *map(str, args)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    if not mere_user or os.getuid() != 0:
        return Done(*run_forked(argv, stdin, env, timeout=5 * PATIENCE))
    done = subprocess.run(
        [*_MERE_USER, sys.executable, "-m", "kbtui", *argv],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
        check=False,
        env=env,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def ok(*args: str | Path, workspace: Path | None = None, stdin: str = "", **env: str) -> Done:
    """Run one command that must succeed, quietly on standard error."""
    done = kbtui(*args, workspace=workspace, stdin=stdin, **env)
    assert done.status == 0, done
    assert "Traceback" not in done.err, done
    return done
