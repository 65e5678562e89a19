"""Makes ``.venv`` in the checkout and installs kbtui into it: ``python3 .ci/install.py [--dev]``.

`pip install .` does the same. This only sees to it that Linux gets PyTorch's CPU build where it can
be had, and that nobody waits for minutes for an index that can't be reached.
"""

from __future__ import annotations

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
SIZES = (
    "Downloading about 500 MB, 2 GB on the disk: PyTorch's CPU build 190 MB, the embedding model"
    " 84 MB, litellm 37 MB, and what they need."
)


def main(argv: list[str]) -> int:
    """Install for use, or with ``--dev`` for work on kbtui; gives pip's exit code."""
    if argv not in ([], ["--dev"]):
        _say("Usage: python3 .ci/install.py [--dev]")
        return 2
    if sys.version_info < (3, 11):  # noqa: UP036  # the system's python3 may be older
        _say(f"kbtui needs Python 3.11 or newer; this is {sys.version.split()[0]}.")
        return 2
    folder = HERE / ".venv"
    python = folder / "bin" / "python"
    if not python.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False)
        if made.returncode:
            return made.returncode
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    _say(SIZES)
    if sys.platform == "linux":
        _install_cpu_torch(pip)
    # Who works on kbtui imports little of it: compiling all would take a minute.
    what = ["--no-compile", "-e", f"{HERE}[dev]"] if argv else [str(HERE)]
    return subprocess.run([*pip, *what], check=False).returncode


def _install_cpu_torch(pip: list[str]) -> None:
    """Take the CPU build first where its index answers; else pip takes the package index's own."""
    if answers(CPU_INDEX):
        chosen = ["--no-deps", "--retries", "1", "--timeout", "20", "--index-url", CPU_INDEX, TORCH]
        if subprocess.run([*pip, *chosen], check=False).returncode == 0:
            return
    _say(
        f"{CPU_INDEX} can't be reached: taking the PyTorch of your package index, which on an"
        " Intel or AMD machine may bring some 3 GB of CUDA libraries that kbtui doesn't use."
    )


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
