"""Makes ``.venv`` in the checkout and installs kbtui into it: ``python3 .ci/install.py [--dev]``.

With uv where it is on the PATH, else with pip. `pip install .` does the same. This only sees to it
that Linux gets PyTorch's CPU build where it can be had, that nobody waits for minutes for an index
that can't be reached, and that the 20,000 modules of which kbtui imports few aren't all compiled.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
TORCH = "torch>=2.6,<2.14"  # as pyproject.toml has it
PROBE_SECONDS = 6.0
UNREACHABLE = (
    f"{CPU_INDEX} can't be reached: taking the PyTorch of your package index, which on an"
    " Intel or AMD machine may bring some 3 GB of CUDA libraries that kbtui doesn't use."
)
SIZES = (
    "Downloading about 500 MB, 1.5 GB on the disk: PyTorch's CPU build 190 MB, the embedding model"
    " 84 MB, litellm 37 MB, and what they need."
)
# What the first frame shows: it would otherwise be compiled while somebody waits for it.
FIRST_FRAME = "import kbtui.knowledge_base, kbtui.tui.app.app"


def main(argv: list[str]) -> int:
    """Install for use, or with ``--dev`` for work on kbtui; gives the installer's exit code."""
    if argv not in ([], ["--dev"]):
        _say("Usage: python3 .ci/install.py [--dev]")
        return 2
    if sys.version_info < (3, 11):  # noqa: UP036  # the system's python3 may be older
        _say(f"kbtui needs Python 3.11 or newer; this is {sys.version.split()[0]}.")
        return 2
    folder = HERE / ".venv"
    python = str(folder / "bin" / "python")
    uv = shutil.which("uv")
    if not Path(python).exists() and (failed := _make(folder, uv)):
        return failed
    _say(SIZES)
    what = ["-e", f"{HERE}[dev]"] if argv else [str(HERE)]
    failed = _install_by_uv(uv, python, what) if uv else _install_by_pip(python, what)
    return failed or _run([python, "-c", FIRST_FRAME])


def _make(folder: Path, uv: str | None) -> int:
    """Make the environment, with pip in it."""
    if uv:
        return _run([uv, "venv", "--quiet", "--seed", "--python", sys.executable, str(folder)])
    failed = _run([sys.executable, "-m", "venv", str(folder)])
    if not failed:  # the pip that comes with Python 3.11 resolves for 40 s where today's takes 15
        pip = _pip(str(folder / "bin" / "python"))
        _run([*pip, "--quiet", "--retries", "1", "--timeout", "20", "--upgrade", "pip"])
    return failed


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]


def _install_by_uv(uv: str, python: str, what: list[str]) -> int:
    """Let uv take the CPU build from the index that pyproject.toml names, if that answers."""
    install = [uv, "pip", "install", "--python", python]
    if sys.platform == "linux":
        if answers(CPU_INDEX) and _run([*install, *what]) == 0:
            return 0
        _say(UNREACHABLE)
    return _run([*install, "--no-sources", *what])


def _install_by_pip(python: str, what: list[str]) -> int:
    """Take the CPU build first where its index answers; else pip takes the package index's own."""
    install = _pip(python)
    if sys.platform == "linux":
        torch = ["--no-deps", "--retries", "1", "--timeout", "20", "--index-url", CPU_INDEX, TORCH]
        if not answers(CPU_INDEX) or _run([*install, *torch]):
            _say(UNREACHABLE)
    return _run([*install, *what])


def _run(command: list[str]) -> int:
    return subprocess.run(command, check=False).returncode


def answers(url: str, seconds: float = PROBE_SECONDS) -> bool:
    """True if something answers at `url` in time, through the proxy of the environment if any."""
    heard = threading.Event()

    def ask() -> None:
        try:
            with urllib.request.urlopen(url, timeout=seconds):  # noqa: S310  # a fixed https address
                heard.set()
        except urllib.error.HTTPError:
            heard.set()
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLError):  # pip brings its own certificates
                heard.set()
        except OSError:
            pass

    # In a thread: a host of many addresses is tried at each of them for as long.
    threading.Thread(target=ask, daemon=True).start()
    return heard.wait(seconds)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
