"""What differs between two recordings of a life."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from tests.replay.recording import Recording, Step

_Place = tuple[str, str]
_Keys = tuple[str | None, str | None]
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
    told: dict[_Place, set[str]] = {}
    for when, place, keys in [*_after_steps(old, new), *_in_commits(old, new)]:
        known = told.setdefault(place, set())
        lines = _changed(*_texts(old, new, *keys))
        if fresh := tuple(line for line in lines if line not in known):
            known.update(fresh)
            yield Difference(life, "file", ": ".join(place), fresh, when)


def _after_steps(old: Recording, new: Recording) -> Iterator[tuple[str, _Place, _Keys]]:
    """The contents of both sides that a step changed; after one that only one does, the next's."""
    now: dict[_Place, _Keys] = {}
    changed: set[_Place] = set()
    when = ""
    for before, after in _pairs(old.steps, new.steps):
        step = before or after
        when = f"step {step.name}"
        for path in _of(before) | _of(after):
            place = (step.machine, path)
            was, is_ = now.get(place, (None, None))
            now[place] = (_of(before).get(path, was), _of(after).get(path, is_))
            changed.add(place)
        if before is not None and after is not None:
            yield from ((when, place, now[place]) for place in sorted(changed))
            changed.clear()
    yield from ((when, place, now[place]) for place in sorted(changed))


def _in_commits(old: Recording, new: Recording) -> Iterator[tuple[str, _Place, _Keys]]:
    """The contents of both sides in the commits that both have; of others the log tells."""
    for machine, commits in old.log.items():
        others = {each.name: each for each in new.log.get(machine, ())}
        for commit in commits:
            there = others[commit.name].files if commit.name in others else {}
            for path in sorted(commit.files.keys() & there.keys()):
                yield f"commit {commit.name}", (machine, path), (commit.files[path], there[path])


def _pairs(
    old: list[Step], new: list[Step]
) -> Iterator[tuple[Step, Step] | tuple[Step, None] | tuple[None, Step]]:
    """Pair the steps of both: a life may go by what the program answers, so there may be more."""
    titles = ([(each.machine, each.title) for each in steps] for steps in (old, new))
    for kind, a, b, c, d in SequenceMatcher(None, *titles, autojunk=False).get_opcodes():
        if kind == "equal" or b - a == d - c:
            yield from zip(old[a:b], new[c:d], strict=True)
        else:
            yield from ((each, None) for each in old[a:b])
            yield from ((None, each) for each in new[c:d])


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
    for before, after in _pairs(old.steps, new.steps):
        step = before or after
        sides = [each or Step(0, "", step.time, "(isn't done)") for each in (before, after)]
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
