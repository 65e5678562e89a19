"""A build of the program: the working tree, or a commit in an environment of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
import threading
import tomllib
import venv
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from packaging.requirements import Requirement
from platformdirs import user_cache_path

from tests.replay.fixed import environment

ROOT = Path(__file__).resolve().parents[2]
_ARCHIVED = ("kbtui", "themes", "pyproject.toml", "tests/patience.py")


class MissingCommitError(Exception):
    """The repository doesn't have a commit, or there is none."""


@dataclass(frozen=True)
class Build:
    """The program's code in a folder, and the interpreter that has what it needs."""

    name: str
    folder: Path
    python: Path

    def environment(self, home: Path) -> dict[str, str]:
        """Return the environment in which this build, and the replay itself, are found."""
        return environment(home, list(dict.fromkeys([str(self.folder), str(ROOT)])))


def cache() -> Path:
    """Return the folder of what is made once: builds, environments, the prepared model."""
    return Path(user_cache_path("kbtui-replay"))


def working_tree() -> Build:
    """Return the build that is in this folder."""
    return Build("working tree", ROOT, Path(sys.executable))


def build_of(commit: str) -> Build:
    """Return the build of a commit; it is made the first time.

    Raises:
        MissingCommitError: The repository doesn't have it.
    """
    identity = _resolve(commit)
    folder = cache() / "builds" / identity
    if not folder.is_dir():
        _unpack(identity, folder)
    return Build(commit, folder, _python(identity, folder))


def _resolve(commit: str) -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise MissingCommitError(commit) from None
    return done.stdout.strip()


def _unpack(identity: str, folder: Path) -> None:
    command = ["git", "-C", str(ROOT), "archive", identity, *_ARCHIVED]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(f"{made}/code", filter="data")
        Path(made, "code").rename(folder)


def _python(identity: str, folder: Path) -> Path:
    """Return this interpreter where it has all that the commit declares, else one made for it."""
    wanted = _requirements(folder)
    if all(map(is_met, wanted)):
        return Path(sys.executable)
    place = cache() / "environments" / identity
    python = place / "bin" / "python"
    done = place / "complete"
    if not done.exists():
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *map(str, wanted)], check=True)
        done.touch()
    return python


def _requirements(folder: Path) -> list[Requirement]:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    names = [*project["dependencies"], *project["optional-dependencies"]["documents"]]
    return [
        each for each in map(Requirement, names) if each.marker is None or each.marker.evaluate()
    ]


def is_met(wanted: Requirement) -> bool:
    """Return whether what a build declares is installed here."""
    try:
        return wanted.specifier.contains(metadata.version(wanted.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def prepared_model(build: Build) -> Path:
    """Return the folder of the embedding model, prepared once by a build for all that follow."""
    folder = cache() / "models" / build.folder.name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        env = build.environment(Path(made)) | {"KBTUI_SEARCH__SEMANTIC": "true"}
        for words in (["init", f"{made}/notes"], ["-w", f"{made}/notes", "reindex"]):
            command = [build.python, "-m", "kbtui", *words]
            subprocess.run(command, env=env, cwd=made, capture_output=True, check=True)
        Path(made, ".cache/kbtui/models").rename(folder)
    return folder


class Player:
    """The process that plays lives on one build; a context manager."""

    def __init__(self, build: Build, scratch: Path) -> None:
        """Start it; what it needs for itself it keeps below `scratch`."""
        home = scratch / "player"
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        self.build = build
        self._asked: dict[str, Future[int]] = {}
        self._process = subprocess.Popen(
            [build.python, "-m", "tests.replay.player", str(build.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=build.environment(home),
            cwd=home,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def play(self, life: str, **request: Any) -> None:
        """Play a life to its end.

        Raises:
            RuntimeError: It couldn't be played.
        """
        asked = self._asked[life] = Future()
        line = json.dumps({"life": life, **request})
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        if asked.result():
            raise RuntimeError(f"{life} couldn't be played on {self.build.name}.")

    def _read(self) -> None:
        for line in self._process.stdout:
            answer = json.loads(line)
            self._asked.pop(answer["life"]).set_result(answer["status"])
        for asked in self._asked.values():
            asked.set_result(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
