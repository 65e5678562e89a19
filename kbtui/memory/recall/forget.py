"""``/forget``: finds what is remembered about something, and removes it for good.

It is removed from entries, notes, the archive and waiting proposals. In conversations, whose logs
keep what was said, it is masked: no prompt, search or consolidation reads it again. It is also
buried, so that no machine writes it again. The log of changes keeps old versions until a purge.
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
from kbtui.knowledge.format.document import read
from kbtui.memory.inbox.inbox import Inbox
from kbtui.memory.recall.mentions import (
    SUMMARY,
    MentioningLine,
    masks_of,
    mentions,
    states,
    states_any,
    without,
    words_of,
)
from kbtui.memory.records.committing import committed
from kbtui.memory.records.ranges import ranges_of
from kbtui.memory.records.tombstones import FactSource, Tombstones
from kbtui.memory.services import Services
from kbtui.offline.lines import sentences
from kbtui.offline.orders import read_order
from kbtui.search.results import Hit, OtherPlace
from kbtui.sessions.log_records import TITLE, Mask, SessionLog
from kbtui.text import counted, enumerated
from kbtui.workspace import files

_SESSIONS = "sessions/"
_MAX_HITS = 200
_MAX_NAMED = 5
_WRAP = re.compile(r"(?<=\S)\r?\n(?=[^\s>#*+|-])")
_MIN_WORDS = 2
_FORGETTING = ("forget", "erase", "delete")
Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class ForgottenLine:
    """A line of a file that states what to forget; line 0 is a property at its top, `key`."""

    path: str
    line: int
    text: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What forgetting something would do.

    Attributes:
        facts: The sets of words that identify it: those of the request, and of each line that
            states it.
        matches: The lines that would be removed.
        entries: The entries of which nothing would be left; they are deleted.
        masks: What would be masked in each session.
        places: What would be rejected in the inbox: proposal id and key of the place.
        archived: The number of archive entries that would change.
        asking: Session and number of the masked messages that only ask for this, or answer that.
    """

    text: str
    facts: tuple[Words, ...]
    matches: tuple[ForgottenLine, ...]
    entries: tuple[str, ...]
    masks: tuple[tuple[str, tuple[Mask, ...]], ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    archived: int = 0
    asking: frozenset[tuple[str, int]] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that state it."""
        return tuple(dict.fromkeys(match.path for match in self.matches))

    @property
    def sources(self) -> tuple[FactSource, ...]:
        """The messages that stated it."""
        return tuple(
            FactSource(session, each)
            for session, masks in self.masks
            for each in ranges_of(mask.message for mask in masks)
        )

    @property
    def messages(self) -> int:
        """The number of messages that stated it."""
        return sum(message != TITLE for message in self._said)

    @property
    def is_empty(self) -> bool:
        """Whether it was neither written nor said anywhere."""
        return not (self.matches or self._said or self.places or self.archived)

    @property
    def _said(self) -> list[int]:
        """The messages and titles that said it, not counting those that ask to forget it."""
        return [
            mask.message
            for session, masks in self.masks
            for mask in masks
            if (session, mask.message) not in self.asking
        ]

    @property
    def notes(self) -> list[str]:
        """Further consequences, one sentence each."""
        said = [f"Nothing is left of {path}: it is deleted." for path in self.entries]
        if titles := self._said.count(TITLE):
            said.append(f"{counted(titles, 'title')} of conversations said so.")
        if self.messages:
            count = "A message" if self.messages == 1 else f"{self.messages} messages"
            said.append(f"{count} said so; that is passed over from now on.")
        if self.places:
            said.append(f"{counted(len(self.places), 'proposed change')} in the inbox said so.")
        return said


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of forgetting; `left` says where it remains, one sentence each."""

    commits: tuple[str, ...]
    paths: tuple[str, ...]
    entries: tuple[str, ...]
    left: tuple[str, ...] = ()


class Forgetting:
    """Plans and performs the removal; nothing changes before `forget`."""

    def __init__(self, services: Services, tombstones: Tombstones, inbox: Inbox) -> None:
        self._services = services
        self._layout = services.workspace
        self._tombstones = tombstones
        self._inbox = inbox

    def plan(self, text: str) -> ForgetPlan:
        """Find everything that states something, wherever memory or search reads.

        Raises:
            UsageError: The text has nothing to look for.
        """
        facts = self._facts(text)
        matches: list[ForgottenLine] = []
        empty: list[str] = []
        for path, data in self._files():
            found = mentions(data, facts)
            matches += [
                ForgottenLine(path, each.line, each.text, each.key) for each in found if each.text
            ]
            is_told = any(each.line or each.key == SUMMARY for each in found)
            if is_told and path.startswith("knowledge/") and not _says_anything(data, found):
                empty.append(path)
        masks, asking = self._masks(facts)
        return ForgetPlan(
            text,
            facts,
            tuple(matches),
            tuple(empty),
            tuple(masks.items()),
            tuple(self._places(facts)),
            sum(
                any(_reworded(text, facts) != text for text in (entry.content, *entry.not_grounded))
                for entry in self._services.archive.entries()
            ),
            asking,
        )

    def _facts(self, text: str) -> tuple[Words, ...]:
        """Return the words of a request, and those of each line that states it."""
        wanted = words_of(text)
        if not wanted:
            raise UsageError("There is nothing to forget.", "Say what: /forget my favorite color")
        first = [each.text for _, data in self._files() for each in mentions(data, [wanted])]
        # A single word of such a line is used of other things as well.
        more = [fact for fact in map(words_of, first) if len(fact) >= _MIN_WORDS]
        return tuple(dict.fromkeys([wanted, *more]))

    def forget(self, plan: ForgetPlan) -> Forgotten:
        """Carry out a plan; lines changed since then are examined again.

        Raises:
            ConflictError: The files kept changing; nothing is done.
            StorageError: The file system refused.
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
        left = (*self._remaining_places(plan), *_remarks(plan, commits))
        return Forgotten(tuple(commits), plan.paths, plan.entries, left)

    def _take_out(self, plan: ForgetPlan, change: Change) -> None:
        """Put the edits of a plan to files that remain into a running change."""
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

    def _remaining_places(self, plan: ForgetPlan) -> Iterator[str]:
        """Yield a sentence about where it is still found: in places that aren't changed."""
        wanted = plan.facts[0]
        found = self._services.search.search(" ".join(wanted), "all", _MAX_HITS, semantic=False)
        places: dict[str, Hit | OtherPlace] = {hit.path: hit for hit in found.hits}
        places |= {each.path: each for hit in found.hits for each in hit.also}
        stating = sorted(path for path, place in places.items() if self._states(place, wanted))
        if stating:
            names = [*map(self._layout.file, stating[:_MAX_NAMED])]
            if rest := stating[_MAX_NAMED:]:
                names.append(f"{len(rest)} more")
            yield (
                f"{enumerated(names)} still {'says' if len(names) == 1 else 'say'} it:"
                " documents, titles and names are yours to change."
            )
        if found.notice:
            yield f"Not everything could be looked through: {found.notice}"

    def _states(self, place: Hit | OtherPlace, fact: Words) -> bool:
        """Return whether a found file states a fact anywhere that search looks."""
        name = place.path.rpartition("/")[2]
        fields = [place.title, place.heading if isinstance(place, Hit) else "", name]
        if any(states(text, fact) for text in fields):
            return True
        try:
            text = self._text(place.path)
        except KbtuiError:
            return False
        lines = (*text.splitlines(), *sentences(_WRAP.sub(" ", body_of(text))))
        return any(states(each, fact) for each in lines)

    def _text(self, path: str) -> str:
        if path.startswith(_SESSIONS):
            log = self._services.sessions.read_log(path.removeprefix(_SESSIONS))
            return "\n\n".join(message.content for message in log.messages)
        if is_document(path, self._services.settings.search.roots):
            with Documents(self._layout) as documents:
                return documents.read(path).whole
        return files.read_text(self._layout, path)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Yield all files that are read and can be rewritten: notes, archive, entries."""
        for path in dict.fromkeys([*self._services.notes, *self._services.archive.shown()]):
            data = files.read_if_there(self._layout, path)
            if data is not None:
                yield path, data

    def _masks(
        self, facts: Sequence[Words]
    ) -> tuple[dict[str, tuple[Mask, ...]], frozenset[tuple[str, int]]]:
        """Return the masks of each session, and which messages of all only ask to forget."""
        masks: dict[str, tuple[Mask, ...]] = {}
        asking: set[tuple[str, int]] = set()
        for info in self._services.sessions.list():
            try:
                log = self._services.sessions.read_log(info.id)
            except KbtuiError:
                continue
            if found := masks_of(log, facts):
                masks[info.id] = tuple(found)
                asking |= {(info.id, message) for message in _asking(log)}
        return masks, frozenset(asking)

    def _places(self, facts: Sequence[Words]) -> Iterator[tuple[str, str]]:
        for plan in self._inbox.waiting():
            for place in plan.places:
                proposed = "\n".join(place.theirs)
                if states_any(proposed, facts):
                    yield plan.proposal.id, place.key


def _asking(log: SessionLog) -> set[int]:
    """Return the messages that order to forget something or answer that, and such a title."""
    asking: set[int] = set()
    is_order: bool | None = None
    for message in log.messages:
        if message.role == "user":
            order = read_order(message.content)
            is_first, is_order = is_order is None, order is not None and order.kind in _FORGETTING
            if is_first and is_order:
                asking.add(TITLE)
        if is_order:
            asking.add(message.id)
    return asking


def _reworded(content: str, facts: Sequence[Words]) -> str:
    data = content.encode("utf-8", "surrogateescape")
    found = mentions(data, facts)
    return without(data, found).decode("utf-8", "surrogateescape").strip() if found else content


def _remarks(plan: ForgetPlan, commits: Sequence[str]) -> Iterator[str]:
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
    """Return whether anything but headings and properties is left of a file."""
    rest = read(without(data, gone).decode("utf-8", "replace"))
    return any(each.kind not in {"heading", "property"} for each in rest.visible_lines())
