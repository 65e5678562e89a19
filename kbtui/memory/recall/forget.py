"""``/forget``: finds what is remembered about something, and takes it out for good.

It goes from entries, notes, the archive and what waits in the inbox. In conversations, whose logs
keep what was said, it is masked: no prompt, search or condensing reads it again. What is taken out
is buried, so that no machine writes it again. The log of changes keeps old versions until a purge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from kbtui.documents.documents import Documents, is_document
from kbtui.errors import KbtuiError, UsageError
from kbtui.history.change import Actor, Change, Origin
from kbtui.knowledge.format.body import body_of
from kbtui.knowledge.format.facts import statements
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.recall.mentions import (
    MentioningLine,
    masks_of,
    mentions,
    says,
    says_any,
    without,
    words_of,
)
from kbtui.memory.records.archive import ArchiveEntry, is_record
from kbtui.memory.records.committing import committed
from kbtui.memory.records.ranges import ranges_of
from kbtui.memory.records.tombstones import FactSource, Tombstones
from kbtui.memory.services import Services
from kbtui.offline.lines import sentences
from kbtui.search.results import Hit, OtherPlace
from kbtui.sessions.log_records import TITLE, Mask
from kbtui.text import counted, enumerated
from kbtui.workspace import files
from kbtui.workspace.layout import BOOTSTRAP_FILES

_MEMORY = "memory/MEMORY.md"
_SESSIONS = "sessions/"
_MOST_HITS = 200
_MOST_NAMED = 5
_WRAP = re.compile(r"(?<=\S)\r?\n(?=[^\s>#*+|-])")
_LEAST_WORDS = 2
Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class ForgottenLine:
    """A line of a file that says what is to be forgotten; line 0 is an entry's summary."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """The plan of forgetting something.

    Attributes:
        facts: What it is known by: the words of what the person said, and of each line that says
            it.
        matches: What would be taken out.
        entries: The entries of which nothing would be left; they are deleted.
        masks: What of each session would be masked.
        places: What would be rejected in the inbox: the proposal, and the key of its place.
        archived: How many archive entries lose it.
    """

    text: str
    facts: tuple[Words, ...]
    matches: tuple[ForgottenLine, ...]
    entries: tuple[str, ...]
    masks: tuple[tuple[str, tuple[Mask, ...]], ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    archived: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that say it."""
        return tuple(dict.fromkeys(match.path for match in self.matches))

    @property
    def sources(self) -> tuple[FactSource, ...]:
        """The messages that said it."""
        return tuple(
            FactSource(session, each)
            for session, masks in self.masks
            for each in ranges_of(mask.message for mask in masks)
        )

    @property
    def messages(self) -> int:
        """How many messages said it."""
        return sum(mask.message != TITLE for _, masks in self.masks for mask in masks)

    @property
    def is_empty(self) -> bool:
        """True if it was neither written nor said anywhere."""
        return not (self.matches or self.masks or self.places or self.archived)

    @property
    def notes(self) -> list[str]:
        """Further consequences, a sentence each."""
        said = [f"Nothing is left of {path}: it is deleted." for path in self.entries]
        if titles := sum(mask.message == TITLE for _, masks in self.masks for mask in masks):
            said.append(f"{counted(titles, 'title')} of conversations said so.")
        if self.messages:
            count = "A message" if self.messages == 1 else f"{self.messages} messages"
            said.append(f"{count} said so; that is passed over from now on.")
        if self.places:
            said.append(f"{counted(len(self.places), 'proposed change')} in the inbox said so.")
        return said


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The outcome of forgetting; `left` is where it stands still, a sentence each."""

    commits: tuple[str, ...]
    paths: tuple[str, ...]
    entries: tuple[str, ...]
    left: tuple[str, ...] = ()


class Forgetting:
    """Finds and removes; nothing is done before `forget`."""

    def __init__(self, services: Services, tombstones: Tombstones, inbox: Inbox) -> None:
        self._services = services
        self._layout = services.workspace
        self._tombstones = tombstones
        self._inbox = inbox

    def plan(self, text: str) -> ForgetPlan:
        """Look for all that says something, everywhere that is read from.

        Raises:
            UsageError: it names nothing to look for.
        """
        facts = self._facts(text)
        matches: list[ForgottenLine] = []
        empty: list[str] = []
        for path, data in self._files():
            found = mentions(data, facts)
            matches += [ForgottenLine(path, each.line, each.text) for each in found]
            if found and path.startswith("knowledge/") and not _says_anything(data, found):
                empty.append(path)
        return ForgetPlan(
            text,
            facts,
            tuple(matches),
            tuple(empty),
            tuple(self._masks(facts)),
            tuple(self._places(facts)),
            sum(_says_it(entry, facts) for entry in self._services.archive.entries()),
        )

    def _facts(self, text: str) -> tuple[Words, ...]:
        """What something is known by: its words, and those of each line that says it."""
        wanted = words_of(text)
        if not wanted:
            raise UsageError("There is nothing to forget.", "Say what: /forget my favorite color")
        first = [each.text for _, data in self._files() for each in mentions(data, [wanted])]
        # One word of a line that says it is said of other things as well.
        more = [fact for fact in map(words_of, first) if len(fact) >= _LEAST_WORDS]
        return tuple(dict.fromkeys([wanted, *more]))

    def forget(self, plan: ForgetPlan) -> Forgotten:
        """Do what a plan says; lines that were changed since are looked at again.

        Raises:
            ConflictError: the files kept changing; nothing is done.
            StorageError: the file system refused.
        """
        for ref, key in plan.places:
            self._inbox.reject(ref, hunks=[key])
        _, commit = committed(
            self._services.history,
            self._layout,
            Actor.YOU,
            "You asked to forget it.",
            Origin(),
            partial(self._take_out, plan),
        )
        deleted = [self._services.library.delete(path) for path in plan.entries]
        commits = [each.id for each in (commit, *deleted) if each is not None]
        for session, masks in plan.masks:
            self._services.sessions.mask(session, masks, by=commits[0] if commits else "")
        self._services.search.refresh([f"sessions/{session}.jsonl" for session, _ in plan.masks])
        left = (*self._still(plan), *_left(plan, commits))
        return Forgotten(tuple(commits), plan.paths, plan.entries, left)

    def _take_out(self, plan: ForgetPlan, change: Change) -> None:
        """Put what a plan says of files that stay into a running change."""
        for path in plan.paths:
            data = files.read_if_there(self._layout, path)
            if data is None or path in plan.entries:
                continue
            rest = without(data, mentions(data, plan.facts))
            if rest != data:
                change.write(path, rest, expecting=files.blob_id(data))
        if plan.archived:
            self._services.archive.reword(change, lambda text: _reworded(text, plan.facts))
        buried = [plan.text, *(match.text for match in plan.matches)]
        self._tombstones.bury(change, buried, plan.sources)

    def _still(self, plan: ForgetPlan) -> Iterator[str]:
        """Say where it is found though it was forgotten: in what isn't changed for that."""
        wanted = plan.facts[0]
        found = self._services.search.search(" ".join(wanted), "all", _MOST_HITS, semantic=False)
        places: dict[str, Hit | OtherPlace] = {hit.path: hit for hit in found.hits}
        places |= {each.path: each for hit in found.hits for each in hit.also}
        says_it = sorted(path for path, place in places.items() if self._says(place, wanted))
        if says_it:
            names = [*map(self._layout.file, says_it[:_MOST_NAMED])]
            if rest := says_it[_MOST_NAMED:]:
                names.append(f"{len(rest)} more")
            yield (
                f"{enumerated(names)} still {'says' if len(names) == 1 else 'say'} it:"
                " documents, titles, names, headings, properties and code are yours to change."
            )
        if found.notice:
            yield f"Not everything could be looked through: {found.notice}"

    def _says(self, place: Hit | OtherPlace, fact: Words) -> bool:
        """True if a file that was found says a fact wherever it is looked for."""
        name = place.path.rpartition("/")[2]
        told = [place.title, place.heading if isinstance(place, Hit) else "", name]
        if any(says(text, fact) for text in told):
            return True
        try:
            text = self._text(place.path)
        except KbtuiError:
            return False
        return any(says(each, fact) for each in (*text.splitlines(), *sentences(_unwrapped(text))))

    def _text(self, path: str) -> str:
        if path.startswith(_SESSIONS):
            log = self._services.sessions.read_log(path.removeprefix(_SESSIONS))
            return "\n\n".join(message.content for message in log.messages)
        if is_document(path, self._services.settings.search.roots):
            with Documents(self._layout) as documents:
                return documents.read(path).whole
        return files.read_text(self._layout, path)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Everything that is read from and can be rewritten: notes, archive, entries."""
        self._services.library.refresh()
        folder = self._services.workspace.memory
        notes = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.md"))
        daily = [f"memory/{name}" for name in notes if "/." not in f"/{name}"]
        daily = [path for path in daily if not is_record(path)]
        entries = [info.path for info in self._services.library.infos() if info.problem is None]
        shown = self._services.archive.shown()
        for path in dict.fromkeys([_MEMORY, *BOOTSTRAP_FILES, *daily, *entries, *shown]):
            data = files.read_if_there(self._layout, path)
            if data is not None:
                yield path, data

    def _masks(self, facts: Sequence[Words]) -> Iterator[tuple[str, tuple[Mask, ...]]]:
        for info in self._services.sessions.list():
            try:
                found = masks_of(self._services.sessions.read_log(info.id), facts)
            except KbtuiError:
                continue
            if found:
                yield info.id, tuple(found)

    def _places(self, facts: Sequence[Words]) -> Iterator[tuple[str, str]]:
        for plan in self._inbox.waiting():
            for place in plan.places:
                proposed = "\n".join(place.theirs)
                if says_any(proposed, facts):
                    yield plan.proposal.id, place.key


def _unwrapped(text: str) -> str:
    """The paragraphs of a document, a line each."""
    return _WRAP.sub(" ", body_of(text))


def _says_it(entry: ArchiveEntry, facts: Sequence[Words]) -> bool:
    """True if an entry of the archive, or a line that it accounts for, says a fact."""
    return any(_reworded(text, facts) != text for text in (entry.content, *entry.not_grounded))


def _reworded(content: str, facts: Sequence[Words]) -> str:
    data = content.encode("utf-8", "surrogateescape")
    found = mentions(data, facts)
    return without(data, found).decode("utf-8", "surrogateescape").strip() if found else content


def _left(plan: ForgetPlan, commits: Sequence[str]) -> Iterator[str]:
    if plan.is_empty:
        return
    if plan.masks:
        count = counted(len(plan.masks), "conversation")
        yield (
            f"The log of {count} keeps what was said, and the prompt what was typed (↑); nothing"
            " else reads it from there any more."
        )
    if commits:
        yield "The history has the old versions."
    if plan.masks or commits:
        yield "`kbtui purge` takes it out of everything for good."


def _says_anything(data: bytes, gone: list[MentioningLine]) -> bool:
    rest = without(data, gone)
    return bool(statements(rest.decode("utf-8", "replace")))
