"""What is recorded of a life, in a form that a person can compare and a change of ids doesn't blur."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from dulwich.objects import Commit, Tree
from dulwich.repo import Repo

_HISTORY = ".kbtui/history.git"
_BESIDE = ("out", ".config")
"""What of a home is compared besides the workspace."""
_DERIVED = re.compile(r"(.*/)?\.kbtui/(lock|.*\.lock|.*\.tmp)")
_IN_PLACE = "2"
_GONE = re.compile("^[0-9a-f]{40}$", re.MULTILINE)
_HEX = re.compile(r"(?:(?<![0-9a-zA-Z])|(?<=\\n))[0-9a-f]{7,40}(?![0-9a-zA-Z])")
_BATCH = re.compile(r"\b((?:import|mcp)-\d{8}-\d{6})-[0-9a-f]{4,12}\b")
"""The id of a batch: when it began, and digits that tell it from others of that second."""
_MEASURES = {"took_ms", "score", "relevance", "explain"}
_VARYING = re.compile(
    r"""("(?:took_ms|score|relevance)":\ *)-?[0-9.e-]+
    |(127\.0\.0\.1:)\d+
    |(\.cache/kbtui/)[^"\s]+
    |[\d,]+\ MiB\ free""",
    re.VERBOSE,
)


@dataclass
class Step:
    """One step: what was done, and the files that it changed, by a key of their content or None."""

    number: int
    machine: str
    time: datetime
    title: str
    files: dict[str, str | None] = field(default_factory=dict)
    answer: str = ""
    tools: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """How it is named to a person."""
        return f"{self.number} ({self.machine}: {self.title})"


@dataclass
class Logged:
    """A commit: its name, what it says, and the files that it left, as in a step."""

    name: str
    text: str
    files: dict[str, str | None]


@dataclass
class Recording:
    """A whole life.

    Attributes:
        steps: In their order.
        contents: Text by the keys that steps hold; other bytes as base64.
        log: By machine the commits, parents first.
        references: By machine what leads to which commit.
        why: By machine and path a text for each line.
        hits: By machine and query the places that were found, the best first.
        failed: Why it ended before its end.
        missing: Which measuring data it needs that isn't there.
    """

    steps: list[Step] = field(default_factory=list)
    contents: dict[str, str] = field(default_factory=dict)
    log: dict[str, list[Logged]] = field(default_factory=dict)
    references: dict[str, dict[str, str]] = field(default_factory=dict)
    why: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    hits: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    failed: str = ""
    missing: str = ""

    def begin(self, machine: str, time: datetime, title: str) -> Step:
        """Begin a step."""
        step = Step(len(self.steps) + 1, machine, time, title)
        self.steps.append(step)
        return step

    def save(self, file: Path) -> None:
        """Write it to a file."""
        file.write_text(json.dumps(asdict(self), default=str, ensure_ascii=False), "utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read it from a file."""
        value = json.loads(file.read_text("utf-8"))
        steps = [
            Step(**{**each, "time": datetime.fromisoformat(each["time"])})
            for each in value.pop("steps")
        ]
        log = {
            machine: [Logged(**each) for each in commits]
            for machine, commits in value.pop("log").items()
        }
        return cls(steps=steps, log=log, **value)


class Keeper:
    """Looks at the files and the history of one machine after each step."""

    def __init__(self, recording: Recording, machine: str, notes: Path) -> None:
        self._recording = recording
        self._machine = machine
        self._notes = notes
        self._stage = str(notes.parent.parent)
        self._seen: dict[str, tuple[int, ...]] = {}
        self._names: dict[str, str] = {}
        """What a commit is called by its id: its time, and its number among those of that time."""
        self._counts: Counter[str] = Counter()

    def look(self, step: Step) -> None:
        """Record which files a step changed, and let their times be those of the step."""
        self._name_commits()
        found = dict(self._files())
        changed = [path for path, stamp in found.items() if self._seen.get(path) != stamp]
        moment = int(step.time.timestamp() * 1e9)
        for number, path in enumerate(sorted(changed), 1):
            file = self._notes / path
            if not file.is_symlink():
                os.utime(file, ns=(moment, moment + number * 1000))
            step.files[_plain_path(path)] = self._keep(_data(file))
            found[path] = _stamp(file)
        step.files |= dict.fromkeys(map(_plain_path, self._seen.keys() - found.keys()))
        step.title = self.plain(step.title)
        self._seen = found

    def answer(self, step: Step, status: int, out: str, err: str, tools: list[str]) -> None:
        """Record what a command or another agent's session answered."""
        ended = [f"(ended with {status})"] if status else []
        said = [f"(on standard error)\n{err.rstrip()}"] if err.strip() else []
        step.answer = self.plain("\n".join([*ended, _laid_out(out), *said]))
        step.tools = [self.plain(each) for each in tools]

    def why(self, lines: dict[str, list[str]]) -> None:
        """Record where each line comes from."""
        self._recording.why[self._machine] = {
            path: [self.plain(each) for each in told] for path, told in lines.items()
        }

    def hits(self, answers: list[dict[str, Any]]) -> None:
        """Record what queries found."""
        self._recording.hits[self._machine] = {
            each["id"]: [self.plain(_hit(hit)) for hit in each["hits"]] for each in answers
        }

    def history(self) -> None:
        """Record the history as it is stored."""
        with Repo(str(self._notes / _HISTORY)) as repo:
            heads = _references(repo)
            self._recording.references[self._machine] = {
                name: self._names[at.decode()] for name, at in heads.items()
            }
            self._recording.log[self._machine] = [
                self._logged(repo, each) for each in _ancestry(repo, heads.values())
            ]

    def _logged(self, repo: Repo, commit: Commit) -> Logged:
        files = {
            os.fsdecode(path): None if blob is None else self._keep(repo[blob].data)
            for path, blob in _changes(repo, commit).items()
        }
        author = commit.author.decode("utf-8", "replace")
        message = commit.message.decode("utf-8", "replace").strip()
        files = {self._file_of(path): key for path, key in files.items()}
        name = self._names[commit.id.decode()]
        changed = [f"  {path}{' is gone' if key is None else ''}" for path, key in files.items()]
        text = self.plain("\n".join([f"{name} {author}", message, *changed]))
        return Logged(name, text, files)

    def _file_of(self, path: str) -> str:
        """Return the file of a path in the history; a vault in place has its own at the top."""
        format_ = self._notes / ".kbtui" / "format"
        if not format_.is_file() or format_.read_text("utf-8").strip() != _IN_PLACE:
            return path
        inner = path.removeprefix("knowledge/")
        is_generated = path.endswith("/INDEX.md")
        return inner if inner != path and not is_generated else f".kbtui/{path}"

    def recorded_paths(self) -> list[str]:
        """Return the paths of the newest commit."""
        with Repo(str(self._notes / _HISTORY)) as repo:
            commit = repo[repo.head()]
            return [os.fsdecode(path) for path in sorted(_tree(repo, commit))]

    def plain(self, text: str) -> str:
        """Take out of a text what is of no meaning: the stage, ports, times it took, made-up digits.

        Commits are named by their time and first file, as an id would differ in all commits that
        follow a difference.
        """
        text = text.replace(self._stage, "/stage")
        text = _VARYING.sub(lambda found: f"{found[1] or found[2] or found[3] or ''}_", text)
        text = _BATCH.sub(r"\1", text)
        text = _HEX.sub(lambda found: self._named(found[0]), text)
        return _GONE.sub("<of no reference>", text)

    def _named(self, digits: str) -> str:
        if name := self._names.get(digits):
            return name
        names = {name for each, name in self._names.items() if each.startswith(digits)}
        return names.pop() if len(names) == 1 else digits

    def _files(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Find the workspace's files, and those beside it by their paths from there."""
        for top in (self._notes, *(self._notes.parent / name for name in _BESIDE)):
            for folder, folders, names in os.walk(top):
                base = os.path.relpath(folder, self._notes)
                paths = {name: os.path.normpath(f"{base}/{name}") for name in (*names, *folders)}
                folders[:] = sorted(each for each in folders if paths[each] != _HISTORY)
                linked = [each for each in folders if Path(folder, each).is_symlink()]
                for name in (*names, *linked):
                    if not _DERIVED.fullmatch(paths[name]):
                        yield paths[name], _stamp(Path(folder, name))

    def _keep(self, data: bytes) -> str:
        """Keep a content, and give its key."""
        try:
            text = self.plain(data.decode())
        except UnicodeDecodeError:
            text = f"base64:{base64.b64encode(data).decode()}"
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._recording.contents[key] = text
        return key

    def _name_commits(self) -> None:
        """Name what is new in the history; what a purge removed keeps its name."""
        if not (self._notes / _HISTORY / "HEAD").is_file():
            return
        with Repo(str(self._notes / _HISTORY)) as repo:
            for commit in _ancestry(repo, _references(repo).values(), known=self._names):
                when = f"{datetime.fromtimestamp(commit.commit_time, UTC):%m-%d %H:%M}"
                name = f"{when} {_subject(repo, commit)}"
                self._counts[name] += 1
                number = f" {self._counts[name]}" if self._counts[name] > 1 else ""
                self._names[commit.id.decode()] = f"<{name}{number}>"


def _plain_path(path: str) -> str:
    return _BATCH.sub(r"\1", path)


def _stamp(file: Path) -> tuple[int, ...]:
    status = file.lstat()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _data(file: Path) -> bytes:
    return os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()


def _laid_out(out: str) -> str:
    """Lay out JSON so that its parts stand on lines of their own, without what varies."""
    with suppress(ValueError):
        return _json_text(json.loads(out))
    with suppress(ValueError):
        return "\n".join(map(_json_text, _joined(map(json.loads, out.splitlines()))))
    return out.rstrip()


def _json_text(value: Any) -> str:
    return json.dumps(_without_measures(value), indent=1, ensure_ascii=False)


def _without_measures(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_measures(each) for each in value]
    if isinstance(value, dict):
        return {k: _without_measures(v) for k, v in value.items() if k not in _MEASURES}
    return value


def _joined(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Join the pieces of an answer: where it was cut is of no meaning."""
    for kind, group in groupby(events, lambda event: event.get("event")):
        if kind == "text_delta":
            yield {"event": kind, "text": "".join(each["text"] for each in group)}
        else:
            yield from group


def _hit(hit: dict[str, Any]) -> str:
    also = "".join(f", {each['path']}:{each['line']}" for each in hit["also"])
    return f"{hit['path']}:{hit['lines'][0]}-{hit['lines'][1]} {hit['heading']}{also}"


# The history is read without the program, which may read it otherwise one day.


def _references(repo: Repo) -> dict[str, bytes]:
    found = repo.get_refs()
    return {
        os.fsdecode(name): at
        for name, at in sorted(found.items())
        if name != b"HEAD" and isinstance(repo[at], Commit)
    }


def _ancestry(repo: Repo, heads: Any, known: Any = ()) -> list[Commit]:
    """The commits that lead to `heads`, parents first, without those that are known."""
    order: list[Commit] = []
    done: set[bytes] = set()
    waiting = [(each, False) for each in reversed(list(heads))]
    while waiting:
        identity, is_after_parents = waiting.pop()
        if is_after_parents:
            order.append(repo[identity])
            continue
        if identity in done or identity.decode() in known:
            continue
        done.add(identity)
        waiting.append((identity, True))
        waiting += [(each, False) for each in reversed(repo[identity].parents)]
    return order


def _tree(repo: Repo, commit: Commit) -> dict[bytes, tuple[int, bytes]]:
    found: dict[bytes, tuple[int, bytes]] = {}
    waiting: list[tuple[bytes, bytes]] = [(b"", commit.tree)]
    while waiting:
        base, identity = waiting.pop()
        tree = repo[identity]
        for entry in tree.items() if isinstance(tree, Tree) else ():
            path = base + entry.path
            if entry.mode == 0o40000:
                waiting.append((path + b"/", entry.sha))
            else:
                found[path] = (entry.mode, entry.sha)
    return found


def _subject(repo: Repo, commit: Commit) -> str:
    """The first file that a commit changed besides indexes; it names the commit among others."""
    names = [os.fsdecode(path).rpartition("/")[2] for path in _changes(repo, commit)]
    return next((name for name in names if name != "INDEX.md"), "".join(names[:1]) or "nothing")


def _changes(repo: Repo, commit: Commit) -> dict[bytes, bytes | None]:
    """The files in which a commit differs from all of its parents, None where one is gone."""
    parents = [_tree(repo, repo[each]) for each in commit.parents] or [{}]
    after = _tree(repo, commit)
    paths = {path for tree in (after, *parents) for path in tree}
    return {
        path: after[path][1] if path in after else None
        for path in sorted(paths)
        if all(tree.get(path) != after.get(path) for tree in parents)
    }
