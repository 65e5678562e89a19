"""What every test stands on: no network beyond this machine, no real home, the measuring data."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import socket
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from kbtui.derived import DerivedDatabase
from kbtui.models.limits import LIMITS
from tests.patience import be_patient

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

# The same examples every time: a red gate can be repeated. A long run looks for new ones.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.register_profile("long", max_examples=1000, deadline=None)
if os.environ.get("KBTUI_LONG"):
    settings.load_profile("long")
else:
    settings.load_profile("gate")
    # Texts from the modules that happen to be loaded would make the examples differ by worker.
    providers._get_local_constants = lambda: providers._local_constants  # type: ignore[attr-defined]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As it is in the background of a script; programs that tests interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Where Python is told to keep no bytecode, each worker would rewrite all tests, and each child of a
# test compile the program again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

gc.disable()  # until all tests are imported: none of what is made until then is let go

_LONGEST_NAME = 30
_GARBAGE = (50_000, 20, 50)  # thousands of apps and workspaces come and go, each once
_ENOUGH = 4 << 30  # bytes
_GOES_ON = "KBTUI_SEARCH__BACKGROUND"
_KEPT = {"KBTUI_DATA", _GOES_ON}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let whoever has an hour find what a gate has no time for."""
    parser.addoption("--long", action="store_true", help="many more kills, states and examples")


def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests' files in memory where there is enough of it, and their processes in them.

    Half of a run's time would be spent in waiting for a disk to have synced what is thrown away.
    What goes on after a command would outlive the test that ran it; who tests that, switches it on.
    """
    os.environ[_GOES_ON] = "false"
    if config.getoption("dist", "no") == "load":
        # Tests beside each other stay on one worker, and so does what they make once or import.
        config.option.dist = "worksteal"
    if config.getoption("--long"):
        settings.load_profile("long")
        os.environ["KBTUI_LONG"] = "1"
        for name, many in (("KILLS", 500), ("STATES", 1200), ("CHANGES", 1000)):
            os.environ.setdefault(f"KBTUI_TEST_{name}", str(many))
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= _ENOUGH:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three workers for two cores: a test waits now and then, and a worker takes long to start.

    Slow tests compute: one a core.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return cores if config.getoption("markexpr") == "slow" else -(-3 * cores // 2)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which nothing is run: with slow tests alone, or without any."""
    wanted = config.getoption("markexpr")
    if wanted not in {"slow", "not slow"} or not collection_path.match("test_*.py"):
        return None
    is_all_slow = not {"e2e", "faults"}.isdisjoint(collection_path.parts)
    if wanted == "not slow":
        named = {Path(each.partition("::")[0]).resolve() for each in config.args}
        return True if is_all_slow and collection_path not in named else None
    says_so = _NAMES_SLOW_MARK.search(collection_path.read_text("utf-8"))
    return None if is_all_slow or says_so else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what takes long, and leave out what needs data that isn't there, with one line."""
    for item in items:
        if _SLOW_ROOM in item.path.parents or any(map(item.get_closest_marker, _SLOW_MARKS)):
            item.add_marker(pytest.mark.slow)
    if data_folder().is_dir():
        return
    without = [item for item in items if "data_dir" in getattr(item, "fixturenames", ())]
    if without:
        items[:] = [item for item in items if item not in without]
        config.hook.pytest_deselected(items=without)


def pytest_collection_finish() -> None:
    """Never look again for garbage among what stays: modules, and the tests themselves."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


def pytest_report_header() -> str | None:
    """Say once why what needs the measuring data isn't run."""
    folder = data_folder()
    where = f"the measuring data is not at {folder} (set KBTUI_DATA): its tests are left out"
    return None if folder.is_dir() else where


_SLOW_ROOM = Path(__file__).parent / "e2e"
_SLOW_MARKS = ("pty", "faults", "model", "data")
_NAMES_SLOW_MARK = re.compile(rf"mark\.({'|'.join(('slow', *_SLOW_MARKS))})\b")


def data_folder() -> Path:
    """Where the measuring data lies, if it is there."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("KBTUI_DATA", default))


_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_REAL_SERVERS = {11434, 8080, 1234, 8000}  # where a developer's own models answer
_REAL_CONNECT = socket.socket.connect
_REAL_CONNECT_EX = socket.socket.connect_ex


def _allowed(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True
    return str(address[0]) in _LOOPBACK and address[1] not in _REAL_SERVERS


def _connect(self: socket.socket, address: Any) -> None:
    if not _allowed(address):
        raise AssertionError(f"a test tried to reach {address!r}")
    _REAL_CONNECT(self, address)


def _connect_ex(self: socket.socket, address: Any) -> int:
    if not _allowed(address):
        raise AssertionError(f"a test tried to reach {address!r}")
    return _REAL_CONNECT_EX(self, address)


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _connect)
    monkeypatch.setattr(socket.socket, "connect_ex", _connect_ex)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Numbered folders: `mktemp` would look through all earlier ones for each."""
    parent = tmp_path_factory.mktemp("homes", numbered=False)
    return (parent / str(number) for number in count())


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A folder of the test's own, as pytest's, which lists the folders of all others for it."""
    base = tmp_path_factory.getbasetemp()
    name = re.sub(r"\W", "_", request.node.name)[:_LONGEST_NAME]
    folder = next(folder for number in count() if _makes(folder := base / f"{name}{number}"))
    failed = request.session.testsfailed
    yield folder
    if request.session.testsfailed == failed:
        shutil.rmtree(folder, ignore_errors=True)


def _makes(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


@pytest.fixture(autouse=True)
def home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own; no key and no setting of the developer's leaks in."""
    folder = next(_homes)
    folder.mkdir()
    for name in list(os.environ):
        ours = name.startswith(("KBTUI_", "XDG_")) and name not in _KEPT
        if ours or name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    for name, part in (
        ("CONFIG", ".config"),
        ("CACHE", ".cache"),
        ("DATA", ".local/share"),
        ("STATE", ".local/state"),
    ):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / part))
    monkeypatch.setenv("KBTUI_MODEL", "offline")
    # Whatever runs on the developer's machine is asked nothing.
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    monkeypatch.setenv("KBTUI_MODELS__SERVERS", "[]")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return folder


@pytest.fixture(autouse=True)
def _limits_unknown() -> Iterator[None]:
    """A port that another test's server had tells nothing of this one's."""
    yield
    LIMITS.forget()


@pytest.fixture(scope="session", autouse=True)
def _patient() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        be_patient(patch)
        yield


@pytest.fixture(scope="session")
def _databases() -> Iterator[WeakSet[DerivedDatabase]]:
    opened: WeakSet[DerivedDatabase] = WeakSet()
    plain = DerivedDatabase._open

    def noted(self: DerivedDatabase, place: str) -> sqlite3.Connection:
        opened.add(self)
        return plain(self, place)

    DerivedDatabase._open = noted  # type: ignore[method-assign]
    yield opened
    DerivedDatabase._open = plain  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _no_database_stays_open(_databases: WeakSet[DerivedDatabase]) -> Iterator[None]:
    """Thousands of tests share a process, which may have open only so many files."""
    yield
    for database in list(_databases):
        database.close()
    _databases.clear()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Real vaults, exports and retrieval sets, which are not part of the project."""
    return data_folder()


@pytest.fixture
def all_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take files that were just written for finished: each opening would wait a second for them."""
    monkeypatch.setattr("kbtui.history.adoption.Adoption._settling_time", lambda *_: 0.0)


@pytest.fixture
def forbid_writing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Forbid to write below a folder from then on: the superuser doesn't mind permissions."""
    allowed = os.access

    def forbid(root: Path) -> None:
        def access(path: Any, mode: int, **more: Any) -> bool:
            is_denied = mode & os.W_OK and Path(path).is_relative_to(root)
            return not is_denied and allowed(path, mode, **more)

        monkeypatch.setattr(os, "access", access)

    return forbid
