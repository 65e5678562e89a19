"""The import engine: detects an export's source, previews it, imports it and undoes an import.

Conversations become sessions, written a few hundred at a time; notes become entries, committed
through the door. An import is one batch. It can be killed at any point without leaving anything
half-written, and running it again resumes where it stopped.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from itertools import chain, count, islice, takewhile
from typing import Any, TypeAlias

from kbtui.errors import ConflictError, NotFoundError, StorageError, UsageError
from kbtui.history.change import Actor, Commit
from kbtui.importers.accounting import Account
from kbtui.importers.batches import Batch, resume_or_begin, timestamp
from kbtui.importers.export_files import PACKED, OpenedExport
from kbtui.importers.notes import Notes
from kbtui.importers.port import (
    ImportedConversation,
    ImportedMessage,
    ImportedNote,
    Skipped,
    Source,
)
from kbtui.importers.reading import json_members
from kbtui.importers.redacting import Redactor
from kbtui.memory.services import Services
from kbtui.redaction.redact import redact
from kbtui.sessions import TAINT
from kbtui.sessions.imported import Imported, ImportedBlock, TakenBack, block, mark_of
from kbtui.sessions.log_records import SessionMessage, message_record, session_record
from kbtui.text import Packed, clean, clean_line, counted, pack, storable, unpack
from kbtui.workspace import files
from kbtui.workspace.durable import remove_folder
from kbtui.workspace.removals import Removals

SOURCES = (
    "kbtui.importers.sources.claude",
    "kbtui.importers.sources.chatgpt",
    "kbtui.importers.sources.open_webui",
    "kbtui.importers.sources.librechat",
    "kbtui.importers.sources.deepseek",
    "kbtui.importers.sources.grok",
    "kbtui.importers.sources.claude_code",
    "kbtui.importers.sources.codex",
    "kbtui.importers.sources.cursor",
    "kbtui.importers.sources.cursor_agent",
    "kbtui.importers.sources.gemini_cli",
    "kbtui.importers.sources.continue_dev",
    "kbtui.importers.sources.aider",
    "kbtui.importers.sources.gemini",
    "kbtui.importers.sources.telegram",
    "kbtui.importers.sources.slack",
    "kbtui.importers.sources.whatsapp",
    "kbtui.importers.sources.keep",
    "kbtui.importers.sources.roam",
    "kbtui.importers.sources.logseq",
    "kbtui.importers.sources.joplin",
    "kbtui.importers.sources.kbtui_export",
    "kbtui.importers.sources.kbtui_workspace",
    "kbtui.importers.sources.nanobot",
    "kbtui.importers.sources.evernote",
    "kbtui.importers.sources.notion",
    "kbtui.importers.sources.sharegpt",
    "kbtui.importers.sources.markdown_folder",
    "kbtui.importers.sources.web_folder",
)
"""Modules with a `SOURCE`, in order: the first that recognises an export reads it."""

_MAX_SESSIONS = 400
_MAX_BYTES = 8 << 20
_MAX_MESSAGES = 20_000
_MAX_SKIPPED = 10_000
_DEEP, _MAX_DEEP = 1 << 20, 10  # bytes of a head, and members that are looked into
_CHARACTERS_PER_TOKEN = 4
_ID = re.compile(r"[\w-]{1,80}", re.ASCII)
_INDEX = "knowledge/INDEX.md"
_HASH = 12  # hex digits of a message's hash


def find_source(opened: OpenedExport, asked: Sequence[Source] = ()) -> Source | None:
    """Return the first source that recognises the export by its content, or None.

    None of those `asked` before is asked again; if one of them `is_alone`, no source that reads any
    Markdown or web page is.
    """
    only_known = any(each.is_alone for each in asked)
    for name in SOURCES:
        source: Source = import_module(name).SOURCE
        if not (source in asked or (only_known and source.is_any)) and source.recognises(opened):
            return source
    return None


def sources_of(opened: OpenedExport) -> Iterator[Source]:
    """Yield the sources whose exports are in a file or folder.

    Read each before asking for the next: members that were read are hidden from later sources.
    """
    names, size = opened.names, opened.head_size
    opened.taken = set()
    asked: list[Source] = []
    try:
        while source := find_source(opened, asked) or _find_deeper(opened, asked):
            yield source
            asked.append(source)
            opened.names = [name for name in opened.names if name not in opened.taken]
            if not opened.names:
                return
    finally:
        opened.names, opened.head_size = names, size
        opened.sketches.clear()


def _find_deeper(opened: OpenedExport, asked: Sequence[Source]) -> Source | None:
    """Look further into the few large members in JSON that are left: fields come in any order."""
    if opened.head_size < _DEEP:
        left = _left(opened)
        opened.head_size = _DEEP
        if found := _find_among(opened, left, asked):
            return found
    left = [name for name in _left(opened) if name not in opened.sketches]
    for name in left:
        opened.draw(name)
    return _find_among(opened, left, asked)


def _left(opened: OpenedExport) -> list[str]:
    """Return large members in JSON of which more could tell what they are."""
    large = (name for name, head in json_members(opened) if len(head) == opened.head_size)
    return [*islice(large, _MAX_DEEP)]


def _find_among(opened: OpenedExport, some: list[str], asked: Sequence[Source]) -> Source | None:
    if not some:
        return None
    names, opened.names = opened.names, some
    found = find_source(opened, asked)
    opened.names = names
    return found


def left_over(opened: OpenedExport) -> Skipped | None:
    """Report the files of a folder that no source has read, or return None if there are none."""
    names = [name for name in opened.names if name not in opened.taken]
    names = [name for name in names if not name.lower().endswith(PACKED)]  # imported separately
    if not opened.is_folder or not names:
        return None
    shown = ", ".join(map(clean_line, names[:5])) + (", …" if len(names) > 5 else "")
    return Skipped(counted(len(names), "other file"), f"No program that kbtui knows: {shown}.")


@dataclass(slots=True)
class ImportPreview:
    """The content of an export, and what importing it would do.

    Attributes:
        branches: Branches of conversations that are left out.
        notes: Texts besides the conversations.
        files: Pictures, recordings and documents.
        first: Time of the earliest message.
        last: Time of the latest message.
        new: Conversations not imported before.
        grown: Conversations that differ from those imported before, usually by more messages.
        known: Conversations that bring nothing new.
        tokens: Estimated size of the new messages.
        named: Counts of content that isn't imported, by kind, as in `ImportedConversation`.
    """

    source: str
    conversations: int = 0
    messages: int = 0
    branches: int = 0
    notes: int = 0
    files: int = 0
    first: datetime | None = None
    last: datetime | None = None
    new: int = 0
    grown: int = 0
    known: int = 0
    tokens: int = 0
    named: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing in the export could be read."""
        return not self.conversations + self.notes + self.files


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """A session that an import created or extended, and the number of `messages` it added.

    `kind` is ``new``, ``grown``, ``changed`` (the export now shows another branch) or ``apart``
    (the messages went into a session of their own, because the first was continued here).
    """

    session: str
    title: str
    kind: str
    messages: int
    branches: int = 0


@dataclass(slots=True)
class Report:
    """The result of an import.

    Attributes:
        batch: Id of the batch, by which the import can be undone.
        sessions: Sessions that were created or extended.
        entries: Workspace paths of the notes and files that were written.
        known: Conversations and notes that brought nothing new.
        read: Conversations and notes that could be read.
        named: Counts of content that wasn't imported, by kind.
        unread: Counts of texts of records that are in nothing that came in, by the pattern of their
            path in the file; what `named` says by kind is among them.
        unread_first: The file in which the first text of each such path is.
    """

    batch: str
    source: str
    sessions: list[ImportedSession] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    known: int = 0
    read: int = 0
    named: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    unread_first: dict[str, str] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing in the export could be read."""
        return not self.read

    @property
    def messages(self) -> int:
        """Number of messages imported."""
        return sum(each.messages for each in self.sessions)


def preview(
    services: Services,
    opened: OpenedExport,
    source: Source,
    watch: Callable[[int, int, str], None] = lambda _done, _of, _what: None,
) -> ImportPreview:
    """Read an export and report what importing it would do; `watch` as in `run`."""
    found = ImportPreview(source.name)
    incoming = _Incoming(services, source, None, Redactor())
    seen: dict[str, int] = {}
    for item in _items(opened, source, watch):
        if isinstance(item, Skipped):
            found.skipped.append(item)
        elif isinstance(item, ImportedNote):
            found.notes += item.data is None
            found.files += item.data is not None
        elif seen.get(item.id, -1) < len(item.messages):
            again = item.id in seen
            seen[item.id] = len(item.messages)
            _count(found, item, incoming.plan(item), again=again)
    return found


def _count(
    found: ImportPreview, item: ImportedConversation, plan: _ConversationPlan, *, again: bool
) -> None:
    found.messages += len(item.messages)
    times = [each.time for each in item.messages if each.time is not None]
    ends = (min(times), max(times)) if times else (item.created, item.updated)
    known = [each for each in (*ends, found.first, found.last) if each is not None]
    found.first, found.last = min(known, default=None), max(known, default=None)
    size = sum(len(each.text) for each in item.messages[plan.first_new :])
    found.tokens += size // _CHARACTERS_PER_TOKEN
    if not again:
        found.conversations += 1
        found.branches += item.branches
        found.named += item.named
        found.new += plan.kind == "new"
        found.known += plan.kind in ("known", "older")
        found.grown += plan.kind not in ("new", "known", "older")


def run(
    services: Services,
    opened: OpenedExport,
    source: Source,
    watch: Callable[[int, int, str], None] = lambda _done, _of, _what: None,
) -> Report:
    """Import an export, resuming an import of it that was stopped.

    `watch` is called with the bytes read, the total, and the title of the last item. An exception
    from it, such as `StoppedError`, stops the import and keeps what was imported so far.

    Raises:
        StorageError: The disk is full or the workspace can't be written; it can be resumed later.
        UnreadableError: The export as a whole can't be read.
    """
    if not services.workspace.writable:
        raise StorageError("The workspace is read-only: nothing can be imported.")
    batch = resume_or_begin(services.workspace, opened.path, source.key)
    report = Report(batch.id, source.name)
    redactor = Redactor()
    incoming = _Incoming(services, source, batch.id, redactor)
    notes = Notes(services.workspace, services.history, source.key, source.name, batch.id)
    notes.before_file = batch.add_file
    opened.account = account = Account()
    try:
        for item in _items(opened, source, watch):
            account.settle(item)
            if isinstance(item, Skipped):
                if len(report.skipped) < _MAX_SKIPPED:
                    report.skipped.append(item)
                continue
            report.read += 1
            if isinstance(item, ImportedNote):
                notes.add(item)
            else:
                report.named += item.named
                incoming.add(item)
            del item
        incoming.flush()
        notes.flush()
    except StorageError as error:
        came = counted(len(incoming.sessions), "conversation")
        raise StorageError(
            f"{error.message} The import stopped there; {came} came in.",
            f"{error.hint} The same import goes on where it stopped.".strip(),
        ) from error
    finally:
        redactor.close()
        opened.account = None
        account.close()
        report.unread, report.unread_first = account.missing, account.firsts
        report.sessions, report.entries = incoming.sessions, notes.written
        report.known = incoming.known + notes.known
        report.skipped = (report.skipped + incoming.skipped + notes.skipped)[:_MAX_SKIPPED]
        services.search.refresh(
            [*(f"sessions/{each.session}.jsonl" for each in incoming.sessions), *notes.written]
        )
    if report.sessions or report.entries or _imported_before(services, batch.id):
        batch.update(ended=timestamp())
    else:
        batch.forget()
    return report


def _imported_before(services: Services, batch: str) -> bool:
    """Return whether a batch imported anything in an earlier run."""
    commits = services.history.log(batch=batch, limit=1)
    sessions = Imported(services.workspace).of_batch(batch)
    return any(True for _ in commits) or any(True for _ in sessions)


def _items(
    opened: OpenedExport, source: Source, watch: Callable[[int, int, str], None]
) -> Iterator[ImportedConversation | ImportedNote | Skipped]:
    for name, why in opened.refused if not opened.taken else ():
        yield Skipped(name, why, lost=True)
    opened.done = 0
    total = opened.total
    for item in source.read(opened):
        what = "" if isinstance(item, Skipped) else item.title
        watch(min(opened.done, total), total, what)
        yield item
        del item


# Conversations ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ConversationPlan:
    """What to do with a conversation: `kind` as in `ImportedSession`, or ``known`` or ``older``.

    Messages from index `first_new` on are new. If `rewind_to` is set, the session is first rewound
    to that message. `hashes` has 12 characters a message, in one text: many short ones take eight
    times the memory.
    """

    kind: str
    hashes: str
    first_new: int = 0
    rewind_to: int | None = None
    prior: ImportedBlock | None = None


_Head: TypeAlias = Callable[[int], dict[str, Any]]
"""Makes the line that begins a block of so many lines."""


class _Log:
    """A session, or what is added to one, of which the lines are made as they are written.

    Records of all messages at once would take several times the memory of their texts.

    Attributes:
        texts: What the log will say, a text a message; secrets are taken out here.
        header: The first line of a new session.
        title: The last line, if the title has changed.
    """

    def __init__(
        self,
        head: _Head,
        messages: Sequence[ImportedMessage],
        first: int,
        time: datetime,
        rewind_to: int | None,
    ) -> None:
        self._head, self._messages, self._first, self._time = head, messages, first, time
        self._rewind_to = rewind_to
        self.texts = [_content(each) for each in messages]
        self.header: dict[str, Any] | None = None
        self.title: dict[str, Any] | None = None

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the lines in order."""
        if self.header is not None:
            yield self.header
        has_rewind, has_title = self._rewind_to is not None, self.title is not None
        yield self._head(len(self.texts) + has_rewind + has_title)
        if has_rewind:
            yield {"kind": "rewind", "to_message": self._rewind_to, "time": _iso(_utc_now())}
        time = self._time
        both = zip(self._messages, self.texts, strict=True)
        for number, (message, text) in enumerate(both, self._first):
            time = message.time or time
            meta = {TAINT: list(message.taint)} if message.taint else {}
            logged = SessionMessage(number, time, message.role, unpack(text), meta=meta)
            yield message_record(logged)
        if self.title is not None:
            yield self.title


class _Incoming:
    """Writes conversations as sessions, in lots."""

    def __init__(
        self, services: Services, source: Source, batch: str | None, redactor: Redactor
    ) -> None:
        self._imported = Imported(services.workspace)
        self._archive = services.archive
        self._redactor = redactor
        self._source = source
        self._batch = batch
        self._lot: dict[str, _Log] = {}
        self._marks: set[str] = set()
        self._archived: Mapping[str, object] | None = None  # sessions, as of the lot's first one
        self._size = 0
        self._pending: list[ImportedSession] = []
        self.sessions: list[ImportedSession] = []
        self.known = 0
        self.skipped: list[Skipped] = []

    def plan(self, item: ImportedConversation) -> _ConversationPlan:
        """Compare a conversation with the sessions imported from it before."""
        sessions = self._imported.sessions_of(mark_of(self._source.key, item.id))
        prior = self._imported.brought(sessions[-1]) if sessions else None
        if prior is None:
            return _ConversationPlan("new", "" if self._batch is None else _hashes(item.messages))
        hashes = _hashes(item.messages)
        known_hashes = [mark for mark, _ in prior.line]
        pairs = zip(known_hashes, _each(hashes), strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        many = len(item.messages)
        if same == many:
            return _ConversationPlan("known", hashes, first_new=same)
        if item.updated and prior.updated and _iso(item.updated) < prior.updated:
            return _ConversationPlan("older", hashes, first_new=many, prior=prior)
        if prior.went_on:
            return _ConversationPlan("apart", hashes, first_new=same, prior=prior)
        if same == len(known_hashes):
            return _ConversationPlan("grown", hashes, first_new=same, prior=prior)
        rewind_to = next((number for _, number in reversed(prior.line[:same]) if number), 0)
        return _ConversationPlan(
            "changed", hashes, first_new=same, rewind_to=rewind_to, prior=prior
        )

    def add(self, item: ImportedConversation) -> None:
        """Queue a conversation to be written, or extend its session."""
        mark = mark_of(self._source.key, item.id)
        if mark in self._marks:
            self.flush()  # an export may contain it twice
        plan = self.plan(item)
        if plan.kind in ("known", "older"):
            self.known += 1
            if plan.kind == "older":
                why = "What is here is newer, and has other messages; that stays."
                self.skipped.append(Skipped(_title(item), why))
            return
        if plan.kind in ("new", "apart"):
            self._create(item, mark, plan)
        else:
            self._extend(item, plan)
        messages = sum(len(each.texts) for each in self._lot.values())
        if len(self._lot) >= _MAX_SESSIONS or self._size >= _MAX_BYTES or messages >= _MAX_MESSAGES:
            self.flush()

    def flush(self) -> None:
        lot, self._lot, self._size = self._lot, {}, 0
        self._redactor.redact(each.texts for each in lot.values())
        pending, self._pending = self._pending, []
        self._marks = set()
        self._archived = None
        if lot:
            self._imported.write({name: each.records() for name, each in lot.items()})
        self.sessions += pending

    def _create(self, item: ImportedConversation, mark: str, plan: _ConversationPlan) -> None:
        begun = next((each.time for each in item.messages[plan.first_new :] if each.time), None)
        created = (None if plan.first_new else item.created) or begun or item.updated or _utc_now()
        parts = len(self._imported.sessions_of(mark))
        title = _title(item)
        name = stem = f"{self._source.key}_{created:%Y%m%d-%H%M%S}-{mark}"
        if plan.prior is not None:
            stem = _stem(plan.prior.session)
            name = f"{stem}-{parts + 1}"
        if self._archived is None:
            self._archived = self._archive.all_holdings()
        while name in self._archived:  # left by an import that was undone
            parts += 1
            name = f"{stem}-{parts + 1}"
        if plan.prior is not None:
            title = f"{title} (went on in {self._source.name})"
        log = self._block(item, plan, 0, created)
        log.header = session_record(name, self._source.key, title, created)
        self._lot[name] = log
        self._marks.add(mark)
        self._size += sum(map(len, log.texts))
        count = len(item.messages) - plan.first_new
        self._pending.append(ImportedSession(name, title, plan.kind, count, item.branches))

    def _extend(self, item: ImportedConversation, plan: _ConversationPlan) -> None:
        prior = plan.prior
        if prior is None:
            raise AssertionError("only what is there grows")
        log = self._block(item, plan, prior.last, item.created or _utc_now())
        if _title(item) != prior.title and item.title:
            stamp = _iso(item.updated or _utc_now())
            log.title = {"kind": "title", "title": _title(item), "time": stamp}
        self._redactor.redact([log.texts])
        try:
            self._imported.extend(prior.session, log.records())
        except ConflictError as error:
            why = f"{error.message} Import it again later."
            self.skipped.append(Skipped(_title(item), why, lost=True))
            return
        count = len(item.messages) - plan.first_new
        self.sessions.append(
            ImportedSession(prior.session, _title(item), plan.kind, count, item.branches)
        )

    def _block(
        self, item: ImportedConversation, plan: _ConversationPlan, last: int, created: datetime
    ) -> _Log:
        fresh = item.messages[plan.first_new :]
        before = item.messages[plan.first_new :: -1]
        time = next((each.time for each in before if each.time), created)
        return _Log(self._head(item, plan, last), fresh, last + 1, time, plan.rewind_to)

    def _head(self, item: ImportedConversation, plan: _ConversationPlan, last: int) -> _Head:
        """Return what makes the line that begins a block."""
        kept = plan.prior.line[: plan.first_new] if plan.prior is not None else []
        if plan.kind == "apart":
            kept = [(mark, 0) for mark, _ in kept]
        updated = _iso(item.updated) if item.updated else ""
        # An id made up by a source may contain the text of a message.
        id_ = item.id if _ID.fullmatch(item.id) else mark_of(self._source.key, item.id)
        batch, key, url, title = self._batch or "", self._source.key, item.url, _title(item)
        hashes = plan.hashes[plan.first_new * _HASH :]

        def head(lines: int) -> dict[str, Any]:
            line = chain(kept, zip(_each(hashes), count(last + 1)))
            return block(batch, key, id_, url, updated, title, line, lines)

        return head


def _hashes(messages: Sequence[ImportedMessage]) -> str:
    """Return the hashes of messages one after the other; those of equal ones differ."""
    hashes = bytearray()
    seen: dict[bytes, int] = {}
    for message in messages:
        content = f"{message.role}\0{message.id}\0{message.text}\0{' '.join(message.attached)}"
        found = sha256(content.encode("utf-8", "replace"))
        first = found.digest()
        seen[first] = number = seen.get(first, -1) + 1
        if number:
            found.update(f"\0{number}".encode())
        hashes += found.digest()[: _HASH // 2]
    return hashes.hex()


def _each(hashes: str) -> Iterator[str]:
    return (hashes[at : at + _HASH] for at in range(0, len(hashes), _HASH))


def _content(message: ImportedMessage) -> Packed:
    """Return the text of a message for the log: cleaned, with the names of attachments.

    It is the message's own, not a copy, where nothing is to be changed.
    """
    said = message.text
    names = ", ".join(filter(None, map(clean_line, message.attached)))
    attached = f"[Attached: {names}]" if names else ""
    text = storable("\n\n".join(filter(None, (clean(said).strip(), attached))))
    return message.said if text == said else pack(text)


def _title(item: ImportedConversation) -> str:
    return _clean_title(item.title)


@lru_cache(maxsize=64)
def _clean_title(title: str) -> str:
    return redact(storable(clean_line(title))).text


def _stem(session: str) -> str:
    head, _, tail = session.rpartition("-")
    return head if tail.isdecimal() and len(tail) < 5 else session  # a part number, not a mark


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds")


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _tree_before(services: Services, batch: str) -> Mapping[str, str]:
    """Return the tree before a batch's first commit, or the current one if it has no commits."""
    commits = list(services.history.log(batch=batch))
    rev = commits[-1].parent if commits else services.history.head()
    return services.history.tree(rev) if rev is not None else {}


def _reverted(
    services: Services, known: Batch, undo: Callable[[], Commit | None], *, has_more: bool
) -> Commit | None:
    """Undo the commits of an import that stand; raise if there is nothing else of it either."""
    is_standing = bool(services.history.standing(known.id))
    if has_more and not is_standing:
        return None
    try:
        return undo()
    except UsageError:  # somebody removed what the commits brought
        if has_more:
            return None
        if not is_standing:
            known.forget()  # it would stay the last import for ever
        raise


def take_back(
    services: Services, batch: str, undo: Callable[[], Commit | None]
) -> tuple[Commit | None, list[TakenBack]]:
    """Undo an import: its commits, its sessions and the files it wrote outside the history.

    `undo` reverts the commits; if it raises `UndoConflictError`, nothing is changed. Returns the
    undo commit, if there was something to revert, and what became of each session.

    Raises:
        NotFoundError: It brought nothing.
        UsageError: Nothing of it is left to undo.
    """
    imported, known = Imported(services.workspace), Batch(services.workspace, batch)
    has_more = bool(known.added_files()) or any(True for _ in imported.of_batch(batch))
    is_first = _INDEX not in _tree_before(services, batch)
    commit = _reverted(services, known, undo, has_more=has_more)
    taken = imported.take_back(batch)
    gone = frozenset(each.session for each in taken if each.outcome == "removed")
    lost = f"What the archive said of the conversations of {batch} goes with them."
    begun = "What was imported began the index, which lists nothing any more."
    with services.history.change(Actor.YOU, lost if gone else begun) as change:
        services.archive.remove(change, gone)
        if is_first and not services.library.infos():
            change.delete(_INDEX)
    for path, blob in known.added_files():  # one that was changed since is the user's
        with contextlib.suppress(NotFoundError):
            data = files.read_bytes(services.workspace, path)
            if files.blob_id(data) == blob:
                Removals(services.workspace).note(path, data)
                files.remove(services.workspace, path)
    for folder in known.folders():
        with contextlib.suppress(OSError):  # not empty, or already gone
            remove_folder(services.workspace, folder)
    paths = [path for path, _ in known.added_files()]
    known.forget()
    services.search.refresh([*paths, *(f"sessions/{each.session}.jsonl" for each in taken)])
    return commit, taken
