"""Any change of a random history by four actors is undone exactly, or refused for a reason."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import UndoConflictError, UsageError
from kbtui.history.change import Actor
from tests.history.random_world import ACTORS, Step, World

if TYPE_CHECKING:
    from tests.history.conftest import Notes
    from tests.history.random_world import State

LONG = bool(os.environ.get("KBTUI_LONG"))
CHANGES, SAMPLE, SEEDS = (200, 200, 5) if LONG else (50, 10, 2)


def files_of(notes: Notes) -> dict[str, str]:
    return {
        path: notes.text(path)
        for path in notes.history.tree("HEAD")
        if path.startswith("knowledge/topics/")
    }


def record(notes: Notes, world: World, step: Step) -> str | None:
    """Write what a step changed; some of what you do is done by another program."""
    actor = world.rng.choice(ACTORS)
    texts = [{e.path: e.text() for e in state.values()} for state in (step.before, step.after)]
    if actor is Actor.YOU and step.kind != "rename" and world.rng.random() < 0.4:
        for path, text in texts[1].items():
            if texts[0].get(path) != text:
                notes.put(path, text)
        for path in texts[0].keys() - texts[1].keys():
            notes.put(path, None)
        commit = notes.history.adopt(settle=0)
        return commit.id if commit else None
    with notes.history.change(actor, "") as change:
        for name, entry in step.before.items():
            if name in step.after and step.after[name].path != entry.path:
                change.rename(entry.path, step.after[name].path)
            elif name not in step.after:
                change.delete(entry.path)
        for path, text in texts[1].items():
            if texts[0].get(path) != text:
                change.write(path, text)
    return change.result.id if change.result else None


def check_undo(notes: Notes, world: World, steps: list[tuple[str, Step]], number: int) -> str:
    """Undo one change and undo that again; what is wrong with either, if anything is."""
    commit, step = steps[number]
    expected = world.verdict(step, [later for _, later in steps[number + 1 :]])
    was: State = dict(world.state)
    files, head = files_of(notes), notes.history.head()
    try:
        undo = notes.history.undo(commit)
    except UndoConflictError as error:
        if (files_of(notes), notes.history.head()) != (files, head):
            return "a refusal changed something"
        fine = expected.conflict or expected.unsure
        return "" if fine else f"a false conflict: {error.conflicts}"
    except UsageError:
        return "" if expected.nothing or expected.unsure else "it found nothing to undo"
    world.know(files_of(notes))
    faults = world.faults(step, was)
    if expected.conflict:
        faults.append("it should have been refused")
    notes.history.undo(undo.id)
    if files_of(notes) != files:
        faults.append("undoing the undo led elsewhere")
    world.know(files_of(notes))
    return "; ".join(faults)


def undo_lately(notes: Notes, world: World, steps: list[tuple[str, Step]]) -> None:
    """Undo one of the last changes, which may be an undo itself; that is a step like another."""
    commit, step = world.rng.choice(steps[-8:])
    before = deepcopy(world.state)
    try:
        undo = notes.history.undo(commit)
    except (UndoConflictError, UsageError):
        return
    world.know(files_of(notes))
    steps.append((undo.id, Step(before, deepcopy(world.state), f"undo of {step.kind}")))


@pytest.mark.parametrize("seed", range(40) if LONG else (2, 12))
def test_an_undo_is_a_change_like_another(notes: Notes, seed: int) -> None:
    """What it brought back or took away may have been changed, moved or renamed again since."""
    world = World(seed, entries=3)
    steps: list[tuple[str, Step]] = []
    while len(steps) < 50:
        if len(steps) > 6 and world.rng.random() < 0.3:
            undo_lately(notes, world, steps)
            continue
        step = world.step()
        commit = record(notes, world, step)
        if commit is not None:
            steps.append((commit, step))
    wrong = {
        f"{number}: {steps[number][1].kind}": fault
        for number in range(len(steps))
        if (fault := check_undo(notes, world, steps, number))
    }
    assert wrong == {}
    notes.check()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_change_is_undone_exactly_or_refused_where_a_line_or_key_changed_again(
    notes: Notes, seed: int
) -> None:
    world = World(seed)
    steps: list[tuple[str, Step]] = []
    while len(steps) < CHANGES:
        step = world.step()
        commit = record(notes, world, step)
        if commit is not None:
            steps.append((commit, step))
            assert files_of(notes) == {e.path: e.text() for e in world.state.values()}
    numbers = range(len(steps)) if LONG else sorted(world.rng.sample(range(len(steps)), SAMPLE))
    wrong = {
        f"{number}: {steps[number][1].kind}": fault
        for number in numbers
        if (fault := check_undo(notes, world, steps, number))
    }
    assert wrong == {}
    notes.check()
