"""The working copy: the files as one run of edits leaves them, who may change them, and what waits.

Each operation is worked out on the files with the edits so far, passes the guards, and is then put
on top, or kept as a proposal where a person must say so. Operations can be done again on files that
somebody else has changed meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from kbtui.errors import KbtuiError, NotFoundError, UnreadableError, UsageError
from kbtui.history.change import Actor, Change, Origin
from kbtui.history.history import History
from kbtui.knowledge.entries.entry import (
    ENTRY_TYPES,
    Entry,
    is_entry,
    parse_entry,
    slug_of,
    without_line,
)
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact, statements
from kbtui.knowledge.library.library import Library
from kbtui.knowledge.library.overlay import Edits, Overlay, shown_text
from kbtui.memory.edits import guards
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.growing import WORDING
from kbtui.memory.edits.memory_file import MEMORY
from kbtui.memory.edits.subjects import Subjects, is_user, names_of_user
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.tombstones import Tombstones
from kbtui.text import clean_line, fold, shorten
from kbtui.views.view import View
from kbtui.workspace import files
from kbtui.workspace.layout import short_name

USER = "USER.md"
NOTES = ("SOUL.md", USER, MEMORY)
_LINK = re.compile(r"\[\[([^\]|#\n]+)")
_SHOWN = 80
_OF_SOMEBODY = frozenset({"person", "preference", "fact"})
_NAMES = {name.lower(): path for path in NOTES for name in (path, path.rpartition("/")[2])}


@dataclass(frozen=True, slots=True)
class EditServices:
    """What edits read from; `subjects` finds the entry about something."""

    history: History
    library: Library
    subjects: Subjects
    tombstones: Tombstones


@dataclass(frozen=True, slots=True)
class Author:
    """Who edits, and what holds for them: the one place where that is said.

    Attributes:
        actor: Who it is.
        said: What the user said in the conversations at hand, and when, by which what was forgotten
            counts as stated again.
        refuse: Tells what must not be written, besides what was forgotten.
        ground: What lines may be built from; None: whoever edits answers for what they say.
        cites_files: Lines may be built from the files that a model was shown as well.
        by_tool: It is asked for by a tool, in words and a place of the caller's choice: it is no
            judge of what is worth keeping, and what other machines wrote may be changed.
        asked: For what is asked for by a tool: True if the person has asked in this turn to change
            what is called so, where these lines would go or come. None: nobody needs to.
        view: The workspace as whoever is answered may see it: the rest isn't changed, nor told of.
            None: all of it.
    """

    actor: Actor
    said: Sequence[tuple[datetime, str]] = ()
    refuse: Callable[[str], bool] = lambda _fact: False
    ground: Ground | None = None
    cites_files: bool = False
    by_tool: bool = False
    asked: Callable[[Sequence[str], Sequence[str]], bool] | None = None
    view: View | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing to do: `work` gives the new content of each file, where None deletes one.

    Upkeep that nobody asked for is `optional`: left out, instead of proposed, where it would need a
    person's consent, and in files that nobody but a person has written. `ref` is what the file that
    it is about is called; empty for what isn't there yet. `ask` says why a person must decide on it
    where nobody has asked for it, if so.
    """

    work: Callable[[WorkingCopy], Edits]
    optional: bool = False
    ref: str = ""
    ask: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of an operation: `paths` it changed, or why it is `proposed`."""

    paths: tuple[str, ...] = ()
    proposed: str = ""
    made: tuple[str, ...] = ()


@dataclass(slots=True)
class Proposed:
    """Operations that a person must decide on, together, as they change the same files."""

    why: str
    paths: set[str]
    operations: list[Operation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FileProposal:
    """A proposal: the new texts of some files (None: gone), and what they were made from."""

    why: str
    texts: Mapping[str, str | None]
    before: Mapping[str, bytes | None]


class WorkingCopy:
    """The files of one run with the edits so far, and the `operations` done or `proposed`.

    A `careful` one leaves to a person what takes facts away: the run ended before it was finished.
    What is `waiting` was proposed already, by path: the files count as if it were accepted.
    `ungrounded` are the lines that were left out because nobody has said them.
    """

    def __init__(
        self,
        services: EditServices,
        author: Author,
        *,
        careful: bool = False,
        waiting: Mapping[str, str | None] | None = None,
    ) -> None:
        self.services = services
        self.author = author
        self.careful = careful
        self.files: Overlay = (author.view or services.library).overlay()
        self.waiting = {
            path: None if text is None else text.encode("utf-8", "replace")
            for path, text in (waiting or {}).items()
        }
        self.files.apply(self.waiting)
        self.files.before.update(self.waiting)
        self.operations: list[Operation] = []
        self.proposed: list[Proposed] = []
        self.ungrounded: dict[str, None] = {}
        self._told: set[str] = set()
        self._said_again: set[str] = set()
        self._ground = author.ground
        self._cited: set[str] = set()

    # Doing -----------------------------------------------------------------------------------

    def perform(self, operation: Operation) -> Done:
        """Do one thing, if it may be done; keep it as a proposal if a person must say so.

        Raises:
            KbtuiError: it can't be done, or must not; nothing is changed.
        """
        edits = self._work(operation)
        if not edits or (operation.optional and any(map(self.is_human_only, edits))):
            return Done()
        guards.check(self.files, edits, self.is_forbidden, by_tool=self.author.by_tool)
        self._check_subjects(edits)
        why = self._reason_to_ask(operation, edits, self._check_said(edits))
        made = tuple(path for path in edits if not self.files.exists(path))
        if not why:
            self.files.apply(edits)
            self._told |= edits.keys() - self.files.repaired
        elif operation.optional:
            return Done()
        else:
            self._propose(operation, why, edits)
        self.operations.append(operation)
        return Done(tuple(sorted(edits)), why, made)

    def _reason_to_ask(self, operation: Operation, edits: Edits, unsaid: str) -> str:
        """Say why a person must decide on edits; empty: they may be made."""
        if not self.author.by_tool:
            asks = guards.reason_to_ask(self.files, edits, self.authors, careful=self.careful)
            return asks or operation.ask
        if self.author.asked is None:
            return ""
        asks = guards.reason_to_ask_of_tool(self.files, edits, self.authors, self.author.asked)
        return asks or unsaid

    def again(self, *, careful: bool = False) -> WorkingCopy:
        """Do everything again on the files as they are now; what can't be done any more isn't."""
        copy = WorkingCopy(self.services, self.author, careful=careful)
        copy.ungrounded.update(self.ungrounded)
        copy.files.shown |= self.files.shown
        for path in self.files.before:  # what was looked at counts as known
            copy.files.original(path)
        for operation in self.operations:
            try:
                copy.perform(operation)
            except KbtuiError:
                continue
        return copy

    @property
    def repaired(self) -> set[str]:
        """The files in which nothing but links has changed."""
        return self.files.changed.keys() - self._told

    def file_proposals(self) -> list[FileProposal]:
        """What a person must decide on, made from the files as they are on disk."""
        return [self._wish(each) for each in self.proposed]

    def stage(self, change: Change) -> None:
        """Put what was done into a running change; what the user asked for again isn't buried."""
        self.files.repaired = set(self.repaired)
        self.files.stage(change)
        if self._said_again and self.author.actor.acts_on_request:
            self.services.tombstones.lift(change, sorted(self._said_again))

    def propose(self, inbox: Inbox, origin: Origin) -> list[tuple[FileProposal, str]]:
        """Store what a person must decide on and hasn't rejected, each with its id."""
        found = []
        for wish in self.file_proposals():
            reason = f"{wish.why[:1].upper()}{wish.why[1:]}."
            proposal = wish.texts and inbox.add_unless_rejected(
                self.author.actor, reason, wish.texts, origin=origin, bases=wish.before
            )
            if proposal:
                found.append((wish, proposal.id))
        return found

    def is_forbidden(self, fact: str) -> bool:
        """True for what was forgotten, or taken out by the user, and not said again since."""
        tombstones, author = self.services.tombstones, self.author
        if tombstones.buried(fact):
            if tombstones.buried(fact, said=author.said, asked=author.actor.acts_on_request):
                return True
            self._said_again.add(fact)
        return author.refuse(fact)

    # What was said --------------------------------------------------------------------------

    def lacks(self, line: str, about: str = "") -> str:
        """What of a line nobody has said; empty: nothing. `about` are words that don't count."""
        if self._ground is None:
            return ""
        fresh = self.files.shown - self._cited if self.author.cites_files else ()
        if fresh:
            texts = [shown_text(self.files.original(path)) for path in fresh]
            self._ground |= Ground.of((None, line) for each in texts for line in each.splitlines())
            self._cited.update(fresh)
        linked = (self.named(target.strip()) for target in _LINK.findall(line))
        names = [f"{path} {self.title(path)}" for path in linked if path is not None]
        known = [WORDING, *self.user_names(), about, *names]
        return self._ground.lacks(line, Ground.of([(None, " ".join(known))]))

    def user_names(self) -> tuple[str, ...]:
        """What USER.md and MEMORY.md say that the user is called."""
        return names_of_user(map(self._standing, (USER, MEMORY)))

    def record_ungrounded(self, line: str) -> None:
        """Note a line that isn't written, as nobody has said it."""
        self.ungrounded[plain_fact(line)] = None

    def _standing(self, path: str) -> str:
        """The text of a file that each edit asks for; not looked for where a scan found none."""
        return shown_text(self._there(path) if self.files.entry(path) is not None else None)

    def _there(self, path: str) -> bytes | None:
        return self.files.data(path) if self.files.exists(path) else None

    def _check_subjects(self, edits: Edits) -> None:
        """Refuse a new entry about nobody but the user, whom MEMORY.md is about."""
        for path, data in edits.items():
            if self._is_new(path, data) and path not in self.files.moved:
                entry = parse_entry(path, data or b"")
                if entry.type in _OF_SOMEBODY and is_user(entry.title, self.user_names()):
                    raise UsageError(
                        f"{entry.title!r} is the user.", "Lines about them go into MEMORY.md."
                    )

    def _check_said(self, edits: Edits) -> str:
        """Say what of edits nobody has said; what isn't asked for by a tool is refused for it."""
        for line, about in self._fresh(edits) if self.author.ground is not None else ():
            lacking = self.lacks(line, about)
            if not lacking:
                continue
            why = f"nobody has said {shorten(lacking, _SHOWN)!r}"
            if self.author.by_tool:
                return why
            self.record_ungrounded(line)
            raise UsageError(
                f"{why}: {shorten(line, _SHOWN)!r}.",
                "Write only what was said, with its names, numbers and dates.",
            )
        return ""

    def _fresh(self, edits: Edits) -> Iterator[tuple[str, str]]:
        """The lines that edits bring, and titles of new entries but a tool's: each with its about.

        What stands in a file already was let in before; a line that takes the place of another may
        say what that said.
        """
        there = (*self.files.before.values(), *self.files.edits.values())
        known = {fact for data in there for fact in statements(shown_text(data))}
        for path, data in edits.items():
            before, after = statements(shown_text(self._there(path))), statements(shown_text(data))
            entry = self.files.entry(path) or (parse_entry(path, data) if data else None)
            if entry and not self.author.by_tool and self._is_new(path, data):
                yield entry.title, " ".join((self._standing(MEMORY), *after))
            names = (entry.title, entry.slug, *entry.aliases) if entry else ()
            about = " ".join((*names, *_besides(before, set(after))))
            yield from ((each, about) for each in _besides(after, known))

    def _is_new(self, path: str, data: bytes | None) -> bool:
        """True for an entry that edits make."""
        return data is not None and is_entry(path) and not self.files.exists(path)

    def is_human_only(self, path: str) -> bool:
        """True for a file that no machine has written a line of."""
        authors = self.authors(path)
        return bool(authors) and all(author.writes_human_text for author in authors)

    def authors(self, path: str) -> Sequence[Actor]:
        """Who wrote each line of a file as it is on disk; what isn't recorded yet is the user's."""
        text = shown_text(self.files.original(path))
        return [each.actor for each in self.services.history.blame(path, text=text)] if text else ()

    # Names -----------------------------------------------------------------------------------

    def file(self, ref: str) -> str:
        """The path of a file that may be changed: an entry, MEMORY.md, USER.md or SOUL.md.

        Raises:
            NotFoundError: nothing is called so.
            UsageError: several are, or it is none of those, or a machine must leave it alone.
        """
        name = clean_line(ref)
        try:
            path = _NAMES.get(name.lower()) or self._found(name)
        except NotFoundError:
            path = _NAMES.get(f"{name.lower()}.md", "")
            if not path:
                raise
        if path not in NOTES and not is_entry(path):
            raise UsageError(
                f"{path} is not yours to change.",
                "Entries are, and MEMORY.md, USER.md and SOUL.md.",
            )
        self._check_open(path, name)
        return path

    def _found(self, ref: str) -> str:
        """The path that a name means, of an entry or of any other file that may be known of."""
        name = without_line(ref)
        if not is_entry(name) and self.files.exists(name) and not self.files.conceals(name):
            return name
        return self.files.find_shown(ref)

    def twin(self, kind: str, title: str) -> str | None:
        """The entry that a new one of this type and title would be the second about; None: none.

        Raises:
            UsageError: it is private, and not to be shown.
        """
        folder = f"knowledge/{ENTRY_TYPES[kind]}/"
        made = self._made(title)
        if made is not None and (self.files.layout.in_place or made.startswith(folder)):
            return made
        twins = [info.path for info in self.services.subjects.twins(kind, title)]
        known = [each for each in twins if self.files.exists(each)]
        found = next((each for each in known if not self.files.conceals(each)), None)
        if found is not None:
            self.files.check_shown(found, title)
        return found

    def entry(self, ref: str) -> Entry:
        """Read an entry by one of its names; raises as `file`."""
        path = self.file(ref)
        if path in NOTES:
            raise UsageError(f"{short_name(path)} is not an entry.")
        return self.files.parsed(path)

    def named(self, ref: str) -> str | None:
        """The path of an entry by any of its names; None: it means nothing, or several things."""
        made = self._made(ref.rpartition("/")[2].replace("-", " "))
        try:
            return made or self.files.find_path(ref)
        except KbtuiError:
            return None

    def subject(self, fact: Fact) -> str | None:
        """The entry about the subject of a fact; None: there is none.

        Raises:
            UsageError: there is one that a machine must leave alone.
        """
        path = self._made(fact.subject)
        if path is None:
            info = self.services.subjects.find(fact)
            path = info.path if info and self.files.exists(info.path) else None
        if path is not None:
            self._check_open(path, fact.subject)
        return path

    def title(self, path: str) -> str:
        """What a file is called for people."""
        if path in NOTES:
            return path.rpartition("/")[2]
        entry = self.files.entry(path)
        return entry.title if entry else short_name(path)

    def _made(self, name: str) -> str | None:
        """The one entry that was changed in this run and is called so, bullets and case aside."""
        wanted = normalise(name)
        found = []
        for path, data in self.files.edits.items():
            if data is not None and is_entry(path):
                names = _names_of(path, data)
                if wanted in names or fold(name) == fold(slug_of(path)):
                    found.append(path)
        return found[0] if len(found) == 1 else None

    def _check_open(self, path: str, name: str) -> None:
        """See that a machine may change a file."""
        self.files.check_shown(path, name)
        data = self.files.data(path)
        parsed = parse_entry(path, data) if data is not None else None
        if parsed and parsed.problem:
            raise UsageError(f"{short_name(path)} can't be edited by a machine.", parsed.problem)

    # Proposals -------------------------------------------------------------------------------

    def _work(self, operation: Operation) -> Edits:
        self.files.repaired.clear()
        try:
            edits = operation.work(self)
        except UnicodeError as error:
            raise UnreadableError("That holds bytes that are no text.") from error
        return {path: data for path, data in edits.items() if data != self.files.data(path)}

    def _propose(self, operation: Operation, why: str, edits: Edits) -> None:
        for group in self.proposed:
            if group.paths & edits.keys():
                group.operations.append(operation)
                group.paths |= edits.keys()
                return
        self.proposed.append(Proposed(why, set(edits), [operation]))

    def _wish(self, group: Proposed) -> FileProposal:
        """A proposal with nothing but its own edits, and those of this run that it builds on."""
        copy = WorkingCopy(self.services, self.author)
        try:
            for operation in group.operations:
                copy.files.apply(copy._work(operation))
        except KbtuiError:
            copy = WorkingCopy(self.services, self.author)
            copy.files.apply(self.files.edits)
            for operation in group.operations:
                copy.files.apply(copy._work(operation))
        texts = {
            path: None if data is None else files.text_of(data)
            for path, data in copy.files.changed.items()
            if path in group.paths
        }
        return FileProposal(group.why, texts, copy.files.before)


def _besides(lines: Iterable[str], known: Container[str]) -> Iterator[str]:
    return (each for each in lines if each not in known)


@lru_cache(512)  # a run looks at each of its entries once for every fact
def _names_of(path: str, data: bytes) -> frozenset[str]:
    """What an entry is called, without bullets and case."""
    entry = parse_entry(path, data)
    names = (entry.title, entry.slug.replace("-", " "), *entry.aliases)
    return frozenset(normalise(name) for name in names)
