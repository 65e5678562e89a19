"""A workspace beside a dictionary: whatever is done to both in any order, they stay the same."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kbtui.errors import KbtuiError, UsageError
from kbtui.history.change import Actor
from kbtui.workspace.opening import create_workspace
from tests.faults.disk import Call, Disk
from tests.faults.world import open_history

NAMES = ("topics/a", "topics/A", "topics/deep/b", "people/c", "facts/d e")
PATHS = st.sampled_from([f"knowledge/{name}.md" for name in NAMES])
TEXTS = st.text("ab \n-#[]:é'\"", max_size=40)
State = dict[str, str]
LONG = bool(os.environ.get("KBTUI_LONG"))


class Workspace(RuleBasedStateMachine):
    """What was done, the texts that should be there, and those of each commit."""

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="kbtui-model-", dir=memory))
        self.root = self.folder / "notes"
        self.model: State = {}
        self.commits: list[tuple[str, State, State]] = []

    @initialize()
    def begin(self) -> None:
        create_workspace(self.root)
        self.start_again()

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule()
    def start_again(self) -> None:
        self.history = open_history(self.root)

    @rule(path=PATHS, text=TEXTS, actor=st.sampled_from([Actor.YOU, Actor.AGENT]))
    def write(self, path: str, text: str, actor: Actor) -> None:
        self._change(actor, {path: text})

    @rule(path=PATHS, other=PATHS, text=TEXTS)
    def write_one_and_delete_another(self, path: str, other: str, text: str) -> None:
        if path != other:
            self._change(Actor.YOU, {path: text, other: None})

    @rule(path=PATHS, new=PATHS)
    def rename(self, path: str, new: str) -> None:
        if path not in self.model or path == new:
            return
        is_free = not any(each.casefold() == new.casefold() for each in self.model if each != path)
        after = {each: text for each, text in self.model.items() if each != path}
        after[new] = self.model[path]
        try:
            with self.history.change(Actor.YOU, "rename") as change:
                change.rename(path, new)
        except UsageError:
            assert not is_free
        else:
            assert is_free
            self._done(change.result, after)

    @rule(path=PATHS, text=st.none() | TEXTS)
    def edit_outside(self, path: str, text: str | None) -> None:
        if any(each.casefold() == path.casefold() and each != path for each in self.model):
            return
        file = self.root / path
        after = {each: old for each, old in self.model.items() if each != path}
        if text is None:
            file.unlink(missing_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            after[path] = text
        self._done(self.history.adopt(settle=0, confirmed=True), after)

    @precondition(lambda self: self.commits)
    @rule()
    def undo(self) -> None:
        commit, before, _ = self.commits[-1]
        if self.history.commit(commit).is_found:  # taking it back would delete what was there
            with pytest.raises(UsageError, match="how kbtui found your files"):
                self.history.undo(commit)
            return
        self._done(self.history.undo(commit), before)

    @precondition(lambda self: self.commits)
    @rule(data=st.data())
    def go_back(self, data: Any) -> None:
        commit, before, _ = data.draw(st.sampled_from(self.commits))
        if commit == self.commits[0][0]:  # there is nothing before it
            return
        self._done(self.history.restore_before(commit), before)

    @precondition(lambda self: self.commits)
    @rule(data=st.data())
    def restore(self, data: Any) -> None:
        commit, _, then = data.draw(st.sampled_from(self.commits))
        if not then:
            return
        path = data.draw(st.sampled_from(sorted(then)))
        if any(each.casefold() == path.casefold() and each != path for each in self.model):
            return
        self._done(self.history.restore(path, commit), {**self.model, path: then[path]})

    @rule(path=PATHS, text=TEXTS, number=st.integers(1, 60))
    def write_on_a_disk_that_fails_once(self, path: str, text: str, number: int) -> None:
        if any(each.casefold() == path.casefold() and each != path for each in self.model):
            return
        disk = Disk(self.root)

        def fail(call: Call) -> None:
            if call.number == number:
                raise OSError(28, "No space left on device", call.path)

        disk.before = fail
        head = self.history.head()
        with suppress(KbtuiError), disk.installed(), self.history.change(Actor.YOU, "w") as change:
            change.write(path, text)
        self.start_again()
        if self.history.head() != head:
            self._done(self.history.commit("HEAD"), {**self.model, path: text})

    @invariant()
    def both_say_the_same(self) -> None:
        if not self.root.exists():
            return
        files = {
            str(file.relative_to(self.root)): file.read_bytes().decode()
            for file in (self.root / "knowledge").rglob("*.md")
        }
        assert files == self.model
        recorded = self.history.tree("HEAD") if self.commits else {}
        read = self.history.read_blob
        assert {path: read(blob).decode() for path, blob in recorded.items()} == self.model

    @invariant()
    def nothing_of_the_past_is_lost(self) -> None:
        for commit, _, then in self.commits[-3:]:
            found = {p: self.history.read_blob(b) for p, b in self.history.tree(commit).items()}
            assert {path: data.decode() for path, data in found.items()} == then

    def _change(self, actor: Actor, edits: dict[str, str | None]) -> None:
        after = {path: text for path, text in self.model.items() if path not in edits}
        new = {path: text for path, text in edits.items() if text is not None}
        taken = {path.casefold(): path for path in after}
        clash = any(taken.get(path.casefold(), path) != path for path in new)
        try:
            with self.history.change(actor, "a reason") as change:
                for path, text in edits.items():
                    change.delete(path) if text is None else change.write(path, text)
        except UsageError:
            assert clash
        else:
            assert not clash
            self._done(change.result, {**after, **new})

    def _done(self, commit: Any, after: State) -> None:
        """A commit says that something changed, and none that nothing did."""
        assert (commit is None) == (after == self.model)
        if commit is not None:
            self.commits.append((commit.id, self.model, after))
            self.model = after


TestWorkspace = Workspace.TestCase
TestWorkspace.settings = settings(
    max_examples=300 if LONG else 12,
    stateful_step_count=40 if LONG else 12,
    suppress_health_check=list(HealthCheck),
)
