"""Tombstones of what must not be remembered again: facts that the user undid or forgot.

``memory/tombstones.jsonl`` holds a keyed hash of each fact and where it had been said, never the
text: whoever reads the file learns nothing. The key lies in ``.kbtui/key``.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from kbtui.errors import KbtuiError, NotFoundError
from kbtui.history.change import Actor, Change, Commit
from kbtui.history.history import History
from kbtui.knowledge.format.facts import normalise, restated
from kbtui.memory.records.archive_lines import is_record
from kbtui.memory.records.dates import absolute_dates, local
from kbtui.memory.records.ranges import Range, read_range
from kbtui.offline.language import language_of
from kbtui.sessions.log_records import TITLE
from kbtui.sessions.store import SessionStore
from kbtui.workspace import files
from kbtui.workspace.durable import storage_errors
from kbtui.workspace.jsonl import BadLine, add_record, parse_records
from kbtui.workspace.layout import MACHINE, Workspace

TOMBSTONES = "memory/tombstones.jsonl"
LOST_KEY = "its key is lost"
_KEY = f"{MACHINE}/key"
_KEY_BYTES = 32
# Files that say what is remembered; the archive, the cursors and this file don't.
_REMEMBERED = re.compile(
    r"knowledge/.*|memory/(?:MEMORY|\d{4}-\d\d-\d\d[^/]*)\.md|USER\.md|SOUL\.md", re.DOTALL
)
_CLOCK = re.compile(r"\A\d\d:\d\d[ \t]+(?=\S)")
_GENERATED = "INDEX.md"
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n")
_ANSWERS = re.compile(r"\A\W*\w+,\s")


@dataclass(frozen=True, slots=True)
class FactSource:
    """Where a fact had been said; `messages` is an inclusive range of ids."""

    session: str
    messages: Range


@dataclass(frozen=True, slots=True)
class _Stone:
    """The last word on a fact; `dropped` are those of its sources that are passed over.

    One that was `undone` was taken back, or rejected; the others were forgotten.
    """

    digest: str
    time: datetime
    sources: tuple[FactSource, ...]
    lifted: bool
    dropped: tuple[FactSource, ...]
    undone: bool = False

    def after(self, before: _Stone) -> _Stone:
        """This stone where there was one already: both stand for where the fact had been said."""
        if self.lifted or before.lifted:
            return self
        return replace(
            self,
            sources=_all(before.sources, self.sources),
            dropped=_all(before.dropped, self.dropped),
            undone=before.undone and self.undone,
        )

    def says(
        self, now: datetime, sources: Sequence[FactSource], *, drops: bool, undone: bool
    ) -> bool:
        """True if there is nothing to add to it.

        What was buried long ago is buried again: the user may have stated it in between.
        """
        known = self.dropped if drops else self.sources
        holds = not self.lifted and self.time >= now and self.undone <= undone
        return holds and set(sources) <= set(known)


@dataclass(eq=False)
class Tombstones:
    """Buries facts, and knows which are buried."""

    workspace: Workspace
    history: History
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _key: bytes | None = field(default=None, init=False)
    _cached: tuple[tuple[int, int, int] | None, dict[str, _Stone]] = field(
        default_factory=lambda: (None, {}), init=False
    )

    def bury(
        self,
        change: Change,
        facts: Iterable[str],
        sources: Sequence[FactSource] = (),
        *,
        drop_messages: bool = False,
        undone: bool = False,
    ) -> int:
        """Add tombstones to a running change; how many facts were buried that hadn't been.

        `sources` is where they had been said; with `drop_messages` these messages say nothing but
        that: memory passes them over. What was `undone` is kept from those that work in the
        background alone; what was forgotten from whoever isn't told it again.
        """
        return self._add(change, facts, sources, lifted=False, drops=drop_messages, undone=undone)

    def lift(self, change: Change, facts: Iterable[str]) -> int:
        """Take tombstones away: the user has stated these facts again, or undone an undo."""
        return self._add(change, facts, (), lifted=True)

    def buried(
        self, fact: str, *, said: Iterable[tuple[datetime, str]] = (), asked: bool = False
    ) -> bool:
        """True if a fact, in any wording that `normalise` makes the same, must not be written.

        What the user has `said` since may state it again. What was undone may be written as well by
        whoever is `asked` to in what was said since: nobody repeats all words of what they want
        done again.
        """
        stone = self._stones().get(self._digest(fact))
        if stone is None or stone.lifted:
            return False
        since = [(when, text) for when, text in said if when > stone.time]
        return not ((asked and stone.undone and since) or is_stated(fact, since))

    def forgotten(self, session: str) -> list[Range]:
        """The messages of a session whose facts were buried."""
        return [
            source.messages
            for stone in self._stones().values()
            if not stone.lifted
            for source in stone.sources
            if source.session == session
        ]

    def dropped(self, session: str) -> list[Range]:
        """The messages of a session that the user wants passed over."""
        return [
            source.messages
            for stone in self._stones().values()
            if not stone.lifted
            for source in stone.dropped
            if source.session == session
        ]

    def companion(self, change: Change) -> bool:
        """Bury what an undo takes out of memory, and lift what it brings back; tells if it did.

        What an import brought may come again as if it never had, where all of it is undone; what a
        sync takes back stands in the notes in other words.
        """
        if change.origin.undoes is None or change.adopted or self._is_import(change.origin.undoes):
            return False
        for path in [path for path in change.edits if is_record(path)]:
            change.replace(path, files.read_if_there(self.workspace, path))
        if change.actor is Actor.SYNC:
            return False
        removed, added = _restated(change)
        sources = self._sources(change.origin.undoes)
        lost = [fact for key, fact in removed.items() if key not in added]
        back = [fact for key, fact in added.items() if key not in removed]
        self.bury(change, _untimed(lost), sources, undone=True)
        self.lift(change, _untimed(back))
        buried = {self._digest(fact) for fact in removed.values()}
        commits = change.origin.undoes.split()
        again = [stone.digest for stone in chain(*map(self.buried_by, commits))]
        self._put(change, [each for each in again if each not in buried], (), lifted=True)
        return True

    def _is_import(self, commits: str) -> bool:
        """True if commits are all of an import."""
        known = commits.split()
        batch = self.history.commit(known[0]).origin.batch
        if batch is None or not batch.startswith("import-"):
            return False
        return {each.id for each in self.history.log(batch=batch)} <= set(known)

    def restore_sessions(self, commit: Commit, sessions: SessionStore) -> list[str]:
        """Have sessions read again where a commit undoes a forgetting, or undoes that; which."""
        changed: dict[str, None] = {}
        for each in (commit.origin.undoes or "").split():
            try:
                undone = self.history.commit(each)
            except KbtuiError:
                continue
            if undone.origin.undoes:
                changed |= dict.fromkeys(self.restore_sessions(undone, sessions))
            for session in self.sessions_of(each) if not undone.origin.undoes else ():
                with suppress(KbtuiError):
                    sessions.unmask(session, each)
                    changed[session] = None
        return list(changed)

    def sessions_of(self, commit: str) -> list[str]:
        """The sessions in which had been said what a commit buried."""
        sources = [source for stone in self.buried_by(commit) for source in stone.sources]
        return list(dict.fromkeys(source.session for source in sources))

    def buried_by(self, commit: str) -> list[_Stone]:
        """The tombstones that a commit set; none where it isn't there any more."""
        try:
            parent = self.history.commit(commit).parent
            before, after = (
                self.history.tree(each).get(TOMBSTONES) if each else None
                for each in (parent, commit)
            )
        except KbtuiError:
            return []
        if after is None or after == before:
            return []
        old = self.history.read_blob(before) if before else b""
        known = {record.data for record in parse_records(old, TOMBSTONES)[0]}
        records, _ = parse_records(self.history.read_blob(after), TOMBSTONES)
        stones = [_stone(record.value) for record in records if record.data not in known]
        return [stone for stone in stones if stone is not None and not stone.lifted]

    def problems(self) -> tuple[BadLine, ...]:
        """Lines that can't be used; they stay in the file as they are."""
        records, bad = parse_records(
            files.read_if_there(self.workspace, TOMBSTONES) or b"", TOMBSTONES
        )
        for record in records:
            if _stone(record.value) is None:
                bad.append(BadLine(TOMBSTONES, record.number, record.data, "no tombstone"))
            elif record.value.get("key", self._key_name()) != self._key_name():
                bad.append(BadLine(TOMBSTONES, record.number, record.data, LOST_KEY))
        return tuple(sorted(bad, key=lambda line: line.number))

    def _add(
        self,
        change: Change,
        facts: Iterable[str],
        sources: Sequence[FactSource],
        *,
        lifted: bool,
        drops: bool = False,
        undone: bool = False,
    ) -> int:
        digests = [self._digest(fact) for fact in facts if normalise(fact)]
        return self._put(change, digests, sources, lifted=lifted, drops=drops, undone=undone)

    def _put(
        self,
        change: Change,
        digests: Iterable[str],
        sources: Sequence[FactSource],
        *,
        lifted: bool,
        drops: bool = False,
        undone: bool = False,
    ) -> int:
        before = change.before(TOMBSTONES)
        data = change.read(TOMBSTONES) or b""
        known = _read(data)
        now = self.clock()
        count = 0
        written = False
        for digest in dict.fromkeys(digests):
            stone = known.get(digest)
            buried = stone is not None and not stone.lifted
            if lifted and not buried:
                continue
            if not lifted and stone and stone.says(now, sources, drops=drops, undone=undone):
                continue
            record = self._record(digest, sources, now)
            marks = {"lifted": lifted, "drops": drops, "undone": undone}
            data = add_record(data, record | {mark: True for mark, holds in marks.items() if holds})
            count += not buried or lifted
            written = True
        if written:
            change.put(TOMBSTONES, data, over=before)
        return count

    def _record(self, digest: str, sources: Sequence[FactSource], time: datetime) -> dict[str, Any]:
        record: dict[str, Any] = {"hash": digest, "time": time.isoformat(), "key": self._key_name()}
        if sources:
            record["sources"] = [
                {"session": source.session, "messages": list(source.messages)} for source in sources
            ]
        return record

    def _sources(self, undone: str) -> tuple[FactSource, ...]:
        """Where what the undone commits say had been said."""
        found = []
        for commit in undone.split():
            try:
                origin = self.history.commit(commit).origin
            except KbtuiError:
                continue
            if origin.session is not None and origin.messages is not None:
                found.append(FactSource(origin.session, origin.messages))
        return tuple(found)

    def _stones(self) -> dict[str, _Stone]:
        """All of them; they are only added to, or rewritten as a whole."""
        status = files.file_status(self.workspace, TOMBSTONES)
        state = (status.st_size, status.st_ino, status.st_mtime_ns) if status else None
        if state != self._cached[0]:
            data = files.read_if_there(self.workspace, TOMBSTONES) or b""
            self._cached = (state, _read(data))
        return self._cached[1]

    def _digest(self, fact: str) -> str:
        return hmac.new(self._secret(), normalise(fact).encode(), hashlib.sha256).hexdigest()

    def _key_name(self) -> str:
        """Tells keys apart without giving them away."""
        return hmac.new(self._secret(), b"name", hashlib.sha256).hexdigest()[:8]

    def _secret(self) -> bytes:
        if self._key is None:
            self._key = self._load_key() or self._make_key()
        return self._key

    def _load_key(self) -> bytes | None:
        try:
            with storage_errors("Can't read the key of the tombstones"):
                key = bytes.fromhex(self._key_file.read_text("ascii", "replace"))
        except (NotFoundError, ValueError):
            return None
        return key if len(key) == _KEY_BYTES else None

    def _make_key(self) -> bytes:
        """Make the key, once for all processes; a damaged one is replaced."""
        key = secrets.token_bytes(_KEY_BYTES)
        if not self.workspace.writable:
            return key
        draft = f"{_KEY}-{secrets.token_hex(4)}"
        files.write_machine_file(self.workspace, draft, key.hex().encode())
        made = self.workspace.root / draft
        with storage_errors("Can't make the key of the tombstones"):
            try:
                os.link(made, self._key_file)
            except FileExistsError:
                theirs = self._load_key()
                if theirs is None:
                    made.replace(self._key_file)
                key = theirs or key
            made.unlink(missing_ok=True)
        return key

    @property
    def _key_file(self) -> Path:
        return self.workspace.root / _KEY


def _untimed(facts: Iterable[str]) -> list[str]:
    """Facts, and those of the journal without their time of the day as well."""
    return [each for fact in facts for each in dict.fromkeys((fact, _CLOCK.sub("", fact)))]


def is_stated(fact: str, said: Iterable[tuple[datetime, str]]) -> bool:
    """True if something that was said holds all words of a fact, and not as what it denies.

    Files have dates where people say "tomorrow".
    """
    return any(
        _states(f"{text}\n{absolute_dates(text, local(when).date())}", fact) for when, text in said
    )


def _states(text: str, fact: str) -> bool:
    """True if the sentences of a text that deny nothing hold all words of a fact.

    One word before a comma answers what was said before: "No, I do like tea."
    """
    words = set(normalise(fact).split())
    language = language_of(text)
    denials = language.list("deny").words | language.list("forget").words
    told: set[str] = set()
    for sentence in _SENTENCE_END.split(text):
        rest = set(normalise(_ANSWERS.sub("", sentence, count=1)).split())
        if not (rest & denials) - words:
            told |= set(normalise(sentence).split())
    return words <= told


def _read(data: bytes) -> dict[str, _Stone]:
    records, _ = parse_records(data, TOMBSTONES)
    stones = [stone for record in records if (stone := _stone(record.value)) is not None]
    latest: dict[str, _Stone] = {}
    for stone in sorted(stones, key=lambda stone: stone.time):
        before = latest.get(stone.digest)
        latest[stone.digest] = stone.after(before) if before else stone
    return latest


def _all(one: Sequence[FactSource], other: Sequence[FactSource]) -> tuple[FactSource, ...]:
    return tuple(dict.fromkeys([*one, *other]))


def _stone(value: Any) -> _Stone | None:
    digest, time = value.get("hash"), value.get("time")
    if not isinstance(digest, str) or not isinstance(time, str):
        return None
    try:
        when = datetime.fromisoformat(time)
    except ValueError:
        return None
    listed = value.get("sources")
    sources = tuple(_sources(listed if isinstance(listed, list) else []))
    return _Stone(
        digest,
        when if when.tzinfo else when.replace(tzinfo=UTC),
        sources,
        value.get("lifted") is True,
        sources if value.get("drops") is True else (),
        value.get("undone") is True,
    )


def _sources(values: list[Any]) -> Iterable[FactSource]:
    for value in values:
        if isinstance(value, dict) and isinstance(value.get("session"), str):
            messages = read_range(value.get("messages"), TITLE)
            if messages is not None:
                yield FactSource(value["session"], messages)


def _restated(change: Change) -> tuple[dict[str, str], dict[str, str]]:
    """The facts that a change takes out of memory, and those that it brings, by their keys."""
    removed: dict[str, str] = {}
    added: dict[str, str] = {}
    for path, data in list(change.edits.items()):
        if _REMEMBERED.fullmatch(path) and not path.endswith(_GENERATED):
            before = change.before(path)
            gone, come = restated(files.text_of(before), files.text_of(data))
            removed |= gone
            added |= come
    return removed, added
