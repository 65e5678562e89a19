"""What differs between two recordings of a life."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from tests.replay.recording import Recording, Step

KINDS = ("life", "file", "log", "why", "hits", "tool", "answer")


@dataclass(frozen=True)
class Difference:
    """One difference.

    Attributes:
        life: The life's name.
        kind: What differs, one of `KINDS`.
        place: Where: the machine, and its file, query or command.
        lines: Those that differ, with ``-`` before the earlier build's and ``+`` before the other's.
        when: The step, or the commit, in which it was first seen.
    """

    life: str
    kind: str
    place: str
    lines: tuple[str, ...]
    when: str = ""


def compare(life: str, old: Recording, new: Recording, *, ordered: bool) -> list[Difference]:
    """Return what differs; `ordered` says whether the order of hits counts."""
    return [
        *_ends(life, old, new),
        *_files(life, old, new),
        *_logs(life, old, new),
        *_whys(life, old, new),
        *_hits(life, old, new, ordered=ordered),
        *_answers(life, old, new),
    ]


def _ends(life: str, old: Recording, new: Recording) -> Iterator[Difference]:
    if lines := _changed([old.failed], [new.failed]):
        when = new.steps[-1].name if new.steps else ""
        yield Difference(life, "life", "ends early", lines, when)


def _files(life: str, old: Recording, new: Recording) -> Iterator[Difference]:
    """Compare the files after each step, and then those of each commit.

    A line that differs is told of once, by the first step: it differs in all steps that follow.
    """
    told: dict[tuple[str, str], set[str]] = {}
    now: dict[tuple[str, str], tuple[str | None, str | None]] = {}
    for before, after in zip_longest(old.steps, new.steps):
        step = before or after
        changed = _of(before) | _of(after)
        for path in sorted(changed):
            place = (step.machine, path)
            was, is_ = now.get(place, (None, None))
            now[place] = (_of(before).get(path, was), _of(after).get(path, is_))
            if fresh := _fresh(told, place, _texts(old, new, *now[place])):
                yield Difference(life, "file", ": ".join(place), fresh, f"step {step.name}")
    for machine, commits in old.log.items():
        others = {each.name: each for each in new.log.get(machine, ())}
        for commit in commits:
            other = others.get(commit.name)
            if other is None:
                continue  # the log tells of it
            for path in sorted(commit.files.keys() & other.files.keys()):
                texts = _texts(old, new, commit.files[path], other.files[path])
                if fresh := _fresh(told, (machine, path), texts):
                    place = f"{machine}: {path}"
                    yield Difference(life, "file", place, fresh, f"commit {commit.name}")


def _of(step: Step | None) -> dict[str, str | None]:
    return step.files if step is not None else {}


def _texts(
    old: Recording, new: Recording, was: str | None, is_: str | None
) -> tuple[list[str], list[str]]:
    """The lines of a file on both sides; the key is that of the content, so equal ones are none."""
    if was == is_:
        return [], []
    return _lines_of(old, was), _lines_of(new, is_)


def _lines_of(recording: Recording, key: str | None) -> list[str]:
    if key is None:
        return ["(no such file)"]
    text = recording.contents[key]
    lines = text.split("\n")
    # A file that ends without a line's end differs from one that has it.
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}(no end of line)"]


def _fresh(
    told: dict[tuple[str, str], set[str]],
    place: tuple[str, str],
    texts: tuple[list[str], list[str]],
) -> tuple[str, ...]:
    known = told.setdefault(place, set())
    lines = tuple(line for line in _changed(*texts) if line not in known)
    known.update(lines)
    return lines


def _logs(life: str, old: Recording, new: Recording) -> Iterator[Difference]:
    for machine in _keys(old.log, new.log):
        texts = (
            [line for each in side.log.get(machine, ()) for line in each.text.split("\n")]
            for side in (old, new)
        )
        if lines := _changed(*texts):
            yield Difference(life, "log", machine, lines)
        heads = (
            [f"{name} {at}" for name, at in side.references.get(machine, {}).items()]
            for side in (old, new)
        )
        if lines := _changed(*heads):
            yield Difference(life, "log", f"{machine}: references", lines)


def _whys(life: str, old: Recording, new: Recording) -> Iterator[Difference]:
    for machine in _keys(old.why, new.why):
        before, after = old.why.get(machine, {}), new.why.get(machine, {})
        for path in _keys(before, after):
            if lines := _changed(before.get(path, []), after.get(path, [])):
                yield Difference(life, "why", f"{machine}: {path}", lines)


def _hits(life: str, old: Recording, new: Recording, *, ordered: bool) -> Iterator[Difference]:
    for machine in _keys(old.hits, new.hits):
        before, after = old.hits.get(machine, {}), new.hits.get(machine, {})
        for query in _keys(before, after):
            was, is_ = before.get(query, []), after.get(query, [])
            if not ordered:
                was, is_ = sorted(was), sorted(is_)
            if lines := _changed(was, is_):
                yield Difference(life, "hits", f"{machine}: {query}", lines)


def _answers(life: str, old: Recording, new: Recording) -> Iterator[Difference]:
    for before, after in zip_longest(old.steps, new.steps):
        step = before or after
        sides = [
            each or Step(0, "", step.time, "(nothing is done any more)") for each in (before, after)
        ]
        place = f"{step.machine}: {step.title}"
        when = f"step {step.number}"
        tools = (_lines(each.tools) for each in sides)
        if lines := _changed(*tools):
            yield Difference(life, "tool", place, lines, when)
        answers = ([each.title, *each.answer.split("\n")] for each in sides)
        if lines := _changed(*answers):
            yield Difference(life, "answer", place, lines, when)


def _lines(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in text.split("\n")]


def _keys(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return list(dict.fromkeys([*old, *new]))


def _changed(old: list[str], new: list[str]) -> tuple[str, ...]:
    """The lines that differ, where they stand beside each other those of before first."""
    if old == new:
        return ()
    lines: list[str] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            lines += [f"-{line}" for line in old[a:b]]
            lines += [f"+{line}" for line in new[c:d]]
    return tuple(lines)
