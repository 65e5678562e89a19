"""The working copy: files with the edits of one run applied, and what waits for a person.

Each operation is computed on the files with the edits so far and passes the guards; then it is
applied, or kept as a proposal if a person must decide. Operations can be repeated on files that
somebody else has changed meanwhile.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from kbtui.errors import KbtuiError, NotFoundError, UnreadableError, UsageError
from kbtui.history.change import Actor, Change, Origin
from kbtui.history.history import History, LineOrigin
from kbtui.knowledge.entries.entry import (
    DATED,
    TYPE_OF_FOLDER,
    Entry,
    is_entry,
    parse_entry,
    slug_of,
    without_line,
)
from kbtui.knowledge.format.facts import Fact, normalise, plain_fact
from kbtui.knowledge.library.library import Library
from kbtui.knowledge.library.overlay import Edits, Overlay, shown_text
from kbtui.memory.edits import guards
from kbtui.memory.edits.entry_updates import WORDING
from kbtui.memory.edits.grounding import Ground
from kbtui.memory.edits.own_words import OwnWords, sentences_said
from kbtui.memory.edits.subjects import Subjects, is_user, names_of_user
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.records.claims import (
    OWN_WORDS,
    Claim,
    claims_in,
    claims_of,
    is_own,
    without_label,
)
from kbtui.memory.records.dates import with_dates
from kbtui.memory.records.tombstones import Tombstones
from kbtui.offline.language import significant_terms
from kbtui.offline.lines import sentence_spans
from kbtui.sessions.store import SessionStore
from kbtui.text import clean_line, fold, shorten, slugify
from kbtui.views.view import View
from kbtui.workspace import files
from kbtui.workspace.layout import MEMORY, short_name

USER = "USER.md"
NOTES = ("SOUL.md", USER, MEMORY)
_LINK = re.compile(r"\[\[([^\]|#\n]+)")
_NUMBER = re.compile(r"-\d+$")
_SHOWN = 80
_OWN_DATES = ("created", "updated")  # properties that kbtui itself fills in
_MAX_LABEL = 2  # content words; a longer one is a sentence
_ABOUT_PEOPLE = frozenset({"person", "preference", "fact"})
_NAMES = {name.lower(): path for path in NOTES for name in (path, path.rpartition("/")[2])}


@dataclass(frozen=True, slots=True)
class EditServices:
    """The services that edits read from; `subjects` finds the entry about a subject."""

    history: History
    library: Library
    subjects: Subjects
    tombstones: Tombstones
    sessions: SessionStore


@dataclass(frozen=True, slots=True)
class Author:
    """Who edits, and the rules that apply to them.

    Attributes:
        actor: The actor.
        said: The user's messages with their times; they may restate what was forgotten.
        refuse: Returns whether a fact must not be written, besides forgotten ones.
        ground: What lines may be built from; None: the author is responsible for their truth.
        cites_files: Whether lines may also be built from files that a model was shown.
        by_tool: Whether a tool asked for it, with wording and place chosen by the caller: then what
            is worth keeping isn't judged, and lines of other machines may be changed.
        asked: For tools: returns whether the person has asked in this turn to change the file with
            these names, removing or adding these lines. None: nobody needs to.
        view: The workspace as the recipient of the answer may see it; the rest is neither changed
            nor mentioned. None: everything.
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
    """An operation of the table `OPERATIONS`: its name, its arguments, and what performs it.

    `work` is a function of a working copy and the arguments alone, so it can be repeated on files
    that somebody else has changed meanwhile. It returns the new content of each file, None to
    delete it, and writes nothing.

    An `optional` operation is upkeep that nobody asked for: it is skipped instead of proposed, and
    never applied to files written only by people. `ask` is why a person must decide on it, if
    nobody asked for it; `reason` is told in place of the guards' reason, if they leave it to a
    person.
    """

    name: str
    work: Callable[..., Edits]
    arguments: tuple[tuple[Any, ...], Mapping[str, Any]] = ((), MappingProxyType({}))
    optional: bool = False
    ask: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The result of an operation: the `paths` it changed, or why it is `proposed`.

    `made` are the new files among them; `former` is the file that it was asked to change, under
    its name until then, and `edits` what a person must decide on.
    """

    paths: tuple[str, ...] = ()
    proposed: str = ""
    made: tuple[str, ...] = ()
    former: str = ""
    edits: Edits = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file that it is about, under its name now."""
        return self.made[0] if self.made else self.former


@dataclass(slots=True)
class ProposalGroup:
    """Operations that a person must decide on together, as they change the same files."""

    why: str
    paths: set[str]
    operations: list[Operation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FileProposal:
    """A proposal: the new texts of some files (None: deleted), and what they were made from."""

    why: str
    texts: Mapping[str, str | None]
    before: Mapping[str, bytes | None]


class WorkingCopy:
    """The files of one run with the edits so far, and its `operations`, done or `proposed`.

    If `careful`, because a run ended early, the removal of facts is left to a person. `waiting` are
    earlier proposals, by path; they are treated as accepted. `ungrounded` are the lines, and
    `left_out` the tags, names and summaries, that aren't written because nobody has said them.
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
        self.proposed: list[ProposalGroup] = []
        self.ungrounded: dict[str, None] = {}
        self.left_out: dict[str, None] = {}
        self._named = ""
        self._edited: set[str] = set()
        self._restated: set[str] = set()
        self._ground = author.ground
        self._own = OwnWords(services.sessions)
        self._cited: set[str] = set()

    # Operations ------------------------------------------------------------------------------

    def perform(self, operation: Operation) -> OperationResult:
        """Perform an operation if allowed, or keep it as a proposal if a person must decide.

        Raises:
            KbtuiError: It can't be done, or is forbidden; nothing is changed.
        """
        wanted = self._work(operation)
        former = self._named
        if not wanted or (operation.optional and any(map(self.is_human_only, wanted))):
            return OperationResult(former=former)
        guards.check(self.files, wanted, self.is_forbidden, by_tool=self.author.by_tool)
        self._check_subjects(wanted)
        edits, unsaid = self._check_grounded(wanted)
        why = self._reason_to_ask(operation, edits, unsaid)
        made = tuple(path for path in edits if not self.files.exists(path))
        if not why:
            self.files.apply(edits)
            self._edited |= edits.keys() - self.files.repaired
            wanted = {}
        elif operation.optional:
            return OperationResult()
        else:
            self._propose(operation, why, edits)
        self.operations.append(operation)
        return OperationResult(tuple(sorted(edits)), why, made, former, wanted)

    def _reason_to_ask(self, operation: Operation, edits: Edits, unsaid: str) -> str:
        """Return why a person must decide on edits, or "" if they may be made."""
        if not self.author.by_tool:
            asks = guards.reason_to_ask(self.files, edits, self.authors, careful=self.careful)
            return (asks and operation.reason) or asks or operation.ask
        if self.author.asked is None:
            return ""
        asks = guards.reason_to_ask_of_tool(self.files, edits, self.authors, self.author.asked)
        return asks or unsaid

    def replay(self, *, careful: bool = False) -> WorkingCopy:
        """Repeat all operations on the files as they are now, skipping those that fail."""
        copy = WorkingCopy(self.services, self.author, careful=careful)
        copy.ungrounded.update(self.ungrounded)
        copy.files.shown |= self.files.shown
        for path in self.files.before:  # files that were read count as known
            copy.files.original(path)
        for operation in self.operations:
            try:
                copy.perform(operation)
            except KbtuiError:
                continue
        return copy

    @property
    def repaired(self) -> set[str]:
        """The files in which only links have changed."""
        return self.files.changed.keys() - self._edited

    def file_proposals(self) -> list[FileProposal]:
        """Return what a person must decide on, computed from the files on disk."""
        return [self._file_proposal(each) for each in self.proposed]

    def stage(self, change: Change, edits: Edits | None = None) -> None:
        """Put edits into a running change, by default all that were made.

        Tombstones of what the user asked for again are lifted.
        """
        if edits is None:
            self.files.repaired = set(self.repaired)
        self.files.stage(change, edits)
        if self._restated and self.author.actor.acts_on_request:
            self.services.tombstones.lift(change, sorted(self._restated))

    def propose(self, inbox: Inbox, origin: Origin) -> list[tuple[FileProposal, str]]:
        """Store the proposals that the user hasn't rejected before, each with its id."""
        found = []
        for group in self.file_proposals():
            reason = f"{group.why[:1].upper()}{group.why[1:]}."
            proposal = group.texts and inbox.add_unless_rejected(
                self.author.actor, reason, group.texts, origin=origin, bases=group.before
            )
            if proposal:
                found.append((group, proposal.id))
        return found

    def is_forbidden(self, fact: str) -> bool:
        """Return whether the user forgot or removed a fact and hasn't stated it again since."""
        tombstones, author = self.services.tombstones, self.author
        if tombstones.buried(fact):
            if tombstones.buried(fact, said=author.said, asked=author.actor.acts_on_request):
                return True
            self._restated.add(fact)
        return author.refuse(fact)

    # Grounding -------------------------------------------------------------------------------

    def lacks(self, text: str, about: str = "") -> str:
        """Return the part of a text that nobody has said, or ""; words of `about` don't count."""
        claims = claims_in(text) if self._ground is not None else ()
        return next(filter(None, (self.lacks_claim(each, about) for each in claims)), "")

    def dated(self, text: str, day: date, *, is_dated: bool = False) -> str:
        """Return a text with the dates that its words mean, each sentence counted from its own day.

        That is when what it states was said; `day`, if that isn't known. `is_dated` is as in
        `with_dates`.
        """
        for start, end in reversed(sentence_spans(text)):
            said = text[start:end]
            dated = with_dates(said, self.said(said) or day, is_dated=is_dated)
            text = f"{text[:start]}{dated}{text[end:]}"
        return text

    def said(self, line: str, about: datetime | None = None) -> datetime | date | None:
        """Return when what a line states was said, in the user's time zone, if that is known.

        `about` is when a model says that it was.
        """
        return self._ground.said(line, about) if self._ground is not None else about

    def lacks_claim(self, claim: Claim, about: str = "", *, of_user: bool = False) -> str:
        """Return the part of a claim that nobody has said and that isn't known anyway, or "".

        `of_user`: it stands where everything is about the user.
        """
        is_free = claim.form == "whole" or (claim.form != "line" and is_own(claim.text))
        is_free |= claim.key in _OWN_DATES
        if self._ground is None or is_free:
            return ""
        ground = self._ground
        if self.author.cites_files:
            ground = self._ground = self._with_cited(ground)
        linked = (self.named(target.strip()) for target in _LINK.findall(claim.text))
        names = [f"{path} {self.title(path)}" for path in linked if path is not None]
        is_line = claim.form == "line" or (
            claim.form != "name" and len(significant_terms(claim.text)) > _MAX_LABEL
        )
        own = WORDING if claim.form == "line" else OWN_WORDS
        known = _known(" ".join((own, *self.user_names(), about, *names)))
        if is_line:
            lacking = ground.lacks(claim.text, known, of_user=of_user)
        else:
            lacking = ground.lacks_name(claim.text, known)
        is_here = lacking and claim.form != "line" and self._is_name_here(claim.text)
        return "" if is_here else lacking

    def _with_cited(self, ground: Ground) -> Ground:
        """Return a ground with the files that were shown meanwhile."""
        fresh = self.files.shown - self._cited
        if not fresh:
            return ground
        self._cited.update(fresh)
        texts = [shown_text(self.files.original(path)) for path in fresh]
        return ground | Ground.of((None, line) for each in texts for line in each.splitlines())

    def _is_name_here(self, label: str) -> bool:
        """Return whether the workspace has something of this name: an entry, a tag, a file."""
        name = label.partition("#")[0].strip() or label.strip("# ")
        path = self.named(name)
        if path is not None or self.files.conceals(name):
            return path is not None and not self.files.conceals(path)
        try:
            return self.files.has_label(name) or files.exists(self.files.layout, name)
        except KbtuiError:
            return False

    def user_names(self) -> tuple[str, ...]:
        """Return the user's names according to USER.md and MEMORY.md."""
        return names_of_user(map(self._text, (USER, MEMORY)))

    def record_ungrounded(self, line: str) -> None:
        """Record a line that isn't written because nobody has said it."""
        self.ungrounded[plain_fact(line)] = None

    def _text(self, path: str) -> str:
        """Return the text of a file, without reading the disk if the last scan found none."""
        return shown_text(self._data(path) if self.files.entry(path) is not None else None)

    def _data(self, path: str) -> bytes | None:
        return self.files.data(path) if self.files.exists(path) else None

    def _check_subjects(self, edits: Edits) -> None:
        """Reject a new entry about the user, who is the subject of MEMORY.md."""
        for path, data in edits.items():
            if data is None or not is_entry(path) or path in self.files.moved:
                continue
            if not self.files.exists(path):
                entry = parse_entry(path, data)
                if entry.type in _ABOUT_PEOPLE and is_user(entry.title, self.user_names()):
                    raise UsageError(
                        f"{entry.title!r} is the user.", "Lines about them go into MEMORY.md."
                    )

    def _check_grounded(self, edits: Edits) -> tuple[Edits, str]:
        """Return edits without labels that nobody has said, and what else nobody has said.

        A tag, another name or a summary isn't needed; if anything else, or everything, was made up,
        a person decides on a tool's edits, and others are rejected.
        """
        unsaid = [*self._unsaid(edits)] if self.author.ground is not None else []
        if not unsaid:
            return edits, ""
        if all(claim.is_optional for _, claim, _ in unsaid):
            rest = self._without_labels(edits, [(path, claim) for path, claim, _ in unsaid])
            if rest and not any(self._unsaid(rest)):
                left_out = self.left_out if self.author.by_tool else self.ungrounded
                left_out |= {claim.text: None for _, claim, _ in unsaid}
                return rest, ""
        _, claim, lacking = next((each for each in unsaid if not each[1].is_optional), unsaid[0])
        why = f"nobody has said {shorten(lacking, _SHOWN)!r}"
        if self.author.by_tool:
            return edits, why
        self.record_ungrounded(claim.text)
        raise UsageError(
            f"{why}: {shorten(claim.text, _SHOWN)!r}.",
            "Write only what was said, with its names, numbers and dates.",
        )

    def _unsaid(self, edits: Edits) -> Iterator[tuple[str, Claim, str]]:
        """Yield the claims of edits that nobody has said, each with its path and what it lacks.

        Text that is in a file already was accepted before; a line that replaces another may repeat
        what that one said.
        """
        there = (*self.files.before.values(), *self.files.edits.values())
        known: set[str] | None = None
        for path, claim, about, topic in self._new_claims(edits):
            lacking = self.lacks_claim(claim, about, of_user=path in NOTES)
            if lacking and claim.form != "line":
                lacking = self.lacks_claim(claim, f"{about} {topic}")
            if not lacking:
                continue
            if known is None:
                known = {each.text for data in there for each in claims_of(shown_text(data))}
            if claim.text not in known:
                yield path, claim, lacking

    def _new_claims(self, edits: Edits) -> Iterator[tuple[str, Claim, str, str]]:
        """Yield what a person would see of edits and doesn't see now.

        That is names of files and entries, and every claim of their text; links that kbtui itself
        has updated aren't looked at. Each has what it may be about, and what a label of it may
        repeat besides.
        """
        for path, data in edits.items():
            if data is None or path in self.files.repaired:
                continue
            was = self.files.moved.get(path, path)
            before, after = shown_text(self._data(was)), shown_text(data)
            old, new = self.files.entry(was), parse_entry(path, data)
            names = (old.title, old.slug, *old.aliases) if old else (new.title, new.slug)
            topic = before if old else self._text(MEMORY)
            known = {each.text for each in claims_of(before)}
            if is_entry(path):
                named = " ".join(names) if old else ""
                yield from (
                    (path, each, named, topic) for each in self._names_given(path, was, new)
                )
                known.add(new.title)
            gone = known - {each.text for each in claims_of(after)}
            about = " ".join((*names, *sorted(gone)))
            for claim in claims_of(after):
                if claim.text not in known:
                    yield path, claim, about, topic

    def _names_given(self, path: str, was: str, entry: Entry) -> Iterator[Claim]:
        """Yield the names that edits give to a file: its title, slug and folders."""
        old = self.files.entry(was)
        if old is None or old.title != entry.title:
            yield Claim(entry.title, "title")
        if self.files.exists(path):
            return
        slug = slugify(DATED.sub("", entry.slug))
        if not slugify(entry.title).startswith(_NUMBER.sub("", slug)):
            yield Claim(slug.replace("-", " "), "title")
        for folder in entry.category.split("/"):
            if folder not in TYPE_OF_FOLDER and not self.files.habits().is_folder(folder):
                yield Claim(folder.replace("-", " "), "title")

    def _without_labels(self, edits: Edits, unsaid: Iterable[tuple[str, Claim]]) -> Edits:
        """Return edits without some tags, names or summaries of files; {} if nothing is left."""
        rest = dict(edits)
        for path, claim in unsaid:
            with contextlib.suppress(UnreadableError):  # then it is still there, and noticed
                rest[path] = without_label(rest[path] or b"", claim, self._data(path))
        return {path: data for path, data in rest.items() if data != self.files.data(path)}

    def is_human_only(self, path: str) -> bool:
        """Return whether no line of a file is by a machine."""
        origins = self._origins(path)
        return bool(origins) and all(each.actor.writes_human_text for each in origins)

    def authors(self, path: str) -> Sequence[Actor]:
        """Return the author of each line of a file on disk; unrecorded lines are the user's.

        A sentence of the user's is theirs, whoever committed it.
        """
        lines = shown_text(self.files.original(path)).split("\n")
        origins = self._origins(path)
        return [self._own.author_of(*each) for each in zip(lines, origins, strict=False)]

    def was_said(self, text: str) -> bool:
        """Return whether a text is a sentence of the user's in what this run is based on."""
        wanted = normalise(text)
        return any(wanted in sentences_said(said) for _, said in self.author.said)

    def _origins(self, path: str) -> Sequence[LineOrigin]:
        text = shown_text(self.files.original(path))
        return self.services.history.blame(path, text=text) if text else ()

    # Names -----------------------------------------------------------------------------------

    def file(self, ref: str) -> str:
        """Return the path of a file that may be changed: an entry, MEMORY.md, USER.md or SOUL.md.

        Raises:
            NotFoundError: Nothing has that name.
            UsageError: Several do, or it is none of those, or a machine must leave it alone.
        """
        name = clean_line(ref)
        try:
            path = _NAMES.get(name.lower()) or self._resolve(name)
        except NotFoundError:
            path = _NAMES.get(f"{name.lower()}.md", "")
            if not path:
                raise
        if path not in NOTES and not is_entry(path):
            raise UsageError(
                f"{path} is not yours to change.",
                "Entries are, and MEMORY.md, USER.md and SOUL.md.",
            )
        self._check_editable(path, name)
        self._named = self._named or path
        return path

    def _resolve(self, ref: str) -> str:
        """Return the path that a name means, of an entry or another file that may be mentioned."""
        name = without_line(ref)
        if not is_entry(name) and self.files.exists(name) and not self.files.conceals(name):
            return name
        return self.files.find_shown(ref)

    def twin(self, kind: str, title: str) -> str | None:
        """Return the entry that a new one of this type and title would duplicate, or None.

        Raises:
            UsageError: It is private, and must not be shown.
        """
        made = self._changed_in_run(title)
        if made is not None:
            return made
        twins = [info.path for info in self.services.subjects.twins(kind, title)]
        known = [each for each in twins if self.files.exists(each)]
        found = next((each for each in known if not self.files.conceals(each)), None)
        if found is not None:
            self.files.check_shown(found, title)
        return found

    def entry(self, ref: str) -> Entry:
        """Return an entry by one of its names; raises as `file`."""
        path = self.file(ref)
        if path in NOTES:
            raise UsageError(f"{short_name(path)} is not an entry.")
        return self.files.parsed(path)

    def named(self, ref: str) -> str | None:
        """Return the path of an entry by any of its names, or None if there isn't exactly one."""
        made = self._changed_in_run(ref.rpartition("/")[2].replace("-", " "))
        try:
            return made or self.files.find_path(ref)
        except KbtuiError:
            return None

    def subject(self, fact: Fact) -> str | None:
        """Return the entry about the subject of a fact, or None.

        Raises:
            UsageError: There is one that a machine must leave alone.
        """
        path = self._changed_in_run(fact.subject)
        if path is None:
            info = self.services.subjects.find(fact)
            path = info.path if info and self.files.exists(info.path) else None
        if path is not None:
            self._check_editable(path, fact.subject)
        return path

    def title(self, path: str) -> str:
        """Return the title of a file for people."""
        if path in NOTES:
            return path.rpartition("/")[2]
        entry = self.files.entry(path)
        return entry.title if entry else short_name(path)

    def _changed_in_run(self, name: str) -> str | None:
        """Return the one entry changed in this run that has a name, ignoring bullets and case."""
        wanted = normalise(name)
        found = []
        for path, data in self.files.edits.items():
            if data is not None and is_entry(path):
                names = _names_of(path, data)
                if wanted in names or fold(name) == fold(slug_of(path)):
                    found.append(path)
        return found[0] if len(found) == 1 else None

    def _check_editable(self, path: str, name: str) -> None:
        self.files.check_shown(path, name)
        data = self.files.data(path)
        problem = self.files.problem(path, data) if data is not None else None
        if problem:
            raise UsageError(f"{short_name(path)} can't be edited by a machine.", problem)

    # Proposals -------------------------------------------------------------------------------

    def _work(self, operation: Operation) -> Edits:
        self.files.repaired.clear()
        self._named = ""
        arguments, named = operation.arguments
        try:
            edits = operation.work(self, *arguments, **named)
        except UnicodeError as error:
            raise UnreadableError("That holds bytes that are no text.") from error
        return {path: data for path, data in edits.items() if data != self.files.data(path)}

    def _propose(self, operation: Operation, why: str, edits: Edits) -> None:
        for group in self.proposed:
            if group.paths & edits.keys():
                group.operations.append(operation)
                group.paths |= edits.keys()
                return
        self.proposed.append(ProposalGroup(why, set(edits), [operation]))

    def _file_proposal(self, group: ProposalGroup) -> FileProposal:
        """Return a proposal with only its own edits, and those of this run that it builds on."""
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


@lru_cache(64)  # the claims of a file share their topic
def _known(text: str) -> Ground:
    return Ground.knowing(text)


@lru_cache(512)  # a run looks at each of its entries once per fact
def _names_of(path: str, data: bytes) -> frozenset[str]:
    entry = parse_entry(path, data)
    names = (entry.title, entry.slug.replace("-", " "), *entry.aliases)
    return frozenset(normalise(name) for name in names)
