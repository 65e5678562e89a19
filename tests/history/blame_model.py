"""What blame must say, by a model that knows each line by its text, which stands in one place only.

It shares nothing with the program: a line's origin is the commit that last put its text into the
files without having it from another place or from an undo.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from kbtui.errors import KbtuiError
from kbtui.history.change import Actor, Origin

if TYPE_CHECKING:
    from kbtui.history.history import History
    from kbtui.history.objects.commit import Commit

Files = dict[str, list[str]]
WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "glade", "haven", "inlet", "jetty")


class Model:
    """Some notes that are changed at random, with the origin of every line that they ever had."""

    def __init__(self, history: History, seed: int) -> None:
        self.history = history
        self.random = random.Random(seed)
        self.files: Files = {}
        self.origins: dict[str, str] = {}
        self.snapshots: list[tuple[str, dict[str, list[tuple[str, str]]]]] = []
        self._count = 0
        self._undoable: list[str] = []
        self._deleted: list[str] = []

    def step(self) -> None:
        """Change something."""
        some = (self.edit, self.insert, self.delete, self.shuffle, self.give, self.rename)
        rare = (self.retype, self.undo, self.restore)
        if not self.files:
            self.insert()
        self.random.choice([*some * 3, *rare * 2])()

    # What may happen -----------------------------------------------------------------------

    def insert(self) -> None:
        if len(self.files) < 4 and (not self.files or self.random.random() < 0.2):
            self._count += 1
            self.files[f"knowledge/topics/note {self._count}.md"] = []
        lines = self._some_file()
        for _ in range(self.random.randint(1, 3)):
            lines.insert(self.random.randint(0, len(lines)), self._new())
        self._commit()

    def edit(self) -> None:
        lines = self._some_file()
        for place in self.random.sample(range(len(lines)), min(len(lines), 2)):
            lines[place] = self._new()
        self._commit()

    def delete(self) -> None:
        lines = self._some_file()
        if len(lines) > 2:
            self._deleted.append(lines.pop(self.random.randrange(len(lines))))
            self._commit()

    def shuffle(self) -> None:
        lines = self._some_file()
        if len(lines) > 1:
            lines.insert(self.random.randint(0, len(lines) - 1), lines.pop(0))
            self._commit()

    def give(self) -> None:
        """Lines go from one file to another."""
        source, target = self._some_file(), self._some_file()
        if source is target or len(source) < 4:
            return
        for _ in range(self.random.randint(1, 2)):
            line = source.pop(self.random.randrange(len(source)))
            target.insert(self.random.randint(0, len(target)), line)
        if self.random.random() < 0.5:
            target.append(self._new())
        self._commit()

    def rename(self) -> None:
        path = self.random.choice(sorted(self.files))
        if len(self.files[path]) > 2:
            self._count += 1
            self.files[f"knowledge/topics/renamed {self._count}.md"] = self.files.pop(path)
            self._commit()

    def retype(self) -> None:
        """Somebody writes again what was deleted before."""
        here = {line for lines in self.files.values() for line in lines}
        gone = [line for line in self._deleted if line not in here]
        if gone:
            line = self.random.choice(gone)
            self._some_file().append(line)
            self.origins.pop(line)
            self._commit()
            self._undoable.clear()  # what an undo of before would bring back stands there twice

    def undo(self) -> None:
        if self._undoable:
            try:
                commit = self.history.undo(self.random.choice(self._undoable[-6:]))
            except KbtuiError:
                return
            self._adopt(commit)

    def restore(self) -> None:
        if self._undoable:
            rev = self.random.choice(self._undoable[-4:])
            path = self.random.choice(sorted(self.files))
            try:
                commit = self.history.restore(path, rev)
            except KbtuiError:
                return
            if commit is not None:
                self._adopt(commit)

    # Keeping account -----------------------------------------------------------------------

    def _some_file(self) -> list[str]:
        return self.files[self.random.choice(sorted(self.files))]

    def _new(self) -> str:
        self._count += 1
        return f"- {' '.join(self.random.sample(WORDS, 3))} {self._count}"

    def _commit(self) -> None:
        actor = self.random.choice((Actor.YOU, Actor.AGENT, Actor.DREAM))
        stands = {path: self._text(path) for path in self._paths()}
        with self.history.change(actor, "a reason", Origin()) as change:
            for path in stands.keys() - self.files.keys():
                change.delete(path)
            for path, lines in self.files.items():
                text = "".join(f"{line}\n" for line in lines)
                if stands.get(path) != text:
                    change.write(path, text)
        if change.result is not None:
            self._undoable.append(change.result.id)
            self._note(change.result)

    def _adopt(self, commit: Commit) -> None:
        """Take over what the program made of the files."""
        self.files = {path: self._text(path).splitlines() for path in self._paths()}
        seen = [line for lines in self.files.values() for line in lines]
        if len(seen) != len(set(seen)):  # a restore beside what it restores: take it back
            self._adopt(self.history.undo(commit.id))
            return
        self._note(commit)

    def _note(self, commit: Commit) -> None:
        for lines in self.files.values():
            for line in lines:
                self.origins.setdefault(line, commit.id)
        state = {
            path: [(line, self.origins[line]) for line in lines]
            for path, lines in self.files.items()
        }
        self.snapshots.append((commit.id, state))

    def _paths(self) -> list[str]:
        head = self.history.head()
        return [path for path in self.history.tree(head) if head] if head else []

    def _text(self, path: str) -> str:
        return self.history.read(path, "HEAD").decode()
