"""The integrity check of a workspace's data, and of the consistency between its parts.

Unlike the doctor, which looks at the installation and services, this reads everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from shlex import quote

from kbtui.errors import KbtuiError
from kbtui.history.history import History
from kbtui.knowledge.library.library import Library
from kbtui.memory.background.service import Audit, Inbox
from kbtui.memory.records.archive import LOST_KEY, Tombstones
from kbtui.workspace.layout import Workspace
from kbtui.workspace.scan import LEFT_OUT, Scanner

_MAX_NAMED = 5
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WorkspaceProblem:
    """A problem: its area, a description, and what to do about it.

    A broken link is no `damage` in a user's own folder, where it is a way to plan a note.
    """

    area: str
    text: str
    hint: str
    path: str | None = None
    damage: bool = True


@dataclass(eq=False)
class Checking:
    """The integrity check of one workspace."""

    workspace: Workspace
    history: History
    library: Library
    scanner: Scanner
    inbox: Inbox
    tombstones: Tombstones
    audit: Callable[[], Audit]

    def run(self, report: Progress = lambda _: None) -> list[WorkspaceProblem]:
        """Read everything and return the problems, worst first."""
        checks: tuple[tuple[str, str, Callable[[Progress], Iterator[WorkspaceProblem]]], ...] = (
            ("history", "Reading the history", self._check_history),
            ("files", "Comparing files with the history", self._check_files),
            ("memory", "Accounting for messages", self._check_memory),
            ("inbox", "Reading the inbox", self._check_inbox),
            ("entries", "Reading entries", self._check_entries),
            ("links", "Following links", self._check_links),
        )
        found: list[WorkspaceProblem] = []
        for area, label, check in checks:
            report(label)
            try:
                found += check(report)
            except KbtuiError as error:
                found.append(WorkspaceProblem(area, error.message, error.hint))
        return found

    def _check_history(self, report: Progress) -> Iterator[WorkspaceProblem]:
        hint = (
            "Your files are not affected. Bring .kbtui/history.git back from a backup, or sync a"
            " new workspace with another machine that is whole."
        )
        for text in self.history.check(report).problems:
            yield WorkspaceProblem("history", text, hint)

    def _check_files(self, _report: Progress) -> Iterator[WorkspaceProblem]:
        for diff in self.history.diff("HEAD") if self.history.head() else ():
            yield WorkspaceProblem(
                "files",
                f"{self.workspace.file(diff.path)} is {diff.kind} and not recorded.",
                "Any command records it; if it doesn't, see whether another program holds it.",
                self.workspace.file(diff.path),
            )
        self.scanner.scan()
        for path, why in self.scanner.left_out().items():
            file = self.workspace.file(path)
            yield WorkspaceProblem(
                "files", f"{file} is left out of the history: {why}.", LEFT_OUT, file
            )
        for path in self.scanner.conflict_copies():
            file = self.workspace.file(path)
            yield WorkspaceProblem(
                "files",
                f"{file} is the other version of a file that two wrote at once.",
                "Take over what you need from it, then delete it.",
                file,
            )

    def _check_memory(self, _report: Progress) -> Iterator[WorkspaceProblem]:
        audit = self.audit()
        for account in audit.accounts:
            for first, last in account.unaccounted:
                yield WorkspaceProblem(
                    "memory",
                    f"{account.session}: messages {first} to {last} are unaccounted for.",
                    f"kbtui consolidate {account.session}",
                )
            for text in account.problems:
                yield WorkspaceProblem("memory", f"{account.session}: {text}", "Look at that line.")
        for text in audit.problems:
            yield WorkspaceProblem("memory", str(text), "See `kbtui audit`.")
        for line in self.tombstones.problems():
            if line.reason == LOST_KEY:
                continue  # from another machine, received by a sync
            yield WorkspaceProblem("memory", str(line), "It has no effect; it can stay.", line.path)

    def _check_inbox(self, _report: Progress) -> Iterator[WorkspaceProblem]:
        for path in self.inbox.problems():
            yield WorkspaceProblem(
                "inbox", f"{path} can't be read.", "Look into it; then delete it.", path
            )

    def _check_entries(self, _report: Progress) -> Iterator[WorkspaceProblem]:
        self.library.refresh()
        for info in self.library.infos():
            if info.problem:
                yield WorkspaceProblem(
                    "entries",
                    f"{self.workspace.file(info.path)}: {info.problem}",
                    f"Correct it: kbtui edit {quote(info.slug)}",
                    self.workspace.file(info.path),
                )

    def _check_links(self, _report: Progress) -> Iterator[WorkspaceProblem]:
        if moved := self.library.moved_outside():
            files = ", ".join(map(self.workspace.file, sorted(moved)[:_MAX_NAMED]))
            more = f" and {len(moved) - _MAX_NAMED:,} more" if len(moved) > _MAX_NAMED else ""
            yield WorkspaceProblem(
                "links",
                "Links lead to where notes were before another program moved or renamed them:"
                f" in {files}{more}.",
                "`kbtui check --mend` leads them to where the notes are now.",
                damage=False,
            )
        for info in self.library.infos():
            file = self.workspace.file(info.path)
            hint = f"Make it (kbtui new), or correct the link: kbtui edit {quote(info.slug)}"
            for resolved in self.library.outgoing(info.path):
                if resolved.path is None:
                    link = resolved.link
                    yield WorkspaceProblem(
                        "links",
                        f"{file}:{link.line} links to {link.target!r}, which isn't there.",
                        "" if self.workspace.in_place else hint,
                        file,
                        not self.workspace.in_place,
                    )
