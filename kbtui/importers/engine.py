"""The engine of imports: what an export is, what it would bring, and bringing it.

Conversations become sessions, a few hundred at a time; notes become entries, through the door. All
of an import is one batch. It may be killed anywhere: nothing is ever half there, and the same
import goes on where it stopped.
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
from itertools import takewhile
from typing import Any

from kbtui.errors import ConflictError, NotFoundError, StorageError, UsageError
from kbtui.history.change import Actor, Commit
from kbtui.importers.batches import Batch, begun, stamp
from kbtui.importers.export_files import PACKED, OpenedExport
from kbtui.importers.notes import Notes
from kbtui.importers.port import ImportedConversation, ImportedNote, Said, Skipped, Source
from kbtui.importers.redacting import Redactor
from kbtui.memory.services import Services
from kbtui.redaction.redact import redact
from kbtui.sessions.imported import Imported, ImportedBlock, Line, TakenBack, block, mark_of
from kbtui.sessions.log_records import SessionMessage, message_record, session_record
from kbtui.text import clean, clean_line, counted
from kbtui.workspace import files
from kbtui.workspace.durable import remove_folder

SOURCES = (
    "kbtui.importers.sources.claude",
    "kbtui.importers.sources.chatgpt",
    "kbtui.importers.sources.open_webui",
    "kbtui.importers.sources.librechat",
    "kbtui.importers.sources.claude_code",
    "kbtui.importers.sources.codex",
    "kbtui.importers.sources.cursor",
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
    "kbtui.importers.sources.kbtui_workspace",
    "kbtui.importers.sources.nanobot",
    "kbtui.importers.sources.evernote",
    "kbtui.importers.sources.notion",
    "kbtui.importers.sources.sharegpt",
    "kbtui.importers.sources.markdown_folder",
    "kbtui.importers.sources.web_folder",
)
"""The modules that each have a `SOURCE`; the first that recognises an export reads it."""

_MOST_SESSIONS = 400
_MOST_BYTES = 8 << 20
_CHARACTERS_PER_TOKEN = 4
_ID = re.compile(r"[\w-]{1,80}", re.ASCII)
_INDEX = "knowledge/INDEX.md"


def find_source(opened: OpenedExport) -> Source | None:
    """The program whose export this is, by what is in it; None: nobody knows it."""
    for name in SOURCES:
        source: Source = import_module(name).SOURCE
        if source.recognises(opened):
            return source
    return None


def sources_of(opened: OpenedExport) -> Iterator[Source]:
    """The programs whose exports are in a file or a folder, one after the other.

    Each is to be read before the next is asked for: what was read isn't there for the next.
    """
    names = opened.names
    opened.taken = set()
    try:
        while source := find_source(opened):
            before = len(opened.taken)
            yield source
            if source.is_alone:
                opened.taken.update(opened.names)
            opened.names = [name for name in opened.names if name not in opened.taken]
            if len(opened.taken) == before or not opened.names:
                return
    finally:
        opened.names = names


def left_over(opened: OpenedExport) -> Skipped | None:
    """The files beside exports in a folder that no program's reader knew."""
    names = [name for name in opened.names if name not in opened.taken]
    names = [name for name in names if not name.lower().endswith(PACKED)]  # by themselves
    if not opened.is_folder or not names:
        return None
    shown = ", ".join(map(clean_line, names[:5])) + (", …" if len(names) > 5 else "")
    return Skipped(counted(len(names), "other file"), f"No program that kbtui knows: {shown}.")


@dataclass(slots=True)
class ImportPreview:
    """An export's content, and what importing it would do.

    `branches` are those that are left out, `notes` texts and files beside conversations, `first`
    and `last` the times of messages, `named` what conversations hold that doesn't come. Of the
    conversations so many are `new`, `grown` (they have more messages than are here) or `known`; the
    new messages are about so many `tokens`.
    """

    source: str
    conversations: int = 0
    messages: int = 0
    branches: int = 0
    notes: int = 0
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
        """True if nothing in it could be read."""
        return not self.conversations + self.notes


@dataclass(frozen=True, slots=True)
class Came:
    """A session that an import brought or made longer, by so many messages.

    `kind` is ``new``, ``grown``, ``changed`` (another branch is shown there now) or ``apart`` (what
    came stands in a session of its own, as the first was gone on with here).
    """

    session: str
    title: str
    kind: str
    messages: int
    branches: int = 0


@dataclass(slots=True)
class Report:
    """The result of an import: the sessions and the paths of notes that came or grew, and the rest.

    So many conversations and notes were `read`; `named` counts what the conversations held that
    didn't come. By the id of its `batch` it can be taken back.
    """

    batch: str
    source: str
    sessions: list[Came] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    known: int = 0
    read: int = 0
    named: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if nothing in the export could be read."""
        return not self.read

    @property
    def messages(self) -> int:
        """How many messages came."""
        return sum(each.messages for each in self.sessions)


def preview(
    services: Services,
    opened: OpenedExport,
    source: Source,
    watch: Callable[[int, int, str], None] = lambda _done, _of, _what: None,
) -> ImportPreview:
    """Read an export, and say what importing it would do; `watch` as in `run`."""
    found = ImportPreview(source.name)
    incoming = _Incoming(services, source, None, Redactor())
    seen: dict[str, int] = {}
    for item in _items(opened, source, watch):
        if isinstance(item, Skipped):
            found.skipped.append(item)
        elif isinstance(item, ImportedNote):
            found.notes += 1
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
    size = sum(len(each.text) for each in item.messages[plan.begin :])
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
    """Import an export; one that was stopped goes on.

    `watch` is told the bytes read, of how many, and what was read last. What it raises, such as a
    `StoppedError`, stops the import; what came so far stays.

    Raises:
        StorageError: There is no room, or the workspace can't be written; it can go on later.
        UnreadableError: The whole can't be read.
    """
    if not services.workspace.writable:
        raise StorageError("The workspace is read-only: nothing can be imported.")
    batch = begun(services.workspace, opened.path, source.key)
    report = Report(batch.id, source.name)
    redactor = Redactor()
    incoming = _Incoming(services, source, batch.id, redactor)
    notes = Notes(services.workspace, services.history, source.key, source.name, batch.id)
    notes.keep_file = batch.keep
    try:
        for item in _items(opened, source, watch):
            if isinstance(item, Skipped):
                report.skipped.append(item)
                continue
            report.read += 1
            if isinstance(item, ImportedNote):
                notes.add(item)
            else:
                report.named += item.named
                incoming.add(item)
        incoming.flush()
        notes.flush()
    except StorageError as error:
        came = counted(len(incoming.came), "conversation")
        raise StorageError(
            f"{error.message} The import stopped there; {came} came in.",
            f"{error.hint} The same import goes on where it stopped.".strip(),
        ) from error
    finally:
        redactor.close()
        report.sessions, report.entries = incoming.came, notes.came
        report.known = incoming.known + notes.known
        report.skipped = (report.skipped + incoming.skipped + notes.skipped)[:10_000]
        services.search.refresh(
            [*(f"sessions/{each.session}.jsonl" for each in incoming.came), *notes.came]
        )
    if report.sessions or report.entries or _holds(services, batch.id):
        batch.note(ended=stamp())
    else:
        batch.forget()
    return report


def _holds(services: Services, batch: str) -> bool:
    """True if a batch has brought something before, as one that was stopped may have."""
    commits = services.history.log(batch=batch, limit=1)
    sessions = Imported(services.workspace).of_batch(batch)
    return any(True for _ in commits) or any(True for _ in sessions)


def _items(
    opened: OpenedExport, source: Source, watch: Callable[[int, int, str], None]
) -> Iterator[ImportedConversation | ImportedNote | Skipped]:
    for name, why in opened.refused if not opened.taken else ():
        yield Skipped(name, why)
    opened.done = 0
    total = opened.total
    for item in source.read(opened):
        what = "" if isinstance(item, Skipped) else item.title
        watch(min(opened.done, total), total, what)
        yield item


# Conversations ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ConversationPlan:
    """What is to be done with a conversation: `kind` as in `Came`, or ``known`` or ``older``.

    Its messages from `begin` on are new; `back` is the message that a session is taken back to
    before, None where it isn't.
    """

    kind: str
    hashes: tuple[str, ...]
    begin: int = 0
    back: int | None = None
    there: ImportedBlock | None = None


class _Incoming:
    """Makes sessions of conversations, in lots."""

    def __init__(
        self, services: Services, source: Source, batch: str | None, redactor: Redactor
    ) -> None:
        self._imported = Imported(services.workspace)
        self._archive = services.archive
        self._redactor = redactor
        self._source = source
        self._batch = batch
        self._lot: dict[str, list[dict[str, Any]]] = {}
        self._marks: set[str] = set()
        self._size = 0
        self._waiting: list[Came] = []
        self.came: list[Came] = []
        self.known = 0
        self.skipped: list[Skipped] = []

    def plan(self, item: ImportedConversation) -> _ConversationPlan:
        """Compare a conversation with what is here of it."""
        sessions = self._imported.sessions_of(mark_of(self._source.key, item.id))
        there = self._imported.brought(sessions[-1]) if sessions else None
        if there is None:
            return _ConversationPlan(
                "new", () if self._batch is None else tuple(_hashes(item.messages))
            )
        hashes = tuple(_hashes(item.messages))
        here = [mark for mark, _ in there.line]
        pairs = zip(here, hashes, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if same == len(hashes):
            return _ConversationPlan("known", hashes, begin=same)
        if item.updated and there.updated and _iso(item.updated) < there.updated:
            return _ConversationPlan("older", hashes, begin=len(hashes), there=there)
        if there.went_on:
            return _ConversationPlan("apart", hashes, begin=same, there=there)
        if same == len(here):
            return _ConversationPlan("grown", hashes, begin=same, there=there)
        back = next((number for _, number in reversed(there.line[:same]) if number), 0)
        return _ConversationPlan("changed", hashes, begin=same, back=back, there=there)

    def add(self, item: ImportedConversation) -> None:
        """Take in a conversation."""
        mark = mark_of(self._source.key, item.id)
        if mark in self._marks:
            self.flush()  # an export may hold it twice
        plan = self.plan(item)
        if plan.kind in ("known", "older"):
            self.known += 1
            if plan.kind == "older":
                why = "What is here is newer, and has other messages; that stays."
                self.skipped.append(Skipped(_title(item), why))
            return
        if plan.kind in ("new", "apart"):
            self._make(item, mark, plan)
        else:
            self._grow(item, plan)
        if len(self._lot) >= _MOST_SESSIONS or self._size >= _MOST_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered."""
        lot, self._lot, self._size = self._lot, {}, 0
        self._redactor.redact(lot.values())
        waiting, self._waiting = self._waiting, []
        self._marks = set()
        if lot:
            self._imported.write(lot)
        self.came += waiting

    def _make(self, item: ImportedConversation, mark: str, plan: _ConversationPlan) -> None:
        begun = next((each.time for each in item.messages[plan.begin :] if each.time), None)
        created = (None if plan.begin else item.created) or begun or item.updated or _utc_now()
        parts = len(self._imported.sessions_of(mark))
        title = _title(item)
        name = stem = f"{self._source.key}_{created:%Y%m%d-%H%M%S}-{mark}"
        if plan.there is not None:
            stem = _stem(plan.there.session)
            name = f"{stem}-{parts + 1}"
        while self._archive.holdings(name):  # of an import that was taken back
            parts += 1
            name = f"{stem}-{parts + 1}"
        if plan.there is not None:
            title = f"{title} (went on in {self._source.name})"
        header = session_record(name, self._source.key, title, created)
        records = [header, *self._block(item, plan, 0, created)]
        self._lot[name] = records
        self._marks.add(mark)
        self._size += sum(len(each.get("content", "")) for each in records)
        count = len(item.messages) - plan.begin
        self._waiting.append(Came(name, title, plan.kind, count, item.branches))

    def _grow(self, item: ImportedConversation, plan: _ConversationPlan) -> None:
        there = plan.there
        if there is None:
            raise AssertionError("only what is there grows")
        records = self._block(item, plan, there.last, item.created or _utc_now())
        if _title(item) != there.title and item.title:
            stamp = _iso(item.updated or _utc_now())
            records.append({"kind": "title", "title": _title(item), "time": stamp})
        self._redactor.redact([records])
        try:
            self._imported.extend(there.session, records)
        except ConflictError as error:
            self.skipped.append(Skipped(_title(item), f"{error.message} Import it again later."))
            return
        count = len(item.messages) - plan.begin
        self.came.append(Came(there.session, _title(item), plan.kind, count, item.branches))

    def _block(
        self, item: ImportedConversation, plan: _ConversationPlan, last: int, created: datetime
    ) -> list[dict[str, Any]]:
        kept = plan.there.line[: plan.begin] if plan.there is not None else []
        if plan.kind == "apart":
            kept = [(mark, 0) for mark, _ in kept]
        fresh = range(last + 1, last + 1 + len(item.messages) - plan.begin)
        line: Line = [*kept, *zip(plan.hashes[plan.begin :], fresh, strict=True)]
        updated = _iso(item.updated) if item.updated else ""
        # What isn't an id of theirs may be made of what was said.
        id_ = item.id if _ID.fullmatch(item.id) else mark_of(self._source.key, item.id)
        head = block(
            self._batch or "", self._source.key, id_, item.url, updated, _title(item), line
        )
        rewind = {"kind": "rewind", "to_message": plan.back, "time": _iso(_utc_now())}
        records = [head] if plan.back is None else [head, rewind]
        time = next((each.time for each in item.messages[plan.begin :: -1] if each.time), created)
        for number, said in zip(fresh, item.messages[plan.begin :], strict=True):
            time = said.time or time
            message = SessionMessage(number, time, said.role, _content(said))
            records.append(message_record(message))
        return records


def _hashes(messages: Sequence[Said]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for said in messages:
        told = f"{said.role}\0{said.id}\0{said.text}\0{' '.join(said.attached)}"
        seen[told] = seen.get(told, -1) + 1
        data = f"{told}\0{seen[told]}" if seen[told] else told
        yield sha256(data.encode("utf-8", "replace")).hexdigest()[:12]


def _content(said: Said) -> str:
    """A message as the log keeps it: clean, with the names of what came along."""
    names = ", ".join(filter(None, map(clean_line, said.attached)))
    attached = f"[Attached: {names}]" if names else ""
    text = "\n\n".join(filter(None, (clean(said.text).strip(), attached)))
    return text.encode("utf-8", "replace").decode()


def _title(item: ImportedConversation) -> str:
    return _clean_title(item.title)


@lru_cache(maxsize=64)
def _clean_title(title: str) -> str:
    return redact(clean_line(title).encode("utf-8", "replace").decode()).text


def _stem(session: str) -> str:
    head, _, tail = session.rpartition("-")
    return head if tail.isdecimal() and len(tail) < 5 else session  # a part, no mark


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds")


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _tree_before(services: Services, batch: str) -> Mapping[str, str]:
    """The recorded files as they were before a batch; those of now where it wrote none."""
    commits = list(services.history.log(batch=batch))
    rev = commits[-1].parent if commits else services.history.head()
    return services.history.tree(rev) if rev is not None else {}


def take_back(
    services: Services, batch: str, undo: Callable[[], Commit | None]
) -> tuple[Commit | None, list[TakenBack]] | None:
    """Take back all of an import: what it wrote by commits, and the sessions that it brought.

    `undo` takes back the commits; where it refuses (`UndoConflictError`), nothing is done. Gives
    the commit of the undo, if there was something to undo, and what became of each session; None
    where no session is of this batch.
    """
    imported, known = Imported(services.workspace), Batch(services.workspace, batch)
    if not known.kept() and not any(True for _ in imported.of_batch(batch)):
        return None
    is_first = _INDEX not in _tree_before(services, batch)
    commit = None
    with contextlib.suppress(NotFoundError, UsageError):  # it wrote nothing but sessions
        commit = undo()
    taken = imported.take_back(batch)
    gone = frozenset(each.session for each in taken if each.outcome == "removed")
    reason = f"What the archive said of the conversations of {batch} goes with them."
    with services.history.change(Actor.YOU, reason) as change:
        services.archive.remove(change, gone)
        if is_first and not services.library.infos():
            change.delete(_INDEX)
    for path, blob in known.kept():  # a file that was changed since is the user's
        with contextlib.suppress(NotFoundError):
            if files.blob_id(files.read_bytes(services.workspace, path)) == blob:
                files.remove(services.workspace, path)
    for folder in known.folders():
        with contextlib.suppress(OSError):  # it holds something else, or is gone
            remove_folder(services.workspace, folder)
    paths = [path for path, _ in known.kept()]
    known.forget()
    services.search.refresh([*paths, *(f"sessions/{each.session}.jsonl" for each in taken)])
    return commit, taken
