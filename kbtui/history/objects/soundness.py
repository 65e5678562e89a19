"""True if a history is whole: every object is there and says what its name says."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.history.objects.lineage import everything
from kbtui.history.objects.trees import changed_objects, git_object, parse_tree, serialize_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kbtui.history.objects.commit import RawCommit
    from kbtui.history.objects.repository import Repository

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Soundness:
    """The result of a check: what was looked at, and what is wrong."""

    commits: int
    objects: int
    problems: tuple[str, ...]
    git: bool


def check_history(repository: Repository, tell: Callable[[str], None]) -> Soundness:
    """Read every object that is needed, then let a real git look, if there is one."""
    head = repository.head()
    if head is None:
        return Soundness(0, 0, (), git=False)
    try:
        commits = everything(repository)
    except KbtuiError as error:
        return Soundness(0, 0, (error.message,), git=False)
    problems = list(_lost_proposals(repository))
    seen: set[str] = set()
    for number, (identifier, raw) in enumerate(commits):
        if number % 500 == 0:
            tell(f"Reading commit {number:,} of {len(commits):,}")
        problems += _check_commit(repository, identifier, raw, seen)
    tell("Asking git")
    said = git_says(repository.folder)
    problems += [f"git: {line}" for line in (said or [])[:_SHOWN]]
    return Soundness(len(commits), len(seen), tuple(problems), git=said is not None)


def _lost_proposals(repository: Repository) -> Iterator[str]:
    for name, commit in repository.proposals.all().items():
        try:
            repository.read_commit(commit)
        except KbtuiError as error:
            yield f"proposal {name}: {error.message}"


def _check_commit(
    repository: Repository, identifier: str, raw: RawCommit, seen: set[str]
) -> Iterator[str]:
    wanted = [identifier]
    try:
        before = repository.read_commit(raw.parents[0]).tree if raw.parents else None
        wanted += [made for _, made in changed_objects(before, raw.tree, repository.read_entries)]
    except KbtuiError as error:
        yield f"commit {identifier[:10]}: {error.message}"
    for each in wanted:
        if each not in seen:
            seen.add(each)
            yield from _check_object(repository, each)


def _check_object(repository: Repository, identifier: str) -> Iterator[str]:
    try:
        kind, data = repository.read_object(identifier)
    except KbtuiError as error:
        yield error.message
        return
    if git_object(kind, data).id != identifier:
        yield f"The object {identifier[:10]} doesn't hold what its name says."
    elif kind == b"tree" and serialize_tree(parse_tree(data)) != data:
        yield f"The folder {identifier[:10]} is malformed."


def git_says(folder: Path) -> list[str] | None:
    """The findings of ``git fsck``; None where there is no git."""
    program = shutil.which("git")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as nowhere:
        run = subprocess.run(
            [program, "--git-dir", folder, "fsck", "--full", "--strict", "--no-dangling"],
            capture_output=True,
            check=False,
            cwd=nowhere,
            env=plain_environment(),
        )
    text = (run.stdout + run.stderr).decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("notice:")]
    return lines or ([] if run.returncode == 0 else [f"fsck ended with {run.returncode}"])


def plain_environment() -> dict[str, str]:
    """An environment in which git obeys no settings but those of the history itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }
