"""Ancestry of commits, and the integrity check of a history."""

from __future__ import annotations

import contextlib
import heapq
import shutil
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.objects.commit import RawCommit
from kbtui.history.objects.repository import Repository, plain_environment
from kbtui.history.objects.trees import changed_objects, git_object, parse_tree, serialize_tree

_OURS, _THEIRS, _BOTH = 1, 2, 3
_PASSED = 4


@dataclass(frozen=True, slots=True)
class Divergence:
    """How the histories of two tips differ.

    Attributes:
        base: The newest common ancestor (which may be a tip itself), or None if there is none.
        ours: The commits that are ancestors of our tip only, oldest first.
        theirs: The commits that are ancestors of their tip only, oldest first.
    """

    base: str | None
    ours: list[tuple[str, RawCommit]]
    theirs: list[tuple[str, RawCommit]]


def diverge(repository: Repository, ours: str | None, theirs: str | None) -> Divergence:
    """Compare the ancestry of two tips; a missing tip (None) shares no ancestor."""
    if ours is None or theirs is None:
        return Divergence(None, newer(repository, ours), newer(repository, theirs))
    colours = _paint_ancestors(repository, ours, theirs)
    common = {each for each, colour in colours.items() if colour & _BOTH == _BOTH}
    best = [each for each in common if not colours[each] & _PASSED]
    base = max(best, key=lambda each: (repository.read_commit(each).time, each), default=None)
    return Divergence(
        base, newer(repository, ours, known=common), newer(repository, theirs, known=common)
    )


def _paint_ancestors(repository: Repository, ours: str, theirs: str) -> dict[str, int]:
    """Propagate a colour from both tips to their ancestors, as git does to find merge bases.

    A commit with both colours is a common ancestor; ancestors of common ones are marked as passed.
    """
    colours: dict[str, int] = {}
    queue: list[tuple[float, str]] = []

    def paint(identifier: str, colour: int) -> None:
        if colours.get(identifier, 0) & colour != colour:
            colours[identifier] = colours.get(identifier, 0) | colour
            moment = repository.read_commit(identifier).time.timestamp()
            heapq.heappush(queue, (-moment, identifier))

    paint(ours, _OURS)
    paint(theirs, _THEIRS)
    while any(not colours[identifier] & _PASSED for _, identifier in queue):
        _, identifier = heapq.heappop(queue)
        colour = colours[identifier]
        if colour & _BOTH == _BOTH:
            colour |= _PASSED
        for parent in repository.read_commit(identifier).parents:
            paint(parent, colour)
    return colours


def newer(
    repository: Repository, tip: str | None, known: Container[str] = ()
) -> list[tuple[str, RawCommit]]:
    """Return the ancestors of `tip` and itself, oldest first, without those that are `known`.

    A commit's line of first parents comes before what its other parents bring in, so everything
    that existed at a commit of the first line comes before it. The search doesn't go past a known
    commit.
    """
    return list(_walk(repository.read_commit, [tip], known)) if tip else []


def everything(repository: Repository, *more: str) -> list[tuple[str, RawCommit]]:
    """Return all commits reachable from the branch, the proposals and `more`, parents first.

    A proposal whose commit can't be read is left out.
    """
    head = repository.head()
    tips = [*([head] if head else []), *more]
    for commit in repository.proposals.all().values():
        with contextlib.suppress(NotFoundError):
            repository.read_commit(commit)
            tips.append(commit)
    return list(_walk(repository.read_commit, tips, ()))


def _walk(
    read: Callable[[str], RawCommit], tips: Iterable[str], known: Container[str]
) -> Iterator[tuple[str, RawCommit]]:
    seen: set[str] = set()
    stack: list[tuple[str, RawCommit, Iterator[str]]] = []

    def enter(identifier: str) -> None:
        if identifier not in seen and identifier not in known:
            seen.add(identifier)
            raw = read(identifier)
            stack.append((identifier, raw, iter(raw.parents)))

    for tip in tips:
        enter(tip)
        while stack:
            identifier, raw, parents = stack[-1]
            parent = next(parents, None)
            if parent is None:
                stack.pop()
                yield identifier, raw
            else:
                enter(parent)


_FSCK_LINES = 10


@dataclass(frozen=True, slots=True)
class Soundness:
    """The result of an integrity check: how much was checked, and the problems found.

    `git` tells whether ``git fsck`` ran.
    """

    commits: int
    objects: int
    problems: tuple[str, ...]
    git: bool


def check_history(repository: Repository, tell: Callable[[str], None]) -> Soundness:
    """Verify the hash of every reachable object, then run ``git fsck`` if git is installed."""
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
    findings = run_fsck(repository.folder)
    problems += [f"git: {line}" for line in (findings or [])[:_FSCK_LINES]]
    return Soundness(len(commits), len(seen), tuple(problems), git=findings is not None)


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


def run_fsck(folder: Path) -> list[str] | None:
    """Run ``git fsck`` and return its findings, or None if git isn't installed."""
    import subprocess

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
